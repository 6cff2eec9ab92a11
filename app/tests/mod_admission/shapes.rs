//! The shapes of requests that other limiters count wrongly: each takes a permit once, and gives it back.

use crate::oracle::order;
use crate::server::{Mpm, Php, Server, Told, behind, wait};
use std::os::unix::fs::PermissionsExt;

/// How a request for the one page of a program is written.
const SHAPES: [(&str, &str); 4] = [
    ("direct", "/page.cgi"),
    ("an index of a folder", "/dir/cgi/"),
    ("a fallback resource", "/fall/any/path"),
    ("rewritten in .htaccess", "/pretty/item/7"),
];

/// Of all shapes, at a limit of one: five in a row are admitted, and none beside one that waits in it.
fn check(mpm: Mpm, php: Php, shapes: &[(&str, &str)]) {
    let group = "AdmissionGroup one limit=1 key=server\nAdmissionUse one\n";
    let Some(server) = Server::told(&Told { mpm, php, text: group, files: &[] }) else { return };
    for (shape, path) in shapes {
        let before = server.number("one", "/counts/admitted");
        for _ in 0..5 {
            assert_eq!(server.get(path).status, 200, "{shape}: {}", server.log());
            server.wait_idle();
        }
        assert_eq!(server.number("one", "/counts/admitted"), before + 5, "{shape}");
        let gate = server.gate("g");
        let held = server.send(&format!("{path}?gate=g"));
        server.wait_number("one", "/held", 1);
        for (other, path) in shapes {
            assert_eq!(server.get(path).status, 503, "{other} beside {shape}");
        }
        gate.open();
        assert_eq!(held.answer().status, 200, "{shape}");
        server.wait_idle();
    }
    assert_eq!(server.number("one", "/counts/bypass"), 0);
}

#[test]
fn of_cgi_in_prefork() {
    check(Mpm::Prefork, Php::None, &SHAPES);
}

#[test]
fn of_cgi_in_worker() {
    check(Mpm::Worker, Php::None, &SHAPES);
}

#[test]
fn of_cgi_in_event() {
    check(Mpm::Event, Php::None, &SHAPES);
}

/// The same, of a page in PHP.
const SHAPES_OF_PHP: [(&str, &str); 4] = [
    ("direct", "/page.php"),
    ("an index of a folder", "/dir/php/"),
    ("a fallback resource", "/fall-php/any/path"),
    ("rewritten in .htaccess", "/pretty/php/7"),
];

#[test]
fn of_php() {
    check(Mpm::Prefork, Php::Module, &SHAPES_OF_PHP);
}

#[test]
fn of_php_in_a_pool_of_its_own() {
    check(Mpm::Event, Php::Fpm, &SHAPES_OF_PHP);
}

#[test]
fn of_threads() {
    let shapes = [("direct", "/page.probe"), ("an index", "/dir/probe/"), ("rewritten", "/pretty/probe/7")];
    check(Mpm::Worker, Php::None, &shapes);
}

/// Refusals whose page, which is a program, finds no permit: httpd says it in its own words, and the connection goes on.
fn check_own_words(server: &Server) {
    let mut client = server.client();
    for _ in 0..3 {
        let answer = client.get("/page.cgi");
        assert_eq!(answer.status, 503);
        assert!(answer.body.contains("Service Unavailable") && !answer.body.contains("done"), "{answer:?}");
        assert!(answer.header("Retry-After").is_some() && !client.closed, "{answer:?}");
    }
    assert_eq!(client.get("/index.html").body, "hello\n");
}

/// Each that was turned away is so once, in the counts and in the log, whatever its page; no page went past the group.
fn check_turned_away_from_one(server: &Server, expected: u64) {
    let counts = ["admitted", "rejected", "bypass"].map(|name| server.number("one", &format!("/counts/{name}")));
    assert_eq!(counts, [1, expected, 0]);
    // The query that is logged is the page's.
    let is_it = |line: &&String| line.starts_with("503 /page.cgi?id=") && line.ends_with(" one reject");
    wait("they are logged", || server.access().iter().filter(is_it).count() as u64 == expected);
}

