//! `webdyno ab`: what ab would do, under its own exit codes.

use crate::exit::Exit;
use crate::flags::ab::{self, AbFlags, Said};
use crate::say::tell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};

pub(crate) fn run(words: &[OsString]) -> Exit {
    match ab::parse(words, &body_of) {
        Err(said) => say(&said),
        Ok(flags) if flags.extras.dry_run => say(&Said { out: plan(&flags), err: flags.complaint, code: 0 }),
        Ok(_) => {
            tell(
                "`ab` reads its options and shows with --dry-run what it would send; the load itself is not joined to it",
            );
            Exit::Usage
        }
    }
}

/// Whoever closed a pipe has seen enough.
fn say(said: &Said) -> Exit {
    let _ = io::stderr().write_all(said.err.as_bytes());
    let _ = io::stdout().write_all(said.out.as_bytes());
    Exit::Code(said.code)
}

/// The file of a body as ab reads it: as long as the kernel says it is. The error is ab's line.
fn body_of(path: &str) -> Result<Vec<u8>, String> {
    let opened = File::open(path).map_err(|error| told("open", Some(path), &error))?;
    let length = opened.metadata().map_err(|error| told("stat", Some(path), &error))?.len();
    let mut body = Vec::new();
    opened.take(length).read_to_end(&mut body).map_err(|error| told("read", None, &error))?;
    Ok(body)
}

fn told(what: &str, path: Option<&str>, error: &io::Error) -> String {
    let words = crate::say::without_numbers(&error.to_string());
    let path = path.map(|path| format!(" ({path})")).unwrap_or_default();
    format!("ab: Could not {what} POST data file{path}: {words}\n")
}

/// What would be sent, and how often.
fn plan(flags: &AbFlags) -> String {
    let target = &flags.target;
    let (host, port) = match &flags.proxy {
        Some((proxy, port)) => (proxy.as_str(), *port),
        None => (target.host.as_str(), i32::from(target.port)),
    };
    let requests = match flags.requests_by_time {
        true => String::new(),
        false => format!(", {} requests", flags.requests),
    };
    let time = flags.seconds.map(|seconds| format!(", {seconds} s")).unwrap_or_default();
    let tls = target.tls.then(|| {
        let suites: Vec<&str> = flags.tls.offered.iter().map(|suite| suite.openssl).collect();
        let name = flags.tls.server_name.as_ref().map(|name| format!(" of {name}")).unwrap_or_default();
        format!("TLS{name}: {}\n", suites.join(", "))
    });
    let body = flags.body.as_ref().map(|body| format!("and a body of {} bytes\n", body.len())).unwrap_or_default();
    format!(
        "Would send to {host}:{port}{requests}{time}, {} at a time:\n{}{}{body}",
        flags.concurrency,
        tls.unwrap_or_default(),
        flags.head().replace("\r\n", "\n"),
    )
}
