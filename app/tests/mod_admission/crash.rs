//! Processes that die or stop: what the dead held comes back, what the living hold is theirs.

use crate::client::Client;
use crate::oracle::{Killed, most_at_once, order};
use crate::server::{Mpm, PATIENCE, Server, kill, wait};
use rustix::process::Signal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const ALL: [Mpm; 3] = [Mpm::Prefork, Mpm::Worker, Mpm::Event];
const ONE: &str = "AdmissionGroup one limit=1\nAdmissionUse one\n";

/// One after the other would take as long as all of them.
fn beside_each_other(test: impl Fn(Mpm) + Sync) {
    std::thread::scope(|scope| {
        for mpm in ALL {
            let test = &test;
            scope.spawn(move || test(mpm));
        }
    });
}

/// A page is in its process; the process is brought to its end; the permit is back, and the next one is admitted.
fn check_back(mpm: Mpm, end: impl Fn(i32), query: &str) {
    let Some(server) = Server::start(mpm, ONE) else { return };
    for round in 0..2 {
        let gate = server.gate(&format!("g{round}"));
        let held = server.send(&format!("/page.probe?id={round}&gate=g{round}{query}"));
        server.wait_started(round * 2 + 1);
        assert_eq!(server.number("one", "/held"), 1);
        assert_eq!(server.get("/page.probe").status, 503);
        let child = server.events().last().expect("it has begun").child;
        end(child);
        gate.open();
        assert!(held.try_answer().is_none(), "its process died");
        let died = Instant::now();
        wait("the permit is back", || server.number("one", "/held") == 0);
        // The goal is two seconds; a machine that is busy with other tests has more.
        assert!(died.elapsed() < Duration::from_secs(10), "{:?}", died.elapsed());
        assert_eq!(server.get("/page.probe?id=next").status, 200);
        assert_eq!(server.number("one", "/counts/reaped"), round as u64 + 1);
        server.wait_idle();
    }
}

#[test]
fn a_killed_child_gives_back() {
    beside_each_other(|mpm| check_back(mpm, |child| kill(child, Signal::KILL), ""));
}

#[test]
fn a_crashed_child_gives_back() {
    beside_each_other(|mpm| check_back(mpm, |_| {}, "&crash"));
}

/// The parent gives back what its dead children held, too: here the controller, which would be first, is stopped.
#[test]
fn the_parent_gives_back_without_the_controller() {
    beside_each_other(|mpm| {
        let Some(server) = Server::start(mpm, ONE) else { return };
        let controller = server.wait_controller();
        kill(controller, Signal::STOP);
        let gate = server.gate("g");
        let held = server.send("/page.probe?gate=g");
        server.wait_number("one", "/held", 1);
        server.wait_started(1);
        kill(server.events()[0].child, Signal::KILL);
        assert!(held.try_answer().is_none());
        server.wait_number("one", "/held", 0);
        wait("the parent says so", || {
            server.log().lines().any(|line| line.contains("ADM0018: child") && line.contains("with 1 permits"))
        });
        kill(controller, Signal::CONT);
        gate.open();
    });
}

/// Those who wait get what a dead process held.
#[test]
fn who_waits_gets_the_permit_of_the_dead() {
    beside_each_other(|mpm| {
        let text = "AdmissionGroup one limit=1 queue=4 timeout=60s\nAdmissionUse one\n";
        let Some(server) = Server::start(mpm, text) else { return };
        let _gate = server.gate("g");
        let held = server.send("/page.probe?id=dies&gate=g");
        server.wait_started(1);
        let child = server.events()[0].child;
        // A process with threads takes those who wait in it along when it dies, so many come that one is in another.
        let waiting: Vec<_> = (0..3).map(|n| server.send(&format!("/page.probe?id=waits{n}"))).collect();
        server.wait_number("one", "/waiting", 3);
        kill(child, Signal::KILL);
        assert!(held.try_answer().is_none());
        let answered: Vec<_> = waiting.into_iter().filter_map(crate::server::Pending::try_answer).collect();
        assert!(answered.iter().all(|one| one.status == 200));
        assert!(mpm != Mpm::Prefork || answered.len() == 3);
        server.wait_idle();
        assert_eq!(server.get("/page.probe").status, 200);
    });
}

