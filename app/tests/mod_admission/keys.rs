//! What a group counts requests under: files, hosts, places, clients, anything that an expression tells.

use crate::client::Client;
use crate::server::{Mpm, Php, Server, Told, wait};

/// A request: whom it asks for, and what.
type Request = (&'static str, &'static str);

/// With a limit of one and a request in work, another of the same key is turned away, and one of another key is not.
fn check(key: &str, first: Request, same: Request, other: Request) {
    let text = format!(
        "AdmissionGroup one limit=1 \"key={key}\"\nAdmissionUse one\nAlias /alias/ FOLDER/www/\n\
         <Location /dir>\nAdmissionUse one\n</Location>\n"
    );
    let Some(server) = Server::told(&Told { mpm: Mpm::Event, php: Php::None, text: &text, files: &[] }) else { return };
    std::os::unix::fs::symlink("page.probe", server.path("www/link.probe")).expect("our own folder");
    let gate = server.gate("g");
    let mut held = server.client();
    held.begin("GET", &format!("{}?gate=g", first.1), first.0).expect("it is sent");
    server.wait_number("one", "/held", 1);
    for ((host, path), status) in [(same, 503), (other, 200)] {
        let answer = server.client().request("GET", path, host).expect("an answer");
        assert_eq!(answer.status, status, "{key}: {path} of {host}: {}", server.log());
    }
    gate.open();
    assert_eq!(held.answer(false).expect("an answer").status, 200);
    server.wait_idle();
}

#[test]
fn files() {
    check("file", ("x", "/page.probe"), ("y", "/alias/page.probe/more?query"), ("x", "/other.probe"));
}

/// A link is another name of the same file.
#[test]
fn inodes() {
    check("inode", ("x", "/page.probe"), ("x", "/link.probe"), ("x", "/other.probe"));
    check("file", ("x", "/page.probe"), ("x", "/page.probe"), ("x", "/link.probe"));
}

#[test]
fn places() {
    check("location", ("x", "/page.probe"), ("x", "/other.probe"), ("x", "/dir/probe/"));
}

/// Sections with the same words in front of them are not one.
#[test]
fn sections_of_one_name() {
    let section = |page: &str| format!("<If \"%{{REQUEST_URI}} == '{page}'\">\nAdmissionUse one\n</If>\n");
    let text = ["/page.probe", "/other.probe"].map(section).concat();
    let text = format!("AdmissionGroup one limit=1 key=location\n{text}");
    let Some(server) = Server::start(Mpm::Event, &text) else { return };
    let gate = server.gate("g");
    let held = server.send("/page.probe?gate=g");
    server.wait_number("one", "/held", 1);
    assert_eq!(["/page.probe", "/other.probe"].map(|page| server.get(page).status), [503, 200]);
    gate.open();
    assert_eq!(held.answer().status, 200);
    server.wait_idle();
}

#[test]
fn expressions() {
    check(
        "expr:%{HTTP_HOST}",
        ("a.example", "/page.probe"),
        ("a.example", "/other.probe"),
        ("b.example", "/page.probe"),
    );
}

/// What has no value for the expression is not counted.
#[test]
fn an_expression_without_a_value_counts_nobody() {
    let text = "AdmissionGroup one limit=1 \"key=expr:%{HTTP_COOKIE}\"\nAdmissionUse one\n";
    let Some(server) = Server::start(Mpm::Prefork, text) else { return };
    let gate = server.gate("g");
    let nobody: Vec<_> = (0..2).map(|n| server.send(&format!("/page.probe?id={n}&gate=g"))).collect();
    server.wait_started(2);
    assert_eq!(server.number("one", "/held"), 0);
    let ask = |client: &mut Client, path: &str| {
        client.write(format!("GET {path} HTTP/1.1\r\nHost: x\r\nCookie: a=b\r\n\r\n").as_bytes());
    };
    let mut held = server.client();
    ask(&mut held, "/page.probe?gate=g");
    server.wait_number("one", "/held", 1);
    let mut second = server.client();
    ask(&mut second, "/page.probe");
    assert_eq!(second.answer(false).expect("an answer").status, 503);
    gate.open();
    assert_eq!(held.answer(false).expect("an answer").status, 200);
    assert!(nobody.into_iter().all(|one| one.answer().status == 200));
    server.wait_idle();
    assert_eq!(server.number("one", "/counts/admitted"), 1);
}

