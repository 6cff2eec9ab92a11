//! Which directives of a plan would leave the instance's folder or loopback, and meet the Apache that is installed here.
//!
//! It keeps a mistake from doing harm: a `PidFile` copied from the machine's configuration would be overwritten and then deleted. It is no
//! wall against whoever writes the plan, who could run any program anyway; what an `Include` brings in is not looked at.

use model::plan::Directive;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

/// What every instance has of its own.
const OURS: [&str; 4] = ["ServerRoot", "DefaultRuntimeDir", "PidFile", "ScoreBoardFile"];
/// Directives whose first argument is a file to write to, or `|` and a program.
const FILES: [&str; 7] =
    ["CustomLog", "ErrorLog", "ForensicLog", "GlobalLog", "ScriptLog", "ScriptSock", "TransferLog"];
/// Places for logs that are no files.
const STREAMS: [&str; 3] = ["/dev/null", "/dev/stdout", "/dev/stderr"];

/// The first of the directives, in the order of the configuration, that an instance in `dir` must not have, and why;
/// in place that is the machine's own server, and `dir` the run's folder.
pub(crate) fn refused<'a>(planned: &'a [Directive], dir: &Path, in_place: bool) -> Option<(&'a Directive, String)> {
    let mut rest = planned.iter();
    while let Some(first) = rest.next() {
        // A line that ends with a backslash goes on in the next one.
        let mut text = first.text.clone();
        while text.ends_with('\\') {
            text.pop();
            text.push_str(rest.next().map_or("", |next| &next.text));
        }
        if let Some(why) = objection(&text, dir, in_place) {
            return Some((first, why));
        }
    }
    None
}

/// The first directive that names the run's folder where the server of process `pid` has another folder or none of that name, and why it
/// must not: systemd gives many services a /tmp of their own. Apache's test of the configuration sees ours.
pub(crate) fn unseen<'a>(planned: &'a [Directive], run: &Path, pid: u32) -> Option<(&'a Directive, String)> {
    let name = run.to_str()?;
    let directive = planned.iter().find(|directive| directive.text.contains(name))?;
    let theirs = format!("/proc/{pid}/root{name}");
    // Where it cannot be looked at, Apache itself says what it misses.
    let same = |ours: Metadata| match std::fs::metadata(&theirs) {
        Ok(theirs) => (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()),
        Err(error) => error.kind() != ErrorKind::NotFound,
    };
    if std::fs::metadata(run).is_ok_and(same) {
        return None;
    }
    let folder = run.parent().unwrap_or(run).display();
    let why = format!(
        "names a file in {name}, and the server does not see it: its {folder} is another one (PrivateTmp of its service?); start webdyno with \
         TMPDIR=/var/lib, or leave the line out"
    );
    Some((directive, why))
}

fn objection(text: &str, dir: &Path, in_place: bool) -> Option<String> {
    let text = text.trim_start();
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let is = |known: &str| known.eq_ignore_ascii_case(name);
    let value = first_word(rest.trim_start());
    // A relative path would begin in the machine's own folder.
    let leaves =
        |value: &str| !stays_in(dir, value) || in_place && Path::new(value).is_relative() && !value.starts_with('|');
    if in_place && OURS.iter().any(|known| is(known)) {
        Some("is the machine's own, by which it is controlled; remove the line".to_owned())
    } else if in_place && FILES.iter().any(|known| is(known)) && leaves(value) {
        Some("would leave a file behind; write to ${run}/other.log, which goes at the end".to_owned())
    } else if OURS.iter().any(|known| is(known)) {
        Some("every instance has its own, so that none meets the Apache installed here; remove the line".to_owned())
    } else if FILES.iter().any(|known| is(known)) && !stays_in(dir, value) {
        Some("would write outside the instance's folder; name a file in it, such as logs/other.log".to_owned())
    } else if is("Listen") && !is_loopback(value) {
        Some("others could reach it; listen on 127.0.0.1:PORT, or remove the line: a free port is found".to_owned())
    } else {
        None
    }
}

/// The first argument, without its quotes.
fn first_word(arguments: &str) -> &str {
    match arguments.chars().next() {
        Some(quote @ ('"' | '\'')) => arguments[1..].split(quote).next(),
        _ => arguments.split_whitespace().next(),
    }
    .unwrap_or_default()
}