/// A page that says why somebody was turned away, and is a program of the same group, has no permit then: it is not started.
#[test]
fn error_page_that_is_a_program() {
    let proxied = behind("");
    let behind = proxied.as_str();
    for (mpm, php, more, error) in [
        (Mpm::Prefork, Php::None, "", "/error.cgi"),
        (Mpm::Worker, Php::None, "", "/error.cgi"),
        (Mpm::Event, Php::None, "", "/error.cgi"),
        (Mpm::Prefork, Php::Module, "", "/page.php"),
        (Mpm::Event, Php::Fpm, "", "/page.php"),
        (Mpm::Event, Php::None, behind, "/behind"),
    ] {
        let text = format!(
            "AdmissionGroup one limit=1 key=server\nAdmissionUse one\nErrorDocument 503 {error}?id=sorry\n{more}"
        );
        let Some(server) = Server::told(&Told { mpm, php, text: &text, files: &[] }) else { return };
        server.wait_all_begun(mpm);
        let gate = server.gate("g");
        let held = server.send("/page.cgi?gate=g");
        server.wait_number("one", "/held", 1);
        check_own_words(&server);
        check_turned_away_from_one(&server, 3);
        server.wait_started(1);
        assert_eq!((server.number("one", "/held"), server.started()), (1, 1));
        gate.open();
        assert_eq!(held.answer().status, 200);
        server.wait_idle();
        assert_eq!(server.get("/page.cgi").status, 200);
        server.wait_idle();
    }
}

/// Nor where a `.htaccess` file makes a program of another address; the log says what became of the request behind two redirects, too.
#[test]
fn error_page_that_is_rewritten_to_a_program() {
    for mpm in [Mpm::Prefork, Mpm::Worker, Mpm::Event] {
        let group = "AdmissionGroup one limit=1 key=server\nAdmissionUse one\nErrorDocument 503 /pretty/item/sorry\n";
        let Some(server) = Server::start(mpm, group) else { return };
        let gate = server.gate("g");
        let held = server.send("/page.cgi?gate=g");
        server.wait_number("one", "/held", 1);
        for _ in 0..2 {
            let answer = server.get("/page.cgi");
            assert_eq!((answer.status, answer.body.contains("Service Unavailable")), (503, true), "{answer:?}");
        }
        check_turned_away_from_one(&server, 2);
        server.wait_started(1);
        assert_eq!(server.started(), 1);
        gate.open();
        assert_eq!(held.answer().status, 200);
        server.wait_idle();
    }
}

/// In a group of its own it is served as long as that has permits; nobody waits for one to hear that he was turned away.
#[test]
fn error_page_that_is_a_program_with_permits_of_its_own() {
    for mpm in [Mpm::Prefork, Mpm::Worker, Mpm::Event] {
        let groups = "AdmissionGroup one limit=1 key=server\nAdmissionGroup sorry limit=1 queue=5 timeout=60s\nAdmissionUse one\n\
                      <Location /error.cgi>\nAdmissionUse sorry\n</Location>\nErrorDocument 503 /error.cgi?id=sorry&gate=s\n";
        let Some(server) = Server::start(mpm, groups) else { return };
        server.wait_all_begun(mpm);
        let gate = server.gate("g");
        let held = server.send("/page.cgi?gate=g");
        server.wait_number("one", "/held", 1);
        let answer = server.get("/page.cgi");
        assert_eq!((answer.status, answer.body.as_str()), (503, "done sorry\n"));
        assert!(answer.header("Retry-After").is_some(), "{answer:?}");
        server.wait_number("sorry", "/held", 0);
        let reading = server.gate("s");
        let reads = server.send("/page.cgi");
        server.wait_number("sorry", "/held", 1);
        check_own_words(&server);
        reading.open();
        assert_eq!(reads.answer().body, "done sorry\n");
        check_turned_away_from_one(&server, 5);
        let counts = ["admitted", "queued", "rejected", "bypass"];
        assert_eq!(counts.map(|name| server.number("sorry", &format!("/counts/{name}"))), [2, 0, 0, 0]);
        gate.open();
        assert_eq!(held.answer().status, 200);
        server.wait_idle();
    }
}

