//! Directives: what cannot be is refused before the server starts, with a line that says what to do; `.htaccess` tightens, never raises.

use crate::control::Control;
use crate::oracle::order;
use crate::server::{Mpm, Php, Server, Told};
use testkit::skip::skipped;

/// Directives that are refused, and what is said about them.
const REFUSED: &[(&str, &str)] = &[
    ("AdmissionEngine maybe", "AdmissionEngine maybe: must be on, off or observe"),
    ("<Location />\nAdmissionEngine on\n</Location>", "AdmissionEngine not allowed"),
    ("AdmissionGroup", "AdmissionGroup: takes a name and settings"),
    ("AdmissionGroup none limit=1", "none: this name has a meaning of its own"),
    ("AdmissionGroup memory limit=1", "memory: this name has a meaning of its own"),
    ("AdmissionGroup a/b limit=1", "a/b: not a group's name"),
    ("AdmissionGroup a-name-that-is-longer-than-any-name-may-be limit=1", "not a group's name"),
    ("AdmissionGroup a limit=0", "limit=0: a number from 1 to 1000000, or `none`"),
    ("AdmissionGroup a limit=-1", "limit=-1: a number from 1"),
    ("AdmissionGroup a limit=4x", "limit=4x: a number from 1"),
    ("AdmissionGroup a limit=99999999999", "limit=99999999999: a number from 1"),
    ("AdmissionGroup a limit", "limit: not of the form key=value"),
    ("AdmissionGroup a size=4", "size=4: not a key here; keys are limit, queue"),
    ("AdmissionGroup a queue=many", "queue=many: how many may wait"),
    ("AdmissionGroup a queue=4097", "queue=4097: how many may wait, from 0 to 4096"),
    ("AdmissionGroup a timeout=3x", "timeout=3x: a time from 1ms to 1h"),
    ("AdmissionGroup a timeout=2h", "timeout=2h: a time from 1ms to 1h"),
    ("AdmissionGroup a key=cookie", "key=cookie: file, inode, vhost"),
    ("AdmissionGroup a \"key=expr:%{NOTHING\"", "key=expr"),
    ("AdmissionGroup a order=random", "order=random: fifo, lifo or adaptive"),
    ("AdmissionGroup a status=200", "status=200: a number from 400 to 599"),
    ("AdmissionGroup a cost=much", "cost=much: a size such as 200M"),
    ("AdmissionGroup a mode=on", "mode=on: off, observe or enforce"),
    ("AdmissionGroup a adaptive=memory", "adaptive=memory: needs max=NUMBER or limit=NUMBER"),
    ("AdmissionGroup a min=4 limit=8", "min=4: only with adaptive=memory"),
    ("AdmissionGroup a limit=2 adaptive=memory min=4 max=8", "limit=2: is not between min=4 and max=8"),
    ("AdmissionGroup a handler=static,cgi-script", "handler=static,cgi-script: dynamic, static or any, or names"),
    ("AdmissionGroup a hold=forever", "hold=forever: `handler` or `response`"),
    ("AdmissionGroup a at=25:00-26:00:4", "at=25:00-26:00:4: FROM-UNTIL:LIMIT"),
    (
        "ServerLimit 600\nAdmissionGroup a limit=5000",
        "limit=5000: the running table has room for 4096 permits per entry",
    ),
    ("AdmissionGroup a limit=1\nAdmissionGroup a limit=2", "AdmissionGroup a: there is such a group already, at "),
    ("<VirtualHost *:1>\nAdmissionGroup a limit=1\n</VirtualHost>", "AdmissionGroup cannot occur within <VirtualHost>"),
    ("AdmissionUse nobody", "AdmissionUse nobody: there is no AdmissionGroup of this name"),
    ("AdmissionUse a b c d e f g h", "AdmissionUse h: a request can be in 7 groups at most"),
    ("AdmissionLimit nobody 3", "AdmissionLimit nobody: there is no AdmissionGroup of this name"),
    ("AdmissionGroup a limit=1\nAdmissionUse a none", "none stands alone"),
    ("AdmissionGroup a limit=1\nAdmissionLimit a none", "none: must be a number from 1"),
    ("AdmissionPriority high", "AdmissionPriority high: must be a number from -1000"),
    ("AdmissionPriority 1 \"%{NOTHING\"", "AdmissionPriority"),
    ("AdmissionBudget disk 8G", "the only budget is of memory"),
    ("AdmissionBudget memory lots", "AdmissionBudget lots: must be a size"),
    ("AdmissionBudget memory 8G queue=4", "AdmissionBudget queue=4: what may follow the size is order="),
    ("AdmissionBudget memory 8G order=random", "order=random: fifo, lifo or adaptive"),
    (
        "AdmissionGroup a cost=900M\nAdmissionBudget memory 800M",
        "AdmissionGroup a: cost=900M: is above the memory budget of 800M",
    ),
    ("AdmissionQueueWorkers 95%", "must be a number of workers, or a share of MaxRequestWorkers from 1% to 90%"),
    ("AdmissionQueueWorkers 0%", "must be a number of workers, or a share of MaxRequestWorkers from 1% to 90%"),
    ("AdmissionTableSize 3", "AdmissionTableSize 3: must be the number of files"),
    ("AdmissionMaxHold long", "AdmissionMaxHold long: must be a time"),
    ("AdmissionLog loud", "AdmissionLog loud: must be default, compat or off"),
    ("AdmissionHoldFd perhaps", "AdmissionHoldFd must be On or Off"),
    ("AdmissionPolicy FOLDER/no-such.lua", "AdmissionPolicy"),
];

