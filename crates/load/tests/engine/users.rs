//! Users: they fetch pages whole, give up, reload and come back, and every request of theirs is accounted for.

use crate::{friendly, spec};
use model::latency::Latency;
use model::load::{Failure, LoadResult, Sessions};
use model::plan::{Arrivals, LoadSpec, Pace, RequestSpec, SessionSpec, Timetable};
use model::{Nanos, SECOND};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;
use testkit::scripted::{Scripted, Step, answer};

const MS: Nanos = 1_000_000;

/// Twenty users, 200 a second, with two connections each, for a page and three things on it; all leave after one page.
fn twenty() -> (LoadSpec, SessionSpec) {
    let session = SessionSpec {
        connections: 2,
        think_ns: MS,
        returns: 0.0,
        patience_ns: None,
        reload_after_ns: None,
        reloads: 0,
    };
    let load = LoadSpec {
        mix: ["/", "/a.css", "/b.js", "/c.png"].map(RequestSpec::get).to_vec(),
        pace: Pace::Timetable(Timetable::constant(200.0, Arrivals::Even)),
        connections: 8,
        requests: Some(20),
        same_length: false,
        ..spec()
    };
    (load, session)
}

/// The one door: such a load, and the sums that hold for any of its kind.
#[track_caller]
fn check(server: &Scripted, (load, session): (LoadSpec, SessionSpec)) -> (LoadResult, Sessions) {
    let result = crate::check(server.address(), &LoadSpec { session: Some(session), ..load });
    let sessions = result.sessions.clone().expect("a load of users");
    assert_eq!(sessions.page.len(), sessions.pages);
    let ended = sessions.pages + sessions.incomplete + sessions.gave_up;
    assert_eq!(
        ended,
        sessions.users + sessions.returned,
        "each page comes, comes in part, or is given up: {sessions:?}"
    );
    assert!(result.open.is_none(), "it is users who arrive, not requests");
    (result, sessions)
}

#[test]
fn a_user_fetches_the_page_and_all_that_belongs_to_it() {
    let server = friendly();
    let (result, sessions) = check(&server, twenty());
    assert_eq!((sessions.users, sessions.pages, sessions.turned_away), (20, 20, 0));
    assert_eq!((result.counts.good, server.requests()), (80, 80));
    assert_eq!(result.counts.connects, 40, "two connections for each user, closed when the user leaves");
}

/// Those in the middle of a page, or of thinking, do not go on when the others are waited for.
#[test]
fn users_who_come_when_there_is_room_are_drained() {
    let slow = vec![Step::Wait(Duration::from_secs(1)), Step::Send(answer(200, "abc"))];
    for (server, think_ns) in [(Scripted::always(slow), MS), (friendly(), 1000 * SECOND)] {
        let (load, session) = twenty();
        let session = SessionSpec { think_ns, returns: 1.0, ..session };
        let load =
            LoadSpec { pace: Pace::WhenFree, requests: None, duration_ns: Some(SECOND / 2), drains: true, ..load };
        let result = crate::check(server.address(), &LoadSpec { session: Some(session), ..load });
        assert!(result.counts.good >= 4 && result.in_flight == 0 && result.counts.failures() == 0, "{result:?}");
    }
}

#[test]
fn users_come_back_on_the_connections_they_have() {
    let server = friendly();
    let (load, session) = twenty();
    let (result, sessions) = check(&server, (load, SessionSpec { returns: 0.5, ..session }));
    assert_eq!(sessions.users, 20);
    assert!(sessions.returned > 0 && sessions.pages == 20 + sessions.returned, "{sessions:?}");
    assert_eq!(result.counts.good, 4 * sessions.pages);
    assert_eq!(result.counts.connects, 40);
}

#[test]
fn what_fails_makes_a_page_incomplete_or_ends_the_visit() {
    // Every second connection's first request is answered with an error: pages, and things on pages.
    let server = Scripted::start(|turn| {
        let status = if turn.connection % 2 == 1 && turn.nth == 0 { 500 } else { 200 };
        vec![Step::Send(answer(status, "abc"))]
    });
    let (result, sessions) = check(&server, twenty());
    assert!(sessions.incomplete > 0 && result.counts.failures() > 0, "{sessions:?}");
    let dead = Scripted::always(vec![Step::Close]);
    let (_, sessions) = check(&dead, twenty());
    assert_eq!((sessions.users, sessions.pages, sessions.incomplete), (20, 0, 20));
}

