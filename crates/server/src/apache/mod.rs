//! A private instance of the system's Apache httpd: found, configured, tested, started, and asked what is in force.
//!
//! The order of a start is the order of the files: `install` looks at the machine, `render` writes the
//! configuration, `refuse` and `check` judge it, the latter by asking Apache, `instance` starts it, `settings` reads back what runs.

mod check;
mod crew;
mod derived;
mod in_place;
mod install;
mod instance;
mod keeping;
mod machine;
mod overridden;
mod pages;
mod refuse;
mod render;
mod scoreboard;
mod settings;

pub(crate) use check::canonical;
pub(crate) use derived::DerivedControl;
pub(crate) use in_place::InPlaceControl;
pub(crate) use install::Install;
pub(crate) use instance::ApacheControl;
pub(crate) use machine::{main_file, own};
pub(crate) use render::{INFO, STATUS};
pub(crate) use scoreboard::Scoreboard;

/// Apache's name in messages.
pub(crate) const SERVER: &str = "Apache";
