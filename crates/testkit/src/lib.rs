//! For tests only: a scripted server on port 0, a fake /proc, golden files.

pub mod fake_proc;
pub mod scripted;
pub mod skip;