#[test]
fn users_without_an_answer_reload_and_give_up() {
    let slow = Scripted::always(vec![Step::Wait(Duration::from_secs(20)), Step::Send(answer(200, "abc"))]);
    let (load, session) = twenty();
    let load = LoadSpec { requests: Some(4), ..load };
    let patient = SessionSpec { patience_ns: Some(150 * MS), ..session };
    let (result, sessions) = check(&slow, (load.clone(), patient.clone()));
    assert_eq!((sessions.gave_up, sessions.abandoned, sessions.reloads), (4, 4, 0));
    assert_eq!((result.counts.good, result.counts.failures(), result.in_flight), (0, 0, 0));
    let (least, most) = sessions.page_at_least.range_us().expect("pages that did not come");
    assert_eq!((sessions.page_at_least.len(), least / 1000, most / 1000), (4, 149, 150), "as long as they meant to");
    let restless = SessionSpec { reload_after_ns: Some(40 * MS), reloads: 2, ..patient };
    let (_, sessions) = check(&slow, (load, restless));
    assert_eq!((sessions.gave_up, sessions.abandoned, sessions.reloads), (4, 12, 8));
    assert_eq!(result.unanswered.latency.len(), 4, "a request that was abandoned would have taken longer");
}

#[test]
fn whoever_finds_no_place_has_waited_for_the_page() {
    // One seat, and a server that does not answer; twenty users mean to come within 100 ms.
    let silent = Scripted::always(vec![Step::Hang]);
    let (load, session) = twenty();
    let load = LoadSpec { connections: 2, requests: None, duration_ns: Some(100 * MS), timeout_ns: 150 * MS, ..load };
    let (result, sessions) = check(&silent, (load, session));
    assert_eq!((sessions.users + sessions.turned_away, sessions.incomplete), (20, sessions.users));
    assert_eq!((sessions.page.len(), sessions.page_at_least.len()), (0, 20));
    assert_eq!(result.unanswered.latency.len(), sessions.users, "and so has each request that timed out");
}

#[test]
fn nothing_new_begins_behind_the_end() {
    // Nine things one after the other, of which each takes as long as the whole load.
    let server = Scripted::always(vec![Step::Wait(Duration::from_millis(150)), Step::Send(answer(200, "abc"))]);
    let (load, session) = twenty();
    let mix = (0..10).map(|n| RequestSpec::get(&format!("/{n}"))).collect();
    let session = SessionSpec { connections: 1, ..session };
    let load =
        LoadSpec { mix, connections: 1, requests: None, duration_ns: Some(200 * MS), session: Some(session), ..load };
    let result = crate::check(server.address(), &load);
    let sessions = result.sessions.expect("a load of users");
    // The page, and what was begun by then; whoever looks in vain for a page has waited for it.
    assert!(server.requests() <= 2, "{} requests", server.requests());
    assert_eq!((sessions.pages, sessions.page_at_least.len()), (0, sessions.users + sessions.turned_away));
    // Nor does anybody ask again.
    let silent = Scripted::always(vec![Step::Hang]);
    let (load, session) = twenty();
    let session = SessionSpec { connections: 1, reload_after_ns: Some(150 * MS), reloads: 9, ..session };
    let load =
        LoadSpec { timeout_ns: SECOND / 2, requests: None, duration_ns: Some(100 * MS), connections: 20, ..load };
    let (_, sessions) = check(&silent, (load, session));
    assert_eq!((sessions.reloads, sessions.abandoned), (0, 0));
}

