//! TOML files as their readers see them: values with their places, and errors that show the file, the line, the key's full
//! path and the nearest valid name. Configs and experiments are both read by this.

mod error;
mod file;
mod read;
mod section;
mod tree;

pub use error::{ConfigError, Diagnostic, Excerpt, Problem, Shown};
pub(crate) use file::read as read_file;
pub(crate) use read::keys_of;
pub(crate) use section::{Leaf, Section, refuse};
pub(crate) use tree::{Document, KeyNode, KeyPlace, Value, leaves, shorten};
