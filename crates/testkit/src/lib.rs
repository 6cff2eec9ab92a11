//! For tests only: a scripted server on port 0, one that stalls by a timetable, one that the kernel times, a fake /proc, an Apache as Debian has it, a way to give up with a reason, and suites that play several processes.

pub mod debian;
pub mod fake_proc;
pub mod openssl;
pub mod scripted;
pub mod skip;
pub mod stalling;
pub mod stamped;
pub mod suite;
