//! `webdyno load`: one load against a server that is there already.

pub(crate) mod meant;
pub(crate) mod operated;
pub(crate) mod plain;
mod replay;
pub(crate) mod search;
pub(crate) mod secret;
mod users;
mod way;
mod what;

use super::id;
use super::report::{self, Form, LoadForm};
use crate::exit::Exit;
use crate::flags::load::LoadFlags;
use crate::interrupt;
use crate::say::{count, print};
use crate::screen::Shown;
use anyhow::Context;
use experiment::{ExperimentError, LoadOrders, Loaded};
use meant::Meant;
use model::run::{RunEnd, RunHead};
use remote::Remote;
use store::Store;

/// A name without an address.
#[derive(Debug, thiserror::Error)]
#[error("cannot find the host `{host}`: {why}; check the name, or give its address")]
pub(crate) struct NoSuchHost {
    pub(crate) host: String,
    pub(crate) why: String,
}

pub(crate) fn run(flags: &LoadFlags) -> anyhow::Result<Exit> {
    let seed = flags.seed.unwrap_or_else(id::fresh_seed);
    let meant = meant::meant(flags, seed)?;
    if flags.dry_run {
        print(&outline(&meant, flags));
        return Ok(Exit::Done);
    }
    measure(flags, &meant, seed)
}

fn measure(flags: &LoadFlags, meant: &Meant, seed: u64) -> anyhow::Result<Exit> {
    let mut store = if flags.no_store { None } else { Some(Store::open(&report::store_path(&flags.store)?)?) };
    let interrupted = interrupt::flag()?;
    let anchor = id::now();
    let exe = std::env::current_exe().context("cannot find this program's own file")?;
    let remote = meant
        .plan
        .origin
        .as_ref()
        .map(|origin| Remote::open(origin, &super::ssh(), &exe, &interrupted).map_err(ExperimentError::from))
        .transpose()?;
    let orders = LoadOrders {
        head: RunHead {
            id: id::run_id(anchor, id::fresh_seed()),
            plan: meant.plan.clone(),
            plan_text: secret::command_line(std::env::args_os()),
            seed,
            anchor,
            host: host::facts(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            end: RunEnd::Unfinished,
            server_cpus: Vec::new(),
            load_cpus: flags.cpus.clone(),
            check: None,
        },
        target: &meant.target,
        preflight: flags.preflight.min(flags.requests.unwrap_or(u64::MAX)),
        probe: (!flags.no_probe && remote.is_none()).then_some(flags.probe),
        remote: remote.as_ref(),
        exe: &exe,
        interrupted: &interrupted,
    };
    let mut shown = Shown::of(flags, &meant.plan, &interrupted);
    let result = experiment::load(&orders, store.as_mut(), &mut |event| shown.show(&event));
    shown.finish();
    let Loaded { run, kept } = result?;
    let plain = Form::of(flags.json);
    let exit = if run.head.plan.search.is_some() {
        report::show_search(&run, plain, &flags.lang)
    } else {
        let form = match (flags.csv, flags.openmetrics) {
            (true, _) => LoadForm::Csv,
            (_, true) => LoadForm::OpenMetrics,
            _ => LoadForm::Plain(plain),
        };
        report::show_load(&run, form, &flags.lang)
    };
    // The result is out; that it could not be kept is said after it.
    kept?;
    Ok(if run.head.end == RunEnd::Interrupted { Exit::Interrupted } else { exit })
}

fn outline(meant: &Meant, flags: &LoadFlags) -> String {
    let spec = meant.plan.load(meant.plan.baseline());
    let connections = count(spec.connections.into(), "connection");
    let mut out = format!("{} over {connections} to {}\n", meant.shown, meant.way);
    if let Some(session) = &spec.session {
        out.push_str(&users::outline(session, spec.connections));
    }
    if flags.preflight > 0 {
        out.push_str(&format!("{} one at a time first\n", count(flags.preflight, "request")));
    }
    if let Some(search) = &meant.plan.search {
        out.push_str(&search::outline(search, spec));
        return out;
    }
    if let Some(n) = spec.requests {
        out.push_str(&format!("{}\n", count(n, "request")));
    }
    if let Some(length) = spec.length_ns() {
        out.push_str(&format!("for {}\n", units::short_duration(length as f64)));
    }
    out
}
