//! Settings that change while the server runs, and groups that only observe.

use crate::control::Control;
use crate::memory::configure;
use crate::oracle::order;
use crate::server::{Mpm, Server, kill, wait};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::time::Instant;

fn wait_error(server: &Server, part: &str) {
    let error = || server.status()["control_error"].as_str().unwrap_or_default().to_owned();
    wait(&format!("{part}: {}", error()), || if part.is_empty() { error().is_empty() } else { error().contains(part) });
}

const ONE: &str = "AdmissionGroup one limit=1\nAdmissionUse one\n";

#[test]
fn limits_and_modes_change_without_a_restart() {
    for mpm in [Mpm::Prefork, Mpm::Worker] {
        let Some(control) = Control::new() else { return };
        let Some(server) = control.server(mpm, ONE) else { return };
        let gate = server.gate("g");
        let ask = || server.send("/page.probe?gate=g");
        let first = ask();
        server.wait_started(1);
        assert_eq!(server.get("/page.probe").status, 503);
        let written = Instant::now();
        control.write("# twice as many\none limit=2\n");
        server.wait_number("one", "/limit", 2);
        let took = written.elapsed();
        assert!(took.as_secs() < 10, "{took:?}");
        let second = ask();
        server.wait_started(2);
        assert_eq!(server.get("/page.probe").status, 503);
        // Fewer than there are: nobody is thrown out, nobody comes in.
        control.write("one limit=1\n");
        server.wait_number("one", "/limit", 1);
        assert_eq!((server.number("one", "/held"), server.get("/page.probe").status), (2, 503));
        control.write("one mode=observe\n");
        wait("it observes", || server.group("one")["mode"] == "observe");
        assert_eq!(server.get("/page.probe").status, 200);
        control.write("* mode=off\n");
        wait("it is off", || server.group("one")["mode"] == "off");
        assert_eq!(server.get("/page.probe").status, 200);
        control.write("one limit=2 queue=4 timeout=60s status=429\n");
        server.wait_number("one", "/queue", 4);
        let waits = server.send("/page.probe?id=waits");
        server.wait_number("one", "/waiting", 1);
        // Who waits is admitted when the limit is raised under him.
        control.write("one limit=3 queue=4 timeout=60s\n");
        assert_eq!(waits.answer().status, 200);
        fs::remove_file(control.path()).expect("our own file");
        server.wait_number("one", "/limit", 1);
        gate.open();
        assert_eq!((first.answer().status, second.answer().status), (200, 200));
        server.wait_idle();
        wait_error(&server, "");
        assert_eq!(server.status()["groups"].as_array().map(Vec::len), Some(1));
    }
}

/// Who of those that wait goes first, and how many workers may wait, change under them.
#[test]
fn a_queue_changes_without_a_restart() {
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some(control) = Control::new() else { return };
        let text = "AdmissionGroup one limit=1 queue=10 timeout=60s\nAdmissionQueueWorkers 3\nAdmissionUse one\n";
        let Some(server) = control.server(mpm, text) else { return };
        let gate = server.gate("g");
        let mut pending = vec![server.send("/page.probe?id=first&gate=g")];
        server.wait_started(1);
        let mut wait_in_line = |place: u64, id: &str| {
            pending.push(server.send(&format!("/page.probe?id={id}")));
            server.wait_number("one", "/waiting", place);
        };
        for (place, id) in [(1, "a"), (2, "b"), (3, "c")] {
            wait_in_line(place, id);
        }
        assert_eq!(server.get("/page.probe?id=away").status, 503);
        control.write("one order=lifo\nqueue-workers limit=4\n");
        wait("it is in force", || {
            server.group("one")["order"] == "lifo" && server.status()["queue_workers"]["limit"] == 4
        });
        wait_in_line(4, "d");
        assert_eq!(server.get("/page.probe?id=away").status, 503);
        gate.open();
        assert!(pending.into_iter().all(|one| one.answer().status == 200));
        server.wait_idle();
        // Who was woken, and has not come within a quarter of a second on a busy machine, is passed over. That is counted: so many pairs may
        // have come the other way round.
        let late = server.status()["troubles"]["late_wakes"].as_u64().expect("a number");
        let came = order(&server.events());
        let place = |id: &String| ["first", "d", "c", "b", "a"].iter().position(|one| one == id).expect("one of them");
        let pairs = came.iter().enumerate().flat_map(|(i, one)| came[..i].iter().map(move |before| (before, one)));
        let turned = pairs.filter(|(before, one)| place(before) > place(one)).count();
        assert!(came.len() == 5 && turned as u64 <= late, "{mpm:?}: {came:?}, {late} late");
        assert!(!server.log().contains("ADM0008"), "{}", server.log());
        control.write("queue-workers limit=1000\n");
        wait("it is warned of", || server.log().contains("queue-workers: requests that wait can take all"));
    }
}

