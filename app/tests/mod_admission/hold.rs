//! AdmissionHoldFd: a permit that lasts as long as the programs behind it; and hold=response: as long as the answer is read.

use crate::client::Client;
use crate::oracle::{Killed, most_at_once};
use crate::server::{Gate, Mpm, Php, Server, Told, behind, kill, wait};
use rustix::process::Signal;

const HOLD: &str = "AdmissionGroup one limit=1\nAdmissionUse one\nAdmissionHoldFd on\n";

/// A program goes on when the process of the server dies that started it, and so does its permit.
#[test]
fn a_program_that_outlives_its_server_keeps_the_permit() {
    let Some(server) = Server::start(Mpm::Prefork, HOLD) else { return };
    let gate = server.gate("g");
    let held = server.send("/page.cgi?id=program&gate=g");
    server.wait_started(1);
    kill(server.events()[0].child, Signal::KILL);
    assert!(held.try_answer().is_none());
    wait("the permit lingers", || server.group("one")["lingering"] == 1);
    // It stays so over several rounds of the controller.
    let written = || server.status()["written"].as_f64().unwrap_or_default();
    let began = written();
    wait("rounds go by", || {
        assert_eq!((server.number("one", "/held"), server.get("/page.cgi?id=next").status), (1, 503));
        written() >= began + 2.0
    });
    gate.open();
    server.wait_idle();
    assert_eq!(server.get("/page.cgi?id=next").status, 200);
    assert_eq!(most_at_once(&server.events(), &Killed::new()), 1, "programs");
}

/// So does a program that PHP started in a process of the server.
#[test]
fn a_program_of_php_keeps_the_permit() {
    let page = "<?php putenv('PROBE_HOME=' . $_SERVER['PROBE_HOME']); putenv('QUERY_STRING=id=program&gate=g');\n\
                exec(__DIR__ . '/page.cgi');\n";
    let told = Told { mpm: Mpm::Prefork, php: Php::Module, text: HOLD, files: &[("www/starts.php", page)] };
    let Some(server) = Server::told(&told) else { return };
    let gate = server.gate("g");
    let held = server.send("/starts.php");
    server.wait_started(1);
    let program = server.events()[0].pid;
    assert_eq!(holds_open(program), 1);
    let serving =
        server.workers().into_iter().find(|worker| is_above(*worker, program)).expect("it was started by one");
    kill(serving, Signal::KILL);
    assert!(held.try_answer().is_none());
    wait("the permit lingers", || server.group("one")["lingering"] == 1);
    assert_eq!(server.get("/starts.php").status, 503);
    gate.open();
    server.wait_idle();
    assert_eq!(server.get("/starts.php").status, 200);
}

/// Whether a process was started by another, or by one that it started.
fn is_above(ancestor: i32, pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
    parent.is_some_and(|parent: i32| parent == ancestor || parent > 1 && is_above(ancestor, parent))
}

/// A directory that is another user's is not written to, and is told of; so is a file of the locks that cannot be made. Limits hold.
#[test]
fn without_its_directory_or_its_file_it_goes_on() {
    let limits = |server: &Server| {
        let gate = server.gate("g");
        let held = server.send("/page.cgi?gate=g");
        server.wait_number("one", "/held", 1);
        assert_eq!(server.get("/page.cgi").status, 503);
        gate.open();
        assert_eq!(held.answer().status, 200);
        server.wait_idle();
    };
    let text = format!("{HOLD}AdmissionRuntimeDir FOLDER/of-root\n");
    let told = Told { mpm: Mpm::Prefork, php: Php::None, text: &text, files: &[("of-root/file", "")] };
    let Some(server) = Server::told(&told) else { return };
    assert!(server.log().contains("ADM0015: AdmissionRuntimeDir "), "{}", server.log());
    limits(&server);
    assert_eq!(std::fs::read_dir(server.path("of-root")).expect("a folder").count(), 1, "nothing was added to it");
    let Some(server) = Server::start(Mpm::Prefork, HOLD) else { return };
    std::fs::remove_file(server.path("run/admission/hold")).expect("the server's file");
    std::fs::create_dir(server.path("run/admission/hold")).expect("a folder in its place");
    server.restart(Signal::HUP);
    wait("it is told", || server.log().contains("ADM0016: AdmissionHoldFd: "));
    limits(&server);
}