/// A connection to a process that is not the one. New ones are no use: of httpd's processes that wait for one, a stopped one may be woken.
fn connection_beside(server: &Server, child: i32) -> Client {
    let mut tried = Vec::new();
    loop {
        let mut client = server.client();
        let id = format!("beside{}", tried.len());
        assert_eq!(client.get(&format!("/other.probe?id={id}")).status, 200);
        let event = server.events().into_iter().find(|event| event.id == id).expect("it has begun");
        if event.child != child {
            return client;
        }
        // Kept, so that the other process takes one of the next.
        tried.push(client);
        assert!(tried.len() < 500, "all connections come to one process");
    }
}

/// However long a process is stopped, what it holds is its own. Time is what is tested here, so time is waited for.
#[test]
fn a_stopped_child_keeps_its_permit() {
    beside_each_other(|mpm| {
        let Some(server) = Server::start(mpm, ONE) else { return };
        let gate = server.gate("g");
        let held = server.send("/page.probe?id=stopped&gate=g");
        server.wait_started(1);
        let child = server.events()[0].child;
        let mut beside = connection_beside(&server, child);
        kill(child, Signal::STOP);
        let stopped = Instant::now();
        while stopped.elapsed() < Duration::from_secs(5) {
            assert_eq!(beside.get("/other.probe").status, 200, "another file");
            assert_eq!(beside.get("/page.probe").status, 503);
            let status: serde_json::Value =
                serde_json::from_str(&beside.get("/admission-status?json").body).expect("JSON");
            let group = &status["groups"][0];
            assert_eq!((&group["held"], &group["counts"]["reaped"]), (&1.into(), &0.into()), "{group}");
            std::thread::sleep(Duration::from_millis(50));
        }
        kill(child, Signal::CONT);
        gate.open();
        assert_eq!(held.answer().status, 200);
        server.wait_idle();
        assert_eq!(server.get("/page.probe?id=next").status, 200);
        assert_eq!(server.number("one", "/counts/reaped"), 0);
    });
}

/// Who is stopped when his turn comes keeps nobody from what he does not take, and has it when he goes on. Those who may not wait were turned
/// away as long as he stood, however much memory there was.
#[test]
fn a_stopped_waiter_holds_up_nobody() {
    let text = "AdmissionBudget memory 100M\nAdmissionGroup heavy limit=none cost=100M queue=5 timeout=60s\n\
                AdmissionGroup light limit=none cost=10M\nAdmissionQueueWorkers 10\n\
                <Location /page.probe>\nAdmissionUse heavy\n</Location>\n<Location /other.probe>\nAdmissionUse light\n</Location>\n";
    let Some(server) = Server::start(Mpm::Prefork, text) else { return };
    server.wait_controller();
    let mut beside = server.client();
    assert_eq!(beside.get("/other.probe?id=beside").status, 200);
    let gate = server.gate("g");
    let held = server.send("/page.probe?id=held&gate=g");
    server.wait_started(2);
    let waits = server.send("/page.probe?id=waits");
    wait("it waits for memory", || server.status()["budget"]["waiting"] == 1);
    let at_work: Vec<i32> = server.events().iter().map(|event| event.child).collect();
    let stopped: Vec<i32> = server.workers().into_iter().filter(|worker| !at_work.contains(worker)).collect();
    stopped.iter().for_each(|&worker| kill(worker, Signal::STOP));
    assert_eq!(beside.get("/other.probe").status, 503, "the memory is all held");
    gate.open();
    assert_eq!(held.answer().status, 200);
    wait("there is room for who needs little", || beside.get("/other.probe?id=light").status == 200);
    stopped.iter().for_each(|&worker| kill(worker, Signal::CONT));
    assert_eq!(waits.answer().status, 200);
    server.wait_idle();
    assert_eq!(order(&server.events()), ["beside", "held", "light", "waits"]);
}

/// A graceful restart forgets nobody: requests of the old processes count until they end, and those that wait in them are admitted.
#[test]
fn a_graceful_restart_keeps_permits() {
    beside_each_other(|mpm| {
        let text = "AdmissionGroup two limit=2 queue=1 timeout=60s\nAdmissionUse two\n";
        let Some(server) = Server::start(mpm, text) else { return };
        let gate = server.gate("g");
        let old: Vec<_> = (0..2).map(|n| server.send(&format!("/page.probe?id=old{n}&gate=g"))).collect();
        server.wait_started(2);
        let waits = server.send("/page.probe?id=waits");
        server.wait_number("two", "/waiting", 1);
        for _ in 0..2 {
            server.graceful();
            assert_eq!((server.number("two", "/held"), server.get("/page.probe?id=new").status), (2, 503), "{mpm:?}");
        }
        gate.open();
        for one in old {
            assert_eq!(one.answer().status, 200);
        }
        assert_eq!(waits.answer().status, 200, "{}", server.log());
        server.wait_idle();
        assert_eq!(server.get("/page.probe?id=new").status, 200);
        assert_eq!(most_at_once(&server.events(), &Killed::new()), 2);
    });
}

