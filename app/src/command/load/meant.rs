//! What the flags of `webdyno load` mean: a plan of one cell, and whom it goes to. An invalid mix has no value of these types.

use super::operated::{self, Operated};
use super::plain;
use super::way::{self, Way};
use super::what::{self, What};
use super::{search, users};
use crate::flags::load::{Http, LoadFlags};
use crate::say::say;
use anyhow::{bail, ensure};
use load::Target;
use model::SECOND;
use model::plan::{
    Arrivals, Cell, Changes, End, Guards, HttpVersion, LoadSpec, MemoryState, Pace, Plan, Role, ServerSpec, Stage,
    Timetable, Variant, Warmup,
};
use std::path::PathBuf;
use url::Url;

/// How long a load lasts when nothing else ends it.
const DURATION: u64 = 10 * SECOND;
/// The name of the one cell, variant and load.
pub(crate) const ONLY: &str = "load";

/// What will happen.
pub(super) struct Meant {
    pub(super) plan: Plan,
    pub(super) target: Target,
    /// The URL as it is shown.
    pub(super) shown: String,
    /// Whom connections are made to, for humans.
    pub(super) way: String,
}

/// Reads the flags.
pub(super) fn meant(flags: &LoadFlags, seed: u64) -> anyhow::Result<Meant> {
    let whither = what::whither(&flags.url)?;
    let headers = what::headers(flags, &whither)?;
    let Way { target, others, shown: way } = way::way(&flags.way, &whither.url, &headers.to_proxy)?;
    let what = what::what(flags, &whither, &headers.common, &target.host, seed)?;
    let mut spec = spec(flags, &whither.url, what, seed)?;
    let what::Whither { url, shown, .. } = whither;
    load::check(&spec, &target).map_err(|error| anyhow::anyhow!(error.reason()))?;
    if flags.from.is_some() {
        plain::from_there(&target)?;
    }
    let remember = !flags.dry_run && !flags.no_store;
    let said = Operated { named: &flags.i_operate, store: &flags.store, remember };
    operated::allowed(&said, &others)?;
    if flags.users.page {
        users::seat(&flags.users, &mut spec)?;
        if !flags.dry_run {
            say(&users::invite(&mut spec, &target, &url)?);
        }
    }
    // Of a server behind a proxy nobody knows where it is.
    let behind = flags.way.proxy.is_some() && !others.is_empty();
    let address = if behind { format!("proxy {}", target.address) } else { target.address.to_string() };
    let server = ServerSpec::Url(model::plan::Url {
        url: shown.clone(),
        address,
        ours: !behind && load::is_ours(&target.address),
        ..model::plan::Url::default()
    });
    Ok(Meant { plan: plan(spec, server, flags), target, shown, way })
}

fn spec(flags: &LoadFlags, url: &Url, what: What, seed: u64) -> anyhow::Result<LoadSpec> {
    ensure!(flags.connections > 0, "-c 0 sends nothing; give at least one connection");
    ensure!(flags.pipeline > 0, "--pipeline 0 sends nothing; 1 is no pipelining");
    ensure!(
        flags.pipeline == 1 || !flags.close,
        "--pipeline with --close: a connection that closes after an answer carries no further request; leave one of them out"
    );
    ensure!(flags.threads != Some(0), "-t 0 sends nothing; give at least one thread");
    ensure!(flags.requests != Some(0), "-n 0 sends nothing; give at least one request");
    let pace = if what.log.is_some() { Pace::Logged } else { pace(flags)? };
    let ends = match &pace {
        Pace::WhenFree => false,
        Pace::Timetable(table) => table.length_ns() < u64::MAX,
        Pace::Logged => true,
    };
    let duration_ns = flags.duration.or((flags.requests.is_none() && !ends).then_some(DURATION));
    Ok(LoadSpec {
        session: None,
        name: ONLY.to_owned(),
        mix: what.mix,
        log: what.log,
        pace,
        connections: flags.connections,
        pipeline: flags.pipeline,
        threads: flags.threads,
        requests: flags.requests,
        duration_ns,
        keep_alive: !flags.close,
        http: match flags.http {
            Http::One => HttpVersion::Http10,
            Http::OneOne => HttpVersion::Http11,
        },
        tls: way::tls(&flags.way, url),
        timeout_ns: flags.timeout,
        same_length: flags.same_length,
        expect: flags.expect.clone(),
        checks: what.checks,
        cookies: flags.cookies,
        busy_poll: flags.busy_poll,
        first_alone: false,
        rests: true,
        drains: false,
        seed,
    })
}

fn pace(flags: &LoadFlags) -> anyhow::Result<Pace> {
    let stages = match (&flags.stages, flags.rate) {
        (Some(text), _) => model::plan::stages(text).map_err(|error| anyhow::anyhow!("--stages: {error}"))?,
        (None, Some(rate)) => vec![Stage { length_ns: u64::MAX, from: rate, to: rate }],
        // The steps of a search have rates of their own.
        _ if !flags.search.find_rate.is_empty() => return Ok(Pace::WhenFree),
        (None, None) if flags.poisson || flags.burst.is_some() => {
            bail!("--poisson and --burst need a rate; add -r RATE or --stages LIST")
        }
        (None, None) => return Ok(Pace::WhenFree),
    };
    let arrivals = match (flags.poisson, flags.burst) {
        (true, _) => Arrivals::Poisson,
        (false, Some(0)) => bail!("--burst 0 sends nothing; give at least one request"),
        (false, Some(size)) => Arrivals::Bursts { size },
        (false, None) => Arrivals::Even,
    };
    Ok(Pace::Timetable(Timetable { stages, arrivals }))
}

fn plan(spec: LoadSpec, server: ServerSpec, flags: &LoadFlags) -> Plan {
    let warmup = flags.warmup.map_or(Warmup::None, Warmup::Duration);
    Plan { search: search::meant(flags), warmup, origin: flags.from.clone(), ..only(spec, server) }
}

/// A plan of one load and nothing else.
pub(crate) fn only(spec: LoadSpec, server: ServerSpec) -> Plan {
    Plan {
        name: ONLY.to_owned(),
        about: String::new(),
        file: PathBuf::new(),
        build: Vec::new(),
        server,
        services: Vec::new(),
        changes: Changes::default(),
        confine: None,
        split: false,
        variants: vec![Variant { name: ONLY.to_owned(), ..Variant::default() }],
        end: End::default(),
        access_log: None,
        loads: vec![spec],
        beside: Vec::new(),
        memory: MemoryState::default(),
        origin: None,
        cells: vec![Cell {
            name: ONLY.to_owned(),
            variant: ONLY.to_owned(),
            load: ONLY.to_owned(),
            role: Role::Baseline,
        }],
        contrasts: Vec::new(),
        design: None,
        sweep: None,
        search: None,
        blocks: 1,
        until_decided: false,
        budget_ns: None,
        latency_budget: false,
        seed: None,
        warmup: Warmup::None,
        cooldown_ns: 0,
        guards: Guards {
            thrash_ns: 10 * SECOND,
            // The load's own end is the user's affair.
            time_ns: u64::MAX,
            failures: 0.2,
            host_memory: 0.05,
            host: true,
        },
        confidence: 0.95,
        margin: 0.02,
    }
}
