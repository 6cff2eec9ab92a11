//! A process without free file descriptors. A test program of its own, because the limit is the whole process's.

use load::{Ending, Target, records};
use model::SECOND;
use model::load::Failure;
use model::plan::LoadSpec;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicBool;
use testkit::scripted::Refusing;

#[test]
fn no_file_descriptor_is_a_failure_of_this_machine() {
    let target = Refusing::start().address();
    let lowest_free = std::fs::File::open("/dev/null").unwrap().as_raw_fd();
    // The next one is for epoll; sockets then find none.
    let limit = u64::try_from(lowest_free).unwrap() + 1;
    setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum: Some(limit) }).unwrap();
    let spec = LoadSpec { connections: 2, requests: Some(4), timeout_ns: SECOND, ..LoadSpec::of("test", "/") };
    let target = Target::new(target, "localhost");
    let records = records(&spec, &target, &[], &AtomicBool::new(false)).unwrap();
    assert_eq!(records.len(), 4);
    assert!(records.iter().all(|record| record.ending == Ending::Failed(Failure::Local)), "{records:?}");
}
