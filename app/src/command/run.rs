//! `webdyno run`: a plan becomes a stored run, and the run a report.

use super::load::operated::{self, Operated};
use super::load::plain::{self, Plain};
use super::report;
use crate::exit::Exit;
use crate::flags::RunFlags;
use crate::flags::load::WayFlags;
use crate::interrupt;
use crate::plan_file;
use crate::progress::Progress;
use crate::say::{count, print, tell};
use anyhow::{Context, anyhow, bail};
use experiment::{Ended, Event, ExperimentError, Orders, Up, World};
use host::{HostError, Reach};
use model::plan::{
    Changes, Confinement, Edit, FileChange, LoadSpec, Options, PageCache, Plan, RequestSpec, ServerSpec, Variant,
    Warmup,
};
use model::run::{Anchor, Run, RunEnd};
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
    if let Some(reserved) = experiment::reserved_for_root(orders)? {
        tell(format!("the run itself will be refused: {reserved}; this dry run goes on"));
    }
    settle(in_world(true, |world, on_event| experiment::check(orders, world, on_event))?)?;
    print(&outline(orders));
    Ok(Exit::Done)
}

/// What `--dry-run` prints: everything that would be sent and changed.
fn outline(orders: &Orders) -> String {
    let plan = &orders.plan;
    let outline = experiment::outline(plan, orders.seed);
    let mut out = String::new();
    let mut line = |text: String| out.extend([text.as_str(), "\n"]);
    let about = if plan.about.is_empty() { String::new() } else { format!(": {}", plan.about) };
    line(format!("{}{about}", plan.name));
    let (trials, blocks) = (count(outline.slots.len() as u64, "trial"), count(plan.blocks.into(), "block"));
    line(format!("{trials} in {blocks}, seed {}", orders.seed));
    if outline.requests > 0 {
        line(count(outline.requests, "measured request"));
    }
    if outline.window_ns > 0 {
        line(format!("at most {} of measured time", units::short_duration(outline.window_ns as f64)));
    }
    match outline.warmup {
        Warmup::None => {}
        Warmup::Requests(n) => line(format!("each trial warmed up with {}", count(n, "request"))),
        Warmup::Duration(ns) => line(format!("each trial warmed up for {}", units::short_duration(ns as f64))),
    }
    if let Some(confine) = &plan.confine {
        line(format!("the server confined to {}", limits(confine)));
    }
    if let Some(bytes) = orders.make_swap {
        line(format!("a temporary swap file of {}", units::short_bytes(bytes)));
    }
    before_trials(plan, &mut line);
    let main = server::main_file(&plan.server).ok().flatten();
    let main = main.map_or_else(|| "the machine".to_owned(), |main| main.display().to_string());
    if plan.derived().is_some() {
        line(format!("a private copy of the server of {main}: other ports on loopback, logs and caches of its own"));
        server::left_out(plan).unwrap_or_default().into_iter().for_each(|note| line(format!("    {note}")));
    }
    if plan.in_place().is_some() {
        let how = match plan.server {
            ServerSpec::Nginx(_) => "reads changed files, which are given back at once,",
            _ => "gets a drop-in, restarts",
        };
        line(format!(
            "in place: the running server of {main} {how} for every trial, and has everything back at the end"
        ));
    }
    if let Some(url) = plan.server.url() {
        line(format!("to the server at {} ({}), of which nothing is started, changed or ended", url.url, url.address));
    }
    for step in &plan.build {
        line(format!("builds: {}", step.command.join(" ")));
    }
    cells(plan, &mut line);
    for load in &plan.beside {
        for request in &load.mix {
            line(format!("beside every cell, {}: {}", load.name, asked(request, load)));
        }
    }
    questions(plan, &mut line);
    for block in outline.slots.chunk_by(|a, b| a.block == b.block) {
        let cells: Vec<_> = block.iter().map(|slot| slot.cell.as_str()).collect();
        line(format!("block {}: {}", block[0].block + 1, cells.join(" | ")));
    }
    out
}

/// What is done about memory before trials and windows.
fn before_trials(plan: &Plan, line: &mut impl FnMut(String)) {
    if plan.memory.reset_swap {
        line("before each trial the machine's swap is taken out of use, and into use again".to_owned());
    }
    let is_for_all = plan.variants.iter().all(|variant| variant.page_cache.is_none());
    let when = if is_for_all { "before each window" } else { "before each window, unless its cell says otherwise," };
    before_windows(plan, when, plan.memory.page_cache, &plan.server).into_iter().for_each(line);
}

/// What is done about files before the windows that `when` names.
fn before_windows(plan: &Plan, when: &str, page_cache: PageCache, server: &ServerSpec) -> Option<String> {
    let files = || {
        let files = plan.memory.files_of(server);
        files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
    };
    match page_cache {
        PageCache::AsItIs => None,
        PageCache::Cold => Some(format!("{when} the kernel forgets what it has of {}", files())),
        PageCache::ColdHost => Some(format!("{when} the kernel forgets what it has of all files of this host")),
        PageCache::Read => Some(format!("{when} all of {} is read into memory", files())),
    }
}