/// A program has answered and left another behind, which has its permit until the gate opens.
fn left_behind(server: &Server) -> Gate {
    let gate = server.gate("behind");
    assert_eq!(server.get("/page.cgi?id=first&spawn=behind").status, 200);
    wait("the permit lingers", || server.group("one")["lingering"] == 1);
    gate
}

/// What a program leaves behind counts as long as it lives, also when the answer was given long ago.
#[test]
fn what_a_program_leaves_behind_keeps_the_permit() {
    let Some(server) = Server::start(Mpm::Prefork, HOLD) else { return };
    let gate = left_behind(&server);
    assert_eq!(server.get("/page.cgi?id=next").status, 503);
    gate.open();
    server.wait_idle();
    assert_eq!(server.get("/page.cgi?id=next").status, 200);
    server.wait_idle();
    assert_eq!(server.number("one", "/counts/reaped"), 0);
}

/// That a program has ended is seen by requests, too, while nobody else looks.
#[test]
fn the_end_of_a_program_is_seen_without_a_controller() {
    let Some(server) = Server::start(Mpm::Prefork, HOLD) else { return };
    let gate = left_behind(&server);
    let controller = server.wait_controller();
    kill(controller, Signal::STOP);
    assert_eq!(server.get("/page.cgi?id=next").status, 503);
    gate.open();
    wait("the permit is back", || server.get("/page.cgi?id=next").status == 200);
    kill(controller, Signal::CONT);
    server.wait_idle();
}

/// And by those who wait for it.
#[test]
fn the_end_of_a_program_is_seen_by_who_waits_for_it() {
    let text = HOLD.replace("limit=1", "limit=1 queue=4 timeout=60s");
    let Some(server) = Server::start(Mpm::Prefork, &text) else { return };
    let gate = left_behind(&server);
    let controller = server.wait_controller();
    let waiting = server.send("/page.cgi?id=next");
    server.wait_number("one", "/waiting", 1);
    kill(controller, Signal::STOP);
    gate.open();
    assert_eq!(waiting.answer().status, 200);
    kill(controller, Signal::CONT);
    server.wait_idle();
}

/// A reload that says nothing of hold files any more, or has them elsewhere, does not give a program's permit away.
#[test]
fn a_program_keeps_its_permit_over_a_reload_without_hold_files() {
    for other in ["AdmissionHoldFd off", "AdmissionHoldFd on\nAdmissionRuntimeDir FOLDER/run/elsewhere"] {
        let Some(server) = Server::start(Mpm::Prefork, HOLD) else { return };
        let gate = left_behind(&server);
        let configuration = std::fs::read_to_string(server.path("httpd.conf")).expect("ours");
        let other = other.replace("FOLDER", &server.path("").display().to_string());
        server.put("httpd.conf", &configuration.replace("AdmissionHoldFd on", &other));
        server.graceful();
        // Over several rounds of the new controller.
        let written = || server.status()["written"].as_f64().unwrap_or_default();
        let began = written();
        wait("rounds go by", || {
            assert_eq!((server.number("one", "/held"), server.get("/page.cgi?id=next").status), (1, 503), "{other}");
            written() >= began + 2.0
        });
        gate.open();
        server.wait_idle();
        assert_eq!(server.get("/page.cgi?id=next").status, 200, "{other}");
    }
}

/// Who inherits the lock: programs that the process of the request starts, and not those of mod_cgid's daemon, which says so at the start.
#[test]
fn programs_of_the_daemon_do_not_inherit_the_lock() {
    let cgi = "LoadModule cgi_module /usr/lib/apache2/modules/mod_cgi.so\n";
    for (mpm, more, inherits) in [(Mpm::Prefork, "", true), (Mpm::Event, cgi, true), (Mpm::Event, "", false)] {
        let Some(server) = Server::start(mpm, &format!("{more}{HOLD}")) else { return };
        let gate = server.gate("g");
        let held = server.send("/page.cgi?gate=g");
        server.wait_started(1);
        let program = server.events()[0].pid;
        assert_eq!(holds_open(program), usize::from(inherits), "{mpm:?} {more}");
        assert_eq!(server.log().contains("ADM0004"), !inherits, "{}", server.log());
        gate.open();
        assert_eq!(held.answer().status, 200);
        server.wait_idle();
    }
}

