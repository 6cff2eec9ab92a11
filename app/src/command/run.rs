//! `webdyno run`: a plan becomes a stored run, and the run a report.

mod outline;

use super::id::{fresh_seed, now, run_id};
use super::load::operated::{self, Operated};
use super::load::plain::{self, Plain};
use super::report;
use crate::exit::Exit;
use crate::flags::RunFlags;
use crate::flags::load::WayFlags;
use crate::interrupt;
use crate::plan_file;
use crate::progress::Progress;
use crate::say::{print, tell};
use anyhow::{Context, anyhow, bail};
use experiment::{Ended, Event, ExperimentError, Orders, Up, World};
use host::{HostError, Reach};
use model::plan::{Options, Plan, RequestSpec, ServerSpec};
use model::run::{Run, RunEnd};
use std::path::Path;
use std::sync::Arc;
use store::Store;

pub(crate) fn run(flags: &RunFlags) -> anyhow::Result<Exit> {
    let orders = match (&flags.resume, &flags.plan) {
        (Some(id), _) => resumed(id, flags)?,
        (None, Some(plan)) => fresh(plan, flags)?,
        (None, None) => bail!("no plan"),
    };
    match &flags.start {
        Some(variant) => start(&orders, variant, flags),
        None if flags.dry_run => dry_run(&orders),
        None => real_run(&orders, flags),
    }
}

/// A run that begins.
fn fresh(plan: &Path, flags: &RunFlags) -> anyhow::Result<Orders> {
    let text = plan_file::read(plan)?;
    let options =
        Options { scale: flags.scale.clone(), quick: flags.quick, budget_ns: flags.budget, read: plan_file::read_body };
    let (mut plan, text) = model::plan::parse(&text, plan, &options)?;
    aim(&mut plan, flags)?;
    let seed = flags.seed.or(plan.seed).unwrap_or_else(fresh_seed);
    let anchor = now();
    Ok(Orders {
        id: run_id(anchor, fresh_seed()),
        plan,
        text,
        seed,
        anchor,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        make_swap: flags.make_swap,
        earlier: vec![],
    })
}

/// Finds out where a server is that is only a URL, and lets loads pass to it if that is this machine or a host that the user operates.
fn aim(plan: &mut Plan, flags: &RunFlags) -> anyhow::Result<()> {
    let ServerSpec::Url(url) = &mut plan.server else { return Ok(()) };
    let place = |key: &str| format!("{}:{}: server.{key}", plan.file.display(), url.line(key));
    if let Some(file) = &url.cacert {
        let at = place("cacert");
        if plan.origin.is_some() {
            bail!("{at}: the file stays on this machine, and [load] from sends from another; leave one of them out");
        }
        load::check_authorities(file).map_err(|error| anyhow!(error.reason())).context(at)?;
    }
    let place = place("url");
    let way = WayFlags { insecure: url.insecure, cacert: url.cacert.clone(), ..WayFlags::default() };
    let Plain { target, shown, spec } =
        plain::plain(&url.url, &way, &[], &operated(flags)).with_context(|| place.clone())?;
    if plan.origin.is_some() {
        plain::from_there(&target).context(place)?;
    }
    let loads = plan.loads.iter_mut().chain(&mut plan.beside);
    loads.for_each(|load| load.tls.clone_from(&spec.tls));
    (url.url, url.address, url.ours) = (shown, target.address.to_string(), load::is_ours(&target.address));
    Ok(())
}

/// What the user says about whom and what they operate.
fn operated(flags: &RunFlags) -> Operated<'_> {
    Operated { named: &flags.i_operate, store: &flags.store, remember: !flags.dry_run }
}

/// A run that goes on where it ended.
fn resumed(id: &str, flags: &RunFlags) -> anyhow::Result<Orders> {
    let store = Store::open_existing(&report::store_path(&flags.store)?)?;
    report::exactly_one(&store, id)?;
    let run = store.load(id)?;
    if !run.head.plan.is_written() {
        bail!("{} is a load, not a run of a plan: load again", run.head.id);
    }
    let loads = run.head.plan.loads.iter().chain(&run.head.plan.beside);
    if !loads.flat_map(|load| &load.mix).all(RequestSpec::is_whole) {
        bail!(
            "run {} sends what no store keeps (a cookie, a password, a token, a long body), so it cannot go on: run its plan anew",
            run.head.id
        );
    }
    if !experiment::is_unfinished(&run) {
        bail!("run {} has all its blocks, or is decided: nothing is left to do", run.head.id);
    }
    let Run { head, trials } = run;
    let mut plan = head.plan;
    if let Some(url) = plan.server.url() {
        // It goes on with the server that it began with, wherever its name leads now.
        operated::allowed(&operated(flags), &plain::others(&url.url, &url.address)?)?;
    }
    plan.budget_ns = flags.budget.or(plan.budget_ns);
    Ok(Orders {
        id: head.id,
        plan,
        text: head.plan_text,
        seed: head.seed,
        anchor: head.anchor,
        version: head.version,
        make_swap: flags.make_swap,
        earlier: trials,
    })
}

fn real_run(orders: &Orders, flags: &RunFlags) -> anyhow::Result<Exit> {
    consented(&orders.plan, flags)?;
    confinable(&orders.plan, flags)?;
    let mut store = Store::open(&report::store_path(&flags.store)?)?;
    let ended = in_world(flags.plain, |world, on_event| experiment::run(orders, world, &mut store, on_event))?;
    let end = settle(ended)?;
    let exit = shown(&store, &orders.id, flags);
    match end {
        RunEnd::Interrupted => Ok(complain(exit, Exit::Interrupted)),
        RunEnd::Failed(why) => {
            tell(why);
            Ok(complain(exit, Exit::Server))
        }
        RunEnd::Complete | RunEnd::Unfinished => exit,
    }
}

