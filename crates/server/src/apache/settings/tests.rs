//! Pages as Apache wrote them in, settings and differences out.

use super::*;
use expect_test::{Expect, expect};

const SERVER: &str = r#"<dl><dt><strong>Server Version:</strong> <font size="+1"><tt>Apache/2.4.71 (Debian)</tt></font></dt>
<dt><strong>Timeouts:</strong> <tt>connection: 60 &nbsp;&nbsp; keep-alive: 5</tt></dt><dt><strong>MPM Name:</strong> <tt>prefork</tt></dt>"#;

const PREFORK: &str =
    "localhost\nServerMPM: prefork\nCPULoad: 0.e+79\nBusyWorkers: 1\nIdleWorkers: 3\nScoreboard: ___W\n";
const EVENT: &str = "localhost\nServerMPM: event\nBusyWorkers: 1\nIdleWorkers: 74\nProcesses: 3\nScoreboard: ";

/// What mod_info makes of a configuration.
fn page(lines: &[&str]) -> String {
    let entry = |(i, line): (usize, &&str)| {
        let line = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        format!(
            "<dd><tt>&nbsp;&nbsp;{}:&nbsp;{line}</tt></dd>\n",
            if line.starts_with("&lt;/") { String::new() } else { (i + 1).to_string() }
        )
    };
    let entries: String = lines.iter().enumerate().map(entry).collect();
    format!(
        "<dl><dt><strong>Configuration:</strong>\n<dd><tt><strong>In file: /r/httpd.conf</strong></tt></dd>\n{entries}</dl>"
    )
}

fn check(mpm: Mpm, status: &str, config: &[&str], keep_alive: bool, expected: &Expect) {
    let told = Told::parse(status, SERVER, &page(config), keep_alive).unwrap();
    let processes = told.processes(&told.status, mpm);
    let settings = told.settings(processes);
    let mut shown = format!("{} {:?}\n", settings.server, told.crew(mpm));
    for (name, value) in &settings.values {
        shown += &format!("{name} {value}\n");
    }
    for Difference { asked, effective } in told.differences() {
        shown += &format!("line {}: {} {}, but {effective}\n", asked.line, asked.name, asked.value);
    }
    expected.assert_eq(&shown);
}

#[test]
fn prefork() {
    let config = [
        "StartServers 12",
        "MaxClients 4",
        "SetEnv A 1",
        "SetEnv B \"a & b\"",
        "SetEnv A 2",
        "LogLevel warn",
        "LogLevel info",
        "<Directory />",
        "Timeout 9",
        "</Directory>",
        "KeepAliveTimeout 5",
    ];
    check(
        Mpm::Prefork,
        PREFORK,
        &config,
        true,
        &expect![[r#"
            Apache/2.4.71 (Debian) Crew { asked: 12, started: 4, kept: 4 }
            KeepAlive On
            KeepAliveTimeout 5
            LogLevel info
            MPM prefork
            MaxRequestWorkers 4
            SetEnv B "a & b"; A 2
            StartServers 4
            Timeout 60
        "#]],
    );
}

#[test]
fn what_apache_does_not_follow() {
    let config = ["MaxRequestWorkers 300", "KeepAlive On", "Timeout x", "KeepAliveTimeout 500ms"];
    check(
        Mpm::Prefork,
        PREFORK,
        &config,
        false,
        &expect![[r#"
        Apache/2.4.71 (Debian) Crew { asked: 5, started: 4, kept: 4 }
        KeepAlive Off
        KeepAliveTimeout 500ms
        MPM prefork
        MaxRequestWorkers 4
        StartServers 4
        Timeout 60
        line 1: MaxRequestWorkers 300, but 4
        line 2: KeepAlive On, but Off
        line 3: Timeout x, but 60
    "#]],
    );
}

#[test]
fn event() {
    let status = format!("{EVENT}{}{}\n", "_".repeat(75), ".".repeat(325));
    check(
        Mpm::Event,
        &status,
        &["MaxRequestWorkers 400"],
        true,
        &expect![[r#"
        Apache/2.4.71 (Debian) Crew { asked: 3, started: 3, kept: 3 }
        KeepAlive On
        KeepAliveTimeout 5
        MPM event
        MaxRequestWorkers 400
        StartServers 3
        Timeout 60
    "#]],
    );
}

#[test]
fn another_apache_is_recognised() {
    let told = Told::parse(PREFORK, SERVER, &page(&["KeepAlive On"]), true).unwrap();
    assert!(told.is_of(Path::new("/r/httpd.conf")) && !told.is_of(Path::new("/s/httpd.conf")));
}

#[test]
fn a_page_that_lacks_something_says_what() {
    assert_eq!(Status::parse("localhost\n").unwrap_err(), "/server-status?auto has no Scoreboard");
    assert_eq!(Told::parse(PREFORK, "<html>", "", true).unwrap_err(), "/server-info?server has no version");
}
