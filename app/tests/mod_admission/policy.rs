//! A policy in Lua: which group, at which cost and limit; a mistake in it keeps the last good one.

use crate::server::{Mpm, Php, Server, Told, wait};

const TEXT: &str = "AdmissionGroup slow limit=5\nAdmissionGroup other limit=5\nAdmissionUse other\nAdmissionBudget memory 500M\n\
                    AdmissionPolicy FOLDER/policy.lua\n";
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

fn server(mpm: Mpm) -> Option<Server> {
    has_lua().then(|| Server::told(&Told { mpm, php: Php::None, text: TEXT, files: &[("policy.lua", GOOD)] }))?
}

#[test]
fn it_chooses_group_cost_and_limit() {
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some(server) = server(mpm) else { return };
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

/// A policy sees who is in which group already.
#[test]
fn it_sees_the_load() {
    if !has_lua() {
        return;
    }
    let text = "AdmissionGroup wide limit=5 key=server\nAdmissionGroup spare limit=1 key=server status=429\nAdmissionUse wide\nAdmissionPolicy FOLDER/policy.lua\n";
    let policy = "function admission(r)\n  local held = r:load('wide')\n  if held >= 2 then return { group = 'spare' } end\nend\n";
    let told = Told { mpm: Mpm::Event, php: Php::None, text, files: &[("policy.lua", policy)] };
    let Some(server) = Server::told(&told) else { return };
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
        let Some(server) = server(mpm) else { return };
        assert_eq!(server.get("/page.probe?free").status, 200);
        assert_eq!(server.number("slow", "/counts/admitted"), 0);
        server.put("policy.lua", "function admission(r) return { group = ");
        // Each request asks the policy, and within a second or so sees that its file is another.
        wait("the mistake is told", || {
            assert_eq!(server.get("/page.probe?free").status, 200);
            server.log().contains("policy.lua")
        });
        let before = server.number("slow", "/counts/admitted");
        assert_eq!(server.get("/page.probe").status, 200);
        assert_eq!(server.number("slow", "/counts/admitted"), before + 1, "the good one decides");
        server.put("policy.lua", "function admission(r) return { group = 'other' } end");
        wait("the new one decides", || {
            let before = server.number("other", "/counts/admitted");
            assert_eq!(server.get("/page.probe").status, 200);
            server.number("other", "/counts/admitted") > before
        });
    }
}

/// A policy that fails, or never ends, limits nothing that the configuration does not.
#[test]
fn a_policy_that_fails_changes_nothing() {
    let Some(server) = server(Mpm::Event) else { return };
    let bad =
        ["return { group = 'nobody' }", "error('no')", "while true do end", "return 7", "return { limit = 'many' }"];
    for body in bad {
        server.put("policy.lua", &format!("function admission(r) {body} end"));
        let before = server.log().matches("AdmissionPolicy").count();
        wait(&format!("{body}: it is told"), || {
            assert_eq!(server.get("/page.probe").status, 200, "{body}");
            server.log().matches("AdmissionPolicy").count() > before
        });
    }
    server.wait_idle();
}

/// One that cannot be compiled is refused before the server starts.
#[test]
fn a_broken_policy_is_refused() {
    if !has_lua() {
        return;
    }
    let files = [("policy.lua", "-- the first line\nfunction admission(r) return 1 1 end\n")];
    let Some(said) = Server::refused(Mpm::Event, "AdmissionPolicy FOLDER/policy.lua\n", &files) else { return };
    assert!(!said.starts_with("TAKEN") && said.contains("policy.lua:2:"), "{said}");
}
