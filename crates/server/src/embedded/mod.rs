//! webdyno's own small server: what it can do, serving it, and controlling it as a child process.

mod count;
mod instance;
mod options;
mod serve;
mod work;

pub(crate) use count::Count;
pub(crate) use instance::EmbeddedControl;
pub use serve::serve_main;