/// So it is where a reload needs a larger table, and the next one a still larger one: what is held in those before counts.
#[test]
fn a_larger_table_keeps_permits() {
    beside_each_other(|mpm| {
        let text = "AdmissionTableSize 64\nAdmissionGroup two limit=2\nAdmissionBudget memory 100M\nAdmissionGroup big limit=9 cost=60M\n\
                    <Location /page.probe>\nAdmissionUse two\n</Location>\n<Location /big.probe>\nAdmissionUse big\n</Location>\n";
        let Some(server) = Server::start(mpm, text) else { return };
        let configuration = std::fs::read_to_string(server.path("httpd.conf")).expect("ours");
        // Another group before it, so that the same one has another number in the new table.
        let grow = |size: u32| {
            let larger = format!("AdmissionTableSize {size}\nAdmissionGroup of{size} limit=1");
            server.put("httpd.conf", &configuration.replace("AdmissionTableSize 64", &larger));
            server.graceful();
        };
        let gate = server.gate("g");
        let old = server.send("/page.probe?id=old&gate=g");
        server.wait_started(1);
        let big = server.send("/big.probe?gate=g");
        server.wait_started(2);
        grow(128);
        assert_eq!(
            (server.number("two", "/held"), server.get("/big.probe").status),
            (1, 503),
            "{mpm:?}: {}",
            server.log()
        );
        let newer = server.send("/page.probe?id=newer&gate=g");
        server.wait_started(3);
        grow(256);
        assert_eq!((server.number("two", "/held"), server.get("/page.probe?id=new").status), (2, 503), "{mpm:?}");
        assert_eq!(server.log().matches("ADM0011: a larger table is needed").count(), 2, "{}", server.log());
        gate.open();
        for one in [old, newer, big] {
            assert_eq!(one.answer().status, 200);
        }
        server.wait_idle();
        for path in ["/page.probe?id=new", "/big.probe"] {
            assert_eq!(server.get(path).status, 200, "{mpm:?}: {}", server.log());
        }
        assert_eq!(most_at_once(&server.events(), &Killed::new()), 3);
    });
}

/// Those who wait in a table that a reload has replaced by a larger one get what a killed process held there, and nobody of the new one does.
#[test]
fn who_waits_in_a_table_that_was_replaced_gets_the_permit_of_the_dead() {
    beside_each_other(|mpm| {
        let text = "AdmissionTableSize 64\nAdmissionGroup one limit=1 queue=4 timeout=60s\nAdmissionUse one\n";
        let Some(server) = Server::start(mpm, text) else { return };
        let gate = server.gate("g");
        let held = server.send("/page.probe?id=dies&gate=g");
        server.wait_started(1);
        let child = server.events()[0].child;
        let waiting: Vec<_> = (0..3).map(|n| server.send(&format!("/page.probe?id=waits{n}"))).collect();
        server.wait_number("one", "/waiting", 3);
        let configuration = std::fs::read_to_string(server.path("httpd.conf")).expect("ours");
        // Twice, so that it is found again by a configuration that did not replace it.
        for size in ["TableSize 128", "TableSize 100"] {
            server.put("httpd.conf", &configuration.replace("TableSize 64", size));
            server.graceful();
        }
        let log = server.log();
        assert_eq!(log.matches("ADM0011: a larger table is needed").count(), 1, "{log}");
        assert_eq!(server.number("one", "/held"), 1, "in the tables before");
        kill(child, Signal::KILL);
        assert!(held.try_answer().is_none());
        let answered: Vec<_> = waiting.into_iter().filter_map(crate::server::Pending::try_answer).collect();
        assert!(answered.iter().all(|one| one.status == 200), "{answered:?}");
        assert!(mpm != Mpm::Prefork || answered.len() == 3);
        assert_eq!(server.number("one", "/counts/reaped"), 0, "not the new table's");
        gate.open();
        // httpd makes one for each that was killed, be it of before, and tells no more to end than there should be.
        wait("there are no more than should be", || server.takers() <= mpm.processes());
        // Nobody is left there, and a reload looks no further, once the controller has said so.
        server.graceful();
        wait("nobody is left", || server.get("/page.probe").status == 200);
        server.wait_idle();
    });
}

