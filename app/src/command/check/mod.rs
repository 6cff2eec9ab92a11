//! `webdyno check`: a server that runs already, within a minute: what it is, what it takes, what limits it, what to do next.

use super::id;
use super::load::meant::only;
use super::load::operated::Operated;
use super::load::plain::{Plain, plain};
use super::load::secret;
use super::report::{self, Form};
use crate::exit::Exit;
use crate::flags::check::CheckFlags;
use crate::interrupt;
use crate::say::{print, say};
use anyhow::Context;
use experiment::{CheckEvent, CheckOrders, Loaded};
use load::Address;
use model::plan::{ServerSpec, Url};
use model::run::{RunEnd, RunHead};
use std::io::IsTerminal;
use store::Store;

pub(crate) fn run(flags: &CheckFlags) -> anyhow::Result<Exit> {
    let remember = !flags.dry_run && !flags.no_store;
    let said = Operated { named: &flags.i_operate, store: &flags.store, remember };
    let Plain { target, shown, spec } = plain(&flags.url, &flags.way, &headers(flags)?, &said)?;
    if flags.dry_run {
        print(&outline(flags, &shown, &target.address));
        return Ok(Exit::Done);
    }
    let mut store = if flags.no_store { None } else { Some(Store::open(&report::store_path(&flags.store)?)?) };
    let interrupted = interrupt::flag()?;
    let anchor = id::now();
    let exe = std::env::current_exe().context("cannot find this program's own file")?;
    let server = ServerSpec::Url(Url {
        url: shown,
        address: target.address.to_string(),
        ours: load::is_ours(&target.address),
        ..Url::default()
    });
    let head = RunHead {
        id: id::run_id(anchor, id::fresh_seed()),
        plan: model::plan::Plan { name: "check".to_owned(), ..only(spec, server) },
        plan_text: secret::command_line(std::env::args_os()),
        seed: 0,
        anchor,
        host: host::facts(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        end: RunEnd::Unfinished,
        server_cpus: Vec::new(),
        load_cpus: Vec::new(),
        check: None,
    };
    let orders = CheckOrders { head, target: &target, budget_ns: flags.budget, exe: &exe, interrupted: &interrupted };
    let talks = !flags.plain && !flags.json && std::io::stderr().is_terminal();
    let result = experiment::check_running(&orders, store.as_mut(), &mut |event| {
        if talks {
            say(&told(event));
        }
    });
    let Loaded { run, kept } = result?;
    let exit = report::show_check(&run, Form::of(flags.json), &flags.lang);
    // The result is out; that it could not be kept is said after it.
    kept?;
    Ok(if run.head.end == RunEnd::Interrupted { Exit::Interrupted } else { exit })
}

/// What a browser says, and what was typed.
fn headers(flags: &CheckFlags) -> anyhow::Result<Vec<(String, String)>> {
    let field = |text: &String| {
        // What stands there may be a secret.
        let (name, value) = text
            .split_once(':')
            .context("-H takes a header field: a name, a colon and a value, as in -H 'X-Test: 1'")?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    let mut headers = flags.headers.iter().map(field).collect::<anyhow::Result<Vec<_>>>()?;
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept-encoding")) {
        headers.push(("Accept-Encoding".to_owned(), "gzip".to_owned()));
    }
    Ok(headers)
}

/// A line of progress.
fn told(event: &CheckEvent<'_>) -> String {
    match event {
        CheckEvent::Found(running) => match running.root {
            Some(pid) => format!("process {pid} answers"),
            None => "the server's processes are not seen here".to_owned(),
        },
        CheckEvent::Page(page) => {
            format!("status {}, {}", page.status, units::short_duration(page.time_us as f64 * 1e3))
        }
        CheckEvent::Window { cell, connections, load } => {
            let rate = load.goodput();
            format!("{cell:<5} {connections:>4} at once: {}/s", units::si(rate).print(rate))
        }
    }
}

fn outline(flags: &CheckFlags, shown: &str, address: &Address) -> String {
    let mut out = format!("{shown} at {address}\n");
    if let Address::Tcp(address) = address {
        let running = server::look(*address, None);
        let who = match running.root {
            Some(pid) => format!("process {pid}, {} processes", running.processes),
            None => "its processes are not seen here".to_owned(),
        };
        out.push_str(&format!("who answers: {who}\n"));
        if let Some(file) = &running.file {
            out.push_str(&format!("its configuration: {}\n", file.display()));
        }
    }
    out.push_str("5 requests one at a time, then 1, 2, 4 ... at once until more brings nothing, 512 at most\n");
    out.push_str(&format!("within {}\n", units::short_duration(flags.budget as f64)));
    out
}