/// The servers of a variant, where there are several.
fn services(plan: &Plan, variant: &Variant, line: &mut impl FnMut(String)) {
    if let Some(name) = &variant.servers.server {
        line(format!("    to the service {name}"));
    }
    for service in plan.services_of(variant) {
        let kept = if service.keep { ", kept for the whole run" } else { "" };
        line(format!("    beside the service {}{kept}", service.name));
        let Some(change) = variant.servers.changes.get(&service.name) else { continue };
        for directive in &change.directives {
            line(format!("        {}", directive.text.trim()));
        }
        if let Some(after) = change.kill_after_ns {
            line(format!("        killed {} into the window", units::short_duration(after as f64)));
        }
    }
}

fn cells(plan: &Plan, line: &mut impl FnMut(String)) {
    for cell in &plan.cells {
        let load = plan.load(cell);
        for request in &load.mix {
            line(format!("cell {}: {}", cell.name, asked(request, load)));
        }
        let variant = plan.variant(cell);
        for directive in &variant.directives {
            line(format!("    {}", directive.text.trim()));
        }
        let own =
            variant.page_cache.and_then(|own| before_windows(plan, "before its windows", own, plan.server_of(variant)));
        own.into_iter().for_each(|text| line(format!("    {text}")));
        services(plan, variant, line);
        let Changes { files, sysctl } = plan.changes.and(&variant.changes);
        for file in &files {
            changed(file).into_iter().for_each(|text| line(format!("    {text}")));
        }
        for (name, setting) in &sysctl {
            line(format!("    {name} = {}", setting.value));
        }
    }
}

/// A request of a load, and over how many connections it is sent.
fn asked(request: &RequestSpec, load: &LoadSpec) -> String {
    let connections = count(load.connections.into(), "connection");
    format!("{} {} over {connections}", request.method, request.path)
}

/// What becomes of a file, a line each.
fn changed(file: &FileChange) -> Vec<String> {
    let path = file.path.display();
    let mut said = match &file.edit {
        Edit::Content(content) => {
            vec![format!("{path} becomes {} of the plan's", count(content.lines().count() as u64, "line"))]
        }
        Edit::Copy(from) => vec![format!("{path} becomes a copy of {}", from.display())],
        Edit::Change { replace, append } => {
            let replaced = replace.iter().flat_map(|(old, new)| [format!("- {old}"), format!("+ {new}")]);
            let added = append.lines().map(|text| format!("+ {text}"));
            std::iter::once(format!("{path}:")).chain(replaced).chain(added).collect()
        }
    };
    if !file.reload.is_empty() {
        said.push(format!("then runs: {}", file.reload.join(" ")));
    }
    said
}

/// What the plan asks, when that is not how each cell compares with the baseline.
fn questions(plan: &Plan, line: &mut impl FnMut(String)) {
    for contrast in &plan.contrasts {
        let (of, against) = contrast.sides(&plan.cells);
        let asked = match contrast.effect.as_ref().map(|effect| effect.parts.as_slice()) {
            None => format!("{} against {}", of.join(" | "), against.join(" | ")),
            Some([part]) => format!("{} -> {}", part.from, part.to),
            Some(_) => "what they do together".to_owned(),
        };
        line(format!("asks {}: {asked}", contrast.name));
        for alias in contrast.effect.iter().flat_map(|effect| &effect.aliases) {
            line(format!("    cannot be told from {}", alias.factors.join(" × ")));
        }
    }
}

/// A seed nobody chose; 32 bits, so that it can be typed again.
pub(super) fn fresh_seed() -> u64 {
    let mut bytes = [0; 4];
    // Kernels before 5.6 may have no random numbers for minutes after their start; a watch began to show its rows when they had (4.4).
    match rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::NONBLOCK) {
        Ok(_) => u64::from(u32::from_ne_bytes(bytes)),
        Err(_) => (u64::from(std::process::id()) << 20 ^ load::monotonic_ns()) & 0xffff_ffff,
    }
}

pub(super) fn now() -> Anchor {
    let wall = jiff::Timestamp::now().as_nanosecond();
    Anchor { mono_ns: load::monotonic_ns(), wall_ns: i64::try_from(wall).unwrap_or_default() }
}

/// A name that sorts by time and can be typed: `20261120-235840-7f3a`.
pub(super) fn run_id(anchor: Anchor, random: u64) -> String {
    let time = jiff::Timestamp::from_nanosecond(i128::from(anchor.wall_ns)).unwrap_or_default();
    format!("{}-{:04x}", time.strftime("%Y%m%d-%H%M%S"), random & 0xffff)
}

/// Limits of a plan in words.
fn limits(confine: &Confinement) -> String {
    let bytes = |bytes: u64| units::short_bytes(bytes);
    let memory =
        confine.memory.map(|memory| format!("{} of memory and {} of swap", bytes(memory), bytes(confine.swap)));
    let cpu = confine.cpus().map(|cpus| format!("{cpus} CPUs' worth of time"));
    let io = confine.io;
    let of_disks = [
        io.read.map(|rate| format!("{}/s read from each disk", bytes(rate))),
        io.write.map(|rate| format!("{}/s written to each disk", bytes(rate))),
        io.read_ops.map(|rate| format!("{rate} reads/s of each disk")),
        io.write_ops.map(|rate| format!("{rate} writes/s of each disk")),
    ];
    memory.into_iter().chain(cpu).chain(of_disks.into_iter().flatten()).collect::<Vec<_>>().join(", ")
}
