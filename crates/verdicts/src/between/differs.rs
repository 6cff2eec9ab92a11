//! What is not the same on both sides beside what was measured: the machine, the loads, the server and its settings.

use super::Side;
use model::plan::{Cell, Changes, Confinement, End, IoLimits, LoadSpec, MemoryState, Pace, Plan, Variant, Warmup};
use model::run::{HostFacts, RunHead};
use model::{Nanos, SECOND};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Debug;

/// Something that is not the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What.
    pub what: Differs,
    /// How it is on the first side.
    pub first: String,
    /// How it is on the second.
    pub second: String,
}

/// What can differ between runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Differs {
    /// The machine: its CPUs or memory.
    Machine,
    /// What a cell's load sends.
    Load(String),
    /// The host's name.
    Host,
    /// The kernel.
    Kernel,
    /// webdyno itself.
    Version,
    /// The server's own version.
    Server,
    /// Which CPUs who had.
    Placement,
    /// The limits the server lived in.
    Confinement,
    /// How long trials were warmed up.
    Warmup,
    /// What the plan sets for all cells: the server and its configuration.
    Configuration,
    /// What a cell's variant sets.
    Settings(String),
}

impl Differs {
    /// Whether it makes them measurements of different things, which no interval can say anything about.
    #[must_use]
    pub fn forbids(&self) -> bool {
        matches!(self, Differs::Machine | Differs::Load(_))
    }
}

pub(super) fn differences(first: Side<'_>, second: Side<'_>, pairs: &[(&Cell, &Cell)]) -> Vec<Difference> {
    let (a, b) = (first.head(), second.head());
    let mut differences = Vec::new();
    if !is_one_machine(&a.host, &b.host) {
        differences.push(Difference { what: Differs::Machine, first: machine(&a.host), second: machine(&b.host) });
    }
    for (one, other) in pairs {
        let (asked_one, asked_other) = (asked(&a.plan, one), asked(&b.plan, other));
        if asked_one != asked_other {
            let (mut first, mut second) = (sent(&asked_one), sent(&asked_other));
            if first == second {
                // What these words leave out.
                (first, second) =
                    (format!("{first} [{}]", print(&asked_one)), format!("{second} [{}]", print(&asked_other)));
            }
            differences.push(Difference { what: Differs::Load(one.name.clone()), first, second });
        }
    }
    let mut compare = |what: Differs, first: String, second: String| {
        if first != second {
            differences.push(Difference { what, first, second });
        }
    };
    compare(Differs::Host, a.host.name.clone(), b.host.name.clone());
    compare(Differs::Kernel, a.host.kernel.clone(), b.host.kernel.clone());
    compare(Differs::Version, a.version.clone(), b.version.clone());
    compare(Differs::Server, first.software(), second.software());
    let placement = |head: &RunHead| format!("{:?} {:?}", head.server_cpus, head.load_cpus);
    compare(Differs::Placement, placement(a), placement(b));
    let confinement = |head: &RunHead| head.plan.confine.as_ref().map_or("–".to_owned(), limits);
    compare(Differs::Confinement, confinement(a), confinement(b));
    compare(Differs::Warmup, warmup(&a.plan), warmup(&b.plan));
    let (first, second) = only_in_one(&common(&a.plan), &common(&b.plan));
    compare(Differs::Configuration, first, second);
    for (one, other) in pairs {
        let (first, second) = only_in_one(&own(a.plan.variant(one)), &own(b.plan.variant(other)));
        compare(Differs::Settings(one.name.clone()), first, second);
    }
    differences
}

/// Whether it has the same CPUs, and the same memory but for what kernels keep of it for themselves, each a little more or less.
fn is_one_machine(a: &HostFacts, b: &HostFacts) -> bool {
    let alike = (a.cpus, &a.cpu_model) == (b.cpus, &b.cpu_model);
    alike && a.memory.abs_diff(b.memory) <= a.memory.max(b.memory) / 50
}

fn machine(host: &HostFacts) -> String {
    format!("{} × {}, {} MiB", host.cpus, host.cpu_model, host.memory >> 20)
}

/// A cell's load and those beside it, without what they are called, how long they last and what they are held to: the question that
/// they ask.
fn asked(plan: &Plan, cell: &Cell) -> Vec<LoadSpec> {
    let question = |load: &LoadSpec| LoadSpec {
        name: String::new(),
        requests: None,
        duration_ns: None,
        expect: vec![],
        threads: None,
        // Each `webdyno load` throws dice of its own.
        seed: 0,
        ..load.clone()
    };
    std::iter::once(plan.load(cell)).chain(&plan.beside).map(question).collect()
}

/// Loads in a few words.
fn sent(loads: &[LoadSpec]) -> String {
    loads.iter().map(sent_by_one).collect::<Vec<_>>().join(" beside ")
}