/// How often a process has the lock's file open.
fn holds_open(pid: i32) -> usize {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files
        .filter_map(|file| std::fs::read_link(file.path()).ok())
        .filter(|path| path.ends_with("admission/hold"))
        .count()
}

/// Without it the permit is the request's alone.
#[test]
fn without_it_the_program_is_not_waited_for() {
    let text = HOLD.replace("on\n", "off\n");
    let Some(server) = Server::start(Mpm::Prefork, &text) else { return };
    let _gate = server.gate("g");
    let held = server.send("/page.cgi?id=program&gate=g");
    server.wait_started(1);
    kill(server.events()[0].child, Signal::KILL);
    assert!(held.try_answer().is_none());
    server.wait_idle();
    assert_eq!(server.get("/page.cgi?id=next").status, 200);
}

/// The lock is open in programs and nowhere else, and many requests leave none behind.
#[test]
fn no_lock_is_left_open() {
    let Some(server) = Server::start(Mpm::Prefork, HOLD) else { return };
    for _ in 0..30 {
        assert_eq!(server.get("/page.cgi").status, 200);
    }
    server.wait_idle();
    let most = server.workers().into_iter().map(holds_open).max().unwrap_or(0);
    assert!(most <= 1, "{most} in one process");
}

const EVERYWHERE: &str = "AdmissionUse one\n";

/// Who reads slowly keeps what was given to him until the last byte, where the group says so.
#[test]
fn until_the_last_byte() {
    let proxied = behind(EVERYWHERE);
    let behind = proxied.as_str();
    for (mpm, php, uses, page) in [
        (Mpm::Prefork, Php::None, EVERYWHERE, "/page.probe"),
        (Mpm::Event, Php::None, EVERYWHERE, "/page.probe"),
        (Mpm::Prefork, Php::None, EVERYWHERE, "/page.cgi"),
        (Mpm::Worker, Php::None, EVERYWHERE, "/page.cgi"),
        (Mpm::Event, Php::None, EVERYWHERE, "/page.cgi"),
        (Mpm::Prefork, Php::Module, EVERYWHERE, "/page.php"),
        (Mpm::Event, Php::Fpm, EVERYWHERE, "/page.php"),
        (Mpm::Worker, Php::Fpm, EVERYWHERE, "/page.php"),
        (Mpm::Prefork, Php::None, behind, "/behind"),
        (Mpm::Worker, Php::None, behind, "/behind"),
        (Mpm::Event, Php::None, behind, "/behind"),
    ] {
        // Other handlers than this one wait for the client themselves.
        let holds: &[&str] = if page == "/page.probe" { &["response", "handler"] } else { &["response"] };
        for hold in holds {
            let text = format!("AdmissionGroup one limit=1 hold={hold}\n{uses}SendBufferSize 4096\n");
            let Some(server) = Server::told(&Told { mpm, php, text: &text, files: &[] }) else { continue };
            let mut reader = Client::narrow(server.port);
            reader.begin("GET", &format!("{page}?id=slow&body=60000"), "127.0.0.1").expect("it is sent");
            wait("the page has ended", || server.events().iter().any(|event| event.word == "stop"));
            if *hold == "handler" {
                // The handler is over, and the client has read nothing yet.
                server.wait_idle();
            } else {
                let held = (0..50).map(|_| server.number("one", "/held")).min();
                assert_eq!((held, server.get(page).status), (Some(1), 503), "{mpm:?} {page}");
            }
            let answer = reader.answer(false).expect("an answer");
            assert!(answer.body.len() >= 60000 && answer.status == 200, "{mpm:?} {page}");
            server.wait_idle();
            assert_eq!(server.get(page).status, 200);
            server.wait_idle();
        }
    }
}

