//! Witnesses: each sees all that its worker does, and may end the load.

use crate::{friendly, spec};
use load::{Control, Ending, KEPT_OF_HEADS, Record, Target, Witness};
use model::SECOND;
use model::load::{LoadEnd, LoadResult};
use model::plan::{Arrivals, LoadSpec, Pace, Timetable};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use testkit::scripted::{Scripted, Step, answer};

#[derive(Debug, PartialEq, Eq)]
enum Shown {
    Head(Vec<u8>),
    Record(Record),
}

#[derive(Default)]
struct Notes {
    shown: Vec<Shown>,
    wants_heads: bool,
    /// So many of them are enough.
    enough: Option<usize>,
}

impl Witness for Notes {
    fn wants_heads(&self) -> bool {
        self.wants_heads
    }

    fn head(&mut self, bytes: &[u8]) {
        self.shown.push(Shown::Head(bytes.to_vec()));
    }

    fn saw(&mut self, record: &Record) {
        self.shown.push(Shown::Record(*record));
    }

    fn is_enough(&self) -> bool {
        self.enough.is_some_and(|enough| self.shown.len() >= enough)
    }
}

fn run(address: SocketAddr, spec: &LoadSpec, witness: &(dyn Fn() -> Notes + Sync)) -> (LoadResult, Vec<Notes>) {
    let never = AtomicBool::new(false);
    let mut control = Control { stop: &never, on_interval: &mut |_| {} };
    load::run_witnessed(spec, &Target::new(address, "h"), &[], &mut control, &never, witness).expect("the load starts")
}

fn records(notes: &[Notes]) -> Vec<Record> {
    let shown = notes.iter().flat_map(|notes| &notes.shown);
    shown.filter_map(|shown| if let Shown::Record(record) = shown { Some(*record) } else { None }).collect()
}

#[test]
fn every_request_is_seen_once_and_whole() {
    let server = friendly();
    let load = LoadSpec { requests: Some(100), connections: 4, threads: Some(2), ..spec() };
    let (result, notes) = run(server.address(), &load, &Notes::default);
    assert_eq!((result.counts.good, notes.len()), (100, 2));
    let records = records(&notes);
    assert_eq!(records.len(), notes.iter().map(|notes| notes.shown.len()).sum(), "no heads unless they are wanted");
    assert_eq!(records.len(), 100);
    for record in &records {
        let (written, first) = (record.written_ns.expect("written"), record.first_byte_ns.expect("answered"));
        assert!(record.start_ns <= written && record.start_ns <= first && first <= record.end_ns, "{record:?}");
        assert_eq!((record.ending, record.bytes_out), (Ending::Good, server.last_request().len() as u64));
    }
    assert_eq!(records.iter().filter(|record| record.connect_ns.is_some()).count() as u64, result.counts.connects);
    // What is sent together is written too.
    let (_, notes) = run(server.address(), &LoadSpec { pipeline: 4, ..load }, &Notes::default);
    assert!(notes.iter().flat_map(|n| &n.shown).all(|s| matches!(s, Shown::Record(r) if r.written_ns.is_some())));
}

#[test]
fn heads_are_shown_before_their_records() {
    let (head, body) = ("HTTP/1.1 200 X\r\nX-A: 1\r\nContent-Length: 20000\r\n\r\n", "x".repeat(20_000));
    // In two pieces, of which the first ends within the head; and in one, with the body.
    let server = Scripted::start(move |turn| {
        let whole = format!("{head}{body}").into_bytes();
        match turn.total % 2 {
            0 => vec![Step::Send(whole[..20].to_vec()), Step::Send(whole[20..].to_vec())],
            _ => vec![Step::Send(whole)],
        }
    });
    let wanting = || Notes { wants_heads: true, ..Notes::default() };
    let (_, notes) = run(server.address(), &LoadSpec { requests: Some(6), ..spec() }, &wanting);
    let shown = &notes[0].shown;
    assert_eq!(shown.len(), 12);
    for pair in shown.chunks(2) {
        let [Shown::Head(shown), Shown::Record(record)] = pair else { panic!("{pair:?}") };
        assert!(shown.starts_with(head.as_bytes()) && shown.len() <= KEPT_OF_HEADS, "{}", shown.len());
        assert_eq!(record.ending, Ending::Good);
    }
    // Of answers in one piece each has its own.
    let numbered = Scripted::start(|turn| vec![Step::Send(answer(200 + turn.total as u16, ""))]);
    let load = LoadSpec { requests: Some(8), pipeline: 8, ..spec() };
    let (_, notes) = run(numbered.address(), &load, &wanting);
    let heads: Vec<&[u8]> = notes[0]
        .shown
        .iter()
        .filter_map(|shown| if let Shown::Head(head) = shown { Some(&head[..12]) } else { None })
        .collect();
    let expected: Vec<String> = (200..208).map(|status| format!("HTTP/1.1 {status}")).collect();
    assert_eq!(heads, expected.iter().map(String::as_bytes).collect::<Vec<_>>());
}

#[test]
fn what_is_enough_for_one_ends_all() {
    let (server, made) = (friendly(), AtomicU64::new(0));
    let witness = || {
        let first = made.fetch_add(1, Ordering::SeqCst) == 0;
        Notes { enough: first.then_some(10), ..Notes::default() }
    };
    let load =
        LoadSpec { requests: None, duration_ns: Some(3600 * SECOND), connections: 4, threads: Some(2), ..spec() };
    let (result, notes) = run(server.address(), &load, &witness);
    assert_eq!(result.end, LoadEnd::Stopped);
    let satisfied = notes.iter().find(|notes| notes.enough.is_some()).expect("one of them");
    assert!(satisfied.shown.len() >= 10);
    // What was cut off is seen too.
    let ended = records(&notes).iter().filter(|record| record.ending == Ending::Good).count() as u64;
    let cut_off = records(&notes).iter().filter(|record| record.ending == Ending::InFlight).count() as u64;
    assert_eq!((ended, cut_off), (result.counts.good, result.in_flight));
}

/// It keeps its worker, and so the load, until the window is over.
#[derive(Default)]
struct Oversleeps {
    records: Vec<Record>,
}

impl Witness for Oversleeps {
    fn saw(&mut self, record: &Record) {
        if self.records.is_empty() {
            std::thread::sleep(WINDOW);
        }
        self.records.push(*record);
    }
}

const WINDOW: Duration = Duration::from_millis(100);

/// A load that comes late to its own end begins what is due as far as connections are free, and no more.
#[test]
fn what_the_load_itself_was_late_with_is_sent() {
    let server = friendly();
    for connections in [12, 4] {
        let pace = Pace::Timetable(Timetable::constant(100.0, Arrivals::Even));
        let duration_ns = Some(WINDOW.as_nanos() as u64);
        let load = LoadSpec { pace, requests: None, duration_ns, connections, threads: Some(1), ..spec() };
        let never = AtomicBool::new(false);
        let mut control = Control { stop: &never, on_interval: &mut |_| {} };
        let target = Target::new(server.address(), "h");
        let ran = load::run_witnessed(&load, &target, &[], &mut control, &never, &Oversleeps::default);
        let (result, _) = ran.expect("the load starts");
        let open = result.open.as_ref().expect("it has a rate");
        assert_eq!((open.arrived, result.counts.good + open.unsent), (10, 10));
        // Of four connections one or more had their request before; each has one more at most.
        let is_as_meant = if connections == 12 { open.unsent == 0 } else { (2..=5).contains(&open.unsent) };
        assert!(is_as_meant, "{} of {connections} connections unsent", open.unsent);
    }
}