#[test]
fn clients_by_their_address() {
    let Some(server) = Server::start(Mpm::Event, "AdmissionGroup one limit=1 key=client\nAdmissionUse one\n") else {
        return;
    };
    let gate = server.gate("g");
    let held = server.send("/page.probe?gate=g");
    server.wait_number("one", "/held", 1);
    for (address, status) in [([127, 0, 0, 1], 503), ([127, 0, 0, 2], 200)] {
        assert_eq!(Client::of(address, server.port).get("/page.probe").status, status, "{address:?}");
    }
    gate.open();
    assert_eq!(held.answer().status, 200);
    server.wait_idle();
}

/// A handler's name stands for what follows a colon, too: `proxy` for `proxy:fcgi://...`, by which PHP-FPM is asked.
#[test]
fn handlers_by_their_names() {
    let text = "AdmissionGroup one limit=1 key=server handler=cgi-script,proxy\nAdmissionUse one\n";
    let Some(server) = Server::told(&Told { mpm: Mpm::Event, php: Php::Fpm, text, files: &[] }) else { return };
    for (page, other) in [("/page.php", "/page.cgi"), ("/page.cgi", "/page.php")] {
        let gate = server.gate("g");
        let begun = server.started();
        let held = server.send(&format!("{page}?gate=g"));
        server.wait_started(begun + 1);
        assert_eq!([server.get(other).status, server.get("/page.probe").status], [503, 200], "{page}");
        gate.open();
        assert_eq!(held.answer().status, 200);
        server.wait_idle();
    }
}

/// Behind a proxy a client is who mod_remoteip says.
#[test]
fn clients_behind_a_proxy() {
    let text = "LoadModule remoteip_module /usr/lib/apache2/modules/mod_remoteip.so\nRemoteIPHeader X-Forwarded-For\n\
                RemoteIPInternalProxy 127.0.0.1\nAdmissionGroup one limit=1 key=client\nAdmissionUse one\n";
    let Some(server) = Server::start(Mpm::Worker, text) else { return };
    let ask = |query: &str, client: &str| {
        let mut asks = server.client();
        let head = format!("GET /page.probe{query} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: {client}\r\n\r\n");
        asks.write(head.as_bytes());
        asks
    };
    let gate = server.gate("g");
    let mut held = ask("?gate=g", "203.0.113.7");
    server.wait_number("one", "/held", 1);
    for (client, status) in [("203.0.113.7", 503), ("203.0.113.8", 200)] {
        assert_eq!(ask("", client).answer(false).expect("an answer").status, status, "{client}");
    }
    gate.open();
    assert_eq!(held.answer(false).expect("an answer").status, 200);
    server.wait_idle();
}

/// All of them come from here, so a client is as much as the whole server; pages that nobody counts are free.
#[test]
fn clients_and_the_whole_server() {
    check("client", ("x", "/page.probe"), ("y", "/other.probe"), ("x", "/index.html"));
    check("server", ("x", "/page.probe"), ("y", "/other.probe"), ("x", "/index.html"));
}

/// The local time of a server that is started now, so much later or earlier.
fn local(words: &str) -> String {
    let date = std::process::Command::new("date").args(["-d", words, "+%H:%M"]).output().expect("date runs");
    String::from_utf8(date.stdout).expect("text").trim().to_owned()
}