/// Another group of the same request, which says nothing of the response, has its permit back when the handler is over; so has the memory
/// budget, of which only that group takes something.
#[test]
fn only_its_own_permit_outlasts_the_handler() {
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let text = "AdmissionBudget memory 100M\nAdmissionGroup php limit=1 cost=60M\n\
                    AdmissionGroup slow limit=5 key=client hold=response\nAdmissionUse php slow\nSendBufferSize 4096\n";
        let Some(server) = Server::start(mpm, text) else { return };
        let mut reader = Client::narrow(server.port);
        reader.begin("GET", "/page.probe?id=slow&body=60000", "127.0.0.1").expect("it is sent");
        wait("the page has ended", || server.events().iter().any(|event| event.word == "stop"));
        server.wait_number("php", "/held", 0);
        assert_eq!((server.number("slow", "/held"), server.status()["budget"]["held"].as_u64()), (1, Some(0)));
        assert_eq!(server.get("/page.probe").status, 200, "{mpm:?}");
        assert_eq!(reader.answer(false).expect("an answer").status, 200);
        server.wait_idle();
    }
}

/// The page that tells of an error has a permit of its own then: that of the handler has been given back.
#[test]
fn an_error_page_does_not_ride_along_on_what_was_given_back() {
    let text = "AdmissionGroup php limit=1\nAdmissionGroup slow limit=5 key=client hold=response\nAdmissionUse php slow\n\
                ErrorDocument 404 /page.probe?id=sorry\n";
    let Some(server) = Server::start(Mpm::Event, text) else { return };
    assert_eq!(server.get("/none.cgi").status, 404);
    server.wait_idle();
    let events = server.events();
    assert!(events.iter().any(|event| event.id == "sorry"), "{events:?}");
    assert_eq!([server.number("php", "/counts/admitted"), server.number("php", "/counts/bypass")], [2, 0]);
    assert_eq!(server.number("slow", "/counts/bypass"), 1, "it is held still");
}

/// A file that is still on its way keeps its permit, too.
#[test]
fn a_large_file_until_the_last_byte() {
    let large = "x".repeat(5_000_000);
    for mpm in [Mpm::Prefork, Mpm::Worker, Mpm::Event] {
        let text =
            "AdmissionGroup files limit=1 handler=static hold=response\nAdmissionUse files\nSendBufferSize 4096\n";
        let files = [("www/large.txt", large.as_str())];
        let Some(server) = Server::told(&Told { mpm, php: Php::None, text, files: &files }) else { return };
        server.wait_idle();
        let mut reader = Client::narrow(server.port);
        reader.begin("GET", "/large.txt", "127.0.0.1").expect("it is sent");
        server.wait_number("files", "/held", 1);
        for _ in 0..20 {
            let second = server.get("/large.txt").status;
            assert_eq!((second, server.number("files", "/held")), (503, 1), "{mpm:?}");
        }
        let answer = reader.answer(false).expect("an answer");
        assert_eq!((answer.status, answer.body.len()), (200, large.len()), "{mpm:?}");
        server.wait_idle();
        assert_eq!(server.get("/large.txt").status, 200);
        server.wait_idle();
    }
}

/// Connections to which event only writes have no worker, and hold a permit each: there are more of them than workers, and each counts.
#[test]
fn more_permits_than_workers_are_counted() {
    const LIMIT: u64 = 70;
    let large = "x".repeat(5_000_000);
    let text = format!(
        "StartServers 4\nMaxRequestWorkers 32\nMinSpareThreads 32\nMaxSpareThreads 32\nSendBufferSize 4096\nEnableSendfile on\nH2MaxWorkers 8\n\
         AdmissionGroup files limit={LIMIT} key=server handler=static hold=response\nAdmissionUse files\n"
    );
    let files = [("www/large.txt", large.as_str())];
    let Some(server) = Server::told(&Told { mpm: Mpm::Event, php: Php::None, text: &text, files: &files }) else {
        return;
    };
    server.wait_idle();
    let readers = (1..=LIMIT).map(|held| {
        let mut reader = Client::narrow(server.port);
        reader.begin("GET", "/large.txt", "127.0.0.1").expect("it is sent");
        server.wait_number("files", "/held", held);
        reader
    });
    let readers: Vec<_> = readers.collect();
    assert_eq!(server.get("/large.txt").status, 503);
    assert_eq!(server.status()["troubles"]["cells_full"], 0);
    drop(readers);
    server.wait_idle();
    assert_eq!(server.get("/large.txt").status, 200);
}

