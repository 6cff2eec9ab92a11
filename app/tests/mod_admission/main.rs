//! mod_admission in the machine's own Apache: real requests, an oracle beside it, processes that die.
//!
//! The rules of who may run are tested without a server in modules/mod_admission/tests; here is what only a server can show: that each
//! shape of a request takes its permit once and gives it back, under each way to run programs and each processing module.

#[path = "../tool/mod.rs"]
mod tool;

mod client;
mod control;
mod oracle;
mod server;

mod compat;
mod configuration;
mod crash;
mod hold;
mod http2;
mod installed;
mod keys;
mod kills;
mod live;
mod matrix;
mod memory;
mod pages;
mod plan;
mod policy;
mod pressure;
mod queue;
mod seen;
mod shapes;