/// The limit of the hour is in force without anybody's doing, and no other one: here the hours around this one, the next, the whole day.
#[test]
fn times_of_day() {
    let (before, after, later) = (local("1 hour ago"), local("1 hour"), local("2 hours"));
    let text = format!(
        "AdmissionGroup one limit=5 at={after}-{later}:3 at={before}-{after}:1 at={before}-{later}:2\n\
         AdmissionGroup two limit=5 at={after}-{later}:1 at={later}-{before}:1\nAdmissionGroup three limit=5 at=00:00-00:00:2\n\
         AdmissionUse one two three\n"
    );
    let Some(server) = Server::start(Mpm::Event, &text) else { return };
    server.wait_number("one", "/limit", 1);
    server.wait_number("three", "/limit", 2);
    assert_eq!([server.number("two", "/limit"), server.number("one", "/configured_limit")], [5, 5]);
    let gate = server.gate("g");
    let held = server.send("/page.probe?gate=g");
    server.wait_started(1);
    assert_eq!(server.get("/page.probe").status, 503);
    gate.open();
    assert_eq!(held.answer().status, 200);
}

/// What a client writes behind a script is no way to an entry of its own, also where the address is made for PHP-FPM.
#[test]
fn what_follows_a_script_of_php_fpm_is_no_other_file() {
    let text = "AdmissionGroup one limit=1\nAdmissionUse one\n\
                ProxyPassMatch \"^/pass/(.*)$\" \"unix:FOLDER/php.sock|fcgi://localhostFOLDER/www/$1\"\n\
                LoadModule slotmem_shm_module /usr/lib/apache2/modules/mod_slotmem_shm.so\n\
                LoadModule lbmethod_byrequests_module /usr/lib/apache2/modules/mod_lbmethod_byrequests.so\n\
                LoadModule proxy_balancer_module /usr/lib/apache2/modules/mod_proxy_balancer.so\n\
                <Proxy balancer://fpm>\nBalancerMember \"unix:FOLDER/php.sock|fcgi://localhost\"\n</Proxy>\n\
                ProxyPassMatch \"^/share/(.*)$\" \"balancer://fpmFOLDER/www/$1\"\n";
    let told = Told { mpm: Mpm::Event, php: Php::Fpm, text, files: &[] };
    let Some(server) = Server::told(&told) else { return };
    for way in ["/pass", "/share"] {
        let (gate, begun) = (server.gate("g"), server.started());
        let held = server.send(&format!("{way}/page.php/1?gate=g"));
        server.wait_started(begun + 1);
        for path in ["/page.php/2", "/page.php", "/page.php?x=/other.php/", "/page.php/2/x.php/3"] {
            assert_eq!(server.get(&format!("{way}{path}")).status, 503, "{way}{path}");
        }
        gate.open();
        assert_eq!(held.answer().status, 200, "{way}");
        server.wait_idle();
        assert_eq!(server.get(&format!("{way}/page.php/2")).status, 200);
        server.wait_idle();
    }
}

/// A virtual host is one, whatever its aliases are called; another host has permits of its own.
#[test]
fn an_alias_counts_with_its_host() {
    let hosts = "AdmissionGroup host limit=1 key=vhost\n\
                 <VirtualHost *:PORT>\nServerName first.example\nServerAlias alias.example *.first.example\nDocumentRoot FOLDER/www\n\
                 AdmissionUse host\n</VirtualHost>\n\
                 <VirtualHost *:PORT>\nServerName second.example\nDocumentRoot FOLDER/www\nAdmissionUse host\n</VirtualHost>\n";
    let Some(server) = Server::start(Mpm::Event, hosts) else { return };
    let gate = server.gate("g");
    let mut first = server.client();
    first.begin("GET", "/page.probe?gate=g", "first.example").expect("it is sent");
    server.wait_number("host", "/held", 1);
    for (name, status) in
        [("first.example", 503), ("alias.example", 503), ("A.FIRST.example", 503), ("second.example", 200)]
    {
        let answer = server.client().request("GET", "/other.cgi", name).expect("an answer");
        assert_eq!(answer.status, status, "{name}");
    }
    gate.open();
    assert_eq!(first.answer(false).expect("an answer").status, 200);
    server.wait_idle();
    let group = server.group("host");
    let labels: Vec<_> = group["entries"].as_array().into_iter().flatten().map(|entry| &entry["label"]).collect();
    assert!(labels.is_empty() || labels.len() == 2, "{group}");
}

