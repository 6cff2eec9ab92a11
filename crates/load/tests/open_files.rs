//! Loads side by side have room for all of them. A test program of its own, because the limit on open files is the whole process's.

use load::{Control, Target, run};
use model::SECOND;
use model::load::LoadResult;
use model::plan::LoadSpec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use testkit::scripted::{Scripted, Step, answer};

/// A load that goes on until it is told to end.
struct Sending {
    load: JoinHandle<LoadResult>,
    end: Sender<()>,
    _server: Scripted,
}

impl Sending {
    /// Returns when its first request has arrived.
    fn begin(connections: u32) -> Sending {
        let (end, ended) = channel();
        let ended = Mutex::new(ended);
        let server = Scripted::start(move |_| {
            ended.lock().expect("nobody panicked").recv().expect("it is told");
            vec![Step::Send(answer(200, "abc"))]
        });
        let target = Target::new(server.address(), "localhost");
        let spec = LoadSpec { connections, requests: Some(1), timeout_ns: 60 * SECOND, ..LoadSpec::of("test", "/") };
        let load = thread::spawn(move || {
            let mut control = Control { stop: &AtomicBool::new(false), on_interval: &mut |_| () };
            run(&spec, &target, &[], &mut control).expect("the load starts")
        });
        while server.requests() == 0 && !load.is_finished() {
            thread::yield_now();
        }
        Sending { load, end, _server: server }
    }

    fn end(self) {
        self.end.send(()).expect("the server waits");
        assert_eq!(self.load.join().expect("it ends").counts.good, 1);
    }
}

/// The limit on open files.
fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

#[test]
fn the_limit_is_that_of_all_loads_and_comes_back_with_the_last() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    if maximum.is_some_and(|maximum| maximum < 1024) {
        return testkit::skip::not_here("not a thousand open files");
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(700), maximum }).unwrap();
    // Each has room by itself: with 256 files for all else.
    let first = Sending::begin(300);
    assert_eq!(limit(), Some(700));
    let second = Sending::begin(400);
    assert_eq!(limit(), Some(956));
    first.end();
    assert_eq!(limit(), Some(956));
    let third = Sending::begin(301);
    assert_eq!(limit(), Some(957));
    second.end();
    third.end();
    assert_eq!(limit(), Some(700));
}