/// A reload that takes all groups away limits nobody any more, those included who wait in processes of before.
#[test]
fn without_groups_nobody_waits() {
    beside_each_other(|mpm| {
        let text = "AdmissionGroup one limit=1 queue=4 timeout=60s\nAdmissionUse one\n";
        let Some(server) = Server::start(mpm, text) else { return };
        let gate = server.gate("g");
        let held = server.send("/page.probe?id=held&gate=g");
        server.wait_started(1);
        let waits = server.send("/page.probe?id=waits");
        server.wait_number("one", "/waiting", 1);
        let configuration = std::fs::read_to_string(server.path("httpd.conf")).expect("ours");
        server.put("httpd.conf", &configuration.replace(text, ""));
        server.graceful();
        assert_eq!(waits.answer().status, 200, "while the permit is held");
        gate.open();
        assert_eq!(held.answer().status, 200);
        // And back: what was held then is over.
        server.put("httpd.conf", &configuration);
        server.graceful();
        assert_eq!(server.get("/page.probe?id=next").status, 200);
        server.wait_idle();
    });
}

/// A server that is told to end gracefully lets work be done, also that of those who wait for it already.
#[test]
fn a_graceful_end_serves_those_who_wait() {
    beside_each_other(|mpm| {
        let Some(server) = Server::start(mpm, &ONE.replace("limit=1", "limit=1 queue=3 timeout=100s")) else { return };
        let gate = server.gate("g");
        let held = server.send("/page.probe?gate=g");
        server.wait_started(1);
        let waits = server.send("/page.probe?id=waits");
        server.wait_number("one", "/waiting", 1);
        server.signal(Signal::WINCH);
        wait("it is told", || server.log().contains("shutting down gracefully"));
        gate.open();
        assert_eq!((held.answer().status, waits.answer().status), (200, 200), "{mpm:?}");
        assert_eq!(order(&server.events()), ["-", "waits"]);
    });
}

/// A restart that is not graceful ends all work: what was held is free for the next.
#[test]
fn a_restart_frees_all() {
    beside_each_other(|mpm| {
        let Some(server) = Server::start(mpm, ONE) else { return };
        let _gate = server.gate("g");
        let held = server.send("/page.probe?gate=g");
        server.wait_started(1);
        server.restart(Signal::HUP);
        assert!(held.try_answer().is_none());
        server.wait_idle();
        assert_eq!(server.get("/page.probe").status, 200);
    });
}

/// What a restart takes out of the configuration limits nothing any more, and what it changes is in force.
#[test]
fn a_graceful_restart_changes_groups() {
    let Some(server) = Server::start(Mpm::Event, ONE) else { return };
    let gate = server.gate("g");
    let held = server.send("/page.probe?gate=g");
    server.wait_started(1);
    let configuration = std::fs::read_to_string(server.path("httpd.conf")).expect("ours");
    server.put("httpd.conf", &configuration.replace("limit=1", "limit=3"));
    server.graceful();
    assert_eq!((server.number("one", "/limit"), server.number("one", "/held")), (3, 1));
    assert_eq!(server.get("/page.probe").status, 200);
    server.put(
        "httpd.conf",
        &configuration
            .replace("AdmissionGroup one limit=1\nAdmissionUse one", "AdmissionGroup new limit=2\nAdmissionUse new"),
    );
    server.graceful();
    assert_eq!((server.number("new", "/limit"), server.get("/page.probe").status), (2, 200));
    gate.open();
    assert_eq!(held.answer().status, 200);
    server.wait_idle();
}