/// One that is a file is let through, though files are in the group that is full: turned away itself it could tell nobody.
#[test]
fn error_page_that_is_a_file() {
    for mpm in [Mpm::Prefork, Mpm::Worker, Mpm::Event] {
        let text = "AdmissionGroup one limit=1 key=server handler=any\nAdmissionUse one\nErrorDocument 503 /503.html\n";
        let files = [("www/503.html", "later\n")];
        let Some(server) = Server::told(&Told { mpm, php: Php::None, text, files: &files }) else { return };
        server.wait_idle();
        let gate = server.gate("g");
        let held = server.send("/page.probe?gate=g");
        server.wait_number("one", "/held", 1);
        for turned_away in 1..=4 {
            let answer = server.get("/page.probe");
            assert_eq!((answer.status, answer.body.as_str()), (503, "later\n"));
            assert_eq!([server.number("one", "/counts/bypass"), server.number("one", "/held")], [turned_away, 1]);
        }
        gate.open();
        assert_eq!(held.answer().status, 200);
        server.wait_idle();
    }
}

/// What such a page includes waits for nothing, either, and is no further refusal.
#[test]
fn error_page_that_includes_a_program() {
    for mpm in [Mpm::Prefork, Mpm::Worker, Mpm::Event] {
        let text = "AdmissionGroup one limit=1 key=server\nAdmissionGroup two limit=1 queue=5 timeout=60s\n\
                    <Location /page.probe>\nAdmissionUse one\n</Location>\n<Location /page.cgi>\nAdmissionUse two\n</Location>\n\
                    ErrorDocument 503 /sorry.shtml\n";
        let files = [("www/sorry.shtml", "sorry <!--#include virtual=\"/page.cgi?id=included\" -->\n")];
        let Some(server) = Server::told(&Told { mpm, php: Php::None, text, files: &files }) else { return };
        let gate = server.gate("g");
        let held = [server.send("/page.probe?gate=g"), server.send("/page.cgi?gate=g")];
        server.wait_number("one", "/held", 1);
        server.wait_number("two", "/held", 1);
        let answer = server.get("/page.probe");
        assert!(answer.status == 503 && answer.body.starts_with("sorry "), "{answer:?}");
        assert_eq!(["queued", "rejected"].map(|name| server.number("two", &format!("/counts/{name}"))), [0, 0]);
        assert_eq!(server.number("one", "/counts/rejected"), 1);
        gate.open();
        assert!(held.into_iter().all(|one| one.answer().status == 200));
        server.wait_idle();
        // With room for it, it is there.
        let gate = server.gate("again");
        let held = server.send("/page.probe?gate=again");
        server.wait_number("one", "/held", 1);
        assert!(server.get("/page.probe").body.contains("done included"));
        gate.open();
        assert_eq!(held.answer().status, 200);
        server.wait_idle();
    }
}

/// A server with these pages, in whose processes PHP runs.
fn with_php(text: &str, files: &[(&str, &str)]) -> Option<Server> {
    Server::told(&Told { mpm: Mpm::Prefork, php: Php::Module, text, files })
}