/// A request has the permits of all its groups or none, and the one that is full says no.
#[test]
fn each_of_several_groups_refuses_in_its_turn() {
    let host = |name: &str| {
        format!(
            "<VirtualHost *:PORT>\nServerName {name}\nDocumentRoot FOLDER/www\nAdmissionUse all host file\n</VirtualHost>\n"
        )
    };
    let text = format!(
        "AdmissionGroup file limit=1\nAdmissionGroup host limit=2 key=vhost\nAdmissionGroup all limit=3 key=server\n{}{}",
        host("first.example"),
        host("second.example")
    );
    let Some(server) = Server::start(Mpm::Event, &text) else { return };
    let gate = server.gate("g");
    let all_hold = |number: u64| {
        ["file", "host", "all"].iter().for_each(|name| server.wait_number(name, "/held", number));
    };
    let mut held = Vec::new();
    for (held_by, refused_by, refused, group) in [
        (("first.example", "/page.probe"), "first.example", "/page.probe", "file"),
        (("first.example", "/other.probe"), "first.example", "/page.cgi", "host"),
        (("second.example", "/page.cgi"), "second.example", "/other.cgi", "all"),
    ] {
        let mut client = server.client();
        client.begin("GET", &format!("{}?gate=g", held_by.1), held_by.0).expect("it is sent");
        held.push(client);
        let number = held.len() as u64;
        all_hold(number);
        let path = format!("{refused}?id={group}");
        let answer = server.client().request("GET", &path, refused_by).expect("an answer");
        assert_eq!(answer.status, 503, "{group}");
        wait("it is logged", || server.access().iter().any(|line| *line == format!("503 {path} {group} reject")));
        assert_eq!(server.number(group, "/counts/rejected"), 1);
        // What it had of the other groups is back.
        all_hold(number);
    }
    gate.open();
    assert!(held.iter_mut().all(|one| one.answer(false).is_some_and(|answer| answer.status == 200)));
    server.wait_idle();
    for (name, rejected) in [("file", 1), ("host", 1), ("all", 1)] {
        assert_eq!([server.number(name, "/counts/admitted"), server.number(name, "/counts/rejected")], [3, rejected]);
    }
}

/// Where more is under way than the table can tell apart, the rest is let through, and counted.
#[test]
fn a_full_table_lets_through() {
    let text = "AdmissionTableSize 16\nAdmissionGroup one limit=1 \"key=expr:%{QUERY_STRING}\"\nAdmissionUse one\n\
                ServerLimit 4\nStartServers 4\nMaxRequestWorkers 32\nMaxSpareThreads 32\n";
    let Some(server) = Server::start(Mpm::Event, text) else { return };
    let gate = server.gate("g");
    let troubles = || server.status()["troubles"]["table_full"].clone();
    let mut pending = Vec::new();
    // Two of the 16 are for those that wait, and for the budget.
    for n in 0..14 {
        pending.push(server.send(&format!("/page.probe?id={n}&gate=g")));
        server.wait_number("one", "/held", n + 1);
    }
    assert_eq!((troubles(), server.number("one", "/counts/open")), (0.into(), 0));
    pending.extend(server.send_in_turn("/page.probe?id=more&gate=g", 2));
    assert_eq!([server.number("one", "/held"), server.number("one", "/counts/open")], [14, 2]);
    assert!(troubles().as_u64() >= Some(2), "{}", troubles());
    // Those that it knows are limited as ever.
    assert_eq!(server.get("/page.probe?id=0&gate=g").status, 503);
    gate.open();
    assert!(pending.into_iter().all(|one| one.answer().status == 200));
    wait("it is logged", || server.access().iter().filter(|line| line.ends_with("one open")).count() == 2);
    server.wait_idle();
    assert_eq!(server.get("/page.probe?id=more").status, 200);
    assert_eq!([server.number("one", "/counts/admitted"), server.number("one", "/counts/open")], [15, 2]);
}