fn sent_by_one(load: &LoadSpec) -> String {
    let request = &load.mix[0];
    let more = if load.mix.len() > 1 { format!(" + {}", load.mix.len() - 1) } else { String::new() };
    let kept = if load.keep_alive { "kept" } else { "new" };
    let pace = match load.pace {
        Pace::WhenFree => "closed loop",
        Pace::Timetable(_) => "timetable",
        Pace::Logged => "log",
    };
    let tls = if load.tls.is_some() { ", TLS" } else { "" };
    let (method, path, connections) = (&request.method, &request.path, load.connections);
    format!("{method} {path}{more}, {connections} connections ({kept}), {pace}{tls}")
}

fn warmup(plan: &Plan) -> String {
    match plan.warmup {
        Warmup::None => "–".to_owned(),
        Warmup::Requests(requests) => format!("{requests} requests"),
        Warmup::Duration(ns) => seconds(ns),
    }
}

/// What the plan sets for all variants, a line for each.
fn common(plan: &Plan) -> Vec<String> {
    let mut lines = flat(&plan.server);
    lines.extend(ending(plan.end));
    lines.extend(changes(&plan.changes));
    if plan.memory != MemoryState::default() {
        lines.extend(flat(&plan.memory));
    }
    lines.extend(flat(&plan.services));
    lines
}

/// What a variant sets, a line for each.
fn own(variant: &Variant) -> Vec<String> {
    let mut lines: Vec<String> = variant.directives.iter().map(|line| line.text.trim().to_owned()).collect();
    lines.extend(changes(&variant.changes));
    lines.extend(flat(&variant.php));
    lines.extend(flat(&variant.servers));
    lines.extend(variant.end.into_iter().flat_map(ending));
    lines.extend(variant.page_cache.map(|page_cache| format!("page_cache = {}", page_cache.name())));
    lines
}

/// How servers are ended, as plans write it.
fn ending(end: End) -> impl Iterator<Item = String> {
    let after = end.after_ns.map(|ns| format!("ending_after = {}", seconds(ns)));
    std::iter::once(format!("ending = {}", end.how.name())).chain(after)
}

fn seconds(ns: Nanos) -> String {
    format!("{} s", ns as f64 / SECOND as f64)
}

fn changes(changes: &Changes) -> Vec<String> {
    let files = changes.files.iter().map(|file| format!("{} [{}]", file.path.display(), print(&file.edit)));
    let sysctl = changes.sysctl.iter().map(|(name, to)| format!("{name} = {}", to.value));
    files.chain(sysctl).collect()
}

/// Everything that part of a plan says, as it is stored: `mpm = event`, `php.settings.pool.pm.max_children = 5`, directives as they are.
fn flat(part: &impl Serialize) -> Vec<String> {
    let mut lines = Vec::new();
    flatten("", &serde_json::to_value(part).unwrap_or_default(), &mut lines);
    lines
}

fn flatten(name: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::Object(keys) => {
            // A directive or a setting, with the place in the plan that it came from.
            if let Some(text) = keys.get("text").and_then(Value::as_str) {
                lines.push(text.trim().to_owned());
            } else if let Some(value) = keys.get("value") {
                flatten(name, value, lines);
            } else {
                let told = keys.iter().filter(|(key, _)| !["line", "lines"].contains(&key.as_str()));
                let inner = |key: &String| if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                told.for_each(|(key, value)| flatten(&inner(key), value, lines));
            }
        }
        Value::Array(values) => values.iter().for_each(|value| flatten(name, value, lines)),
        Value::String(text) => lines.push(format!("{name} = {text}")),
        other => lines.push(format!("{name} = {other}")),
    }
}

/// The lines that only one of them has; everything when they have the same in another order.
fn only_in_one(first: &[String], second: &[String]) -> (String, String) {
    let without = |lines: &[String], others: &[String]| -> Vec<String> {
        lines.iter().filter(|line| !others.contains(line)).cloned().collect()
    };
    let (one, other) = (without(first, second), without(second, first));
    if one.is_empty() && other.is_empty() {
        return (first.join("; "), second.join("; "));
    }
    (one.join("; "), other.join("; "))
}

/// A fingerprint of what is too long to be shown.
fn print(value: &impl Debug) -> String {
    let print = format!("{value:?}").bytes().fold(0_u32, |print, byte| print.rotate_left(5) ^ u32::from(byte));
    format!("{print:08x}")
}

/// Limits in one line, in the order of memory, swap, CPUs and disks.
fn limits(confine: &Confinement) -> String {
    // These words are compared, so no byte may be lost.
    let mib = |bytes: u64| match bytes.is_multiple_of(1 << 20) {
        true => format!("{} MiB", bytes >> 20),
        false => format!("{bytes} B"),
    };
    let memory = confine.memory.map_or("–".to_owned(), mib);
    let cpus = confine.cpus().map(|cpus| format!("{cpus} CPU"));
    let IoLimits { read, write, read_ops, write_ops } = confine.io;
    let io = [
        read.map(|rate| format!("read {}/s", mib(rate))),
        write.map(|rate| format!("write {}/s", mib(rate))),
        read_ops.map(|rate| format!("{rate} reads/s")),
        write_ops.map(|rate| format!("{rate} writes/s")),
    ];
    [Some(memory), Some(mib(confine.swap)), cpus].into_iter().chain(io).flatten().collect::<Vec<_>>().join(", ")
}