/// mod_php runs a page of HTML that may be executed, where a `.htaccess` file says so: it is a program, and its neighbour a file.
#[test]
fn a_page_of_html_that_php_runs() {
    let page = include_str!("probe/page.php");
    let files = [
        ("www/hack/.htaccess", "php_flag xbithack on\n"),
        ("www/hack/page.html", page),
        ("www/hack/file.html", "hello\n"),
    ];
    for handlers in ["", " handler=application/x-httpd-php"] {
        let text = format!("AdmissionGroup one limit=1 key=server{handlers}\nAdmissionUse one\n");
        let Some(server) = with_php(&text, &files) else { return };
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(server.path("www/hack/page.html"), executable).expect("our own file");
        let gate = server.gate("g");
        let held = server.send("/hack/page.html?gate=g");
        server.wait_number("one", "/held", 1);
        assert_eq!(server.get("/hack/page.html").status, 503);
        assert_eq!(server.get("/hack/file.html").body, "hello\n");
        gate.open();
        assert_eq!(held.answer().status, 200);
        server.wait_idle();
        assert_eq!(server.number("one", "/counts/admitted"), 1);
    }
}

/// mod_lua runs what a `LuaMapHandler` says, whatever the handler is, in no group that knows programs by their handlers: that is the
/// administrator's to say, and a `.htaccess` may not.
#[test]
fn a_htaccess_maps_nothing_to_lua() {
    let text = "LoadModule lua_module /usr/lib/apache2/modules/mod_lua.so\nAdmissionGroup one limit=none key=server\nAdmissionUse one\n";
    let htaccess = "SetHandler default-handler\nLuaMapHandler page handle.lua handle\n";
    let files = [("www/lua/page.html", "a file"), ("www/lua/.htaccess", htaccess)];
    let Some(server) = Server::told(&Told { mpm: Mpm::Event, php: Php::None, text, files: &files }) else { return };
    assert_eq!(server.get("/lua/page.html").status, 500);
    assert!(server.log().contains("LuaMapHandler cannot occur within htaccess files"), "{}", server.log());
    // A script that it names as its handler is a program.
    server.put("www/lua/.htaccess", "SetHandler lua-script\n");
    server.put("www/lua/page.html", "function handle(r)\n r:puts('by Lua')\n return apache2.OK\nend\n");
    assert_eq!(server.get("/lua/page.html").body, "by Lua");
    assert_eq!(server.number("one", "/counts/admitted"), 1);
}

/// What a page includes is a request of its own; inside a page that holds the permit it rides along instead of waiting for it.
#[test]
fn included_pages() {
    let group = "AdmissionGroup one limit=1 queue=5 timeout=30s key=server\nAdmissionUse one\n";
    // What is held for the response is so for the page, whose end comes after all that it includes.
    let for_response = group.replace("limit=1", "limit=1 hold=response");
    let all = [Mpm::Prefork, Mpm::Worker, Mpm::Event].map(|mpm| [(mpm, group), (mpm, for_response.as_str())]);
    for (mpm, text) in all.into_iter().flatten() {
        let Some(server) = Server::start(mpm, text) else { return };
        for _ in 0..3 {
            let body = server.get("/nested.shtml").body;
            assert!(body.contains("done one\n") && body.contains("done two\n"), "{body}: {}", server.log());
            server.wait_idle();
        }
        assert_eq!(server.number("one", "/counts/admitted"), 6);
    }
    let files = [("www/outer.php", "<?php virtual('/page.php?id=inner'); echo 'outer';")];
    let Some(server) = with_php(group, &files) else { return };
    for _ in 0..3 {
        let answer = server.get("/outer.php");
        assert!(answer.body.contains("done -") && answer.body.contains("outer"), "{answer:?}");
        server.wait_idle();
    }
    let counts = server.group("one")["counts"].clone();
    assert_eq!(
        (&counts["admitted"], &counts["bypass"], &counts["queued"]),
        (&3.into(), &3.into(), &0.into()),
        "{counts}"
    );
}

