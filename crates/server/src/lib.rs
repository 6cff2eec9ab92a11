//! Control a real server: render its configuration, start it, wait until it is ready, ask what is in force, stop it.
//!
//! [`control()`] turns a plan's server into a [`Control`]; [`Control::start`] gives a [`Running`] server, which ends when dropped.
//! A fresh instance serves each trial, in a folder of its own, so nothing of the machine's own server is touched; one that is only a URL
//! is waited for and left as it is. What runs is asked of the server
//! itself and never taken from what was written. The server is asked only before it is [`Running`], so watching takes no worker.
//!
//! Nothing here measures, and nothing here decides what a setting is good for. Processes and limits are the `host` crate's.

mod account;
mod apache;
mod command;
mod control;
mod embedded;
mod ending;
mod error;
mod installed;
mod lossy;
mod nginx;
mod own;
mod php;
mod port;
mod probe;
mod program;
mod running;
mod selinux;
mod site;
mod status;
mod url;
mod workers;

pub use command::check_package;
pub use control::{Control, Forced, Place, Running, control};
pub use embedded::serve_main;
pub use ending::{Ended, asks_for};
pub use error::{Closed, PlanKey, ServerError};
pub use installed::{
    Installed, OwnApache, OwnNginx, installed_apache, installed_nginx, left_out, main_file, own_apache, own_nginx,
};
pub use running::{Between, Bounds, Census, bounds, look, memory_of, not_taken, others, pool_ticks, ticks};
pub use selinux::selinux_enforces;
pub use status::StatusSource;
pub use workers::workers_held;
