//! Timetables of small logs, through one door, and what must hold for any log.

use super::*;
use crate::{Format, Reader};
use expect_test::{Expect, expect};
use proptest::prelude::*;

const APACHE: &str = "%{sec}t %D %m %U";
const NGINX: &str = "$msec $request_time $request_method $request_uri";

fn build(format: &str, lines: &[&str], replay: Replay) -> Timetable {
    let mut reader = Reader::new(Format::parse(format).unwrap());
    let mut builder = TimetableBuilder::new(replay).unwrap();
    for line in lines {
        builder.add(&reader.read(line.as_bytes()).unwrap());
    }
    builder.build()
}

fn check(format: &str, lines: &[&str], replay: Replay, expected: &Expect) {
    let timetable = build(format, lines, replay);
    let arrivals = timetable.arrivals().map(|arrival| {
        let Asked { method, target, .. } = arrival.asked;
        format!("{} {method} {target}", arrival.offset_ns / 1_000)
    });
    let arrivals: Vec<_> = arrivals.collect();
    expected.assert_eq(&format!("{}; without {}", arrivals.join(", "), timetable.left_out().total()));
}

fn safe(speed: f64) -> Replay {
    Replay { seed: 7, speed, methods: Methods::Safe }
}

#[test]
fn the_end_less_the_duration_is_the_start() {
    let slow = ["10.500 0.100 GET /b", "11.000 2.000 GET /a", "11.000 - GET /c"];
    check(NGINX, &slow, safe(1.0), &expect!["0 GET /a, 1400000 GET /b, 2000000 GET /c; without 0"]);
    check(NGINX, &slow, safe(2.0), &expect!["0 GET /a, 700000 GET /b, 1000000 GET /c; without 0"]);
    // Apache logs the start.
    let lines = ["10.500000 9 GET /b", "10.000000 9000000 GET /a"];
    check("%{sec}t.%{usec_frac}t %D %m %U", &lines, safe(1.0), &expect!["0 GET /a, 500000 GET /b; without 0"]);
}

#[test]
fn a_second_is_filled_in_line_order() {
    let lines = ["10 1 GET /a", "10 1 GET /b", "9 1 GET /z", "10 1 GET /c", "10 1 GET /d"];
    let one = expect!["0 GET /z, 222507 GET /a, 472810 GET /b, 803181 GET /c, 1051639 GET /d; without 0"];
    check(APACHE, &lines, safe(1.0), &one);
}

#[test]
fn what_may_change_something_is_left_out() {
    let lines = ["10 1 POST /a", "10 1 GET /b", "10 1 - -", "- 1 GET /c", "10 1 OPTIONS *", "10 1 DELETE /d"];
    let timetable = build(APACHE, &lines, safe(1.0));
    let expected = LeftOut {
        no_request: BTreeMap::from([(NoRequest::Empty, 1)]),
        no_time: 1,
        unsafe_method: BTreeMap::from([("POST".to_owned(), 1), ("DELETE".to_owned(), 1)]),
        no_path: 1,
    };
    assert_eq!((timetable.len(), timetable.left_out()), (1, &expected));
    let timetable = build(APACHE, &lines, Replay { methods: Methods::All, ..safe(1.0) });
    assert_eq!((timetable.len(), timetable.left_out().total()), (3, 3));
}

#[test]
fn requests_are_kept_once_with_their_host() {
    let lines = ["a 10.000 GET /x", "b 10.000 GET /x", "a 10.000 GET /x", "- 10.000 GET /x"];
    let timetable = build("$host $msec $request_method $request_uri", &lines, safe(1.0));
    let hosts: Vec<_> = timetable.distinct().map(|asked| asked.host).collect();
    assert_eq!((timetable.len(), hosts), (4, vec![Some("a"), Some("b"), None]));
    assert_eq!(timetable.arrivals().map(|arrival| arrival.index).collect::<Vec<_>>(), [0, 1, 0, 2]);
}

#[test]
fn speeds_and_nothing() {
    for speed in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(TimetableBuilder::new(safe(speed)).is_err(), "{speed}");
    }
    let timetable = build(APACHE, &[], safe(1.0));
    assert_eq!((timetable.is_empty(), timetable.span_ns(), size_of::<Seat>()), (true, 0, 16));
}

proptest! {
    #[test]
    fn every_request_stays_in_its_second(seconds in prop::collection::vec(1_000_u64..1_010, 1..200), seed: u64) {
        let lines: Vec<String> = seconds.iter().map(|second| format!("{second} 1 GET /{second}")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let replay = Replay { seed, ..safe(1.0) };
        let timetable = build(APACHE, &lines, replay);
        prop_assert_eq!(&timetable, &build(APACHE, &lines, replay));
        // Where the first one starts is not told, so what is known of it is a second wide.
        let first = seconds.iter().min().unwrap();
        for arrival in timetable.arrivals() {
            let second: u64 = arrival.asked.target[1..].parse().unwrap();
            let earliest = (second - first) * 1_000_000_000;
            prop_assert!(arrival.offset_ns + 1_000_000_000 >= earliest && arrival.offset_ns < earliest + 1_000_000_000);
        }
        prop_assert!(timetable.arrivals().is_sorted_by_key(|arrival| arrival.offset_ns));
    }
}