#[test]
fn a_users_requests_count_from_when_they_are_sent() {
    // One seat, and a page that takes 100 ms: whoever comes meanwhile waits for the seat, and the requests do not.
    let server = Scripted::always(vec![Step::Wait(Duration::from_millis(100)), Step::Send(answer(200, "abc"))]);
    let (load, session) = twenty();
    let mix = vec![RequestSpec::get("/")];
    let load = LoadSpec { mix, connections: 1, requests: Some(8), ..load };
    let (result, sessions) = check(&server, (load, SessionSpec { connections: 1, ..session }));
    assert_eq!((sessions.pages, result.total.len()), (8, 8));
    let longest = |latency: &Latency| latency.range_us().expect("it has values").1;
    assert!(longest(&sessions.page) >= 700_000, "{}", longest(&sessions.page));
    // Each request has its own part of the time in which they were in flight, and nothing else.
    let mean_us = result.total.mean_us().expect("it has values");
    let in_flight_us = result.in_flight_ns as f64 / 1000.0;
    assert!((mean_us * 8.0 / in_flight_us - 1.0).abs() < 0.01, "{mean_us} {in_flight_us}");
}

#[test]
fn a_page_may_need_more_than_can_be_had() {
    // Whatever belongs to the page is asked of a server that is gone by then.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
    let address = listener.local_addr().expect("an address");
    let gone = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a user");
        drop(listener);
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    });
    let (load, session) = twenty();
    let mix = (0..30_000).map(|n| RequestSpec::get(&format!("/{n}"))).collect();
    let session = SessionSpec { connections: 1, ..session };
    let load = LoadSpec { mix, requests: Some(1), connections: 1, session: Some(session), ..load };
    let result = crate::check(address, &load);
    gone.join().expect("the server holds");
    let sessions = result.sessions.expect("a load of users");
    assert_eq!((result.counts.good, result.counts.failed[&Failure::Refused]), (1, 29_999));
    assert_eq!((sessions.incomplete, sessions.lateness.len()), (1, 1));
}

#[test]
fn an_abandoned_page_is_cut_off_in_the_middle() {
    // A body of which half comes at once and half only after the user has lost patience.
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n0123456789".to_vec();
    let server = Scripted::always(vec![Step::Send(head), Step::Hang]);
    let (load, session) = twenty();
    let session = SessionSpec { patience_ns: Some(100 * MS), ..session };
    let (result, sessions) = check(&server, (LoadSpec { requests: Some(3), ..load }, session));
    assert_eq!((sessions.gave_up, sessions.abandoned), (3, 3));
    assert!(result.counts.bytes_in > 0, "what was received of it is counted");
}

#[test]
fn a_users_cookies_go_with_the_user_and_with_nobody_else() {
    let server = Scripted::start(|turn| {
        let field = format!("Set-Cookie: id={}", turn.connection);
        vec![Step::Send(format!("HTTP/1.1 200 X\r\n{field}\r\nContent-Length: 0\r\n\r\n").into_bytes())]
    });
    let (load, session) = twenty();
    let load = LoadSpec { cookies: true, ..load };
    let (_, sessions) = check(&server, (load.clone(), session.clone()));
    let cookie = |head: &str| head.contains("\r\nCookie: id=");
    let heads: Vec<String> = server.all_requests().into_iter().map(|(head, _)| head).collect();
    let (pages, others): (Vec<&String>, Vec<&String>) = heads.iter().partition(|head| head.starts_with("GET / "));
    assert_eq!((pages.len() as u64, sessions.users), (20, 20));
    assert!(pages.iter().all(|head| !cookie(head)), "whoever comes new has none: {pages:?}");
    assert!(others.iter().all(|head| cookie(head)), "both connections send what the page set: {others:?}");
    // Who clicks again is who came before.
    let server =
        Scripted::always(vec![Step::Send(b"HTTP/1.1 200 X\r\nSet-Cookie: id=1\r\nContent-Length: 0\r\n\r\n".to_vec())]);
    let again = SessionSpec { returns: 1.0, connections: 1, ..session };
    let one = LoadSpec { connections: 1, requests: Some(1), duration_ns: Some(300 * MS), ..load };
    // The end may come while the user thinks, so the sums of the door do not hold.
    let result = crate::check(server.address(), &LoadSpec { session: Some(again), ..one });
    let sessions = result.sessions.expect("a load of users");
    let pages: Vec<(String, String)> = server.all_requests();
    let first = pages.iter().filter(|(head, _)| head.starts_with("GET / ") && !cookie(head)).count();
    assert!(sessions.returned > 0 && first == 1, "{sessions:?} {first}");
}
