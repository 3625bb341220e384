//! What the dynamic loader would load, from where, and what would bind to what, following
//! glibc's rules without running anything.
//!
//! Reading goes through [`FileSource`], so that a test can give a tree in memory and the walk
//! itself touches no file.

mod bind;
mod cache;
mod directory_source;
mod environment;
mod memory_source;
mod needed_of;
mod search;
mod source;
mod walk;

pub use bind::{Binding, Bindings, Failure, ImportUse, Provider};
pub use cache::{CacheEntry, CacheError, LoaderCache};
pub use directory_source::DirectorySource;
pub use environment::LoadEnvironment;
pub use memory_source::MemorySource;
pub use search::Found;
pub use source::{Directory, FileBytes, FileSource};
pub use walk::{Closure, ClosureObject, MissingLibrary, Place, walk};