#[test]
fn what_cannot_be_is_refused() {
    let mut wrong = Vec::new();
    for (directives, expected) in REFUSED {
        let Some(said) = Server::refused(Mpm::Event, &format!("{directives}\n"), &[]) else { return };
        if said.starts_with("TAKEN") || !said.contains(expected) {
            wrong.push(format!("{directives}: expected {expected:?}, said {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A refusal names the file and the line, as httpd does for its own directives.
#[test]
fn a_refusal_names_its_place() {
    for directives in ["AdmissionUse nobody\n", "AdmissionGroup a limit=0\n"] {
        let Some(said) = Server::refused(Mpm::Event, directives, &[]) else { return };
        assert!(said.contains("httpd.conf:") || said.contains("on line"), "{said}");
    }
}

#[test]
fn what_can_be_is_taken() {
    let all = "AdmissionGroup a limit=4 queue=20 timeout=500ms key=inode handler=cgi-script,proxy order=adaptive status=429 cost=200M mode=observe\n\
               AdmissionGroup b limit=none cost=learn:100M key=location at=09:00-18:00:4 at=22:00-06:00:2\n\
               AdmissionGroup c limit=8 adaptive=memory min=1 max=16 key=client hold=response handler=any\n\
               AdmissionGroup d limit=3 \"key=expr:%{HTTP_HOST}\"\nAdmissionGroup above-all-workers limit=5000\n\
               AdmissionBudget memory 800M\nAdmissionQueueWorkers 25%\nAdmissionTableSize 2048\nAdmissionMaxHold 5m\nAdmissionLog off\n\
               AdmissionControlFile /etc/apache2/admission.control\nAdmissionRuntimeDir admission\nAdmissionHoldFd off\n\
               AdmissionPriority -10 \"%{REQUEST_URI} =~ m#^/shop#\"\nAdmissionPriority 3\nAdmissionUse a b c d\n\
               <Location /free>\nAdmissionUse none\n</Location>\n<Directory FOLDER/www/dir>\nAdmissionLimit a 2\n</Directory>\n\
               <If \"%{QUERY_STRING} == 'x'\">\nAdmissionUse a\n</If>\n<VirtualHost *:PORT>\nAdmissionEngine observe\n</VirtualHost>\n";
    let Some(said) = Server::refused(Mpm::Event, all, &[]) else { return };
    assert!(said.starts_with("TAKEN"), "{said}");
}

/// What can be, and is hardly meant, is told of when the server starts.
#[test]
fn what_is_hardly_meant_is_noted() {
    let one = "AdmissionGroup one limit=1 queue=4\nAdmissionUse one\n";
    let hold = "LoadModule cgi_module /usr/lib/apache2/modules/mod_cgi.so\nAdmissionHoldFd on\n";
    for (mpm, text, notes) in [
        (Mpm::Prefork, "", &[][..]),
        (Mpm::Event, "AdmissionEngine off\n", &["ADM0003: groups are in use, but nothing is limited"]),
        (Mpm::Prefork, "AdmissionBudget memory 800M\n", &["ADM0006: AdmissionBudget has no effect"]),
        (Mpm::Event, hold, &["ADM0007: AdmissionHoldFd: in a process with threads"]),
        (Mpm::Prefork, "AdmissionQueueWorkers 12\n", &["ADM0008: AdmissionQueueWorkers 12: "]),
        (Mpm::Prefork, "AdmissionQueueWorkers 0\n", &["ADM0027: AdmissionGroup one: its queue= has no effect"]),
        (
            Mpm::Prefork,
            "AdmissionGroup dear limit=2 cost=9M\n",
            &["ADM0026: AdmissionGroup dear: its cost= has no effect"],
        ),
        (
            Mpm::Prefork,
            "AdmissionGroup many limit=97\n",
            &["ADM0013: AdmissionGroup many: limit=97 is above the 96 permits"],
        ),
        (
            Mpm::Prefork,
            "AdmissionGroup open queue=4\n",
            &["ADM0028: AdmissionGroup open: its queue= has no effect: nothing limits it"],
        ),
        (Mpm::Prefork, "AdmissionGroup open queue=4\nAdmissionLimit open 3\n", &[]),
        (Mpm::Prefork, "ChrootDir /\n", &["ADM0019: ChrootDir /: unless /proc and the files"]),
    ] {
        let Some(server) = Server::start(mpm, &format!("{one}{text}")) else { return };
        let log = server.log();
        let is_note = |line: &&str| {
            ["ADM000", "ADM0013", "ADM0019", "ADM0026", "ADM0027", "ADM0028"].iter().any(|note| line.contains(note))
        };
        let found: Vec<_> = log.lines().filter(is_note).collect();
        let as_expected = found.iter().zip(notes).all(|(line, note)| line.contains(note));
        assert!(found.len() == notes.len() && as_expected, "{text}: {found:#?}");
    }
}

/// Who names a group twice, on one line, on two or in two files, means it once: a request takes one permit of it.
#[test]
fn a_group_that_is_named_twice_is_taken_once() {
    let files = [("www/add/.htaccess", "AdmissionUse one one\n"), ("www/add/page.probe", "")];
    for (uses, path) in [
        ("AdmissionUse one one\n", "/page.probe"),
        ("AdmissionUse one\nAdmissionUse one\n", "/add/page.probe"),
        ("", "/add/page.probe"),
    ] {
        let text = format!("AdmissionGroup one limit=1\n{uses}");
        let told = crate::server::Told { mpm: Mpm::Prefork, php: crate::server::Php::None, text: &text, files: &files };
        let Some(server) = Server::told(&told) else { return };
        let gate = server.gate("g");
        let held = server.send(&format!("{path}?gate=g"));
        server.wait_started(1);
        assert_eq!(server.number("one", "/held"), 1, "{uses}");
        gate.open();
        assert_eq!(held.answer().status, 200, "{uses}");
    }
}

/// A user's own file lowers a limit and adds groups, and cannot raise a limit or leave a group.
#[test]
fn htaccess_tightens_and_never_raises() {
    let groups = "AdmissionGroup two limit=2\nAdmissionGroup other limit=1\nAdmissionUse two\n";
    let files = [
        ("www/lower/.htaccess", "AdmissionLimit two 1\n"),
        ("www/raise/.htaccess", "AdmissionLimit two 9\n"),
        ("www/add/.htaccess", "AdmissionUse other\n"),
        ("www/leave/.htaccess", "AdmissionUse none\n"),
        ("www/hide/.htaccess", "<Files *>\nAdmissionUse none\n</Files>\n"),
        ("www/if/.htaccess", "<If \"true\">\nAdmissionLimit two 9\n</If>\n"),
        ("www/unknown/.htaccess", "AdmissionUse nobody\n"),
        ("www/group/.htaccess", "AdmissionGroup mine limit=9\n"),
        ("www/engine/.htaccess", "AdmissionEngine off\n"),
        ("www/first/.htaccess", "AdmissionPriority -1000\n"),
        ("www/policy/.htaccess", "AdmissionPolicy none\n"),
    ];
    let pages: Vec<(String, &str)> =
        ["lower", "raise", "add", "if"].iter().map(|name| (format!("www/{name}/page.probe"), "")).collect();
    let all: Vec<(&str, &str)> =
        files.iter().copied().chain(pages.iter().map(|(name, text)| (name.as_str(), *text))).collect();
    let told = crate::server::Told { mpm: Mpm::Event, php: crate::server::Php::None, text: groups, files: &all };
    let Some(server) = Server::told(&told) else { return };
    for (folder, most) in [("lower", 1), ("raise", 2), ("add", 1), ("if", 2)] {
        let gate = server.gate(folder);
        let held: Vec<_> = (1..=most)
            .map(|n| {
                let one = server.send(&format!("/{folder}/page.probe?gate={folder}"));
                server.wait_number("two", "/held", n);
                one
            })
            .collect();
        assert_eq!(server.get(&format!("/{folder}/page.probe")).status, 503, "{folder}");
        gate.open();
        assert!(held.into_iter().all(|one| one.answer().status == 200));
        server.wait_idle();
    }
    let said = [
        ("leave", "can add groups, not take them away"),
        ("hide", "can add groups, not take them away"),
        ("unknown", "there is no group of this name"),
        ("group", "AdmissionGroup not allowed here"),
        ("engine", "AdmissionEngine not allowed here"),
        ("first", "AdmissionPriority"),
        ("policy", "AdmissionPolicy"),
    ];
    for (folder, message) in said {
        assert_eq!(server.get(&format!("/{folder}/x.probe")).status, 500, "{folder}");
        assert!(server.log().contains(message), "{folder}: {}", server.log());
    }
}

/// A policy's limit is for a group that the configuration put in use: a narrower one of a user's own file does not take it away.
#[test]
fn htaccess_does_not_choose_what_a_policy_limits() {
    let Some(folder) = Control::new() else { return };
    folder.put("policy.lua", "function admission(r) return { limit = 1 } end");
    let text = format!(
        "AdmissionGroup host limit=9 key=vhost\nAdmissionGroup file limit=9\nAdmissionUse host\nAdmissionPolicy {}\n\
         <Directory FOLDER/www/only>\nAdmissionUse none\n</Directory>\n",
        folder.folder().join("policy.lua").display()
    );
    if Server::refused(Mpm::Event, &text, &[]).is_some_and(|said| said.contains("without Lua")) {
        return skipped("no headers of Lua");
    }
    let files = [
        ("www/add/.htaccess", "AdmissionUse file\n"),
        ("www/add/page.probe", ""),
        ("www/add/other.probe", ""),
        ("www/only/.htaccess", "AdmissionUse file\n"),
        ("www/only/page.probe", ""),
        ("www/only/other.probe", ""),
    ];
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some(server) = Server::told(&Told { mpm, php: Php::None, text: &text, files: &files }) else { return };
        let gate = server.gate("g");
        let held = server.send("/add/page.probe?gate=g");
        server.wait_number("host", "/held", 1);
        for path in ["/add/page.probe", "/add/other.probe", "/page.cgi"] {
            assert_eq!(server.get(path).status, 503, "{path}");
        }
        assert_eq!([server.number("host", "/counts/rejected"), server.number("file", "/counts/rejected")], [3, 0]);
        // Where there is no other it is for the one that such a file names.
        let only = server.send("/only/page.probe?gate=g");
        server.wait_number("file", "/held", 2);
        assert_eq!([server.get("/only/page.probe").status, server.get("/only/other.probe").status], [503, 200]);
        gate.open();
        assert_eq!((held.answer().status, only.answer().status), (200, 200));
        server.wait_idle();
    }
}

/// Who finds no memory waits, or does not, as a group of the configuration says: a narrower one of a user's own file has a queue for its own
/// permits only.
#[test]
fn htaccess_does_not_choose_how_to_wait_for_memory() {
    let text = "AdmissionBudget memory 100M\nAdmissionGroup host limit=none cost=100M key=vhost status=429\n\
                AdmissionGroup patient limit=1 queue=8 timeout=2s\nAdmissionQueueWorkers 10\nAdmissionUse host\n";
    let files = [("www/add/.htaccess", "AdmissionUse patient\n"), ("www/add/page.probe", "")];
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some(server) = Server::told(&Told { mpm, php: Php::None, text, files: &files }) else { return };
        let gate = server.gate("g");
        let held = server.send("/add/page.probe?gate=g");
        server.wait_started(1);
        // Its file is at work: that queue is its own.
        assert_eq!(server.get("/add/page.probe").status, 503);
        assert_eq!(server.number("patient", "/counts/timeout"), 1);
        gate.open();
        assert_eq!(held.answer().status, 200);
        server.wait_idle();
        // Only memory is full.
        let gate = server.gate("g");
        let held = server.send("/page.probe?gate=g");
        server.wait_started(2);
        assert_eq!(server.get("/add/page.probe").status, 429);
        let counts = server.status()["budget"]["counts"].clone();
        assert_eq!((&counts["rejected"], &counts["timeout"]), (&1.into(), &0.into()), "{counts}");
        gate.open();
        assert_eq!(held.answer().status, 200);
        server.wait_idle();
    }
}

/// A page of one's own for refusals may be a file; it is no way to have a program run for each of them.
#[test]
fn htaccess_does_not_run_a_program_for_who_is_turned_away() {
    let text = "AdmissionGroup one limit=1 key=server\nAdmissionUse one\n";
    let files = [
        ("www/program/.htaccess", "ErrorDocument 503 /program/error.probe?id=heavy\n"),
        ("www/program/page.probe", ""),
        ("www/program/error.probe", ""),
        ("www/file/.htaccess", "ErrorDocument 503 /file/sorry.html\n"),
        ("www/file/page.probe", ""),
        ("www/file/sorry.html", "sorry\n"),
    ];
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some(server) = Server::told(&Told { mpm, php: Php::None, text, files: &files }) else { return };
        let gate = server.gate("g");
        let held = server.send("/page.probe?id=held&gate=g");
        server.wait_number("one", "/held", 1);
        for _ in 0..3 {
            assert_eq!(server.get("/program/page.probe").status, 503);
            let answer = server.get("/file/page.probe");
            assert_eq!((answer.status, answer.body.as_str()), (503, "sorry\n"));
        }
        assert_eq!(order(&server.events()), ["held"]);
        gate.open();
        assert_eq!(held.answer().status, 200);
        server.wait_idle();
    }
}

/// More groups than a request can be in, by files that the configuration cannot foresee: the wider ones limit it, and it is told.
#[test]
fn htaccess_can_name_too_many() {
    let groups: String = (1..=8).map(|n| format!("AdmissionGroup g{n} limit=9 key=server\n")).collect();
    let text = format!("{groups}AdmissionUse g1 g2 g3 g4 g5 g6 g7\n");
    let files = [("www/many/.htaccess", "AdmissionUse g8\n"), ("www/many/page.probe", "")];
    let told = crate::server::Told { mpm: Mpm::Event, php: crate::server::Php::None, text: &text, files: &files };
    let Some(server) = Server::told(&told) else { return };
    for _ in 0..3 {
        assert_eq!(server.get("/many/page.probe").status, 200);
    }
    let counts = |group: &str| [server.number(group, "/counts/admitted"), server.number(group, "/counts/open")];
    assert_eq!((counts("g7"), counts("g8")), ([3, 0], [0, 3]));
    // Once in each process that served one of them.
    let lines = server.log().matches("ADM0024").count();
    assert!((1..=server.workers().len()).contains(&lines), "{}", server.log());
    assert!(
        server.log().contains(".htaccess:1: AdmissionUse g8: a request can be in 7 groups at most"),
        "{}",
        server.log()
    );
}

/// A narrower place replaces the groups of a wider one; `none` leaves them.
#[test]
fn places_replace_each_other() {
    let text = "AdmissionGroup wide limit=1 key=server\nAdmissionGroup narrow limit=1 key=server\nAdmissionUse wide\n\
                <Location /page.cgi>\nAdmissionUse narrow\n</Location>\n<Location /other.cgi>\nAdmissionUse none\n</Location>\n";
    let Some(server) = Server::start(Mpm::Prefork, text) else { return };
    let gate = server.gate("g");
    let wide = server.send("/page.probe?gate=g");
    let narrow = server.send("/page.cgi?gate=g");
    let free: Vec<_> = (0..3).map(|_| server.send("/other.cgi?gate=g")).collect();
    server.wait_started(5);
    assert_eq!([server.number("wide", "/held"), server.number("narrow", "/held")], [1, 1]);
    gate.open();
    for one in free.into_iter().chain([wide, narrow]) {
        assert_eq!(one.answer().status, 200);
    }
}

/// Loaded and not used, or switched off, it does nothing.
#[test]
fn off_limits_nothing() {
    for text in
        ["", "AdmissionGroup one limit=1\nAdmissionUse one\nAdmissionEngine off\n", "AdmissionGroup one limit=1\n"]
    {
        let Some(server) = Server::start(Mpm::Event, text) else { return };
        let gate = server.gate("g");
        let held: Vec<_> = (0..3).map(|_| server.send("/page.probe?gate=g")).collect();
        server.wait_started(3);
        gate.open();
        assert!(held.into_iter().all(|one| one.answer().status == 200));
    }
}