/// Whether a log goes to a program, nowhere, or to a file in `dir`; a relative path begins there.
fn stays_in(dir: &Path, value: &str) -> bool {
    let path = Path::new(value);
    let goes_up = path.components().any(|part| part == Component::ParentDir);
    // What Apache's own variables stand for is not known here.
    let relative = path.is_relative() && !value.contains("${");
    value.starts_with('|') || STREAMS.contains(&value) || !goes_up && (relative || path.starts_with(dir))
}

/// Whether an address such as `127.0.0.1:80`, `[::1]:80` or `80` is this machine's alone.
fn is_loopback(value: &str) -> bool {
    let host = value.rsplit_once(':').map_or(value, |(host, _)| host).trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of the line, from 0, that an instance in `/run/i` must not have.
    fn check(lines: &[&str], expected: Option<usize>) {
        let directive = |(line, text): (usize, &&str)| Directive { text: (*text).to_owned(), line };
        let planned: Vec<Directive> = lines.iter().enumerate().map(directive).collect();
        let found = refused(&planned, Path::new("/run/i"), false);
        assert_eq!(found.map(|(directive, _)| directive.line), expected, "{lines:?}");
    }

    #[test]
    fn what_every_instance_has_is_refused() {
        check(&["KeepAlive On", "  pidfile logs/pid"], Some(1));
        check(&["ServerRoot /etc/apache2"], Some(0));
        check(&["DefaultRuntimeDir /run/apache2"], Some(0));
        check(&["ScoreBoardFile /run/apache2/board"], Some(0));
        check(&["ServerName x", "# PidFile x", "PidFileX y", "SetEnv PidFile x", "User nobody"], None);
    }

    #[test]
    fn in_place_nothing_is_left_behind() {
        let check = |text: &str, expected: bool| {
            let planned = [Directive { text: text.to_owned(), line: 1 }];
            assert_eq!(refused(&planned, Path::new("/run/i"), true).is_some(), expected, "{text}");
        };
        check("PidFile x", true);
        check("CustomLog logs/x common", true);
        check("CustomLog /var/log/apache2/x common", true);
        check("CustomLog /run/i/x common", false);
        check("CustomLog \"|/bin/cat\" common", false);
        check("KeepAlive Off", false);
    }

    #[test]
    fn logs_stay_in_the_folder() {
        check(&["ErrorLog /var/log/apache2/error.log"], Some(0));
        check(&["<IfModule log_config_module>", "CustomLog \"/var/log/a b\" combined"], Some(1));
        check(&["TransferLog '/x'"], Some(0));
        check(&["GlobalLog ../x common"], Some(0));
        check(&["CustomLog /run/i/../x common"], Some(0));
        check(&["CustomLog /run/ii/x common"], Some(0));
        check(&["ErrorLog ${APACHE_LOG_DIR}/error.log"], Some(0));
        check(&["ScriptSock /run/apache2/cgisock"], Some(0));
        check(&["ErrorLog logs/e", "CustomLog /run/i/a common", "CustomLog \"|/bin/cat /x\" common"], None);
        check(&["CustomLog |/bin/cat common", "CustomLog /dev/null common", "ErrorLog syslog:local1"], None);
    }

    #[test]
    fn the_server_sees_the_folder() {
        let run = tempfile::tempdir().unwrap();
        let line = |text: String| [Directive { text, line: 1 }];
        let log = line(format!("CustomLog {}/log common", run.path().display()));
        let own = std::process::id();
        assert!(
            unseen(&log, run.path(), own).is_none()
                && unseen(&line("KeepAlive Off".into()), Path::new("/gone"), own).is_none()
        );
        let gone = line("CustomLog /gone/run/log common".into());
        assert!(
            unseen(&gone, Path::new("/gone/run"), own).is_some_and(|(_, why)| why.contains("its /gone is another one"))
        );
    }

    #[test]
    fn nobody_outside_can_connect() {
        for outside in ["80", "*:80", "0.0.0.0:80", "192.0.2.1:80", "[::]:80", "${ADDRESS}:80", "example.org:80", ""] {
            check(&[&format!("Listen {outside}")], Some(0));
        }
        for inside in ["127.0.0.1:80", "127.1.2.3:80 https", "[::1]:80", "localhost:80"] {
            check(&[&format!("Listen {inside}")], None);
        }
    }

    #[test]
    fn a_line_may_go_on_in_the_next() {
        check(&["KeepAlive On", "Pid\\", "File x"], Some(1));
        check(&["ErrorLog \\", "  /var/log/x"], Some(0));
        check(&["SetEnv A \\", "PidFile", "Listen 80"], Some(2));
        check(&["SetEnv A \\"], None);
        check(&["PidFile x \\"], Some(0));
    }
}
