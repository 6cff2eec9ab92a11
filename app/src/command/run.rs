//! `webdyno run`: a plan becomes a stored run, and the run a report.

use super::report;
use crate::exit::Exit;
use crate::flags::RunFlags;
use crate::progress::Progress;
use crate::say::say;
use anyhow::Context;
use experiment::{Orders, World};
use model::plan::{Options, Plan, Warmup};
use model::run::{Anchor, RunEnd};
use std::io::Write;
use std::sync::Arc;
use store::Store;

pub(crate) fn run(flags: &RunFlags) -> anyhow::Result<Exit> {
    // A plan that cannot be read is a mistake in what was typed, not the environment's.
    let text = std::fs::read_to_string(&flags.plan)
        .map_err(|error| anyhow::anyhow!("cannot read the plan {}: {error}", flags.plan.display()))?;
    let options = Options { scale: flags.scale.clone(), quick: flags.quick };
    let (plan, text) = model::plan::parse(&text, &flags.plan, &options)?;
    let seed = flags.seed.or(plan.seed).unwrap_or_else(fresh_seed);
    if flags.dry_run {
        outline(&plan, seed)?;
        return Ok(Exit::Done);
    }
    let mut store = Store::open(&report::store_path(&flags.store)?)?;
    let anchor = now();
    let orders = Orders {
        id: run_id(anchor, fresh_seed()),
        plan,
        text,
        seed,
        anchor,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        make_swap: flags.make_swap,
    };
    let end = carry_out(&orders, flags.plain, &mut store)?;
    let shown = report::show(&store, &orders.id, &flags.store, &flags.show)?;
    Ok(match end {
        RunEnd::Interrupted => Exit::Interrupted,
        RunEnd::Failed(why) => {
            say(&format!("webdyno: {why}"));
            Exit::Server
        }
        RunEnd::Complete | RunEnd::Unfinished => shown,
    })
}

fn carry_out(orders: &Orders, plain: bool, store: &mut Store) -> anyhow::Result<RunEnd> {
    let exe = std::env::current_exe().context("cannot find this program's own file")?;
    let interrupted = crate::interrupt::flag()?;
    let state_dir = super::state_dir();
    // Whatever an earlier run left behind would be in the way of this one.
    for sentence in host::restore(&state_dir)? {
        say(&format!("webdyno: {sentence}"));
    }
    let mut progress = Progress::new(plain, Arc::clone(&interrupted));
    let mut world = World { exe: &exe, state_dir: &state_dir, store, interrupted: &interrupted };
    let end = experiment::run(orders, &mut world, &mut |event| progress.show(&event));
    progress.finish();
    Ok(end?)
}

/// What `--dry-run` prints: everything that would be sent and changed.
fn outline(plan: &Plan, seed: u64) -> anyhow::Result<()> {
    let outline = experiment::outline(plan, seed);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}: {}", plan.name, plan.about)?;
    writeln!(out, "{} trials in {} blocks, seed {seed}", outline.slots.len(), plan.blocks)?;
    if outline.requests > 0 {
        writeln!(out, "{} measured requests", outline.requests)?;
    }
    if outline.window_ns > 0 {
        writeln!(out, "at most {} of measured time", units::short_duration(outline.window_ns as f64))?;
    }
    match outline.warmup {
        Warmup::None => {}
        Warmup::Requests(n) => writeln!(out, "each trial warmed up with {n} requests")?,
        Warmup::Duration(ns) => writeln!(out, "each trial warmed up for {}", units::short_duration(ns as f64))?,
    }
    if let Some(confine) = &plan.confine {
        let (memory, swap) = (units::short_bytes(confine.memory), units::short_bytes(confine.swap));
        writeln!(out, "the server confined to {memory} of memory and {swap} of swap")?;
    }
    for step in &plan.build {
        writeln!(out, "builds: {}", step.command.join(" "))?;
    }
    for cell in &plan.cells {
        let load = plan.load(cell);
        writeln!(out, "cell {}: GET {} over {} connections", cell.name, load.path, load.connections)?;
        for directive in &plan.variant(cell).directives {
            writeln!(out, "    {}", directive.text.trim())?;
        }
    }
    for block in outline.slots.chunk_by(|a, b| a.block == b.block) {
        let cells: Vec<_> = block.iter().map(|slot| slot.cell.as_str()).collect();
        writeln!(out, "block {}: {}", block[0].block + 1, cells.join(" | "))?;
    }
    Ok(())
}

/// A seed nobody chose; 32 bits, so that it can be typed again.
fn fresh_seed() -> u64 {
    let mut bytes = [0; 4];
    match rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()) {
        Ok(_) => u64::from(u32::from_ne_bytes(bytes)),
        Err(_) => u64::from(std::process::id()),
    }
}

fn now() -> Anchor {
    let mono = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let wall = jiff::Timestamp::now().as_nanosecond();
    Anchor {
        mono_ns: mono.tv_sec as u64 * model::SECOND + mono.tv_nsec as u64,
        wall_ns: i64::try_from(wall).unwrap_or_default(),
    }
}

/// A name that sorts by time and can be typed: `20261120-235840-7f3a`.
fn run_id(anchor: Anchor, random: u64) -> String {
    let time = jiff::Timestamp::from_nanosecond(i128::from(anchor.wall_ns)).unwrap_or_default();
    format!("{}-{:04x}", time.strftime("%Y%m%d-%H%M%S"), random & 0xffff)
}
