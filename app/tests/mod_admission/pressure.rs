//! adaptive=memory: a limit that goes down when memory is short, and up again while somebody waits.

use crate::server::{Mpm, PATIENCE, Php, Server, Told, wait};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A group with 400 MB of memory, removed when dropped.
struct Group(PathBuf);

impl Group {
    /// `None`, and it is said, where groups cannot be made.
    fn new() -> Option<Group> {
        let Ok(found) = host::hierarchies() else {
            testkit::skip::not_here("needs a memory control group");
            return None;
        };
        let directory = found.memory.join(format!("webdyno-test-admission-{}", std::process::id()));
        let file = if found.version == host::Version::V1 { "memory.limit_in_bytes" } else { "memory.max" };
        // Removed again when it takes no limit.
        let group = fs::create_dir(&directory).map(|()| Group(directory)).ok();
        let group = group.filter(|group| fs::write(group.0.join(file), "419430400").is_ok());
        if group.is_none() {
            testkit::skip::not_here("needs a memory control group");
        }
        group
    }

    fn take(&self, pid: i32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).expect("our own group");
    }

    /// A process in the group that takes so much of its memory.
    fn hog(&self, megabytes: u32) -> Hog {
        // One allocation: a copy would not fit beside it.
        let perl = format!("vec(my $x, ({megabytes} << 20) - 1, 8) = 1; sleep 1000");
        let program = format!("echo $$ > {}/cgroup.procs; exec perl -e '{perl}'", self.0.display());
        Hog(Command::new("sh").args(["-c", &program]).spawn().expect("it starts"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its processes may be on their way out yet. Nothing fails here: the test may have failed already.
        let end = Instant::now() + PATIENCE;
        while fs::remove_dir(&self.0).is_err() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

struct Hog(Child);

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_limit_follows_the_memory() {
    let Some(group) = Group::new() else { return };
    let text = "AdmissionGroup one limit=4 adaptive=memory min=1 max=6 cost=100M queue=6 timeout=120s\nAdmissionQueueWorkers 8\nAdmissionUse one\n";
    let Some(server) = Server::start(Mpm::Prefork, text) else { return };
    // The server of this test alone: what it starts later is in the group as well.
    group.take(server.wait_controller());
    let gate = server.gate("g");
    let mut pending = server.send_in_turn("/page.probe?gate=g", 4);
    let hog = group.hog(320);
    server.wait_number("one", "/limit", 1);
    assert_eq!(server.number("one", "/held"), 4, "nobody is thrown out");
    pending.push(server.send("/page.probe?id=waits"));
    server.wait_number("one", "/waiting", 1);
    drop(hog);
    wait("it rises again", || server.number("one", "/limit") > 1);
    gate.open();
    assert!(pending.into_iter().all(|one| one.answer().status == 200));
    server.wait_idle();
}

/// Memory of a machine with a gigabyte, as /proc/meminfo tells of it. All such texts are of one length.
fn meminfo(available_kib: u64) -> String {
    format!("MemTotal:        1000000 kB\nMemFree:           10000 kB\nMemAvailable:   {available_kib:8} kB\n")
}

/// For how long tasks have waited for memory, as /proc/pressure/memory tells.
fn psi(seconds: u64) -> String {
    format!(
        "some avg10=0.00 avg60=0.00 avg300=0.00 total={:012}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
        seconds * 1_000_000
    )
}

/// A server that reads these texts for the machine's own, of whose permits all four are held; six more may wait, or nobody.
fn on_a_machine(mpm: Mpm, may_wait: bool, check: impl FnOnce(&Server)) {
    let own = Command::new("unshare").args(["--mount", "test", "-e", "/proc/pressure/memory"]).status();
    if !own.is_ok_and(|status| status.success()) {
        return testkit::skip::not_here("needs a kernel with PSI, and mounts of its own");
    }
    let queue = if may_wait { "queue=6 timeout=120s" } else { "queue=0" };
    let text = format!(
        "AdmissionGroup one limit=4 adaptive=memory min=1 max=6 cost=100M {queue}\nAdmissionQueueWorkers 8\nAdmissionUse one\n"
    );
    let (memory, pressure) = (meminfo(900_000), psi(1));
    let files = [("proc/meminfo", memory.as_str()), ("proc/pressure", &pressure)];
    let Some(server) = Server::told(&Told { mpm, text: &text, php: Php::None, files: &files }) else { return };
    server.wait_controller();
    let gate = server.gate("g");
    let pending = server.send_in_turn("/page.probe?gate=g", 4);
    check(&server);
    gate.open();
    assert!(pending.into_iter().all(|one| one.answer().status == 200));
    server.wait_idle();
}

/// In its place, and at once: a reader finds the text of before or this one.
fn tell(server: &Server, name: &str, text: &str) {
    let mut file = OpenOptions::new().write(true).open(server.path(name)).expect("our own file");
    file.write_all(text.as_bytes()).expect("a short text");
}

/// Memory that one more request would not leave free cuts the limit down to the least, and it rises again when there is some.
#[test]
fn the_limit_follows_what_is_available() {
    for mpm in [Mpm::Prefork, Mpm::Event] {
        on_a_machine(mpm, true, |server| {
            // 5 % of the memory and a request's 100 MB are more than that.
            tell(server, "proc/meminfo", &meminfo(150_000));
            server.wait_number("one", "/limit", 1);
            assert_eq!(server.number("one", "/held"), 4, "nobody is thrown out");
            tell(server, "proc/meminfo", &meminfo(160_000));
            let waits = server.send("/page.probe?id=waits");
            wait("it rises until there is a permit for who waits", || server.number("one", "/limit") >= 5);
            assert_eq!(waits.answer().status, 200);
        });
    }
}

/// So does a time in which tasks waited for memory, whatever is available: to 70 % each time.
#[test]
fn the_limit_follows_the_stall() {
    for mpm in [Mpm::Prefork, Mpm::Worker] {
        on_a_machine(mpm, true, |server| {
            for (stalled, limit) in [(100, 2), (200, 1)] {
                tell(server, "proc/pressure", &psi(stalled));
                server.wait_number("one", "/limit", limit);
                // Two seconds without a change follow.
                let written = || server.status()["written"].as_f64().unwrap_or_default();
                let began = written();
                wait("rounds go by", || {
                    assert_eq!(server.number("one", "/limit"), limit);
                    written() >= began + 3.0
                });
            }
            let waits = server.send("/page.probe?id=waits");
            wait("it rises until there is a permit for who waits", || server.number("one", "/limit") >= 5);
            assert_eq!(waits.answer().status, 200);
        });
    }
}

/// Where nobody may wait, those who are turned away show that more is asked for.
#[test]
fn the_limit_rises_again_without_a_queue() {
    on_a_machine(Mpm::Event, false, |server| {
        tell(server, "proc/pressure", &psi(100));
        server.wait_number("one", "/limit", 2);
        wait("it rises until there is a permit", || server.get("/page.probe").status == 200);
        assert!(server.number("one", "/limit") >= 5);
    });
}

/// Who waits runs nothing yet, and is not what a program's memory is shared by.
#[test]
fn a_cost_is_learned_beside_others_that_wait() {
    let text = "LoadModule cgi_module /usr/lib/apache2/modules/mod_cgi.so\nServerLimit 1\nStartServers 1\nMaxRequestWorkers 8\nMinSpareThreads 1\n\
                AdmissionGroup one limit=1 queue=6 timeout=120s cost=learn\nAdmissionQueueWorkers 6\nAdmissionUse one\n";
    let Some(server) = Server::start(Mpm::Worker, text) else { return };
    let (first, second) = (server.gate("g"), server.gate("h"));
    let mut pending = vec![server.send("/page.cgi?gate=g")];
    server.wait_started(1);
    pending.extend((1..=5).map(|place| {
        let one = server.send("/page.cgi?memory=60&gate=h");
        server.wait_number("one", "/waiting", place);
        one
    }));
    first.open();
    wait("it is learned", || server.number("one", "/cost") >= 60 << 20);
    second.open();
    assert!(pending.into_iter().all(|one| one.answer().status == 200));
    server.wait_idle();
}

/// What PHP takes in a process of the server is learned as that of a program is.
#[test]
fn a_cost_is_learned_from_php() {
    let page = "<?php $held = str_repeat('x', 60 << 20); flock(fopen($_SERVER['PROBE_HOME'] . '/gates/g', 'r'), LOCK_SH); echo strlen($held);\n";
    let told = Told {
        mpm: Mpm::Prefork,
        php: Php::Module,
        text: "AdmissionGroup one limit=none cost=learn\nAdmissionUse one\nphp_admin_value memory_limit 128M\n",
        files: &[("www/memory.php", page)],
    };
    let Some(server) = Server::told(&told) else { return };
    let gate = server.gate("g");
    let held = server.send("/memory.php");
    wait("it is learned", || server.number("one", "/cost") >= 60 << 20);
    let learned = server.number("one", "/cost");
    assert!(learned < 90 << 20, "{learned}");
    gate.open();
    assert_eq!(held.answer().body, (60 << 20).to_string());
    server.wait_idle();
}

/// What a program really takes is what its group's requests are counted as from then on, of the budget, too.
#[test]
fn a_cost_is_learned_from_a_program() {
    let text = "AdmissionBudget memory 100M\nAdmissionGroup one limit=none cost=learn\nAdmissionUse one\n";
    let Some(server) = Server::start(Mpm::Prefork, text) else { return };
    assert_eq!(server.number("one", "/cost"), 0);
    let cost = 60 << 20;
    let gate = server.gate("g");
    let first = server.send("/page.cgi?memory=60&gate=g");
    wait("it is learned", || server.number("one", "/cost") >= cost);
    let learned = server.number("one", "/cost");
    assert!(learned < cost + (20 << 20), "{learned}");
    gate.open();
    assert_eq!(first.answer().status, 200);
    server.wait_idle();
    // Of two together there is not room for both.
    let gate = server.gate("h");
    let second = server.send("/page.cgi?gate=h");
    server.wait_started(2);
    assert!(server.status()["budget"]["held"].as_u64() >= Some(cost), "{}", server.status());
    assert_eq!(server.get("/page.cgi").status, 503);
    // Nor in a table that a reload has made larger, in which nothing was learned yet.
    let configuration = fs::read_to_string(server.path("httpd.conf")).expect("ours");
    server.put("httpd.conf", &configuration.replace("AdmissionBudget", "AdmissionTableSize 65536\nAdmissionBudget"));
    server.graceful();
    assert!(server.log().contains("ADM0011: a larger table is needed"), "{}", server.log());
    assert_eq!((server.get("/page.cgi").status, server.number("one", "/cost") >= cost), (503, true));
    gate.open();
    assert_eq!(second.answer().status, 200);
    server.wait_idle();
}
