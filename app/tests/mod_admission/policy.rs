//! A policy in Lua: which group, at which cost and limit; a mistake in it keeps the last good one.

use crate::control::Control;
use crate::server::{Mpm, Server, kill, wait};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

const TEXT: &str =
    "AdmissionGroup slow limit=5\nAdmissionGroup other limit=5\nAdmissionUse other\nAdmissionBudget memory 500M\n";
const GOOD: &str = "function admission(r)\n  if r.args and r.args:find('free') then return { group = 'none' } end\n\
                    if r.file:find('probe') then return { group = 'slow', limit = 1, cost = '200M' } end\n  return nil\nend\n";

/// Whether the module was built with Lua; says so otherwise.
fn has_lua() -> bool {
    let said = Server::refused(Mpm::Event, "AdmissionPolicy FOLDER/no-such.lua\n", &[]);
    let without = said.is_some_and(|said| said.contains("without Lua"));
    if without {
        testkit::skip::skipped("no headers of Lua");
    }
    !without
}

const POLICY: &str = "policy.lua";

/// A server with a policy, and the folder in which that is.
fn server(mpm: Mpm, text: &str, policy: &str) -> Option<(Server, Control)> {
    let folder = has_lua().then(Control::new)??;
    folder.put(POLICY, policy);
    Some((Server::start(mpm, &(text.to_owned() + &directive(&folder)))?, folder))
}

fn directive(folder: &Control) -> String {
    format!("AdmissionPolicy {}\n", folder.folder().join(POLICY).display())
}

/// A group that only observes turns nobody away, whatever the policy says that its requests cost.
#[test]
fn a_cost_of_who_is_only_observed_is_not_taken() {
    let text =
        TEXT.replace("AdmissionGroup slow limit=5", "AdmissionGroup slow limit=1 mode=observe").replace("500M", "300M");
    let policy = "function admission(r) return { group = 'slow', cost = '200M' } end\n";
    let Some((server, _folder)) = server(Mpm::Event, &text, policy) else { return };
    let gate = server.gate("g");
    let pending = server.send_in_turn("/page.probe?gate=g", 3);
    assert_eq!(server.status()["budget"]["held"], 0);
    gate.open();
    assert!(pending.into_iter().all(|one| one.answer().status == 200));
    server.wait_idle();
    assert_eq!(server.number("slow", "/counts/would_reject"), 2);
}

#[test]
fn it_chooses_group_cost_and_limit() {
    for mpm in [Mpm::Prefork, Mpm::Worker] {
        let Some((server, _folder)) = server(mpm, TEXT, GOOD) else { return };
        let gate = server.gate("g");
        let slow = server.send("/page.probe?gate=g");
        server.wait_started(1);
        assert_eq!(server.status()["budget"]["held"], 200 << 20);
        assert_eq!(server.get("/page.probe").status, 503, "limit 1");
        assert_eq!(server.get("/page.probe?free").status, 200, "no group");
        let others: Vec<_> = (2..=4)
            .map(|n| {
                let one = server.send("/page.cgi?gate=g");
                server.wait_started(n + 1);
                one
            })
            .collect();
        assert_eq!([server.number("slow", "/held"), server.number("other", "/held")], [1, 3]);
        gate.open();
        assert!(others.into_iter().chain([slow]).all(|one| one.answer().status == 200));
        server.wait_idle();
    }
}

/// A group that it names and that a reload has left out is none: the request is limited as the configuration says.
#[test]
fn a_group_that_is_gone_is_no_way_out() {
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let heavy = "AdmissionGroup heavy limit=1 key=server\n";
        let text = format!("{heavy}AdmissionGroup all limit=2 key=server\nAdmissionUse all\n");
        let policy = "function admission(r) return { group = 'heavy' } end\n";
        let Some((server, _folder)) = server(mpm, &text, policy) else { return };
        let gate = server.gate("g");
        let mut held = vec![server.send("/page.probe?gate=g")];
        server.wait_number("heavy", "/held", 1);
        let configuration = std::fs::read_to_string(server.path("httpd.conf")).expect("ours");
        server.put("httpd.conf", &configuration.replace(heavy, ""));
        server.graceful();
        held.extend((1..=2).map(|place| {
            let one = server.send("/page.probe?gate=g");
            server.wait_number("all", "/held", place);
            one
        }));
        assert_eq!(server.get("/page.probe").status, 503, "{mpm:?}");
        assert!(server.log().contains("there is no `heavy`"), "{}", server.log());
        gate.open();
        assert!(held.into_iter().all(|one| one.answer().status == 200));
        server.wait_idle();
    }
}

