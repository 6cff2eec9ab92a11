//! The run as a whole: where, when, with what, and what must be known before its numbers are believed.

use crate::language::{Catalogue, Sentence};
use crate::view::judged::Judged;
use crate::view::table::{percent, ratio};
use crate::view::{HostView, RunView, SettingView};
use model::plan::{Cell, Confinement, Directive, Plan, Role, canonical};
use model::run::{HostFacts, Run, RunEnd};
use model::trial::{EffectiveSettings, Outcome, Stop, Trial};
use stats::Warning;
use std::collections::{BTreeMap, BTreeSet};

/// The generator's share of the machine above which it disturbs a server that it shares CPUs with.
const GENERATOR_SHARE: f64 = 0.2;

pub(crate) fn view(run: &Run, words: &Catalogue) -> RunView {
    let head = &run.head;
    let server = run.trials.iter().map(|trial| &trial.settings.server).find(|server| !server.is_empty());
    // What is known of a server that is not ours is what it says in its answers.
    let answered = || run.trials.iter().find_map(|trial| trial.load.as_ref()?.software.clone());
    RunView {
        id: head.id.clone(),
        plan: head.plan.name.clone(),
        about: head.plan.about.clone(),
        began: began(head.anchor.wall_ns),
        end: end(&head.end, words),
        complete: head.end == RunEnd::Complete,
        version: head.version.clone(),
        server: server.cloned().or_else(|| head.plan.server.url().and_then(|_| answered())),
        seed: head.seed,
        blocks: if head.plan.until_decided || head.plan.budget_ns.is_some() {
            run.whole_blocks()
        } else {
            head.plan.blocks
        },
        confidence: head.plan.confidence,
        margin: head.plan.margin,
        host: host(&head.host),
        placement: placement(run, words),
        confinement: head.plan.confine.as_ref().map(|confine| confinement(confine, words)),
        plan_text: head.plan_text.clone(),
    }
}

/// Where server and generator ran.
fn placement(run: &Run, words: &Catalogue) -> Sentence {
    let head = &run.head;
    if let Some(origin) = &head.plan.origin {
        let from = origin.to_string();
        let loads = run.trials.iter().filter_map(|trial| trial.load.as_ref());
        let worst = loads.filter_map(|load| load.generator.away.as_ref()).max_by_key(|away| away.uncertainty_ns);
        return match worst {
            None => words.say("placement-away", &[("from", from.into())]),
            Some(away) => {
                let uncertainty = units::short_duration(away.uncertainty_ns as f64);
                let (name, cpus) = (away.host.name.as_str(), away.host.cpus);
                let arguments = [
                    ("from", from.into()),
                    ("name", name.into()),
                    ("cpus", cpus.into()),
                    ("uncertainty", uncertainty.into()),
                ];
                words.say("placement-away-known", &arguments)
            }
        };
    }
    if !head.plan.server.is_here() {
        return words.say("placement-elsewhere", &[]);
    }
    match (head.server_cpus.as_slice(), head.load_cpus.as_slice()) {
        ([], _) | (_, []) => words.say("placement-shared", &[]),
        (server, load) => words.say("placement-split", &[("server", list(server).into()), ("load", list(load).into())]),
    }
}

/// The limits the server lived in, one after the other.
fn confinement(confine: &Confinement, words: &Catalogue) -> Sentence {
    let bytes = |bytes: u64| units::short_bytes(bytes);
    let memory = confine.memory.map(|memory| {
        let id = if confine.swap > 0 { "confined-swap" } else { "confined" };
        words.say(id, &[("memory", bytes(memory).into())])
    });
    let io = confine.io;
    let of_disks = [
        ("confined-io-read", io.read.map(bytes)),
        ("confined-io-write", io.write.map(bytes)),
        ("confined-io-read-ops", io.read_ops.map(|ops| ops.to_string())),
        ("confined-io-write-ops", io.write_ops.map(|ops| ops.to_string())),
    ];
    let of_disks = of_disks.into_iter().filter_map(|(id, rate)| Some(words.say(id, &[("rate", rate?.into())])));
    let said = memory.into_iter().chain(cpu_limit(confine, words)).chain(of_disks);
    let said: Vec<String> = said.map(|sentence| sentence.text).collect();
    words.say("confined-to", &[("limits", words.list(&said).into())])
}

/// The CPU time the server was confined to.
pub(crate) fn cpu_limit(confine: &Confinement, words: &Catalogue) -> Option<Sentence> {
    confine.cpus().map(|cpus| words.say("confined-cpu", &[("cpus", format!("{cpus}").into())]))
}

pub(crate) fn end(end: &RunEnd, words: &Catalogue) -> Sentence {
    match end {
        RunEnd::Complete => words.say("end-complete", &[]),
        RunEnd::Unfinished => words.say("end-unfinished", &[]),
        RunEnd::Interrupted => words.say("end-interrupted", &[]),
        RunEnd::Failed(why) => words.say("end-failed", &[("why", why.as_str().into())]),
    }
}