/// A file with a mistake changes nothing, is told of once, and the next one is read again.
#[test]
fn a_bad_file_keeps_the_old_values() {
    let Some(control) = Control::new() else { return };
    control.write("one limit=3\n");
    let Some(server) = control.server(Mpm::Event, ONE) else { return };
    server.wait_number("one", "/limit", 3);
    let bad = [
        ("one limit=5\none limit=0\n", "line 2", "limit=0"),
        ("# none of ours\nnobody limit=4\n", "line 2", "nobody: no such group"),
        ("one key=file\n", "line 1", "cannot change while the server runs"),
        ("one\n", "line 1", "nothing is said about it"),
        ("one limit=2 limit=3\n", "line 1", "stands twice"),
        ("memory limit=lots\n", "line 1", "a size"),
    ];
    for (text, line, part) in bad {
        let before = server.log().matches(part).count();
        control.write(text);
        wait_error(&server, part);
        assert!(server.status()["control_error"].as_str().unwrap_or_default().contains(line), "{}", server.status());
        assert_eq!(server.number("one", "/limit"), 3, "{text}");
        // Over rounds in which nothing changes it is not told again.
        let written = || server.status()["written"].as_f64().unwrap_or_default();
        let began = written();
        wait("time goes by", || written() > began + 0.6);
        wait("it is logged", || server.log().matches(part).count() > before);
        assert_eq!(server.log().matches(part).count(), before + 1, "{}", server.log());
    }
    control.write("one limit=4\n");
    server.wait_number("one", "/limit", 4);
    wait_error(&server, "");
}

/// What was in force stays when a bad file is found by a new configuration or by a new controller.
#[test]
fn a_bad_file_keeps_the_old_values_over_restarts() {
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some(control) = Control::new() else { return };
        control.write("one limit=3 queue=7\nmemory limit=400M\n");
        let two = "AdmissionGroup two limit=1\n";
        let Some(server) = control.server(mpm, &format!("AdmissionBudget memory 800M\n{two}{ONE}")) else { return };
        server.wait_number("one", "/limit", 3);
        control.write("one limit=5\none limit=0\n");
        wait_error(&server, "limit=0");
        let as_before = |when: &str| {
            let status = server.status();
            let found = (server.number("one", "/limit"), server.number("one", "/queue"), &status["budget"]["limit"]);
            assert_eq!(found, (3, 7, &serde_json::Value::from(400 << 20)), "{when}");
        };
        let begin_anew = |what: &str, begin: &dyn Fn()| {
            let before = server.controller();
            begin();
            wait(&format!("{what}: another controller"), || server.controller().is_some_and(|now| Some(now) != before));
            wait_error(&server, "limit=0");
            as_before(what);
        };
        begin_anew("graceful", &|| server.graceful());
        begin_anew("restart", &|| server.restart(Signal::HUP));
        begin_anew("killed", &|| kill(server.wait_controller(), Signal::KILL));
        begin_anew("killed again", &|| kill(server.wait_controller(), Signal::KILL));
        // A good file that a change of the configuration makes a bad one: what still fits stays.
        control.write("one limit=2 queue=7\ntwo limit=2\nmemory limit=400M\n");
        server.wait_number("one", "/limit", 2);
        let text = fs::read_to_string(server.path("httpd.conf")).expect("our own file");
        server.put("httpd.conf", &text.replace(two, ""));
        server.graceful();
        wait_error(&server, "two: no such group");
        assert_eq!((server.number("one", "/limit"), server.number("one", "/queue")), (2, 7));
        // Gone, it is forgotten.
        fs::remove_file(control.path()).expect("our own file");
        server.wait_number("one", "/limit", 1);
        control.write("one limit=0\n");
        wait_error(&server, "limit=0");
        server.graceful();
        wait_error(&server, "limit=0");
        assert_eq!(server.number("one", "/limit"), 1);
    }
}