/// A policy sees who is in which group already.
#[test]
fn it_sees_the_load() {
    let text = "AdmissionGroup wide limit=5 key=server\nAdmissionGroup spare limit=1 key=server status=429\nAdmissionUse wide\n";
    let policy = "function admission(r)\n  local held = r:load('wide')\n  if held >= 2 then return { group = 'spare' } end\nend\n";
    let Some((server, _folder)) = server(Mpm::Event, text, policy) else { return };
    let gate = server.gate("g");
    let held = server.send_in_turn("/page.probe?gate=g", 3);
    assert_eq!([server.number("wide", "/held"), server.number("spare", "/held")], [2, 1]);
    assert_eq!(server.get("/page.probe").status, 429);
    gate.open();
    assert!(held.into_iter().all(|one| one.answer().status == 200));
    server.wait_idle();
}

#[test]
fn a_mistake_keeps_the_last_good_one() {
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some((server, folder)) = server(mpm, TEXT, GOOD) else { return };
        assert_eq!(server.get("/page.probe?free").status, 200);
        assert_eq!(server.number("slow", "/counts/admitted"), 0);
        folder.put(POLICY, "function admission(r) return { group = ");
        // Each request asks the policy, and within a second or so sees that its file is another.
        wait("the mistake is told", || {
            assert_eq!(server.get("/page.probe?free").status, 200);
            server.log().contains("policy.lua")
        });
        let before = server.number("slow", "/counts/admitted");
        assert_eq!(server.get("/page.probe").status, 200);
        assert_eq!(server.number("slow", "/counts/admitted"), before + 1, "the good one decides");
        folder.put(POLICY, "function admission(r) return { group = 'other' } end");
        wait("the new one decides", || {
            let before = server.number("other", "/counts/admitted");
            assert_eq!(server.get("/page.probe").status, 200);
            server.number("other", "/counts/admitted") > before
        });
    }
}

/// With a log of who served and what limit the policy said.
const TOLD: &str = "AdmissionGroup slow limit=none\nLogFormat \"%P %{ADMISSION_LIMIT}e\" told\nCustomLog FOLDER/access.log told\n\
                    MaxConnectionsPerChild 0\n";
const BROKEN: &str = "function admission(r) return {";
const STAYS: &str = "the last good version stays in use";

fn saying(limit: u32) -> String {
    format!("function admission(r) return {{ group = 'slow', limit = {limit} }} end\n")
}

/// The process that served one more request, and the limit there.
fn asked(server: &Server) -> (i32, u32) {
    let lines = || server.access().into_iter().filter(|line| !line.ends_with('-')).collect::<Vec<_>>();
    let before = lines().len();
    assert_eq!(server.get("/page.probe").status, 200);
    wait("it is logged", || lines().len() > before);
    let line = lines().pop().expect("a line");
    let (process, limit) = line.split_once(' ').expect("two words");
    (process.parse().expect("a number"), limit.parse().unwrap_or_else(|_| panic!("{line}")))
}

/// A server whose policy has become a bad one after another good one than it started with, which only some of its processes have seen.
fn at_the_second(mpm: Mpm) -> Option<(Server, Control)> {
    let (server, folder) = server(mpm, TOLD, &saying(1))?;
    assert_eq!(asked(&server).1, 1);
    folder.put(POLICY, &saying(2));
    wait("the second one decides", || asked(&server).1 == 2);
    folder.put(POLICY, BROKEN);
    wait("the mistake is told", || {
        asked(&server);
        server.log().contains(STAYS)
    });
    Some((server, folder))
}