pub(crate) fn host(host: &HostFacts) -> HostView {
    HostView {
        name: host.name.clone(),
        kernel: host.kernel.clone(),
        cpus: host.cpus,
        cpu_model: host.cpu_model.clone(),
        memory_bytes: host.memory,
        swap_bytes: host.swap,
    }
}

fn list(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// A moment in UTC to the second, as RFC 3339 writes it.
pub(crate) fn began(wall_ns: i64) -> String {
    jiff::Timestamp::from_second(wall_ns.div_euclid(1_000_000_000))
        .map_or_else(|_| wall_ns.to_string(), |t| t.to_string())
}

/// What the reader must know first, each said once.
pub(crate) fn warnings(run: &Run, judged: &Judged, words: &Catalogue) -> Vec<Sentence> {
    let mut warnings = Vec::new();
    let plan = &run.head.plan;
    if run.head.end != RunEnd::Complete {
        let made = run.trials.len();
        let planned = plan.cells.len() as u64 * u64::from(plan.blocks);
        warnings.push(words.say("warn-incomplete", &[("made", made.into()), ("planned", planned.into())]));
    }
    if !run.trials.is_empty() && run.measured(&plan.baseline().name).all(|(_, load)| load.counts.good == 0) {
        warnings.push(words.say("warn-no-baseline", &[("cell", plan.baseline().name.as_str().into())]));
    }
    for (id, concerns) in [
        ("warn-invalid", (|trial| matches!(trial.outcome, Outcome::Invalid(_))) as fn(&Trial) -> bool),
        ("warn-ended-early", |trial| {
            // A trial that the user ended does not count, and no guard was needed.
            matches!(trial.outcome, Outcome::EndedEarly(stop) if stop != Stop::Interrupted)
        }),
    ] {
        let concerned = run.trials.iter().filter(|trial| concerns(trial)).count();
        if concerned > 0 {
            let made = run.trials.len();
            warnings.push(words.say(id, &[("n", concerned.into()), ("made", made.into())]));
        }
    }
    for (cell, why) in judged.refused() {
        warnings
            .push(words.say("warn-not-compared", &[("cell", cell.as_str().into()), ("why", why.to_string().into())]));
    }
    warnings.extend(few_blocks(run, judged, words));
    // The same A/A cell stands beside every comparison.
    let mut doubts = judged.comparisons(run).flat_map(|(_, comparison)| &comparison.warnings);
    let drifted = doubts.find(|warning| matches!(warning, Warning::AgainDiffers { .. }));
    warnings.extend(drifted.and_then(|warning| comparison_warning(warning, words)));
    warnings.extend(generator(run, words));
    warnings
}

/// Comparisons that rest on few blocks: said once for all when all rest on as many, else of the cells by name, the fewest first.
fn few_blocks(run: &Run, judged: &Judged, words: &Catalogue) -> Vec<Sentence> {
    let few = |warning: &Warning| matches!(warning, Warning::FewBlocks { .. });
    let mut cells: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (name, comparison) in judged.comparisons(run).filter(|(_, comparison)| comparison.warnings.iter().any(few)) {
        cells.entry(comparison.blocks).or_default().push(words.quoted(name));
    }
    let alike = judged.comparisons(run).map(|(_, comparison)| comparison.blocks).collect::<BTreeSet<_>>().len() == 1;
    let sentence = |(blocks, cells): (usize, Vec<String>)| match (blocks, alike) {
        (1, true) => words.say("warn-one-block", &[]),
        (_, true) => words.say("warn-few-blocks", &[("blocks", blocks.into())]),
        (_, false) => {
            let id = if blocks == 1 { "warn-one-block-of" } else { "warn-few-blocks-of" };
            let cells = words.list(&cells);
            words.say(id, &[("blocks", blocks.into()), ("cells", cells.into())])
        }
    };
    cells.into_iter().map(sentence).collect()
}

/// What is doubtful about a comparison, worded; `None` for what [`few_blocks`] says of the whole run.
pub(crate) fn comparison_warning(warning: &Warning, words: &Catalogue) -> Option<Sentence> {
    Some(match *warning {
        Warning::FewBlocks { .. } => return None,
        Warning::ZeroVariance => words.say("warn-zero-variance", &[]),
        Warning::RealButBelowMargin => words.say("warn-below-margin", &[]),
        Warning::RanksDisagree { p } => words.say("warn-ranks-disagree", &[("p", format!("{p:.3}").into())]),
        Warning::WithinNoise { floor } => words.say("warn-within-noise", &[("floor", ratio(floor).into())]),
        Warning::NoiseUnknown { blocks } => words.say("warn-noise-unknown", &[("blocks", blocks.into())]),
        Warning::AgainDiffers { ratio: value } => words.say("warn-again-differs", &[("ratio", ratio(value).into())]),
    })
}

/// The generator's largest share of the machine, when it took it from the server.
fn generator(run: &Run, words: &Catalogue) -> Option<Sentence> {
    if !run.head.server_cpus.is_empty() || !run.head.plan.server.is_here() {
        return None;
    }
    let share = |trial: &Trial| {
        let load = trial.load.as_ref().filter(|load| load.generator.away.is_none())?;
        let available = load.seconds() * f64::from(run.head.host.cpus);
        let loads = trial.beside.iter().map(|beside| &beside.load).chain([load]);
        let cpu_ns: f64 = loads.map(|load| load.generator.cpu_ns as f64).sum();
        (available > 0.0).then(|| cpu_ns / 1e9 / available)
    };
    let largest = run.trials.iter().filter_map(share).fold(0.0, f64::max);
    (largest > GENERATOR_SHARE).then(|| words.say("warn-generator-share", &[("share", percent(largest).into())]))
}

/// The trials of a cell whose settings are known; those of the baseline with those of what is the baseline once more.
fn alike<'a>(run: &'a Run, cell: &Cell) -> Vec<&'a Trial> {
    let is_baseline = |cell: &Cell| matches!(cell.role, Role::Baseline | Role::Again);
    let same = |other: &&Cell| other.name == cell.name || (is_baseline(cell) && is_baseline(other));
    let names: Vec<&str> = run.head.plan.cells.iter().filter(same).map(|other| other.name.as_str()).collect();
    let trials = run.trials.iter().filter(|trial| names.contains(&trial.cell.as_str()));
    trials.filter(|trial| !trial.settings.values.is_empty()).collect()
}