/// What a page includes counts as the file that it is: with the page's permit alone it would go past that file's limit.
#[test]
fn an_included_page_counts_as_its_own_file() {
    let text = "AdmissionGroup one limit=1 queue=5 timeout=60s\nAdmissionUse one\n";
    let files = [
        ("www/outer.php", "<?php virtual('/page.php'); echo 'outer';"),
        ("www/twice.php", "<?php if (empty($GLOBALS['again']++)) virtual('/twice.php'); echo 'twice';"),
    ];
    let Some(server) = with_php(text, &files) else { return };
    let gate = server.gate("g");
    let held = server.send("/page.php?id=held&gate=g");
    server.wait_started(1);
    let answer = server.get("/outer.php?id=inner");
    assert!(answer.body.contains("outer") && !answer.body.contains("done"), "{answer:?}");
    assert_eq!(order(&server.events()), ["held"]);
    gate.open();
    assert_eq!(held.answer().status, 200);
    server.wait_idle();
    let answer = server.get("/outer.php?id=inner");
    assert!(answer.body.contains("done inner") && answer.body.contains("outer"), "{answer:?}");
    // The file itself once more, inside: that would wait for itself.
    assert_eq!(server.get("/twice.php").body.matches("twice").count(), 2);
    server.wait_idle();
    let counts = server.group("one")["counts"].clone();
    let of = |name: &str| counts[name].as_u64();
    assert_eq!(["admitted", "rejected", "bypass", "queued"].map(of), [Some(5), Some(1), Some(1), Some(0)], "{counts}");
}

/// What a program answers with its place is another program: on the first one's permit alone it would go past its own file's limit. So it
/// would where its name ends as the first one's does, as that of an Action's program.
#[test]
fn a_local_redirect_counts_as_its_target() {
    for mpm in [Mpm::Prefork, Mpm::Worker, Mpm::Event] {
        let Some(server) = Server::start(mpm, "AdmissionGroup one limit=1\nAdmissionUse one\n") else { return };
        let places = ["/other.cgi?location=/page.cgi", "/other.cgi?location=/page.cgi/other.cgi"];
        let gate = server.gate("g");
        let held = server.send("/page.cgi?id=held&gate=g");
        server.wait_started(1);
        for place in places {
            assert_eq!(server.get(place).status, 503, "{place}");
        }
        // The first program ran each time, the second never.
        assert_eq!(order(&server.events()), ["held", "-", "-"]);
        gate.open();
        assert_eq!(held.answer().status, 200);
        server.wait_idle();
        for place in places {
            let answer = server.get(place);
            assert_eq!((answer.status, answer.body.as_str()), (200, "done -\n"), "{place}: {}", server.log());
            server.wait_idle();
        }
        // To itself it would wait for itself.
        assert_eq!(server.get("/page.cgi/once?location=/page.cgi").status, 200);
        server.wait_idle();
        let counts = server.group("one")["counts"].clone();
        let of = |name: &str| counts[name].as_u64();
        assert_eq!(["admitted", "rejected", "bypass"].map(of), [Some(8), Some(2), Some(1)], "{counts}");
    }
}

/// Of the memory budget a page takes with all that it includes, and that these include, what the most expensive of them costs.
#[test]
fn included_pages_share_the_memory_of_the_most_expensive() {
    let text = "AdmissionBudget memory 60M\nAdmissionGroup small limit=1 cost=20M\nAdmissionGroup large limit=1 cost=50M\nAdmissionUse large\n\
                <Location /outer.php>\nAdmissionUse small\n</Location>\n";
    let files = [
        ("www/outer.php", "<?php virtual('/middle.php'); echo 'outer';"),
        ("www/middle.php", "<?php virtual('/page.php');"),
    ];
    let Some(server) = with_php(text, &files) else { return };
    let gate = server.gate("g");
    let whole = server.send("/outer.php?id=inner&gate=g");
    server.wait_started(1);
    assert_eq!(server.status()["budget"]["held"], 50 << 20);
    gate.open();
    let body = whole.answer().body;
    // PHP loses what a page that was included says after its own.
    assert!(["done inner", "outer"].iter().all(|part| body.contains(part)), "{body}");
    server.wait_idle();
}