/// A file that others could have written decides nothing.
#[test]
fn a_file_of_others_is_refused() {
    let Some(control) = Control::new() else { return };
    control.write("one limit=3\n");
    let Some(server) = control.server(Mpm::Event, ONE) else { return };
    server.wait_number("one", "/limit", 3);
    let mode =
        |path: &std::path::Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our own");
    let again = || {
        control.write("one limit=3\n");
        mode(control.folder(), 0o755);
        wait_error(&server, "");
        server.wait_number("one", "/limit", 3);
    };
    for bits in [0o664, 0o646] {
        control.write("one limit=9\n");
        mode(&control.path(), bits);
        wait_error(&server, "written by others");
        again();
    }
    fs::write(control.folder().join("new"), "one limit=9\n").expect("a file");
    chown(control.folder().join("new"), Some(33), Some(33)).expect("root may");
    fs::rename(control.folder().join("new"), control.path()).expect("our own folder");
    wait_error(&server, "belongs to user 33");
    assert_eq!(server.number("one", "/limit"), 3);
    again();
    fs::write(control.folder().join("real"), "one limit=9\n").expect("a file");
    fs::remove_file(control.path()).expect("ours");
    symlink("real", control.path()).expect("our own folder");
    wait_error(&server, "symbolic link");
    again();
    // Sticky or not: who can write the folder can put a file there.
    for bits in [0o777, 0o1777] {
        mode(control.folder(), bits);
        fs::write(control.path(), "one limit=9\n").expect("a file");
        wait_error(&server, "can be written by others");
        assert_eq!(server.number("one", "/limit"), 3);
        again();
    }
}

/// What observes lets everybody in, and says who would have been turned away and who would have had to wait first.
#[test]
fn observing_only_counts() {
    let by_group = "AdmissionGroup one limit=1 mode=observe queue=1\nAdmissionUse one\n";
    let by_engine = "AdmissionEngine observe\nAdmissionGroup one limit=1 queue=1\nAdmissionUse one\n";
    for (text, engine) in [(by_group, "on"), (by_engine, "observe")] {
        let Some(server) = Server::start(Mpm::Event, text) else { return };
        assert_eq!(server.status()["engine"], engine, "{text}");
        let gate = server.gate("g");
        let held = server.send_in_turn("/page.probe?gate=g", 3);
        gate.open();
        assert!(held.into_iter().all(|one| one.answer().status == 200));
        server.wait_idle();
        let counts = server.group("one")["counts"].clone();
        let found = ["admitted", "would_queue", "would_reject", "rejected", "queued"];
        assert_eq!(found.map(|name| counts[name].as_u64().unwrap_or(99)), [1, 1, 1, 0, 0], "{text}");
        wait("they are logged", || {
            let access = server.access();
            ["one would-queue", "one would-reject"]
                .iter()
                .all(|end| access.iter().filter(|line| line.ends_with(end)).count() == 1)
        });
        assert!(server.log().contains("it only observes"), "{}", server.log());
    }
}

/// Who would have been turned away would not be there, and so is the reason for nobody after it.
#[test]
fn observing_counts_those_who_would_have_been_turned_away() {
    let text = "AdmissionGroup one limit=1 mode=observe\nAdmissionUse one\n";
    for mpm in [Mpm::Prefork, Mpm::Worker, Mpm::Event] {
        let Some(server) = Server::start(mpm, text) else { return };
        let (inside, over) = (server.gate("inside"), server.gate("over"));
        let mut held = server.send_in_turn("/page.probe?gate=inside", 1);
        held.extend(server.send_in_turn("/page.probe?gate=over", 2));
        assert_eq!(server.number("one", "/held"), 3);
        inside.open();
        server.wait_number("one", "/held", 2);
        assert_eq!((server.get("/page.probe").status, server.number("one", "/counts/admitted")), (200, 2));
        over.open();
        assert!(held.into_iter().all(|one| one.answer().status == 200));
        server.wait_idle();
        assert_eq!(server.number("one", "/counts/would_reject"), 2);
    }
}

