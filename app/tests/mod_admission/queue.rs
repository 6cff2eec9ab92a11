//! Waiting for a permit: in which order, how many, how long, and for whom.

use crate::client::Client;
use crate::oracle::{Killed, most_at_once, order};
use crate::server::{Gate, Mpm, PATIENCE, Pending, Server, answered, wait};
use std::time::Instant;

/// One is in the page, and the others wait in the order of their names.
fn lined_up(server: &Server, names: &[&str]) -> Vec<Pending> {
    let waiting = |count| wait("they wait", || server.number("one", "/waiting") == count);
    let ask = |(at, name): (usize, &&str)| {
        let one = server.send(&format!("/page.probe?id={name}"));
        waiting(at as u64 + 1);
        one
    };
    names.iter().enumerate().map(ask).collect()
}

/// In which order those are admitted who came as `a`, `b`, `vip`, `c`.
fn check_order(mpm: Mpm, text: &str, expected: [&str; 5]) {
    let Some(server) = Server::start(mpm, text) else { return };
    let gate = server.gate("g");
    let first = server.send("/page.probe?id=first&gate=g");
    server.wait_started(1);
    let pending = lined_up(&server, &["a", "b", "vip", "c"]);
    gate.open();
    for one in pending.into_iter().chain([first]) {
        assert_eq!(one.answer().status, 200);
    }
    server.wait_idle();
    let events = server.events();
    assert_eq!(order(&events), expected);
    assert_eq!(most_at_once(&events, &Killed::new()), 1);
    assert_eq!([server.number("one", "/counts/admitted"), server.number("one", "/counts/queued")], [1, 4]);
}

const ONE: &str = "AdmissionGroup one limit=1 queue=10 timeout=60s\nAdmissionQueueWorkers 10\nAdmissionUse one\n";

#[test]
fn first_come_first_served() {
    for mpm in [Mpm::Prefork, Mpm::Worker, Mpm::Event] {
        check_order(mpm, ONE, ["first", "a", "b", "vip", "c"]);
    }
}

#[test]
fn last_come_first_served() {
    for mpm in [Mpm::Prefork, Mpm::Worker, Mpm::Event] {
        check_order(mpm, &ONE.replace("timeout", "order=lifo timeout"), ["first", "c", "vip", "b", "a"]);
    }
}

#[test]
fn by_priority() {
    let text = format!(
        "{ONE}AdmissionPriority -5 \"%{{QUERY_STRING}} =~ /vip/\"\nAdmissionPriority 5 \"%{{QUERY_STRING}} =~ /id=a/\"\n"
    );
    for mpm in [Mpm::Prefork, Mpm::Worker, Mpm::Event] {
        check_order(mpm, &text, ["first", "vip", "b", "c", "a"]);
    }
}

/// Retry-After is the time after which there may be room: what the page took the last time, and up to half of that more.
#[test]
fn when_to_come_again_is_told_by_what_pages_took() {
    let Some(server) = Server::start(Mpm::Event, "AdmissionGroup one limit=1\nAdmissionUse one\n") else { return };
    let asked = Instant::now();
    let gate = server.gate("g");
    let first = server.send("/page.probe?gate=g");
    server.wait_started(1);
    let held = Instant::now();
    // Longer than what stands in Retry-After where nothing is known.
    wait("it takes as long as that", || held.elapsed().as_secs() >= 5);
    gate.open();
    assert_eq!(first.answer().status, 200);
    let took = asked.elapsed().as_secs() + 1;
    server.wait_idle();
    let gate = server.gate("h");
    let second = server.send("/page.probe?gate=h");
    server.wait_number("one", "/held", 1);
    let mut client = server.client();
    let mut told = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let refused = client.get("/page.probe");
        assert_eq!(refused.status, 503);
        let seconds: u64 = refused.header("Retry-After").and_then(|seconds| seconds.parse().ok()).expect("seconds");
        assert!((5..=took + took / 2).contains(&seconds), "{seconds}, {took}");
        told.insert(seconds);
    }
    assert!(told.len() > 1, "they do not all come back together: {told:?}");
    gate.open();
    assert_eq!(second.answer().status, 200);
}