/// Shows what the run came to. Interrupted before anything was measured, it is not in the store and there is nothing to show.
fn shown(store: &Store, id: &str, flags: &RunFlags) -> anyhow::Result<Exit> {
    if !store.has(id)? {
        return Ok(Exit::Inconclusive);
    }
    report::show(store, id, &flags.store, &flags.show)
}

/// Keeps the server of a variant for whoever wants to look at it.
fn start(orders: &Orders, variant: &str, flags: &RunFlags) -> anyhow::Result<Exit> {
    let plan = &orders.plan;
    if let Some(url) = plan.server.url() {
        bail!("--start: the server of this plan runs already, at {}; webdyno does not start it", url.url);
    }
    let Some(cell) = plan.cells.iter().find(|cell| cell.variant == variant) else {
        let names: Vec<String> = plan.variants.iter().map(|known| format!("`{}`", known.name)).collect();
        bail!("--start: the plan has no variant `{variant}` in a cell; its variants are {}", names.join(", "));
    };
    consented(plan, flags)?;
    confinable(plan, flags)?;
    let ended = in_world(flags.plain, |world, on_event| {
        experiment::up(orders, &cell.name, world, on_event, &mut |up| print(&whereabouts(up)))
    })?;
    Ok(match settle(ended)? {
        RunEnd::Interrupted => Exit::Interrupted,
        _ => Exit::Done,
    })
}

/// What there is to know of a server that is up; the first line is for programs.
fn whereabouts(up: &Up<'_>) -> String {
    let scheme = if up.tls { "https" } else { "http" };
    let mut out = format!("listening on {scheme}://{}\n", up.address);
    if let Some(host) = up.host {
        out += &format!("ask for the host {host}\n");
    }
    if let Some(pid) = up.pid {
        let group = up.group.as_ref().map(|group| format!(", group {}", group.display())).unwrap_or_default();
        out += &format!("process {pid}{group}\n");
    }
    out += &format!("folder {}\n", up.folder.display());
    up.notes.iter().for_each(|note| out.extend([note.as_str(), "\n"]));
    out + "Ctrl-C ends it\n"
}

/// What the machine's own server goes through is its operator's to decide.
fn consented(plan: &Plan, flags: &RunFlags) -> anyhow::Result<()> {
    if plan.in_place().is_none() {
        return Ok(());
    }
    let Some(main) = server::main_file(&plan.server)? else { return Ok(()) };
    let main = main.display().to_string();
    operated::in_place(&operated(flags), &main)
}

/// An ordinary user's webdyno begins anew in a scope of systemd's, for only there can it confine a server.
fn confinable(plan: &Plan, flags: &RunFlags) -> anyhow::Result<()> {
    let Some(confine) = &plan.confine else { return Ok(()) };
    let Reach::Scope(scope) = host::reach()? else { return Ok(()) };
    scope.hierarchies().allow(confine)?;
    if let Some(pipe) = flags.plan.as_ref().filter(|plan| !plan.is_file()) {
        bail!(
            "{} can be read only once, and a plan with [confine] is read again as an ordinary user: put it into a file",
            pipe.display()
        );
    }
    let exe = std::env::current_exe().context("cannot find this program's own file")?;
    Err(scope.enter(&exe, std::env::args_os().skip(1)).into())
}

/// How the run itself ended decides; trouble with showing it is only said.
fn complain(shown: anyhow::Result<Exit>, exit: Exit) -> Exit {
    if let Err(error) = shown {
        tell(format!("{error:#}"));
    }
    exit
}

/// Runs something in this process's world: its signals, its journals, its progress on standard error.
fn in_world<T>(
    plain: bool,
    inside: impl FnOnce(&World<'_>, &mut dyn FnMut(Event<'_>)) -> Ended<T>,
) -> anyhow::Result<Ended<T>> {
    let exe = std::env::current_exe().context("cannot find this program's own file")?;
    let interrupted = interrupt::flag()?;
    let state_dir = super::state_dir()?;
    clean_up(&state_dir)?;
    let mut progress = Progress::new(plain, Arc::clone(&interrupted));
    let ssh = super::ssh();
    let world = World { exe: &exe, ssh: &ssh, state_dir: &state_dir, interrupted: &interrupted };
    let ended = inside(&world, &mut |event| progress.show(&event));
    progress.finish();
    Ok(ended)
}

/// Whatever an earlier run left behind would be in the way of this one. What cannot be put back does not stop it.
fn clean_up(state_dir: &Path) -> anyhow::Result<()> {
    match host::restore(state_dir) {
        Ok(put_back) => put_back.iter().for_each(tell),
        Err(HostError::NotPutBack { put_back, failed }) => {
            put_back.iter().for_each(tell);
            tell(HostError::NotPutBack { put_back: vec![], failed });
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// The result, with a word about what could not be put back; without a result that is the error.
fn settle<T>(ended: Ended<T>) -> Result<T, ExperimentError> {
    if let Some(left) = &ended.left {
        tell(left);
    }
    ended.result
}

fn dry_run(orders: &Orders) -> anyhow::Result<Exit> {
    // First of all: whatever fails later, this must be known, and a plan can be checked without it.
    if let Some(reason) = experiment::refused_later(orders)? {
        tell(format!("the run itself will be refused: {reason}; this dry run goes on"));
    }
    settle(in_world(true, |world, on_event| experiment::check(orders, world, on_event))?)?;
    print(&outline::outline(orders));
    Ok(Exit::Done)
}