/// Whether trials that are alike had the same value for a directive.
fn agreed(alike: &[&Trial], name: &str) -> bool {
    alike.iter().map(|trial| trial.settings.values.get(name)).collect::<BTreeSet<_>>().len() <= 1
}

/// Which server these are the settings of, whatever its version.
fn kind_of(settings: &EffectiveSettings) -> &str {
    settings.server.split('/').next().unwrap_or_default()
}

/// The names of what variants set, of their own server, of PHP and of services, in small letters.
fn set_by_variants(plan: &Plan) -> BTreeSet<String> {
    let word = |line: &Directive| {
        let word = line.text.split(|c: char| c.is_whitespace() || c == '=').next().unwrap_or_default();
        canonical(word).to_ascii_lowercase()
    };
    let own = plan.variants.iter().flat_map(|variant| &variant.directives).map(word);
    let changes = plan.variants.iter().flat_map(|variant| &variant.servers.changes);
    let of_services = changes.flat_map(|(service, change)| {
        change.directives.iter().map(move |line| format!("{}: {}", service.to_ascii_lowercase(), word(line)))
    });
    let of_php = plan.variants.iter().flat_map(|variant| variant.php.ini.keys().chain(variant.php.pool.keys()));
    // In a pool's file a setting of PHP's own stands as php_admin_value[memory_limit].
    let plain =
        |name: &str| name.split_once('[').map_or(name, |(_, rest)| rest.trim_end_matches(']')).to_ascii_lowercase();
    own.chain(of_services).chain(of_php.map(|name| plain(name))).collect()
}

/// The settings in force that differ, by directive: between cells of the same server, or by what a variant says. That another server has
/// none of the rest says nothing. What differs between the trials of one cell (a port, a folder) belongs to the instance and means
/// nothing; where no cell of a server had two trials, only what a variant says can be told from that.
pub(crate) fn settings(run: &Run) -> Vec<SettingView> {
    let cells = &run.head.plan.cells;
    let known = |trial: &&Trial| !trial.settings.values.is_empty();
    let of_cell: Vec<Option<&EffectiveSettings>> = cells
        .iter()
        .map(|cell| run.trials.iter().filter(|trial| trial.cell == cell.name).find(known).map(|trial| &trial.settings))
        .collect();
    let set = set_by_variants(&run.head.plan);
    let alike: Vec<Vec<&Trial>> = cells.iter().map(|cell| alike(run, cell)).collect();
    let repeated: BTreeSet<&str> = {
        let twice = alike.iter().filter(|trials| trials.len() > 1);
        twice.flatten().map(|trial| kind_of(&trial.settings)).collect()
    };
    let kinds: BTreeSet<&str> = of_cell.iter().flatten().map(|settings| kind_of(settings)).collect();
    let names: BTreeSet<&String> = of_cell.iter().flatten().flat_map(|settings| settings.values.keys()).collect();
    let view = |name: &String| {
        let value = |settings: &EffectiveSettings| settings.values.get(name).cloned();
        let of_kind = |kind: &str| -> BTreeSet<Option<String>> {
            of_cell.iter().flatten().filter(|settings| kind_of(settings) == kind).map(|one| value(one)).collect()
        };
        let of_all: BTreeSet<_> = of_cell.iter().flatten().map(|one| value(one)).collect();
        let is_set = set.contains(&name.to_ascii_lowercase()) && of_all.len() > 1;
        let differs = is_set || kinds.intersection(&repeated).any(|kind| of_kind(kind).len() > 1);
        let has_it = |settings: &EffectiveSettings| of_kind(kind_of(settings)).iter().any(Option::is_some);
        differs.then(|| SettingView {
            name: name.clone(),
            values: of_cell.iter().map(|settings| settings.and_then(value)).collect(),
            known: of_cell.iter().map(|settings| settings.is_some_and(has_it)).collect(),
        })
    };
    names.into_iter().filter(|name| alike.iter().all(|trials| agreed(trials, name))).filter_map(view).collect()
}
