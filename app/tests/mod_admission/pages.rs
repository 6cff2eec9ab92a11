//! What the module's pages say: their examples and rows are what Apache takes, and those that stand for other limiters do what those do.

use crate::server::{Mpm, Server, wait};
use std::fs;
use std::path::Path;

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/admission").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The examples of a page that are about the module.
fn examples(page: &str) -> Vec<&str> {
    let blocks = page.split("\n```apache\n").skip(1).filter_map(|block| block.split_once("\n```"));
    blocks.map(|(block, _)| block).filter(|block| block.contains("Admission")).collect()
}

/// The one example that says this.
fn example<'a>(page: &'a str, says: &str) -> &'a str {
    let found: Vec<&str> = examples(page).into_iter().filter(|block| block.contains(says)).collect();
    let [one] = found[..] else { panic!("{} examples say {says}", found.len()) };
    one
}

/// What stands in a line as code.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// A group's settings, as rows have them without its name.
fn are_settings(span: &str) -> bool {
    let key = span.trim_start_matches('"').split_once('=');
    key.is_some_and(|(key, value)| {
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase()) && !value.trim().is_empty()
    })
}

/// Names that are used and not defined: an example need not repeat what stands above it.
fn defined_elsewhere(text: &str) -> String {
    let names = |word: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.trim().strip_prefix(word));
        lines
            .flat_map(|line| line.split(' ').take(if word.contains("Use") { 9 } else { 1 }))
            .map(str::to_owned)
            .collect()
    };
    let known = names("AdmissionGroup ");
    let mut used = names("AdmissionUse ");
    used.extend(names("AdmissionLimit "));
    used.retain(|name| name != "none" && !known.contains(name));
    used.sort();
    used.dedup();
    used.iter().map(|name| format!("AdmissionGroup {name} limit=50 cost=1M\n")).collect()
}

#[test]
fn examples_are_taken() {
    let authority = "LoadModule authz_host_module /usr/lib/apache2/modules/mod_authz_host.so\n";
    let mut tried = 0;
    for name in ["README.md", "directives.md", "compared.md", "status.md"] {
        let page = page(name);
        // A policy has to be there: it is tried elsewhere.
        for block in examples(&page).into_iter().filter(|block| !block.contains("AdmissionPolicy")) {
            let text = format!("{authority}{}{block}\n", defined_elsewhere(block));
            let Some(said) = Server::refused(Mpm::Event, &text, &[]) else { return };
            assert!(said.starts_with("TAKEN"), "{name}: {block}\n{said}");
            tried += 1;
        }
    }
    assert!(tried > 12, "{tried}");
}

#[test]
fn rows_that_stand_for_other_limiters_are_taken() {
    // A name that stands for any.
    let page = page("compared.md").replace("%{NAME}", "%{HTTP_HOST}");
    let mut text = String::new();
    let rows = page.lines().filter(|line| line.starts_with('|'));
    for (n, span) in rows.flat_map(spans).filter(|span| !span.contains("...")).enumerate() {
        if let Some(group) = span.strip_prefix("AdmissionGroup ") {
            text += &format!("AdmissionGroup r{n}-{group}\n");
        } else if are_settings(span) {
            text += &format!("AdmissionGroup s{n} {span}\n");
        } else if ["AdmissionEngine ", "AdmissionLog "].iter().any(|word| span.starts_with(word)) {
            text += &format!("{span}\n");
        } else if span.starts_with("Admission") && span.contains(' ') {
            text += &format!("<Location /{n}>\n{span}\n</Location>\n");
        }
    }
    assert!(text.lines().count() > 20, "{text}");
    let text = defined_elsewhere(&text) + &text;
    let Some(said) = Server::refused(Mpm::Event, &text, &[]) else { return };
    assert!(said.starts_with("TAKEN"), "{text}\n{said}");
}

/// `QS_SrvSerialize`: one at a time in the whole server, whatever their files are; the others wait, and who is not meant does not.
#[test]
fn one_at_a_time_as_mod_qos_does() {
    let text = example(&page("compared.md"), "QS_SrvSerialize").replace("^/export", "^/(page|other)");
    let Some(server) = Server::start(Mpm::Event, &format!("{text}\n")) else { return };
    let gate = server.gate("g");
    let first = server.send("/page.probe?id=first&gate=g");
    server.wait_started(1);
    let second = server.send("/other.cgi?id=second&gate=g");
    server.wait_number("serial", "/waiting", 1);
    assert_eq!(server.get("/dir/cgi/").status, 200);
    assert_eq!(server.started(), 2, "the second waits");
    gate.open();
    assert_eq!((first.answer().status, second.answer().status), (200, 200));
    server.wait_idle();
    assert_eq!([server.number("serial", "/counts/admitted"), server.number("serial", "/counts/queued")], [1, 1]);
}

/// `limit_conn` with `limit_conn_dry_run on`, of files, too.
#[test]
fn a_dry_run_as_nginx_has_it() {
    let text = example(&page("compared.md"), "perserver").replace("limit=4", "limit=1");
    let Some(server) = Server::start(Mpm::Event, &format!("{text}\n")) else { return };
    server.wait_idle(); // its first answer may have come before its permit was given back
    let before = server.number("perserver", "/counts/would_reject");
    let gate = server.gate("g");
    let held = server.send("/page.probe?gate=g");
    server.wait_number("perserver", "/held", 1);
    assert_eq!(server.get("/index.html").status, 200);
    wait("it is counted", || server.number("perserver", "/counts/would_reject") == before + 1);
    let line = "200 /index.html perserver would-reject";
    wait("it is logged", || server.access().iter().any(|it| it == line));
    gate.open();
    assert_eq!(held.answer().status, 200);
    server.wait_idle();
}
