//! For tests only: a scripted server on port 0, a fake /proc, and a way to give up with a reason.

pub mod fake_proc;
pub mod scripted;
pub mod skip;
