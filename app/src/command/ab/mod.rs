//! `webdyno ab`: what ab would do, under its own exit codes.
//!
//! ab's options become a load of the engine ([`meant`]), each of its requests is counted as ab counts ([`seen`], [`kept`]), and at
//! the end ab's report and files are drawn from that ([`told`]).

mod kept;
mod meant;
mod seen;
mod told;

use super::id;
use super::report::store_path;
use crate::exit::Exit;
use crate::flags::ab::{self, AbFlags, Said};
use crate::interrupt;
use crate::say::{print, say_part, tell, with_causes};
use anyhow::Context;
use experiment::LoadOrders;
use jiff::Timestamp;
use kept::Keeper;
use load::{Target, monotonic_ns};
use model::SECOND;
use model::run::{RunEnd, RunHead};
use report::ab::trouble::Ending;
use report::ab::{AbCounts, progress};
use seen::{Seen, Watch};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use store::Store;
use told::Measured;

pub(crate) fn run(words: &[OsString]) -> Exit {
    match ab::parse(words, &body_of) {
        Err(said) => say(&said),
        Ok(flags) if flags.extras.dry_run => say(&Said { out: plan(&flags), err: flags.complaint, code: 0 }),
        Ok(flags) => measure(&flags).unwrap_or_else(|error| {
            tell(with_causes(&error));
            Exit::Code(1)
        }),
    }
}

fn measure(flags: &AbFlags) -> anyhow::Result<Exit> {
    say_part(&flags.complaint);
    // What cannot be written at the end is found before the beginning.
    let mut files = match told::Files::open(&flags.output) {
        Ok(files) => files,
        Err(said) => return Ok(say(&said)),
    };
    if !flags.extras.json {
        print(&flags.opening());
    }
    let target = match meant::target(flags) {
        Ok(target) => target,
        Err(said) => return Ok(say(&said)),
    };
    meant::allowed(flags, &target)?;
    if flags.output.verbosity >= 2 {
        verbose(flags.extras.json, &progress::request_header(flags.method.name(), &flags.head()));
    }
    let measured = load(flags, &target)?;
    let exit = told::tell(flags, &measured, &mut files)?;
    // The report waits for nobody, be it another webdyno that has the store.
    if let Some(Err(error)) = store(flags).map(|mut store| experiment::keep(&mut store, &measured.run)) {
        tell(format!("nothing is kept: {error}"));
    }
    Ok(exit)
}

/// What `-v` tells; beside JSON it would be in the way.
fn verbose(json: bool, text: &str) {
    if json { say_part(text) } else { print(text) }
}