/// The numbers of those that came one after the other, while the queue was never empty for longer than its patience, and were let in, in
/// that order.
fn let_in_under_overload(server: &Server) -> Vec<u32> {
    // What a page takes, at most. The patience of its queue is twice what it took.
    let began = Instant::now();
    assert_eq!(server.get("/page.probe?work=500000").status, 200);
    server.wait_idle();
    let page = began.elapsed();
    let gate = server.gate("g");
    let began = Instant::now();
    let first = server.send("/page.probe?id=first&gate=g");
    server.wait_started(2);
    let mut pending: Vec<Pending> = Vec::new();
    let mut calm = Instant::now();
    // The end of the first one will say that a page takes longer: an eighth of the new mean is what that took.
    let is_overloaded = |calm: Instant| 4 * calm.elapsed() > 7 * page + began.elapsed();
    while !is_overloaded(calm) || server.number("one", "/counts/timeout") == 0 {
        assert!(began.elapsed() < PATIENCE, "{}", server.status());
        let number = pending.len();
        pending.push(server.send(&format!("/page.probe?id={number}")));
        wait("it waits", || {
            let group = server.group("one");
            let counted = ["/waiting", "/counts/timeout", "/counts/rejected"].map(|name| group.pointer(name)?.as_u64());
            counted.into_iter().flatten().sum::<u64>() > number as u64
        });
        // Where none waited any more when this one came, the queue had been empty.
        if pending[..number].iter().all(Pending::is_answered) {
            calm = Instant::now();
        }
        std::thread::sleep(page / 4);
    }
    gate.open();
    assert_eq!(first.answer().status, 200);
    for one in pending {
        let status = one.answer().status;
        assert!([200, 503].contains(&status), "{status}");
    }
    server.wait_idle();
    order(&server.events()).iter().filter_map(|id| id.parse().ok()).collect()
}

/// Where somebody always waits, an adaptive queue turns round: who has waited for as long as its patience hears so, an hour before his time,
/// and of the others the newest goes first.
#[test]
fn an_adaptive_queue_turns_round_under_overload() {
    for mpm in [Mpm::Prefork, Mpm::Worker] {
        let mut let_in = Vec::new();
        // Where the machine stood still for a second, all have given up meanwhile: there is no order to see.
        for _ in 0..5 {
            let Some(server) = Server::start(mpm, &ONE.replace("timeout=60s", "order=adaptive timeout=1h")) else {
                return;
            };
            let_in = let_in_under_overload(&server);
            if let_in.len() > 1 {
                break;
            }
        }
        assert!(let_in.len() > 1 && let_in.is_sorted_by(|one, next| one > next), "{mpm:?}: {let_in:?}");
    }
}

/// Before that it serves those first who came first: as long as it has been empty within its patience, which is twice what pages took.
#[test]
fn an_adaptive_queue_keeps_the_order_while_it_is_healthy() {
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some(server) = Server::start(mpm, &ONE.replace("timeout=60s", "order=adaptive timeout=1h")) else { return };
        let gate = server.gate("slow");
        let slow = server.send("/page.probe?id=slow&gate=slow");
        server.wait_started(1);
        let began = Instant::now();
        wait("it takes three seconds, so that the patience is six", || began.elapsed().as_secs() >= 3);
        gate.open();
        assert_eq!(slow.answer().status, 200);
        server.wait_idle();
        // Where the machine stood still for seconds the queue had a right to turn round.
        let in_time = (0..5).any(|_| {
            let before = order(&server.events()).len();
            let gate = server.gate("g");
            let first = server.send("/page.probe?id=first&gate=g");
            server.wait_started(before + 1);
            let began = Instant::now();
            let pending = lined_up(&server, &["a", "b", "c"]);
            gate.open();
            assert!(pending.into_iter().chain([first]).all(|one| one.answer().status == 200));
            let in_time = began.elapsed().as_secs() < 2;
            server.wait_idle();
            assert!(!in_time || order(&server.events())[before..] == ["first", "a", "b", "c"], "{mpm:?}");
            in_time
        });
        assert!(in_time, "{mpm:?}");
    }
}