/// Which group is a request's first goes by the configuration as it is now, not by which one the table has had for longer.
#[test]
fn a_group_that_a_restart_puts_first_is_the_first() {
    let one = "AdmissionGroup one limit=1 key=server\nAdmissionUse one\n";
    let Some(server) = Server::start(Mpm::Event, one) else { return };
    let configuration = std::fs::read_to_string(server.path("httpd.conf")).expect("ours");
    let before = "AdmissionGroup before limit=1 key=server status=429\n";
    server.put("httpd.conf", &configuration.replace(one, &format!("{before}{one}AdmissionUse before\n")));
    server.graceful();
    let gate = server.gate("g");
    let held = server.send("/page.probe?gate=g");
    server.wait_number("before", "/held", 1);
    assert_eq!(server.get("/page.probe").status, 429);
    gate.open();
    assert_eq!(held.answer().status, 200);
    server.wait_idle();
}

/// mpm-itk serves each connection in a copy of a child: what the copy takes it gives back.
#[test]
fn a_copy_that_serves_a_connection_gives_back_what_it_takes() {
    let Some(server) = Server::start(Mpm::Prefork, &format!("Define PROBE_FORKS\n{ONE}")) else { return };
    for n in 0..5 {
        assert_eq!(server.get("/page.probe").status, 200, "request {n}");
        server.wait_number("one", "/held", 0);
    }
    let gate = server.gate("g");
    let held = server.send("/page.probe?gate=g");
    server.wait_number("one", "/held", 1);
    assert_eq!(server.get("/page.probe").status, 503);
    gate.open();
    assert_eq!(held.answer().status, 200);
    server.wait_idle();
}

/// What a copy holds that is killed comes back, though the child that it is a copy of lives on.
#[test]
fn a_copy_that_is_killed_gives_back() {
    let Some(server) = Server::start(Mpm::Prefork, &format!("Define PROBE_FORKS\n{ONE}")) else { return };
    let gate = server.gate("g");
    let held = server.send("/page.probe?gate=g");
    server.wait_started(1);
    let copy = server.events()[0].child;
    assert!(!server.workers().contains(&copy), "a copy of a child of Apache's");
    kill(copy, Signal::KILL);
    assert!(held.try_answer().is_none());
    server.wait_number("one", "/held", 0);
    gate.open();
    assert_eq!((server.get("/page.probe").status, server.number("one", "/counts/reaped")), (200, 1));
    server.wait_idle();
}

/// mpm-itk itself, whose requests have an account of their own: they are counted, and come back when their process is killed.
#[test]
fn mpm_itk_gives_back_what_another_account_takes() {
    let module = "/usr/lib/apache2/modules/mpm_itk.so";
    if !std::path::Path::new(module).exists() {
        return testkit::skip::skipped(&format!("there is no {module}"));
    }
    let text = format!(
        "LoadModule mpm_itk_module {module}\nLoadModule cgi_module /usr/lib/apache2/modules/mod_cgi.so\n\
         AssignUserID nobody nogroup\nAdmissionHoldFd on\n{ONE}"
    );
    let Some(server) = Server::start(Mpm::Prefork, &text) else { return };
    assert!(server.log().contains("ADM0005: AdmissionHoldFd: where mpm-itk"), "{}", server.log());
    for (path, killed) in [("/page.probe", false), ("/page.cgi", false), ("/page.probe", true)] {
        let gate = server.gate("g");
        let before = server.started();
        let held = server.send(&format!("{path}?gate=g"));
        server.wait_started(before + 1);
        assert_eq!((server.number("one", "/held"), server.get(path).status), (1, 503), "{path}");
        let child = server.events().last().expect("it has begun").child;
        let status = std::fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
        assert!(status.contains("\nUid:\t65534\t65534\t"), "it is nobody's: {status}");
        assert!(!server.workers().contains(&child), "a copy of a child of Apache's");
        if killed {
            kill(child, Signal::KILL);
        } else {
            gate.open();
        }
        assert_eq!(held.try_answer().map(|answer| answer.status), (!killed).then_some(200), "{path}");
        server.wait_idle();
    }
    assert_eq!(server.number("one", "/counts/reaped"), 1);
}

/// A copy that is made while a request is answered (pcntl_fork), and that ends it before the original does, gives nothing back.
#[test]
fn a_copy_that_is_made_within_a_request_keeps_its_permit() {
    let Some(server) = Server::start(Mpm::Prefork, ONE) else { return };
    let gate = server.gate("g");
    let held = server.send("/page.probe?spawn=copy&gate=g");
    // The original goes on when the copy has ended.
    server.wait_started(1);
    assert_eq!(server.number("one", "/held"), 1);
    assert_eq!(server.get("/page.probe").status, 503);
    gate.open();
    assert_eq!(held.answer().status, 200);
    server.wait_idle();
}

