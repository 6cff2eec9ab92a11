//! What a plan would do, in lines: `webdyno run --dry-run`.

use crate::say::count;
use experiment::Orders;
use model::plan::{
    Changes, Confinement, Edit, FileChange, LoadSpec, PageCache, Plan, RequestSpec, ServerSpec, Variant, Warmup,
};

/// What `--dry-run` prints: everything that would be sent and changed.
pub(super) fn outline(orders: &Orders) -> String {
    let plan = &orders.plan;
    let outline = experiment::outline(plan, orders.seed);
    let mut out = String::new();
    let mut line = |text: String| out.extend([text.as_str(), "\n"]);
    let about = if plan.about.is_empty() { String::new() } else { format!(": {}", plan.about) };
    line(format!("{}{about}", plan.name));
    let (trials, blocks) = (count(outline.slots.len() as u64, "trial"), count(plan.blocks.into(), "block"));
    let (most, until) = if plan.until_decided { ("at most ", ", until everything is decided") } else { ("", "") };
    line(format!("{most}{trials} in {blocks}{until}, seed {}", orders.seed));
    if outline.requests > 0 {
        line(count(outline.requests, "measured request"));
    }
    if outline.window_ns > 0 {
        line(format!("at most {} of measured time", units::short_duration(outline.window_ns as f64)));
    }
    if let Some(budget) = plan.budget_ns {
        let budget = units::short_duration(budget as f64);
        line(format!("no block begins that would probably end later than {budget} after the first began"));
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

/// Each cell: what it is asked, and what its variant changes.
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