/// The queue for memory has an order of its own, and not the group's.
#[test]
fn the_budget_says_its_own_order() {
    let text = |order: &str| {
        format!(
            "AdmissionBudget memory 100M {order}\nAdmissionGroup one limit=none cost=100M queue=10 timeout=60s order=adaptive\n\
             AdmissionQueueWorkers 10\nAdmissionUse one\n"
        )
    };
    for (told, name, expected) in [("", "fifo", ["first", "a", "b"]), ("order=lifo", "lifo", ["first", "b", "a"])] {
        let Some(server) = Server::start(Mpm::Event, &text(told)) else { return };
        assert_eq!(server.status()["budget"]["order"], name);
        let gate = server.gate("g");
        let first = server.send("/page.probe?id=first&gate=g");
        server.wait_started(1);
        let ask = |(waiting, id): (u64, &str)| {
            let one = server.send(&format!("/page.probe?id={id}"));
            wait("it waits for memory", || server.status()["budget"]["waiting"] == waiting);
            one
        };
        let pending: Vec<Pending> = [(1, "a"), (2, "b")].into_iter().map(ask).collect();
        gate.open();
        assert!(pending.into_iter().chain([first]).all(|one| one.answer().status == 200));
        server.wait_idle();
        assert_eq!(order(&server.events()), expected, "{name}");
    }
    let Some(server) = Server::start(Mpm::Prefork, &text("order=adaptive")) else { return };
    assert_eq!(server.status()["budget"]["order"], "adaptive");
}

#[test]
fn who_waits_in_vain_is_turned_away_at_the_deadline() {
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some(server) = Server::start(mpm, &ONE.replace("60s", "300ms")) else { return };
        let gate = server.gate("g");
        let first = server.send("/page.probe?id=first&gate=g");
        server.wait_started(1);
        let began = Instant::now();
        let answer = server.get("/page.probe?id=late");
        let took = began.elapsed();
        assert_eq!(answer.status, 503);
        assert!(took.as_millis() >= 300, "{took:?}");
        assert_eq!([server.number("one", "/counts/timeout"), server.number("one", "/waiting")], [1, 0]);
        wait("it is logged", || server.access().iter().any(|line| line == "503 /page.probe?id=late one timeout"));
        gate.open();
        assert_eq!(first.answer().status, 200);
        server.wait_idle();
        assert_eq!(order(&server.events()), ["first"]);
    }
}

/// One is in its page until the gate opens, and somebody waits who will leave.
fn behind_one(server: &Server) -> (Gate, Pending, Client) {
    let gate = server.gate("g");
    let first = server.send("/page.probe?id=first&gate=g");
    server.wait_started(1);
    let mut leaver = server.client();
    leaver.begin("GET", "/page.probe?id=leaver", "127.0.0.1").expect("it is sent");
    server.wait_number("one", "/waiting", 1);
    (gate, first, leaver)
}

/// A client that left is not let in: its page is never run, and its place in the queue is free.
#[test]
fn who_leaves_is_not_admitted() {
    for mpm in [Mpm::Prefork, Mpm::Worker, Mpm::Event] {
        let Some(server) = Server::start(mpm, ONE) else { return };
        let (gate, first, leaver) = behind_one(&server);
        let stays = server.send("/page.probe?id=stays");
        server.wait_number("one", "/waiting", 2);
        drop(leaver);
        server.wait_number("one", "/counts/gone", 1);
        server.wait_number("one", "/waiting", 1);
        gate.open();
        assert_eq!((first.answer().status, stays.answer().status), (200, 200));
        server.wait_idle();
        assert_eq!(order(&server.events()), ["first", "stays"]);
    }
}

/// Nor does the program of an error page run for nobody.
#[test]
fn who_leaves_has_no_error_page() {
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let text = format!(
            "{ONE}<Location /error.cgi>\nAdmissionUse none\n</Location>\nErrorDocument 503 /error.cgi?id=sorry\n"
        );
        let Some(server) = Server::start(mpm, &text) else { return };
        let (gate, first, leaver) = behind_one(&server);
        drop(leaver);
        wait("it is logged", || server.access().iter().any(|line| line == "503 /page.probe?id=leaver one gone"));
        gate.open();
        assert_eq!(first.answer().status, 200);
        server.wait_idle();
        assert_eq!(order(&server.events()), ["first"], "{mpm:?}");
    }
}