/// The last good one is that of all processes: of those that were idle while it was there, and of those that are born after it.
#[test]
fn the_last_good_one_is_the_same_in_all_processes() {
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some((server, _folder)) = at_the_second(mpm) else { return };
        wait("all have come to it", || (0..30).all(|_| asked(&server).1 == 2));
        let old = server.workers();
        for &process in &old {
            kill(process, Signal::KILL);
        }
        wait("they are gone", || server.workers().iter().all(|process| !old.contains(process)));
        for _ in 0..30 {
            let (process, limit) = asked(&server);
            assert!(!old.contains(&process) && limit == 2, "{mpm:?}: {process} says {limit}");
        }
    }
}

/// A reload that finds a mistake does not end the server, nor bring back the version of the last reload.
#[test]
fn a_mistake_at_a_reload_keeps_the_last_good_one() {
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some((server, folder)) = at_the_second(mpm) else { return };
        for (before, signal) in [Signal::USR1, Signal::HUP, Signal::USR1].into_iter().enumerate() {
            server.restart(signal);
            let told = server.log().lines().filter(|line| line.contains("ADM0009") && line.contains(STAYS)).count();
            assert_eq!(told, before + 1, "{}", server.log());
            assert!((0..10).all(|_| asked(&server).1 == 2), "{mpm:?} {told}");
        }
        // One that is gone is a bad one.
        fs::remove_file(folder.folder().join(POLICY)).expect("our own file");
        server.graceful();
        assert_eq!(asked(&server).1, 2);
        folder.put(POLICY, &saying(3));
        wait("the mended one decides", || asked(&server).1 == 3);
    }
}

/// A policy that fails, or never ends, limits nothing that the configuration does not.
#[test]
fn a_policy_that_fails_changes_nothing() {
    let Some((server, folder)) = server(Mpm::Event, TEXT, GOOD) else { return };
    let bad =
        ["return { group = 'nobody' }", "error('no')", "while true do end", "return 7", "return { limit = 'many' }"];
    for body in bad {
        folder.put(POLICY, &format!("function admission(r) {body} end"));
        let before = server.log().matches("AdmissionPolicy").count();
        wait(&format!("{body}: it is told"), || {
            assert_eq!(server.get("/page.probe").status, 200, "{body}");
            server.log().matches("AdmissionPolicy").count() > before
        });
    }
    server.wait_idle();
}

/// One that cannot be compiled, or that others could have written, is refused before the server starts.
#[test]
fn a_broken_policy_is_refused() {
    let Some(folder) = has_lua().then(Control::new).flatten() else { return };
    let said = || Server::refused(Mpm::Event, &directive(&folder), &[]).expect("there is a server");
    let path = folder.folder().join(POLICY);
    folder.put(POLICY, "-- the first line\nfunction admission(r) return 1 1 end\n");
    assert!(!said().starts_with("TAKEN") && said().contains("policy.lua:2:"), "{}", said());
    folder.put(POLICY, GOOD);
    assert!(said().starts_with("TAKEN"), "{}", said());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).expect("our own file");
    assert!(!said().starts_with("TAKEN") && said().contains("policy.lua: can be written by others"), "{}", said());
    folder.put(POLICY, GOOD);
    fs::set_permissions(folder.folder(), fs::Permissions::from_mode(0o1777)).expect("our own folder");
    assert!(said().contains("its directory") && said().contains("can be written by others"), "{}", said());
    fs::set_permissions(folder.folder(), fs::Permissions::from_mode(0o755)).expect("our own folder");
    chown(&path, Some(33), Some(33)).expect("root may");
    assert!(said().contains("policy.lua: belongs to user 33, not to 0 who started the server"), "{}", said());
}