/// A client that leaves ends nothing: the permit is held as long as the handler runs.
#[test]
fn who_leaves_while_the_handler_runs_frees_nothing() {
    let proxied = behind(EVERYWHERE);
    let behind = proxied.as_str();
    for (mpm, php, uses, page) in [
        (Mpm::Prefork, Php::None, EVERYWHERE, "/page.cgi"),
        (Mpm::Prefork, Php::None, EVERYWHERE, "/page.probe"),
        (Mpm::Prefork, Php::Module, EVERYWHERE, "/page.php"),
        (Mpm::Worker, Php::None, EVERYWHERE, "/page.cgi"),
        (Mpm::Worker, Php::None, EVERYWHERE, "/page.probe"),
        (Mpm::Worker, Php::Fpm, EVERYWHERE, "/page.php"),
        (Mpm::Event, Php::None, EVERYWHERE, "/page.cgi"),
        (Mpm::Event, Php::None, EVERYWHERE, "/page.probe"),
        (Mpm::Event, Php::Fpm, EVERYWHERE, "/page.php"),
        (Mpm::Event, Php::None, behind, "/behind"),
    ] {
        let text = format!("AdmissionGroup one limit=1\n{uses}");
        let Some(server) = Server::told(&Told { mpm, php, text: &text, files: &[] }) else { continue };
        let gate = server.gate("g");
        let mut leaver = server.client();
        leaver.begin("GET", &format!("{page}?id=left&gate=g"), "127.0.0.1").expect("it is sent");
        server.wait_started(1);
        drop(leaver);
        // It stays so over several rounds of the controller.
        server.wait_controller();
        let written = || server.status()["written"].as_f64().unwrap_or_default();
        let began = written();
        wait("rounds go by", || {
            assert_eq!((server.number("one", "/held"), server.get(page).status), (1, 503), "{mpm:?} {page}");
            written() >= began + 1.0
        });
        gate.open();
        server.wait_idle();
        assert_eq!(server.get(page).status, 200);
        server.wait_idle();
        assert_eq!([server.number("one", "/counts/admitted"), server.number("one", "/counts/reaped")], [2, 0]);
    }
}

/// An error page is a part of the request that failed: where that holds its permit to the last byte, its page needs none of its own.
#[test]
fn an_error_page_rides_on_what_is_still_held() {
    let text = "AdmissionGroup one limit=1 hold=response\nAdmissionUse one\nErrorDocument 500 /other.cgi?id=sorry\n";
    let Some(server) = Server::start(Mpm::Prefork, text) else { return };
    let gate = server.gate("g");
    let held = server.send("/other.cgi?gate=g");
    server.wait_number("one", "/held", 1);
    let answer = server.get("/page.cgi?crash");
    assert_eq!((answer.status, answer.body.as_str()), (500, "done sorry\n"), "{}", server.log());
    gate.open();
    assert_eq!(held.answer().status, 200);
    server.wait_idle();
}

/// Where the permit is held to the last byte, who leaves before it gives it back.
#[test]
fn who_leaves_in_the_middle_of_the_answer_gives_it_back() {
    for mpm in [Mpm::Prefork, Mpm::Worker, Mpm::Event] {
        let text = "AdmissionGroup one limit=1 hold=response\nAdmissionUse one\nSendBufferSize 4096\n";
        let Some(server) = Server::start(mpm, text) else { return };
        let mut leaver = Client::narrow(server.port);
        leaver.begin("GET", "/page.probe?id=left&body=1000000", "127.0.0.1").expect("it is sent");
        assert_eq!(leaver.answer(true).expect("a head").status, 200);
        let held = (0..20).map(|_| server.number("one", "/held")).min();
        assert_eq!((held, server.get("/page.probe").status), (Some(1), 503), "{mpm:?}");
        drop(leaver);
        server.wait_idle();
        assert_eq!(server.get("/page.probe").status, 200);
        server.wait_idle();
    }
}

/// Who holds a permit for long is told of, and keeps it.
#[test]
fn long_holds_are_counted() {
    let text = "AdmissionGroup one limit=1\nAdmissionUse one\nAdmissionMaxHold 100ms\n";
    let Some(server) = Server::start(Mpm::Event, text) else { return };
    let gate = server.gate("g");
    let held = server.send("/page.probe?gate=g");
    server.wait_number("one", "/counts/long_hold", 1);
    assert_eq!((server.number("one", "/held"), server.get("/page.probe").status), (1, 503));
    gate.open();
    assert_eq!(held.answer().status, 200);
    server.wait_idle();
}