/// Of twelve workers three may wait: the others serve files, and who comes too much is turned away at once.
#[test]
fn few_workers_wait_and_files_are_served() {
    for mpm in [Mpm::Prefork, Mpm::Worker, Mpm::Event] {
        let text = ONE.replace("AdmissionQueueWorkers 10", "AdmissionQueueWorkers 3");
        let Some(server) = Server::start(mpm, &text) else { return };
        server.wait_all_begun(mpm);
        let gate = server.gate("g");
        let pending: Vec<Pending> = (0..8).map(|n| server.send(&format!("/page.probe?id={n}&gate=g"))).collect();
        wait(&format!("four are turned away: {}", server.status()), || {
            answered(&pending) == 4 && server.number("one", "/waiting") == 3
        });
        assert_eq!(server.status()["queue_workers"]["held"], 3);
        let mut client = server.client();
        for _ in 0..50 {
            assert_eq!(client.get("/index.html").body, "hello\n");
        }
        gate.open();
        let mut found: Vec<u16> = pending.into_iter().map(|one| one.answer().status).collect();
        found.sort_unstable();
        assert_eq!(found, [200, 200, 200, 200, 503, 503, 503, 503]);
        server.wait_idle();
        assert_eq!(most_at_once(&server.events(), &Killed::new()), 1);
    }
}

/// A share is one of MaxRequestWorkers: a quarter of 12, where nothing else is said.
#[test]
fn queue_workers_are_a_share_of_all() {
    for (text, expected) in [("", 3), ("AdmissionQueueWorkers 50%\n", 6), ("AdmissionQueueWorkers 1\n", 1)] {
        let Some(server) = Server::start(Mpm::Prefork, &format!("{text}AdmissionGroup one limit=1 queue=2\n")) else {
            return;
        };
        assert_eq!(server.status()["queue_workers"]["limit"], expected, "{text}");
    }
}

/// When those who wait already would take longer than one may wait, waiting is no use, and that is said at once.
#[test]
fn who_would_wait_in_vain_is_told_at_once() {
    let text = ONE.replace("60s", "100ms");
    let Some(server) = Server::start(Mpm::Event, &text) else { return };
    // It learns that a page takes half a second.
    for _ in 0..3 {
        assert_eq!(server.get("/page.probe?work=500000").status, 200);
    }
    let gate = server.gate("g");
    let first = server.send("/page.probe?id=first&gate=g");
    server.wait_started(4);
    assert_eq!(server.get("/page.probe").status, 503);
    assert_eq!([server.number("one", "/counts/rejected"), server.number("one", "/counts/timeout")], [1, 0]);
    gate.open();
    assert_eq!(first.answer().status, 200);
}

/// Requests that come one after the other on one connection are answered in their order, each with its own permit.
#[test]
fn pipelined_requests() {
    let Some(server) = Server::start(Mpm::Event, ONE) else { return };
    let mut client: Client = server.client();
    for n in 0..5 {
        client.begin("GET", &format!("/page.probe?id={n}"), "127.0.0.1").expect("it is sent");
    }
    for n in 0..5 {
        assert_eq!(client.answer(false).expect("an answer").body, format!("done {n}\n"));
    }
    server.wait_idle();
    assert_eq!(server.number("one", "/counts/admitted"), 5);
}

/// Each holds its permit to the last byte, and httpd sends a short answer only when no request has come behind it: who waits, or is about to
/// be turned away, sees to that.
#[test]
fn pipelined_requests_are_not_in_their_own_way() {
    let waits = ONE.replace("timeout=60s", "timeout=20s hold=response");
    let may_not = "AdmissionGroup one limit=1 hold=response\nAdmissionUse one\n";
    for (text, count) in [(waits.as_str(), "timeout"), (may_not, "rejected")] {
        for mpm in [Mpm::Prefork, Mpm::Worker, Mpm::Event] {
            let Some(server) = Server::start(mpm, text) else { return };
            let requests: String =
                (0..3).map(|n| format!("GET /page.probe?id={n} HTTP/1.1\r\nHost: x\r\n\r\n")).collect();
            let mut client = server.client();
            client.write(requests.as_bytes());
            for n in 0..3 {
                assert_eq!(client.answer(false).expect("an answer").body, format!("done {n}\n"), "{mpm:?}: {text}");
            }
            server.wait_idle();
            assert_eq!(server.number("one", &format!("/counts/{count}")), 0);
        }
    }
}
