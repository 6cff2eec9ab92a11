//! For what a recommendation holds: the pages, the clients, the memory and the CPUs that it was found with.

use crate::language::{Catalogue, Sentence};
use crate::view::run::cpu_limit;
use crate::view::sent;
use model::plan::{Confinement, LoadSpec};
use model::run::Run;
use serde::Serialize;
use verdicts::Choice;

/// For what a recommendation holds.
#[derive(Debug, Clone, Serialize)]
pub struct ScopeView {
    /// What was asked for.
    pub pages: String,
    /// By whom.
    pub clients: String,
    /// What the server had of memory.
    pub memory: String,
    /// What it had of CPUs.
    pub cpus: String,
    /// The same as a sentence.
    pub sentence: Sentence,
}

/// The loads of the settings that could be chosen from, and those that something is expected of; where there was nothing to choose from, all.
pub(crate) fn of(run: &Run, choices: &[Choice], words: &Catalogue) -> ScopeView {
    let plan = &run.head.plan;
    let settings = || choices.iter().flat_map(|choice| choice.others.iter().chain([&choice.stays]));
    let is_meant = |load: &&LoadSpec| {
        let with_it = |name: &String| plan.cell(name).is_some_and(|cell| cell.load == load.name);
        choices.is_empty() || !load.expect.is_empty() || settings().any(|setting| setting.cells.iter().any(with_it))
    };
    let loads: Vec<&LoadSpec> = plan.loads.iter().filter(is_meant).chain(&plan.beside).collect();
    let each = |tell: fn(&LoadSpec, &Catalogue) -> String| {
        let mut told: Vec<String> = loads.iter().map(|load| tell(load, words)).collect();
        told.dedup();
        told.join("; ")
    };
    let (pages, clients) = (each(sent::requests), each(sent::clients));
    let (memory, cpus) = (memory(run, words), cpus(run, words));
    let arguments = [
        ("pages", pages.as_str().into()),
        ("clients", clients.as_str().into()),
        ("memory", memory.as_str().into()),
        ("cpus", cpus.as_str().into()),
    ];
    let sentence = words.say("recommend-scope", &arguments);
    ScopeView { pages, clients, memory, cpus, sentence }
}

fn memory(run: &Run, words: &Catalogue) -> String {
    let head = &run.head;
    let (id, bytes) = match &head.plan.confine {
        Some(Confinement { memory: Some(bytes), swap: 0, .. }) => ("scope-memory", *bytes),
        Some(Confinement { memory: Some(bytes), .. }) => ("scope-memory-swap", *bytes),
        _ => ("scope-memory-host", head.host.memory),
    };
    words.say(id, &[("memory", units::short_bytes(bytes).into())]).text
}

fn cpus(run: &Run, words: &Catalogue) -> String {
    let head = &run.head;
    let (id, n) = match head.server_cpus.len() {
        0 if head.plan.origin.is_none() => ("scope-cpus-shared", head.host.cpus as usize),
        0 => ("scope-cpus", head.host.cpus as usize),
        own => ("scope-cpus", own),
    };
    let limit = head.plan.confine.as_ref().and_then(|confine| cpu_limit(confine, words));
    let said = [words.say(id, &[("n", n.into())])].into_iter().chain(limit);
    words.list(&said.map(|sentence| sentence.text).collect::<Vec<_>>())
}
