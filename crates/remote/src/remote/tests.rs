//! Tests of both ends of a remote load in one process, without ssh between them.

use super::*;
use crate::agent::{Place, serve};
use load::monotonic_ns;
use model::SECOND;
use model::plan::{Arrivals, Pace, Timetable};
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::thread;
use testkit::scripted::{Scripted, Step, answer};

/// Both ends in one process.
fn remote() -> Remote {
    let (near, far) = UnixStream::pair().unwrap();
    let orders = far.try_clone().unwrap();
    thread::spawn(move || {
        let prepare = |spec: &LoadSpec, _: &Target| match spec.connections {
            ..=99 => Ok(vec!["ports may run out".to_owned()]),
            _ => Err("too many".to_owned()),
        };
        let host = HostFacts { name: "far".to_owned(), ..HostFacts::default() };
        (&far).write_all(b"webdyno-remote: start\n").unwrap();
        drop(serve(orders, far, &Place { host, sees: None, prepare: &prepare }));
    });
    let origin = Origin::parse("ssh:far").unwrap();
    let program = Program { bytes: Vec::new(), sum: String::new() };
    let mut line = Line::over(near.try_clone().unwrap(), near);
    let interrupted = AtomicBool::new(false);
    let mut arrival = Arrival::new("ssh:far", &origin, &program, &mut line, &interrupted);
    arrival.take_in().unwrap();
    let hello = arrival.hello().unwrap();
    Remote { from: origin.to_string(), hello, address: None, line: RefCell::new(line) }
}

fn server() -> Scripted {
    Scripted::always(vec![Step::Send(answer(200, "hello"))])
}

fn run(remote: &Remote, server: &Scripted, spec: &LoadSpec) -> (LoadResult, u64) {
    let (stop, never) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut told = 0;
    let mut on_interval = |interval: &LoadInterval| told += interval.counts.good;
    let mut control = Control { stop: &stop, on_interval: &mut on_interval };
    let target = Target::new(server.address(), "localhost");
    (remote.run(spec, &target, &[], &mut control, &never).unwrap(), told)
}

#[test]
fn everything_that_is_counted_there_arrives_here() {
    let (remote, server) = (remote(), server());
    let spec = LoadSpec { requests: Some(500), connections: 7, ..LoadSpec::of("l", "/") };
    let before = monotonic_ns();
    let (load, told) = run(&remote, &server, &spec);
    let after = monotonic_ns();
    assert_eq!((load.counts.good, told, server.requests()), (500, 500, 500));
    assert_eq!((load.total.len(), load.first_byte.len(), load.connect.len()), (500, 500, load.counts.connects));
    let mut seconds = model::load::Counts::default();
    load.intervals.iter().for_each(|interval| seconds.merge(&interval.counts));
    assert_eq!(seconds, load.counts);
    let mut times = Latency::new();
    load.intervals.iter().for_each(|interval| times.merge(&interval.total.unpack()));
    assert_eq!(times.buckets().collect::<Vec<_>>(), load.total.buckets().collect::<Vec<_>>());
    // Both clocks are one, so instants are right within what is said of them.
    let away = load.generator.away.unwrap();
    assert_eq!((away.from.as_str(), away.host.name.as_str()), ("ssh:far", "far"));
    assert!(away.offset_ns.unsigned_abs() <= away.uncertainty_ns, "{away:?}");
    assert!(load.started_ns + away.uncertainty_ns >= before && load.ended_ns <= after + away.uncertainty_ns);
    // Another one, of another kind, over the same line.
    let pace = Pace::Timetable(Timetable::constant(1000.0, Arrivals::Even));
    let open = LoadSpec { pace, requests: None, duration_ns: Some(SECOND / 5), ..spec };
    let (load, _) = run(&remote, &server, &open);
    let account = load.open.unwrap();
    assert_eq!((account.arrived, account.service.len()), (200, load.counts.good));
}

#[test]
fn a_wish_to_stop_arrives_there_and_orders_can_be_refused() {
    let (remote, server) = (remote(), server());
    let target = Target::new(server.address(), "localhost");
    let endless = LoadSpec { duration_ns: Some(3600 * SECOND), ..LoadSpec::of("l", "/") };
    let (stop, never) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut on_interval = |_: &LoadInterval| stop.store(true, Ordering::Relaxed);
    let mut control = Control { stop: &stop, on_interval: &mut on_interval };
    let load = remote.run(&endless, &target, &[], &mut control, &never).unwrap();
    assert_eq!(load.end, model::load::LoadEnd::Stopped);
    let few = LoadSpec { requests: Some(3), ..endless };
    assert_eq!(remote.look(&few, &target, &[], &never).unwrap().statuses.get(&200), Some(&3));
    assert_eq!(remote.prepare(&few, &target, &[], &never).unwrap(), ["on far: ports may run out"]);
    let many = LoadSpec { connections: 100, ..few };
    let refused = remote.prepare(&many, &target, &[], &never).unwrap_err().to_string();
    assert_eq!(refused, "ssh:far: too many");
}
