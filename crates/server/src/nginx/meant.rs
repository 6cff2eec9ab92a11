//! What a plan says of the machine's own nginx, whether that is changed in place or copied: its directives put into the configuration, and
//! what then is in force.

use super::SERVER;
use super::edit::{Edited, edit};
use super::lines::{Context, Objection, Planned, planned};
use super::machine::servers::{Server, doors, servers};
use super::machine::tree::{Statement, level};
use super::machine::{Configuration, tree};
use crate::control::blame;
use crate::own::{Door, pick};
use crate::{PlanKey, ServerError};
use model::plan::{Directive, Existing, Nginx, Variant};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Settings that decide how requests are worked on, kept with a run.
const KEPT: [&str; 22] = [
    "accept_mutex",
    "access_log",
    "aio",
    "gzip",
    "keepalive_requests",
    "keepalive_timeout",
    "limit_conn",
    "limit_conn_zone",
    "limit_req",
    "limit_req_zone",
    "listen",
    "multi_accept",
    "open_file_cache",
    "sendfile",
    "sendfile_max_chunk",
    "tcp_nodelay",
    "tcp_nopush",
    "thread_pool",
    "worker_connections",
    "worker_cpu_affinity",
    "worker_processes",
    "worker_rlimit_nofile",
];

/// A plan about a configuration that is there.
#[derive(Debug, Clone)]
pub(super) struct Meant {
    pub(super) spec: Nginx,
    pub(super) existing: Existing,
    pub(super) plan: PathBuf,
    /// The key of the plan that says so.
    pub(super) by: &'static str,
}

/// A directive of the plan's without effect, and why.
pub(super) type Without<'a> = (&'a Directive, String);

/// A configuration with a variant's directives.
pub(super) struct Made {
    pub(super) edited: Edited,
    pub(super) planned: Vec<Planned>,
    /// All files as they become, taken apart.
    pub(super) tree: Vec<Statement>,
    pub(super) texts: BTreeMap<PathBuf, String>,
}

impl Meant {
    pub(super) fn key(&self, key: &'static str) -> PlanKey {
        PlanKey { plan: self.plan.clone().into(), service: None, line: self.spec.line(key), key }
    }

    /// The configuration's doors, and which of them is meant.
    pub(super) fn doors(&self, main: &Path, tree: &[Statement]) -> Result<(Vec<Door>, usize), ServerError> {
        let doors = doors(&servers(tree));
        let index = pick(&doors, self.existing.port, main, self.key("port"))?;
        Ok((doors, index))
    }

    /// The configuration with the variant's directives; `server` is who answers, `own` comes into `http`.
    pub(super) fn made(
        &self,
        (main, configuration): (&Path, &Configuration),
        server: Option<&Statement>,
        variant: &Variant,
        objection: &Objection<'_>,
        own: &str,
    ) -> Result<Made, ServerError> {
        let blamed = |(directive, why): (Directive, String)| blame(&self.plan, &directive, why, SERVER);
        let planned = planned(&self.spec.directives, &variant.directives, objection).map_err(blamed)?;
        let edited = edit(configuration, main, &planned, server, own).map_err(|(line, why)| match line {
            Some(line) => blamed((line, why)),
            None => ServerError::Machine { at: self.key(self.by), why },
        })?;
        let texts = edited.all(configuration);
        let tree = tree::parse(main, &texts).map_err(|message| {
            let (plan, variant) = (self.plan.clone(), variant.name.clone());
            ServerError::Configuration { plan, variant, message, server: SERVER }
        })?;
        Ok(Made { edited, planned, tree, texts })
    }

    /// The first is an error, unless the variant allows this very difference; then it is a note.
    pub(super) fn accept<'a>(
        &self,
        found: impl Iterator<Item = Without<'a>>,
        variant: &Variant,
        notes: &mut Vec<String>,
    ) -> Result<(), ServerError> {
        for (directive, sentence) in found {
            let note = format!("{}: {sentence}", directive.text.trim());
            if !variant.allow_warnings.iter().any(|allowed| note.contains(allowed.as_str())) {
                return Err(blame(&self.plan, directive, sentence, SERVER));
            }
            notes.push(note);
        }
        Ok(())
    }
}

/// What holds for the server that answers, as nginx has read it, and directives of the plan that it has the last word on.
pub(super) fn in_force<'a>(
    read: &[Statement],
    server: Option<&Server<'_>>,
    planned: &'a [Planned],
) -> (BTreeMap<String, String>, Vec<Without<'a>>) {
    let top = level(read);
    let inside = |name: &str| -> Vec<&Statement> {
        top.iter().filter(|it| it.is(name)).flat_map(|it| level(&it.inside)).collect()
    };
    let own = server.map(|server| level(&server.block.inside)).unwrap_or_default();
    let mut values = BTreeMap::new();
    let is_planned = |name: &str| planned.iter().any(|it| it.name == name);
    for lines in [&top, &inside("events"), &inside("http"), &own] {
        let mut of_level: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let wanted = |it: &&&Statement| it.end.is_none() && (KEPT.contains(&it.name.as_str()) || is_planned(&it.name));
        for it in lines.iter().filter(wanted) {
            of_level.entry(it.name.clone()).or_default().push(it.value());
        }
        // The inner block has the last word, on all of a name.
        values.extend(of_level.into_iter().map(|(name, said)| (name, said.join("; "))));
    }
    let mut found = Vec::new();
    for planned in planned.iter().filter(|it| it.context == Context::Http) {
        let Some(line) = planned.lines.first() else { continue };
        let adds = ["log_format", "map", "upstream"].contains(&planned.name.as_str());
        let Some(by) = own.iter().find(|it| it.name == planned.name && !adds) else { continue };
        let why = format!(
            "the server that answers has its own at {}: {} {}; change it there, or write `server {{`, the line and `}}`",
            by.place(),
            by.name,
            by.value()
        );
        found.push((line, why));
    }
    (values, found)
}