/// A virtual host may observe what another enforces.
#[test]
fn hosts_differ_in_what_is_enforced() {
    let text = "AdmissionGroup one limit=1 key=vhost\nAdmissionUse one\n<VirtualHost *:PORT>\nServerName on\n</VirtualHost>\n\
                <VirtualHost *:PORT>\nServerName looks\nAdmissionEngine observe\n</VirtualHost>\n\
                <VirtualHost *:PORT>\nServerName off\nAdmissionEngine off\n</VirtualHost>\n";
    let Some(server) = Server::start(Mpm::Event, text) else { return };
    assert_eq!(server.status()["engine"], "mixed");
    for (host, second, counts) in [("on", 503, [1, 0, 1]), ("looks", 200, [2, 1, 1]), ("off", 200, [2, 1, 1])] {
        let gate = server.gate(host);
        let begun = server.started();
        let mut held = server.client();
        held.begin("GET", &format!("/page.probe?gate={host}"), host).expect("it is sent");
        server.wait_started(begun + 1);
        assert_eq!(server.client().request("GET", "/page.probe", host).expect("an answer").status, second, "{host}");
        gate.open();
        assert_eq!(held.answer(false).expect("an answer").status, 200, "{host}");
        server.wait_idle();
        let found =
            ["/counts/admitted", "/counts/would_reject", "/counts/rejected"].map(|name| server.number("one", name));
        assert_eq!(found, counts, "{host}");
    }
}

/// Costs of all groups add up to one budget, whoever takes it.
#[test]
fn a_budget_of_memory_is_shared() {
    let text = "AdmissionBudget memory 800M\nAdmissionGroup big limit=none cost=300M\nAdmissionGroup small limit=none cost=100M\n\
                <Location /page.probe>\nAdmissionUse big\n</Location>\n<Location /page.cgi>\nAdmissionUse small\n</Location>\n";
    let Some(server) = Server::start(Mpm::Prefork, text) else { return };
    let gate = server.gate("g");
    let big = server.send_in_turn("/page.probe?gate=g", 2);
    assert_eq!(server.status()["budget"]["held"], 600 << 20);
    let answer = server.get("/page.probe");
    assert_eq!(answer.status, 503, "300 MB do not fit into 200");
    let small = server.send_in_turn("/page.cgi?gate=g", 2);
    assert_eq!(server.get("/page.cgi").status, 503);
    assert_eq!(server.status()["budget"]["held"], 800 << 20);
    gate.open();
    assert!(big.into_iter().chain(small).all(|one| one.answer().status == 200));
    server.wait_idle();
}

/// A reload that renames most groups: each limits at once, in the place of one that nobody is in, and one that comes back has a place of its
/// own.
#[test]
fn groups_that_a_reload_renames_make_room() {
    let groups = |names: &[String], used: &str| {
        let lines: String = names.iter().map(|name| format!("AdmissionGroup {name} limit=1\n")).collect();
        lines + &format!("AdmissionUse {used}\n")
    };
    let many = |letter: char, count: usize| (0..count).map(|n| format!("{letter}{n}")).collect::<Vec<_>>();
    // There is room for 62, and the last one of each is in use.
    let (first, second) = (groups(&many('a', 40), "a39"), groups(&many('b', 40), "b39"));
    let third = groups(&[vec!["a39".to_owned()], many('c', 61)].concat(), "c60");
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some(server) = Server::start(mpm, &first) else { return };
        for (before, now, used, count) in [(&first, &second, "b39", 40), (&second, &third, "c60", 62)] {
            configure(&server, before, now);
            let gate = server.gate(used);
            let held = server.send(&format!("/page.probe?gate={used}"));
            server.wait_number(used, "/held", 1);
            assert_eq!(server.get("/page.probe").status, 503, "{mpm:?} {used}");
            gate.open();
            assert_eq!(held.answer().status, 200);
            server.wait_idle();
            let status = server.status();
            let enforced = status["groups"].as_array().into_iter().flatten().filter(|group| group["mode"] == "enforce");
            assert_eq!(enforced.count(), count, "{mpm:?} {status}");
        }
        assert!(!server.log().contains("ADM0012"), "{mpm:?} {}", server.log());
    }
}
