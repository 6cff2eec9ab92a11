//! Document 4's walk: at most two at once in a page, and the third is refused, with the lines of the error log that its readers know.

use crate::server::{Mpm, Php, Server, Told, wait};

/// What http-access-limiter wrote, as document 4 shows it.
fn lines(server: &Server) -> Vec<String> {
    let log = server.log();
    log.lines().filter_map(|line| line.find("access_limiter: ").map(|at| line[at..].to_owned())).collect()
}

#[test]
fn the_third_request_is_refused() {
    let text = "AdmissionGroup limiter limit=2\nAdmissionLog compat\n<FilesMatch \"\\.php$\">\nAdmissionUse limiter\n</FilesMatch>\n";
    let page = include_str!("probe/page.php");
    let told = Told { mpm: Mpm::Prefork, php: Php::Module, text, files: &[("www/sleep.php", page)] };
    let Some(server) = Server::told(&told) else { return };
    let gate = server.gate("three-seconds");
    let two = server.send_in_turn("/sleep.php?gate=three-seconds", 2);
    assert_eq!(server.get("/sleep.php").status, 503);
    gate.open();
    assert!(two.into_iter().all(|one| one.answer().status == 200));
    wait("it is written", || lines(&server).len() == 4);
    let file = server.path("www/sleep.php").display().to_string();
    let expected = [
        format!("access_limiter: file:{file} counter:1"),
        format!("access_limiter: file:{file} counter:2"),
        format!("access_limiter: file:{file} counter:3"),
        format!("access_limiter: file:{file} reached threshold: 2: return 503"),
    ];
    assert_eq!(lines(&server), expected);
    assert!(server.log().contains("admission:notice"), "{}", server.log());
    server.wait_idle();
}

/// A virtual host may say otherwise than the server what is logged of it, or that nothing is.
#[test]
fn hosts_differ_in_what_is_logged() {
    let host = |name: &str, log: &str| format!("<VirtualHost *:PORT>\nServerName {name}\n{log}</VirtualHost>\n");
    let text = format!(
        "AdmissionGroup one limit=1\nAdmissionUse one\n{}{}{}",
        host("default", ""),
        host("compat", "AdmissionLog compat\n"),
        host("quiet", "AdmissionLog off\n")
    );
    let Some(server) = Server::start(Mpm::Event, &text) else { return };
    let gate = server.gate("g");
    let held = server.send("/page.probe?gate=g");
    server.wait_number("one", "/held", 1);
    for (host, full, compat) in [("quiet", 0, 0), ("compat", 0, 2), ("default", 1, 2)] {
        assert_eq!(server.client().request("GET", "/page.probe", host).expect("an answer").status, 503, "{host}");
        let count = |what: &str| server.log().lines().filter(|line| line.contains(what)).count();
        assert_eq!((count("group one is full"), count("access_limiter: ")), (full, compat), "{host}");
    }
    gate.open();
    assert_eq!(held.answer().status, 200);
}

/// Where it is the budget that is full the lines speak of bytes, of the file, and of the answer that was given.
#[test]
fn a_full_budget_is_told_in_bytes() {
    let text = "AdmissionBudget memory 100M\nAdmissionGroup heavy limit=none cost=80M status=429\nAdmissionUse heavy\nAdmissionLog compat\n";
    let Some(server) = Server::start(Mpm::Event, text) else { return };
    let gate = server.gate("g");
    let held = server.send_in_turn("/page.probe?gate=g", 1);
    assert_eq!(server.get("/page.probe").status, 429);
    gate.open();
    assert!(held.into_iter().all(|one| one.answer().status == 200));
    wait("it is written", || lines(&server).len() == 3);
    let file = server.path("www/page.probe").display().to_string();
    let expected = [
        format!("access_limiter: file:{file} counter:1"),
        format!("access_limiter: file:{file} counter:{}", 160 << 20),
        format!("access_limiter: file:{file} reached threshold: {}: return 429", 100 << 20),
    ];
    assert_eq!(lines(&server), expected);
}

/// By default a full group has one line in a second, however many are turned away.
#[test]
fn a_full_group_has_one_line_in_a_second() {
    let Some(server) = Server::start(Mpm::Event, "AdmissionGroup one limit=1\nAdmissionUse one\n") else { return };
    server.wait_all_begun(Mpm::Event);
    let gate = server.gate("g");
    let held = server.send("/page.probe?gate=g");
    server.wait_number("one", "/held", 1);
    let began = std::time::Instant::now();
    let mut client = server.client();
    for _ in 0..200 {
        assert_eq!(client.get("/page.probe").status, 503);
    }
    let seconds = began.elapsed().as_secs() as usize + 1;
    let log = server.log();
    let found: Vec<&str> = log.lines().filter(|line| line.contains("group one is full")).collect();
    assert!((1..=seconds + 1).contains(&found.len()), "{found:?}");
    assert!(found[0].contains("1 of 1 held") && found[0].contains("/page.probe"), "{found:?}");
    gate.open();
    assert_eq!(held.answer().status, 200);
}