/// What ends before a handler takes no permit: who may not see a page, a folder without its slash, a page that did not change.
#[test]
fn requests_that_never_reach_a_handler() {
    let text = "AdmissionGroup one limit=1 key=server handler=any\nAdmissionUse one\n<Location /page.cgi>\nRequire all denied\n</Location>\n";
    let Some(server) = Server::start(Mpm::Event, text) else { return };
    let before = server.number("one", "/counts/admitted");
    for (path, status) in [("/page.cgi", 403), ("/dir/cgi", 301)] {
        assert_eq!(server.get(path).status, status, "{path}");
    }
    server.wait_idle();
    let after = server.number("one", "/counts/admitted");
    assert!(after - before <= 1, "{before} {after}");
}

/// The connection of somebody who was turned away goes on, also past a short body that nobody read.
#[test]
fn connection_is_kept_after_a_503() {
    for mpm in [Mpm::Prefork, Mpm::Worker, Mpm::Event] {
        // An offer of HTTP/2 stands in the same line of the header, which is what httpd tells the end of a connection by.
        let offer = if mpm == Mpm::Event { "Protocols h2c http/1.1\n" } else { "" };
        let text = format!("AdmissionGroup one limit=1\nAdmissionUse one\n{offer}");
        let Some(server) = Server::start(mpm, &text) else { return };
        server.wait_all_begun(mpm);
        let gate = server.gate("g");
        let held = server.send("/page.cgi?gate=g");
        server.wait_number("one", "/held", 1);
        let mut client = server.client();
        for _ in 0..3 {
            assert_eq!(client.get("/page.cgi").status, 503);
            assert!(!client.closed);
            assert_eq!(client.get("/index.html").body, "hello\n");
        }
        client.write(b"POST /page.cgi HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\na body");
        assert_eq!(client.answer(false).expect("an answer").status, 503);
        assert_eq!(client.get("/index.html").body, "hello\n");
        // A long body that was not sent yet is not waited for.
        client
            .write(b"POST /page.cgi HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\nExpect: 100-continue\r\n\r\n");
        assert_eq!(client.answer(false).expect("an answer").status, 503);
        assert!(client.closed);
        gate.open();
        assert_eq!(held.answer().status, 200);
    }
}

/// What a cache answers runs no program: it takes no permit, and is served when there is none. Where mod_cache looks only when a handler
/// would run (`quick` off), our handler is around its own, which must not run twice.
#[test]
fn a_hit_of_the_cache_needs_no_permit() {
    for quick in ["on", "off"] {
        let load = |name: &str| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n");
        let modules: String = ["cache", "cache_disk"].into_iter().map(load).collect();
        let text = format!(
            "{modules}CacheRoot FOLDER/cache\nCacheQuickHandler {quick}\nCacheEnable disk /page.cgi\n\
             Header set Cache-Control max-age=600\nAdmissionGroup one limit=1 key=server\nAdmissionUse one\n"
        );
        let files = [("cache/made", "")];
        let told = Told { mpm: Mpm::Event, php: Php::None, text: &text, files: &files };
        let Some(server) = Server::told(&told) else { return };
        std::fs::set_permissions(server.path("cache"), std::fs::Permissions::from_mode(0o777)).expect("our own folder");
        for _ in 0..3 {
            assert_eq!(server.get("/page.cgi?id=kept").body, "done kept\n", "{}", server.log());
            server.wait_idle();
        }
        let admitted = if quick == "on" { 1 } else { 3 };
        assert_eq!(
            (server.started(), server.number("one", "/counts/admitted")),
            (1, admitted),
            "quick handler {quick}"
        );
        assert!(!server.log().contains("AH00769"), "stored twice: {}", server.log());
        let gate = server.gate("g");
        let held = server.send("/page.probe?gate=g");
        server.wait_number("one", "/held", 1);
        assert_eq!(server.get("/page.cgi?id=kept").status, if quick == "on" { 200 } else { 503 });
        assert_eq!(server.get("/page.cgi?id=new").status, 503);
        gate.open();
        assert_eq!(held.answer().status, 200);
    }
}

