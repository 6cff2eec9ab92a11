//! What the user wrote: TOML to a [`Plan`], or one sentence with file, line and key.
//!
//! Here is what may be written and what it means; in `load` that of loads, in `beside` of those that are no cell's own, in `cells` what is compared, which `factors` or `sweep` may
//! derive and `contrasts` asks about; in `url` what none of them may say of a server that is not ours. `source` knows the places in the text, `complaint` puts the TOML parser's messages in
//! the user's words, `parameters` fills in `${name}` before anything else, and `measure` is text with a unit.

mod beside;
mod cells;
mod changes;
mod complaint;
mod confine;
mod contrasts;
mod ending;
mod factors;
mod latency_budget;
mod load;
mod loads;
mod measure;
mod memory;
mod parameters;
mod php;
mod server;
mod services;
mod source;
mod sweep;
mod url;
mod users;

use self::cells::CellText;
use self::changes::{FilesText, changes_meant};
use self::confine::{ConfineText, confine_meant};
use self::contrasts::ContrastText;
use self::ending::{AccessLogText, access_log_meant, can_all_end_so, end_meant};
use self::factors::{DesignText, FactorText};
pub use self::latency_budget::{FPM_LATENCY_LOG, LATENCY_LOG};
use self::latency_budget::{Others, budget_meant};
use self::load::load_meant;
pub use self::load::parse_mix;
use self::loads::LoadsText;
use self::measure::Duration;
use self::memory::{MemoryText, PageCacheWord};
use self::php::{FpmText, variant_meant};
use self::server::{ServerText, server_meant};
use self::services::{ServersText, ServiceText, check_mentions, of_variant, services_meant};
use self::source::Source;
use self::sweep::SweepText;
use self::url::{refuse_control, refuse_settings};
use super::{Build, Ending, Guards, LoadSpec, Origin, Plan, SECRET, ServerSpec, Service, Variant, Warmup};
use crate::{Nanos, SECOND};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Blocks of a plan that does not say how many.
const USUAL_BLOCKS: u32 = 6;
/// Blocks at the last look at a run that ends when it is decided.
const MOST_LOOKED_AT: u32 = 24;
/// How long `--quick` goes on beginning blocks.
const QUICK_NS: Nanos = 120 * SECOND;
/// And no more blocks.
const QUICK_BLOCKS: u32 = 3;

/// How the plan is to be read.
#[derive(Debug, Clone)]
pub struct Options {
    /// Name of a `[scale.NAME]` table whose parameters replace the defaults.
    pub scale: Option<String>,
    /// Fewer blocks, shorter windows and two minutes: to see that a plan works, not to decide by it.
    pub quick: bool,
    /// How long the run may take, whatever the plan says.
    pub budget_ns: Option<Nanos>,
    /// Reads the files that the plan names as bodies.
    pub read: ReadFile,
}

/// Gives the content of a file, or one sentence why not and what to do.
pub type ReadFile = fn(&Path) -> Result<Vec<u8>, String>;

impl Default for Options {
    fn default() -> Options {
        Options {
            scale: None,
            quick: false,
            budget_ns: None,
            read: |file| Err(format!("cannot read {} here", file.display())),
        }
    }
}

/// What is wrong with a plan, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}{}{what}",
    line.map(|line| format!("{}:{line}: ", file.display())).unwrap_or_default(),
    key.as_ref().map(|key| format!("{key}: ")).unwrap_or_default()
)]
pub struct PlanError {
    /// The plan's file.
    pub file: PathBuf,
    /// Line, from 1; `None` when not the plan but a flag is to blame.
    pub line: Option<usize>,
    /// The key, dotted, or the flag, when one is to blame.
    pub key: Option<String>,
    /// One sentence.
    pub what: String,
}

/// Reads a plan. `file` is named in messages, and relative paths in the plan are relative to its folder.
/// Returns the plan and the text with its parameters filled in, and without what proves who somebody is.
///
/// # Errors
/// The first thing that is wrong, in reading order as far as possible.
pub fn parse(text: &str, file: &Path, options: &Options) -> Result<(Plan, String), PlanError> {
    let source = Source { text, file };
    let filled = parameters::fill_in(&source, options)?;
    let source = Source { text: &filled, file };
    let written: Written = toml::from_str(&filled).map_err(|error| source.toml_error(&error))?;
    let secrets = load::secrets(written.load.get_ref().loads.values().map(Spanned::get_ref));
    let plan = meant(&source, written, options)?;
    Ok((plan, without(filled, secrets)))
}

