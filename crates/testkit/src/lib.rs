//! For tests only: a scripted server on port 0, one that stalls by a timetable, one that the kernel times, a fake /proc, Apache and nginx as Debian has them, a way to give up with a reason, and suites that play several processes.

pub mod debian;
pub mod fake_proc;
pub mod nginx;
pub mod openssl;
pub mod own;
pub mod redhat;
pub mod scripted;
pub mod skip;
pub mod stalling;
pub mod stamped;
pub mod suite;
