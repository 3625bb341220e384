//! `dnn-assay discover`: what hipDNN would load from where, in which order, and what it drops, with
//! the host's own words.

mod admit;
pub mod args;
mod paths;
mod report;

pub use admit::{DiscoverError, Discovered, EngineFate, PluginFate, discover};
pub use paths::{DEFAULT_FOLDER, Found, Ignored, Mode, Search, find};
pub use report::{write_json, write_text};
