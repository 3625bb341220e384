//! Reports of a conformance run. Each is a pure function of a [`Report`](super::Report).

mod json;
mod junit;
mod list;
mod text;

pub use json::write_json;
pub use junit::write_junit;
pub use list::{list_json, list_markdown, list_text};
pub use text::write_text;