/// The text with something else in those places.
fn without(mut text: String, mut secrets: Vec<Range<usize>>) -> String {
    secrets.sort_by_key(|place| std::cmp::Reverse(place.start));
    for place in secrets {
        // Lines stay where they are, so that messages still point at them.
        let lines = "\n".repeat(text[place.clone()].matches('\n').count());
        text.replace_range(place, &format!("\"{SECRET}\"{lines}"));
    }
    text
}

// ---- what may be written --------------------------------------------------------------------------------------------

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Option<String>,
    #[serde(default)]
    about: String,
    blocks: Option<Spanned<u32>>,
    #[serde(default)]
    until_decided: bool,
    budget: Option<Spanned<Duration>>,
    seed: Option<u64>,
    baseline: Option<Spanned<String>>,
    #[serde(default = "yes")]
    aa: bool,
    confidence: Option<Spanned<f64>>,
    margin: Option<Spanned<f64>>,
    latency_budget: Option<Spanned<bool>>,
    #[serde(default, rename = "parameters")]
    _parameters: BTreeMap<String, toml::Value>,
    #[serde(default, rename = "scale")]
    _scale: BTreeMap<String, BTreeMap<String, toml::Value>>,
    #[serde(default)]
    build: Vec<Spanned<BuildText>>,
    server: ServerText,
    access_log: Option<AccessLogText>,
    #[serde(default)]
    service: BTreeMap<String, Spanned<ServerText>>,
    confine: Option<ConfineText>,
    #[serde(default)]
    memory: MemoryText,
    #[serde(default)]
    placement: PlacementText,
    #[serde(default)]
    variant: BTreeMap<String, Spanned<VariantText>>,
    load: Spanned<LoadsText>,
    #[serde(default)]
    cell: Vec<CellText>,
    #[serde(default)]
    contrast: Vec<Spanned<ContrastText>>,
    #[serde(default)]
    factors: BTreeMap<String, Spanned<FactorText>>,
    design: Option<Spanned<DesignText>>,
    sweep: Option<Spanned<SweepText>>,
    #[serde(default)]
    warmup: WarmupText,
    #[serde(default)]
    cooldown: CooldownText,
    #[serde(default)]
    guards: GuardsText,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BuildText {
    command: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlacementText {
    #[serde(default = "yes")]
    split: bool,
}

impl Default for PlacementText {
    fn default() -> Self {
        PlacementText { split: true }
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct VariantText {
    directives: Option<Spanned<String>>,
    #[serde(default)]
    allow_warnings: Vec<String>,
    #[serde(default)]
    files: Vec<Spanned<FilesText>>,
    #[serde(default)]
    sysctl: BTreeMap<String, Spanned<String>>,
    fpm: Option<Spanned<FpmText>>,
    #[serde(default)]
    ini: BTreeMap<String, Spanned<toml::Value>>,
    ending: Option<Spanned<Ending>>,
    ending_after: Option<Spanned<Duration>>,
    page_cache: Option<Spanned<PageCacheWord>>,
    server: Option<Spanned<String>>,
    services: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    service: BTreeMap<String, Spanned<ServiceText>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct WarmupText {
    requests: Option<Spanned<u64>>,
    duration: Option<Spanned<Duration>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct CooldownText {
    limit: Option<Spanned<Duration>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct GuardsText {
    thrash: Option<Spanned<Duration>>,
    time: Option<Spanned<Duration>>,
    failures: Option<Spanned<f64>>,
    host_memory: Option<Spanned<f64>>,
}

fn yes() -> bool {
    true
}

// ---- what it means --------------------------------------------------------------------------------------------------

fn meant(source: &Source<'_>, mut written: Written, options: &Options) -> Result<Plan, PlanError> {
    refuse_control(source, &written)?;
    let name = written.name.unwrap_or_else(|| {
        source.file.file_stem().map_or_else(|| "plan".to_owned(), |stem| stem.to_string_lossy().into_owned())
    });
    let (files, sysctl) = (std::mem::take(&mut written.server.files), std::mem::take(&mut written.server.sysctl));
    let setting = written.server.setting();
    let ending = (written.server.ending.take(), written.server.ending_after.take());
    let mut server = server_meant(source, written.server, written.confine.as_ref())?;
    let end = end_meant(source, "server", &server, ending.0.as_ref(), ending.1.as_ref())?;
    let services = services_meant(source, written.service)?;
    let variants = variants(source, written.variant, (&server, &services), &written.memory, options.quick)?;
    let memory = written.memory.meant(source, &server, variants.iter().map(|(variant, _)| variant))?;
    can_all_end_so(source, end, &variants, &services)?;
    let mut changes = changes_meant(source, files, sysctl)?;
    let Loads { origin, of_cells: loads, beside } = loads_meant(source, written.load, options)?;
    beside::refuse_as_own(source, &beside, &loads, &written.cell)?;
    let access_log = written.access_log.map(|log| {
        let own = variants.iter().filter_map(|(variant, _)| variant.servers.server.as_ref());
        let own = own.filter_map(|name| services.iter().find(|service| service.name == *name));
        let servers = std::iter::once(&server).chain(own.map(|service| &service.server));
        access_log_meant(source, &log, servers, &loads, &beside)
    });
    let access_log = access_log.transpose()?;
    let others = Others { variants: &variants, origin: origin.as_ref(), beside: &beside };
    let latency_budget = budget_meant(source, &written.latency_budget, &others, &mut server, &mut changes)?;
    let margin = source.share(written.margin.as_ref(), "margin", 0.02)?;
    let wanted = cells::Wanted {
        cells: &written.cell,
        factors: written.factors,
        design: written.design,
        sweep: written.sweep,
        setting,
    };
    let mut made = cells::made(source, wanted, variants, loads, margin)?;
    refuse_settings(source, &server, &made)?;
    beside::refuse_as_baseline(source, &beside, &made.cells, written.baseline.as_ref())?;
    let cells = made.with_roles(source, written.baseline.as_ref(), written.aa)?;
    made.contrasts.extend(contrasts::meant(source, &written.contrast, &cells, &made.contrasts, margin)?);
    let ends_early = written.until_decided || written.budget.is_some();
    let until_decided = ends_early || options.budget_ns.is_some();
    let budget_ns = run_time_meant(source, written.budget.as_ref(), options)?;
    let blocks = blocks_meant(source, written.blocks.as_ref(), options, ends_early)?;
    let plan = Plan {
        name,
        about: written.about,
        file: source.file.to_owned(),
        build: written.build.into_iter().map(|build| build_meant(source, build)).collect::<Result<_, _>>()?,
        server,
        services,
        changes,
        confine: written.confine.map_or(Ok(None), |confine| confine_meant(source, &confine))?,
        memory,
        split: written.placement.split,
        variants: made.variants,
        end: end.unwrap_or_default(),
        access_log,
        loads: made.loads,
        beside,
        origin,
        cells,
        contrasts: made.contrasts,
        design: made.design,
        sweep: made.sweep,
        search: None,
        blocks,
        until_decided,
        budget_ns,
        latency_budget,
        seed: written.seed,
        warmup: warmup_meant(source, &written.warmup)?,
        cooldown_ns: source.duration(written.cooldown.limit.as_ref(), "cooldown.limit", 10 * SECOND)?,
        guards: guards_meant(source, &written.guards)?,
        confidence: confidence_meant(source, written.confidence.as_ref())?,
        margin,
    };
    check_mentions(source, &plan)?;
    Ok(plan)
}

/// The loads of a plan.
struct Loads {
    origin: Option<Origin>,
    of_cells: Vec<LoadSpec>,
    beside: Vec<LoadSpec>,
}

fn loads_meant(source: &Source<'_>, written: Spanned<LoadsText>, options: &Options) -> Result<Loads, PlanError> {
    let place = written.span();
    let LoadsText { from, address, loads: written } = written.into_inner();
    let origin = loads::origin_meant(source, from.as_ref(), address.as_ref())?;
    let (mut loads, mut beside) = (Vec::new(), Vec::new());
    for (name, load) in in_order(written) {
        let is_beside = beside::is_meant(source, &name, &load, from.is_some())?;
        let load = load_meant(source, name, load, options)?;
        if load.session.is_some() && (is_beside || origin.is_some()) {
            let what = "users are a load of their own, on this machine; leave `beside`, `from`, or the users out";
            return Err(source.at(place, &format!("load.{}.users", load.name), what));
        }
        if is_beside { beside.push(load) } else { loads.push(load) }
    }
    if loads.is_empty() {
        return Err(source.at(place, "load", beside::no_load(&beside)));
    }
    Ok(Loads { origin, of_cells: loads, beside })
}

/// How long a run goes on beginning blocks: as long as the command line says, else as the plan does, which with `--quick` is no more than that
/// allows.
fn run_time_meant(
    source: &Source<'_>,
    written: Option<&Spanned<Duration>>,
    options: &Options,
) -> Result<Option<Nanos>, PlanError> {
    if options.budget_ns.is_some() {
        return Ok(options.budget_ns);
    }
    let written = written.map(|_| source.longer_than_0(written, "budget", 0)).transpose()?;
    Ok(written.into_iter().chain(options.quick.then_some(QUICK_NS)).min())
}

/// How many blocks there are, or at most: of a run that ends when all is decided no more than it can be looked at. Who gives a time on the
/// command line means to use it, however many blocks a plan has without; a plan that says both (`ends_early`) means what it says.
fn blocks_meant(
    source: &Source<'_>,
    written: Option<&Spanned<u32>>,
    options: &Options,
    ends_early: bool,
) -> Result<u32, PlanError> {
    let usual = if ends_early { MOST_LOOKED_AT } else { USUAL_BLOCKS };
    let blocks = written.map_or(usual, |written| *written.get_ref());
    let at = |what: &str| Err(source.at(written.map_or(0..0, Spanned::span), "blocks", what));
    if blocks < 2 {
        at("an interval needs at least 2 blocks")
    } else if ends_early && blocks > MOST_LOOKED_AT {
        at("a run that ends when it is decided has at most 24 blocks: its looks are used up then")
    } else {
        Ok(match options {
            Options { quick: true, .. } => blocks.min(QUICK_BLOCKS),
            Options { budget_ns: Some(_), .. } if !ends_early => MOST_LOOKED_AT,
            _ => blocks,
        })
    }
}

/// The variants, each with its place in the text.
fn variants(
    source: &Source<'_>,
    written: BTreeMap<String, Spanned<VariantText>>,
    (server, services): (&ServerSpec, &[Service]),
    memory: &MemoryText,
    quick: bool,
) -> Result<Vec<(Variant, Range<usize>)>, PlanError> {
    if written.is_empty() {
        return Ok(vec![(Variant { name: "as-is".into(), ..Variant::default() }, 0..0)]);
    }
    in_order(written)
        .map(|(name, text)| {
            let (place, text) = (text.span(), text.into_inner());
            let directives = source.directives(text.directives.as_ref());
            let changes = changes_meant(source, text.files, text.sysctl)?;
            let written = ServersText { server: text.server, services: text.services, service: text.service };
            let servers = of_variant(source, services, written, quick)?;
            let own = services.iter().find(|service| Some(&service.name) == servers.server.as_ref());
            let server = own.map_or(server, |own| &own.server);
            let php = variant_meant(source, server.php(), text.fpm, &text.ini)?;
            let end = end_meant(source, "variant", server, text.ending.as_ref(), text.ending_after.as_ref())?;
            let page_cache = memory.page_cache(source, "variant.page_cache", text.page_cache.as_ref(), server)?;
            let allow_warnings = text.allow_warnings;
            Ok((Variant { name, directives, allow_warnings, changes, php, end, page_cache, servers }, place))
        })
        .collect()
}

/// The tables in the order they were written in, which TOML's own map forgets.
fn in_order<T>(tables: BTreeMap<String, Spanned<T>>) -> impl Iterator<Item = (String, Spanned<T>)> {
    let mut tables: Vec<_> = tables.into_iter().collect();
    tables.sort_by_key(|(_, table)| table.span().start);
    tables.into_iter()
}

fn names<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn build_meant(source: &Source<'_>, build: Spanned<BuildText>) -> Result<Build, PlanError> {
    let line = source.line(build.span().start);
    if build.get_ref().command.is_empty() {
        return Err(source.at(build.span(), "build.command", "give the program and its arguments"));
    }
    Ok(Build { command: build.into_inner().command, directory: source.folder(), line })
}

/// The limits of what an interval can be made for: at 0.5 and below, equivalence has no interval; close to 1, it is endless.
fn confidence_meant(source: &Source<'_>, confidence: Option<&Spanned<f64>>) -> Result<f64, PlanError> {
    match confidence {
        None => Ok(0.95),
        Some(c) if *c.get_ref() > 0.5 && *c.get_ref() <= 0.9999 => Ok(*c.get_ref()),
        Some(c) => Err(source.at(c.span(), "confidence", "must lie above 0.5 and not above 0.9999; 0.95 is usual")),
    }
}

fn warmup_meant(source: &Source<'_>, warmup: &WarmupText) -> Result<Warmup, PlanError> {
    match (&warmup.requests, &warmup.duration) {
        (None, None) => Ok(Warmup::None),
        (Some(n), None) => Ok(Warmup::Requests(*n.get_ref())),
        (None, Some(text)) => Ok(Warmup::Duration(source.duration_text(text, "warmup.duration")?)),
        (Some(n), Some(_)) => Err(source.at(n.span(), "warmup", "give `requests` or `duration`, not both")),
    }
}

fn guards_meant(source: &Source<'_>, guards: &GuardsText) -> Result<Guards, PlanError> {
    Ok(Guards {
        thrash_ns: source.longer_than_0(guards.thrash.as_ref(), "guards.thrash", 60 * SECOND)?,
        time_ns: source.longer_than_0(guards.time.as_ref(), "guards.time", 600 * SECOND)?,
        failures: source.share(guards.failures.as_ref(), "guards.failures", 0.2)?,
        host_memory: source.share(guards.host_memory.as_ref(), "guards.host_memory", 0.05)?,
        host: true,
    })
}

#[cfg(test)]
mod tests;