/// What is handed out as it is starts no program, whether httpd knows its kind or not.
#[test]
fn a_file_without_a_content_type_is_no_program() {
    let text = "AdmissionGroup one limit=1 key=server\nAdmissionUse one\n";
    let files = [("www/LICENSE", "as you like\n")];
    let told = Told { mpm: Mpm::Event, php: Php::None, text, files: &files };
    let Some(server) = Server::told(&told) else { return };
    let gate = server.gate("g");
    let held = server.send("/page.probe?gate=g");
    server.wait_number("one", "/held", 1);
    for _ in 0..2 {
        let answer = server.get("/LICENSE");
        assert_eq!((answer.status, answer.header("Content-Type")), (200, None), "{answer:?}");
    }
    gate.open();
    assert_eq!(held.answer().status, 200);
    server.wait_idle();
    assert_eq!(server.number("one", "/counts/admitted"), 1);
}

/// A program that is named as a content type is one, also where a file of its folder's owner names it so.
#[test]
fn a_program_by_its_content_type_is_a_program() {
    let text = "AdmissionGroup one limit=1 key=server\nAdmissionUse one\n";
    let files = [("www/dir/.htaccess", "RemoveHandler .cgi\nAddType cgi-script .cgi\n")];
    let told = Told { mpm: Mpm::Event, php: Php::None, text, files: &files };
    let Some(server) = Server::told(&told) else { return };
    let gate = server.gate("g");
    let held = server.send("/dir/cgi/index.cgi?gate=g");
    server.wait_started(1);
    assert_eq!(server.number("one", "/held"), 1, "{}", server.log());
    for path in ["/dir/cgi/index.cgi", "/page.probe"] {
        assert_eq!(server.get(path).status, 503, "{path}");
    }
    gate.open();
    assert_eq!(held.answer().status, 200);
    server.wait_idle();
}

/// What decides about who comes first, and what is counted under what, does not change the answer: caches need not know of it.
#[test]
fn what_is_looked_at_is_no_variant() {
    let text = "AdmissionGroup one limit=4 \"key=expr:of %{HTTP_COOKIE}\"\nAdmissionUse one\n\
                AdmissionPriority -5 \"%{HTTP_COOKIE} =~ /vip/\"\n";
    let Some(server) = Server::start(Mpm::Event, text) else { return };
    let answer = server.get("/page.probe");
    assert_eq!((answer.status, answer.header("Vary")), (200, None), "{answer:?}");
    assert_eq!(server.number("one", "/counts/admitted"), 1);
}

/// The log tells of a refused request what happened to it, also where another page says so; the connection stays.
#[test]
fn a_refusal_is_logged_behind_an_error_page() {
    for error_page in ["", "ErrorDocument 503 /503.html\n"] {
        let text = format!("AdmissionGroup one limit=1\nAdmissionUse one\n{error_page}");
        let files = [("www/503.html", "later\n")];
        let told = Told { mpm: Mpm::Event, php: Php::None, text: &text, files: &files };
        let Some(server) = Server::told(&told) else { return };
        let gate = server.gate("g");
        let held = server.send("/page.probe?gate=g");
        server.wait_number("one", "/held", 1);
        let mut client = server.client();
        let answer = client.get("/page.probe");
        assert_eq!((answer.status, answer.body == "later\n"), (503, !error_page.is_empty()), "{answer:?}");
        assert!(!client.closed, "{answer:?}");
        wait("it is logged", || server.access().iter().any(|line| line.starts_with("503 /page.probe")));
        let logged = server.access();
        assert!(logged.iter().any(|line| line == "503 /page.probe one reject"), "{logged:?}");
        gate.open();
        assert_eq!(held.answer().status, 200);
    }
}
