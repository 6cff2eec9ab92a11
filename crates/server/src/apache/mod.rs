//! A private instance of the system's Apache httpd: found, configured, tested, started, and asked what is in force.
//!
//! The order of a start is the order of the files: `install` and `account` look at the machine, `render` writes the
//! configuration, `check` lets Apache judge it, `instance` starts it, `settings` reads back what runs.

mod account;
mod check;
mod install;
mod instance;
mod render;
mod settings;

pub(crate) use instance::ApacheControl;

/// Apache's name in messages.
pub(crate) const SERVER: &str = "Apache";