/// Sends what is to be sent.
fn load(flags: &AbFlags, target: &Target) -> anyhow::Result<Measured> {
    let interrupted = interrupt::flag_as_ab()?;
    let (anchor, seed) = (id::now(), id::fresh_seed());
    let keeper = Keeper::start().context("cannot start a thread")?;
    let watch = Watch {
        origin_ns: monotonic_ns(),
        any_length: flags.output.any_length,
        keep_alive: flags.keep_alive,
        has_body: flags.body.is_some(),
        go_on: flags.go_on,
        verbosity: flags.output.verbosity,
        json: flags.extras.json,
        is_open: flags.extras.rate.is_some(),
        beat: progress::heartbeat(u64::from(flags.requests), flags.output.quiet),
        done: AtomicU64::new(0),
        answered: AtomicBool::new(false),
        last_answer_ns: AtomicU64::new(0),
        failures_in_a_row: AtomicU32::new(0),
        document: OnceLock::new(),
        fatal: OnceLock::new(),
    };
    let exe = std::env::current_exe().context("cannot find this program's own file")?;
    let orders = LoadOrders {
        head: RunHead {
            id: id::run_id(anchor, seed),
            plan: meant::plan(flags, target, seed),
            plan_text: flags.shown.clone(),
            seed,
            anchor,
            host: host::facts(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            end: RunEnd::Unfinished,
            server_cpus: Vec::new(),
            load_cpus: Vec::new(),
            check: None,
        },
        target,
        preflight: 0,
        probe: None,
        remote: None,
        exe: &exe,
        interrupted: &interrupted,
    };
    let began = Timestamp::now();
    let witness = || Seen::new(&watch, keeper.hatch());
    let (loaded, witnesses) = experiment::load_witnessed(&orders, None, &witness, &mut |_| {})?;
    let mut counts = watch.nothing();
    witnesses.into_iter().for_each(|seen| add(&mut counts, &seen.finish()));
    Ok(Measured { run: loaded.run, counts, records: keeper.finish(), watch, began })
}

fn say(said: &Said) -> Exit {
    say_part(&said.err);
    print(&said.out);
    Exit::Code(said.code)
}

fn refusal(Ending { out, err, code }: Ending) -> Said {
    Said { out, err, code }
}

/// Where the load is kept. A script that ab ran for shall run where there is none.
fn store(flags: &AbFlags) -> Option<Store> {
    if flags.extras.no_store {
        return None;
    }
    let opened = store_path(&flags.extras.store).and_then(|path| Ok(Store::open(&path)?));
    opened.inspect_err(|error| tell(format!("nothing is kept: {}", with_causes(error)))).ok()
}

/// Adds one worker's counters.
fn add(sum: &mut AbCounts, part: &AbCounts) {
    sum.complete += part.complete;
    sum.connect += part.connect;
    sum.receive += part.receive;
    sum.length += part.length;
    sum.exceptions += part.exceptions;
    sum.failed = sum.connect + sum.receive + sum.length + sum.exceptions;
    sum.non_2xx += part.non_2xx;
    sum.received_bytes += part.received_bytes;
    sum.body_bytes += part.body_bytes;
    let both = |sum: Option<u64>, part: Option<u64>| sum.zip(part).map(|(sum, part)| sum + part);
    sum.kept_alive = both(sum.kept_alive, part.kept_alive);
    sum.sent_bytes = both(sum.sent_bytes, part.sent_bytes);
}

/// The file of a body as ab reads it: as long as the kernel says it is. The error is ab's line.
fn body_of(path: &str) -> Result<Vec<u8>, String> {
    let opened = File::open(path).map_err(|error| unreadable("open", Some(path), &error))?;
    let length = opened.metadata().map_err(|error| unreadable("stat", Some(path), &error))?.len();
    let mut body = Vec::new();
    opened.take(length).read_to_end(&mut body).map_err(|error| unreadable("read", None, &error))?;
    Ok(body)
}

fn unreadable(what: &str, path: Option<&str>, error: &io::Error) -> String {
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
    let spec = meant::spec(flags, "");
    let requests = spec.requests.map(|requests| format!(", {requests} requests")).unwrap_or_default();
    let time = spec.duration_ns.map(|length| format!(", {} s", length / SECOND)).unwrap_or_default();
    let rate = flags.extras.rate.map(|rate| format!(", {rate} a second")).unwrap_or_default();
    let file = |option, file: &Option<String>| {
        file.as_ref().map(|file| format!("and then to write {file} ({option})\n")).unwrap_or_default()
    };
    let files = file("-e", &flags.output.csv) + &file("-g", &flags.output.gnuplot);
    let tls = target.tls.then(|| {
        let suites: Vec<&str> = flags.tls.offered.iter().map(|suite| suite.openssl).collect();
        let name = flags.tls.server_name.as_ref().map(|name| format!(" of {name}")).unwrap_or_default();
        format!("TLS{name}: {}\n", suites.join(", "))
    });
    let body = flags.body.as_ref().map(|body| format!("and a body of {} bytes\n", body.len())).unwrap_or_default();
    format!(
        "Would send to {host}:{port}{requests}{time}{rate}, {} at a time:\n{}{}{body}{files}",
        flags.concurrency,
        tls.unwrap_or_default(),
        flags.head().replace("\r\n", "\n"),
    )
}