/// A running server does not take one that others could have written; the last good one stays, and the log says so once in each process.
#[test]
fn a_policy_of_others_is_not_believed() {
    let Some((server, folder)) = server(Mpm::Event, TEXT, GOOD) else { return };
    let path = folder.folder().join(POLICY);
    let spoil: [(&str, &dyn Fn()); 3] = [
        ("can be written by others", &|| fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("ours")),
        ("belongs to user 33", &|| chown(&path, Some(33), Some(33)).expect("root may")),
        ("is a symbolic link", &|| {
            fs::rename(&path, folder.folder().join("real")).expect("our own folder");
            symlink("real", &path).expect("our own folder");
        }),
    ];
    for (part, spoil) in spoil {
        folder.put(POLICY, "function admission(r) return { group = 'other' } end");
        spoil();
        wait(part, || {
            assert_eq!(server.get("/page.probe").status, 200);
            server.log().contains(part)
        });
        folder.put(POLICY, GOOD);
    }
    assert_eq!(server.number("other", "/counts/admitted"), 0, "the good one has decided all the time");
    assert!(server.log().contains(STAYS), "{}", server.log());
}

/// One that keeps what it should forget begins anew when its memory is full.
#[test]
fn a_policy_that_leaks_begins_anew() {
    let text = "local kept = {}\nfunction admission(r)\nkept[#kept + 1] = string.rep('x', 1 << 20) .. #kept\nreturn { group = 'slow' }\nend\n";
    let Some((server, _folder)) = server(Mpm::Event, TEXT, text) else { return };
    let asked = || server.number("slow", "/counts/admitted");
    wait("it is full", || {
        assert_eq!(server.get("/page.probe").status, 200, "it goes on as configured");
        server.log().contains("not enough memory: it begins anew")
    });
    // More than one interpreter in each process, which is as many as requests one after the other take, can keep.
    let before = asked();
    wait("it decides again", || {
        assert_eq!(server.get("/page.probe").status, 200);
        asked() > before + 40
    });
    let lines = server.log().matches("not enough memory").count();
    assert!(lines <= server.workers().len(), "{}", server.log());
}

/// What a policy can ask of a request and of the server, each asked by a request of its own: `?NAME=VALUE` is in `slow` when that is what it
/// sees.
const SEES: &str = r#"
function admission(r)
  local name, value = (r.args or ''):match('^([%w_]+)=(.*)$')
  local held, limit, waiting = r:load('heavy')
  local sees = { host = r.host, file = r.file, uri = r.uri, handler = r.handler, method = r.method, client = r.client, args = r.args,
                 held = held, limit = limit, waiting = waiting, nobody = r:load('nobody'), used = r.budget.used, budget = r.budget.limit }
  if name and tostring(sees[name]) == value then return { group = 'slow' } end
end
"#;