/// The process beside the workers may die like any other: another takes its place, and requests notice nothing.
#[test]
fn the_controller_is_replaced() {
    let Some(server) = Server::start(Mpm::Prefork, ONE) else { return };
    let first = || server.status()["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
    wait("there is a controller", || first().is_some());
    for signal in [Signal::KILL, Signal::TERM, Signal::KILL] {
        let before = first();
        kill(before.expect("a process"), signal);
        assert_eq!(server.get("/page.probe").status, 200);
        wait(&format!("there is another: {}", server.status()), || first().is_some_and(|now| Some(now) != before));
    }
    // The new one takes back what the dead held.
    let _gate = server.gate("g");
    let held = server.send("/page.probe?id=dies&gate=g");
    server.wait_number("one", "/held", 1);
    kill(server.events().last().expect("it has begun").child, Signal::KILL);
    assert!(held.try_answer().is_none());
    server.wait_idle();
}

/// A group that says how many processes may be, removed when dropped.
struct Pids(PathBuf);

impl Pids {
    /// With nobody in it; `None`, and it is said, where groups cannot be made.
    fn new() -> Option<Pids> {
        let directory = PathBuf::from(format!("/sys/fs/cgroup/pids/webdyno-test-admission-{}", std::process::id()));
        let group = std::fs::create_dir(&directory).ok().map(|()| Pids(directory));
        if group.is_none() {
            testkit::skip::not_here("needs a pids control group of v1");
        }
        group
    }

    fn say(&self, file: &str, what: &str) {
        std::fs::write(self.0.join(file), what).expect("our own group");
    }
}

impl Drop for Pids {
    fn drop(&mut self) {
        // Its processes may be on their way out yet. Nothing fails here: the test may have failed already.
        let end = Instant::now() + PATIENCE;
        while std::fs::remove_dir(&self.0).is_err() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Where no process can be made when the controller has ended, another takes its place as soon as one can.
#[test]
fn the_controller_is_tried_again() {
    let Some(group) = Pids::new() else { return };
    let Some(server) = Server::start(Mpm::Event, ONE) else { return };
    let before = server.wait_controller();
    group.say("cgroup.procs", &server.pid().to_string());
    group.say("pids.max", "1");
    kill(before, Signal::KILL);
    wait(&format!("none can be made: {}", server.log()), || server.log().contains("ADM0047"));
    assert_eq!(server.status()["pid"], serde_json::Value::Null, "the one that there was has ended");
    group.say("pids.max", "max");
    wait("there is another", || server.controller().is_some_and(|now| now != before));
    // It does what a controller does.
    let gate = server.gate("g");
    let held = server.send("/page.probe?id=dies&gate=g");
    server.wait_number("one", "/held", 1);
    kill(server.events().last().expect("it has begun").child, Signal::KILL);
    assert!(held.try_answer().is_none());
    server.wait_idle();
    gate.open();
}

/// Processes whose command line or folder is this server's.
fn processes(folder: &str) -> Vec<String> {
    let of = |path: std::path::PathBuf| {
        let command = std::fs::read(path.join("cmdline")).ok()?;
        let text = String::from_utf8_lossy(&command).replace('\0', " ");
        text.contains(folder).then(|| format!("{}: {text}", path.display()))
    };
    std::fs::read_dir("/proc").expect("/proc").flatten().filter_map(|entry| of(entry.path())).collect()
}

/// Neither an orderly end nor the death of the parent leaves the controller behind.
#[test]
fn nothing_is_left() {
    for signal in [Signal::TERM, Signal::KILL] {
        let Some(server) = Server::start(Mpm::Event, ONE) else { return };
        let folder = server.path("").display().to_string().trim_end_matches('/').to_owned();
        let (controller, workers) = (server.wait_controller(), server.workers());
        server.signal(signal);
        wait("the controller has ended", || {
            let state = std::fs::read_to_string(format!("/proc/{controller}/stat")).unwrap_or_default();
            state.is_empty() || state.contains(") Z ")
        });
        if signal == Signal::KILL {
            // Nobody tells httpd's own children.
            workers.into_iter().for_each(|worker| kill(worker, Signal::KILL));
        }
        drop(server);
        wait(&format!("nothing is left: {:?}", processes(&folder)), || processes(&folder).is_empty());
    }
}
