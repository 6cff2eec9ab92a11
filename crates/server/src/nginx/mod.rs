//! A private instance of the system's nginx: found, configured, tested by nginx itself, and started.
//!
//! `render` puts each directive of the plan into the context it belongs to and remembers where it came from, `check` lets nginx judge
//! the result, `instance` starts it. Or of the machine's own configuration: `in_place` changes the running server, `derived` copies it. nginx tells nobody what it runs with; what is in force is what it read, which `nginx -T` repeats.

mod check;
mod crew;
mod derived;
mod edit;
mod flat;
mod in_place;
mod instance;
mod launch;
mod lines;
mod machine;
mod meant;
mod program;
mod render;
mod status;
mod tokens;

pub(crate) use derived::{DerivedControl, left_out, own};
pub(crate) use in_place::InPlaceControl;
pub(crate) use instance::NginxControl;
pub(crate) use machine::main_file;
pub(crate) use program::{Built, find};
pub(crate) use status::StubStatus;
pub(crate) use tokens::{What, tokens};

/// nginx's name in messages.
pub(crate) const SERVER: &str = "nginx";