#[test]
fn it_sees_the_request_the_load_and_the_budget() {
    let text = "AdmissionGroup slow limit=5\nAdmissionGroup other limit=5\nAdmissionGroup heavy limit=1 queue=3 timeout=60s cost=200M\n\
                AdmissionUse other\nAdmissionBudget memory 500M\n<Location /other.probe>\nAdmissionPolicy none\nAdmissionUse heavy\n</Location>\n";
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some((server, _folder)) = server(mpm, text, SEES) else { return };
        let www = server.path("www").display().to_string();
        let sees = |method: &str, path: &str, host: &str| {
            let before = server.number("slow", "/counts/admitted");
            let answer = server.client().request(method, path, host).expect("an answer");
            assert_eq!(answer.status, 200, "{path}");
            server.number("slow", "/counts/admitted") == before + 1
        };
        // One holds 200 MB of 500, one waits for it.
        let gate = server.gate("g");
        let held = server.send("/other.probe?gate=g");
        server.wait_number("heavy", "/held", 1);
        let waits = server.send("/other.probe?id=waits");
        server.wait_number("heavy", "/waiting", 1);
        let file = |name: &str| format!("{www}/{name}");
        let seen = [
            ("/page.probe", "host", "shop.example".to_owned()),
            ("/page.probe", "file", file("page.probe")),
            ("/page.cgi", "file", file("page.cgi")),
            ("/dir/probe/", "file", file("dir/probe/index.probe")),
            ("/page.probe", "uri", "/page.probe".to_owned()),
            ("/page.probe", "handler", "probe".to_owned()),
            ("/page.cgi", "handler", "cgi-script".to_owned()),
            ("/page.probe", "method", "GET".to_owned()),
            ("/page.probe", "client", "127.0.0.1".to_owned()),
            ("/page.probe", "held", "1".to_owned()),
            ("/page.probe", "limit", "1".to_owned()),
            ("/page.probe", "waiting", "1".to_owned()),
            ("/page.probe", "nobody", "nil".to_owned()),
            ("/page.probe", "used", (200_u64 << 20).to_string()),
            ("/page.probe", "budget", (500_u64 << 20).to_string()),
        ];
        for (path, name, value) in seen {
            assert!(
                sees("GET", &format!("{path}?{name}={value}"), "shop.example"),
                "{mpm:?} {path}: {name} is not {value}"
            );
            assert!(
                !sees("GET", &format!("{path}?{name}={value}x"), "shop.example"),
                "{mpm:?} {path}: {name} is anything"
            );
        }
        assert!(sees("POST", "/page.probe?method=POST", "shop.example"), "{}", server.log());
        assert!(sees("GET", "/page.probe?host=other.example", "other.example:80"), "{}", server.log());
        gate.open();
        assert_eq!((held.answer().status, waits.answer().status), (200, 200));
        server.wait_idle();
        assert!(sees("GET", "/page.probe?used=0", "shop.example") && sees("GET", "/page.probe?held=0", "shop.example"));
        assert!(!server.log().contains("AdmissionPolicy"), "{}", server.log());
    }
}

/// One that says as its limit how often it was asked since it was compiled, and which version it is.
fn counting(version: u32) -> String {
    format!("local n = {version}000\nfunction admission(r) n = n + 1 return {{ group = 'slow', limit = n }} end\n")
}

/// A process compiles a policy once, again when its file is another, and not when that is a bad one.
#[test]
fn it_is_compiled_once_and_again_when_it_changes() {
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some((server, folder)) = server(mpm, TOLD, &counting(1)) else { return };
        // One connection is one process. Event closes one whose next request finds no thread that waits for work.
        server.wait_all_begun(mpm);
        let mut client = server.client();
        let mut asked = 0;
        let mut ask = || {
            let before = server.access().iter().filter(|line| !line.ends_with('-')).count();
            assert_eq!(client.get("/page.probe").status, 200);
            assert!(!client.closed, "{mpm:?}: the connection stays");
            asked += 1;
            let lines = || server.access().into_iter().filter(|line| !line.ends_with('-')).collect::<Vec<_>>();
            wait("it is logged", || lines().len() > before);
            let line = lines().pop().expect("a line");
            let (process, limit) = line.split_once(' ').expect("two words");
            (process.to_owned(), limit.parse::<u32>().unwrap_or_else(|_| panic!("{line}")))
        };
        // It is asked about the pages of the server itself, too, while that begins.
        let (process, first) = ask();
        assert!((1001..2000).contains(&first), "{mpm:?}: {first}");
        for n in 1..20 {
            assert_eq!(ask(), (process.clone(), first + n), "{mpm:?}: it was compiled once");
        }
        // A bad file: the one that is there goes on, with all that it has kept.
        let told = || server.log().matches(STAYS).count();
        folder.put(POLICY, BROKEN);
        let mut last = first + 19;
        wait("the mistake is told", || {
            last += 1;
            assert_eq!(ask(), (process.clone(), last), "{mpm:?}: the good one goes on");
            told() == 1
        });
        // A good one again: compiled once.
        folder.put(POLICY, &counting(2));
        wait("the new one decides", || {
            last += 1;
            let (_, now) = ask();
            assert!(now == last || now == 2001, "{mpm:?}: {now}");
            now == 2001
        });
        for n in 2..=20 {
            assert_eq!(ask(), (process.clone(), 2000 + n), "{mpm:?}: it was compiled once more");
        }
        assert_eq!(told(), 1, "{}", server.log());
    }
}
