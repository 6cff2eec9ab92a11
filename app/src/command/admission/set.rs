//! `webdyno admission set`: the control file is changed, and the server is watched until it took the change or refused it.

use super::find::{self, Found};
use super::{control, words};
use crate::exit::Exit;
use crate::flags::admission::SetFlags;
use crate::say::{print, tell};
use anyhow::Context;
use model::admission::{Admission, Group};
use report::admission::is_stale;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The controller looks at the file each second.
const PATIENCE: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(50);
/// A control file that others than its owner may write is refused.
const MODE: u32 = 0o644;

pub(super) fn run(flags: &SetFlags) -> anyhow::Result<Exit> {
    let found = find::one(flags.file.file.as_deref())?;
    let subject = words::subject(&flags.name, &found.status)?;
    let words = words::read(subject, &flags.words)?;
    let file = found.status.control_file.as_ref().context(NO_FILE)?;
    // A link stays one.
    let file = fs::canonicalize(file).unwrap_or_else(|_| PathBuf::from(file));
    let (before, facts) = read(&file)?;
    let after =
        if flags.reset { control::reset(&before, &flags.name) } else { control::set(&before, &flags.name, &words) };
    if after == before {
        print(&format!("{} says so already; nothing is changed\n", file.display()));
        return Ok(Exit::Done);
    }
    if flags.dry_run {
        print(&control::difference(&file.display().to_string(), &before, &after));
        return Ok(Exit::Done);
    }
    write(&file, &after, facts.as_ref())
        .with_context(|| format!("cannot change {}: it takes who may write there, root in general", file.display()))?;
    Ok(told(&found, &file, wait(&found)))
}

const NO_FILE: &str = "the server has no control file: add `AdmissionControlFile /etc/apache2/admission.control` to its configuration \
                       (any path that root alone may write) and restart it, gracefully if you like";

/// The text of a control file and what is known of the file; nothing of one that is not there yet.
fn read(file: &Path) -> anyhow::Result<(String, Option<Metadata>)> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok((String::new(), None)),
        text => {
            let cannot = || format!("cannot read {}", file.display());
            Ok((text.with_context(cannot)?, Some(fs::metadata(file).with_context(cannot)?)))
        }
    }
}

/// Puts another file in its place, with the same owner and mode: the server sees the old one or the new one.
fn write(file: &Path, text: &str, facts: Option<&Metadata>) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    let mut new = tempfile::Builder::new().prefix(".admission-").tempfile_in(folder)?;
    new.write_all(text.as_bytes())?;
    if let Some(facts) = facts {
        fchown(new.as_file(), Some(facts.uid()), Some(facts.gid()))?;
    }
    let mode = facts.map_or(MODE, |facts| facts.mode() & 0o7777);
    new.as_file().set_permissions(Permissions::from_mode(mode))?;
    new.as_file().sync_all()?;
    new.persist(file).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

/// The status once the controller has looked at the new file; `None` when it did not.
fn wait(before: &Found) -> Option<Admission> {
    let facts = |status: &Admission| (status.control_generation, status.control_error.clone());
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        std::thread::sleep(STEP);
        let now = find::read(&before.file).ok().map(|found| found.status);
        if let Some(now) = now.filter(|now| facts(now) != facts(&before.status)) {
            return Some(now);
        }
    }
    None
}

fn told(before: &Found, file: &Path, after: Option<Admission>) -> Exit {
    let file = file.display();
    let Some(after) = after else {
        let why = match &before.status.control_error {
            Some(error) => format!("the server refused it before and has not said anything else since: {error}"),
            None if is_stale(&before.status, find::now()) => "the server is gone, or its controller".to_owned(),
            None => "is the server running, and is this its control file?".to_owned(),
        };
        tell(format!("{file} is changed, but no server took it within {} s: {why}", PATIENCE.as_secs()));
        return Exit::Server;
    };
    if let Some(error) = &after.control_error {
        tell(format!("the server refuses {file}: {error}; the values before it stay in force until the file is right"));
        return Exit::Usage;
    }
    let changes = changes(&before.status, &after);
    print(&if changes.is_empty() { "in force; no value changed by it\n".to_owned() } else { changes });
    Exit::Done
}

/// `php: limit 4 -> 8, in force`, a line for each group.
fn changes(before: &Admission, after: &Admission) -> String {
    let all = |status: &Admission| {
        let own = [&status.budget, &status.queue_workers].into_iter().cloned();
        own.chain(status.groups.iter().cloned()).collect::<Vec<Group>>()
    };
    let mut text = String::new();
    for group in all(after) {
        let Some(was) = before.group(&group.name) else { continue };
        let is_memory = group.name == after.budget.name;
        let (from, to) = (facts(was, is_memory), facts(&group, is_memory));
        let changed: Vec<String> = from
            .into_iter()
            .zip(to)
            .filter(|(from, to)| from != to)
            .map(|((key, from), (_, to))| format!("{key} {from} -> {to}"))
            .collect();
        if changed.is_empty() {
            continue;
        }
        text += &format!("{}: {}, in force", group.name, changed.join(", "));
        if group.limit != group.configured_limit {
            text += &format!(
                " (the limit is {} now: it adapts, or goes by the time of day)",
                amount(group.limit, is_memory)
            );
        }
        text.push('\n');
    }
    text
}

/// What a control file can change, as it would write it.
fn facts(group: &Group, is_memory: bool) -> [(&'static str, String); 9] {
    [
        ("limit", amount(group.configured_limit, is_memory)),
        ("queue", group.queue.to_string()),
        ("timeout", units::short_duration(group.timeout_ms as f64 * 1e6)),
        ("order", group.order.clone()),
        ("status", group.status.to_string()),
        (
            "cost",
            if group.learn {
                format!("learn:{}", units::short_bytes(group.configured_cost))
            } else {
                units::short_bytes(group.configured_cost)
            },
        ),
        ("mode", group.mode.clone()),
        ("min", amount(group.min, false)),
        ("max", amount(group.max, false)),
    ]
}

fn amount(limit: Option<u64>, is_memory: bool) -> String {
    match limit {
        None => "none".to_owned(),
        Some(limit) if is_memory => units::short_bytes(limit),
        Some(limit) => limit.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn golden() -> Admission {
        let text = include_str!("../../../../modules/mod_admission/tests/golden/status.json");
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_changed_is_told() {
        let (before, mut after) = (golden(), golden());
        assert_eq!(changes(&before, &after), "");
        (after.groups[0].limit, after.groups[0].configured_limit) = (Some(8), Some(8));
        after.groups[0].timeout_ms = 500;
        after.groups[1].configured_limit = Some(4);
        after.budget.limit = None;
        after.budget.configured_limit = None;
        let expected = "memory: limit 800 MiB -> none, in force\n\
                        php: limit 4 -> 8, timeout 3.00 s -> 500 ms, in force\n\
                        uploads: limit 8 -> 4, in force (the limit is 2 now: it adapts, or goes by the time of day)\n";
        assert_eq!(changes(&before, &after), expected);
    }

    #[test]
    fn the_new_file_has_the_old_ones_mode() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("control");
        write(&file, "php limit=1\n", None).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, MODE);
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let (text, facts) = read(&file).unwrap();
        assert_eq!(text, "php limit=1\n");
        write(&file, "php limit=2\n", facts.as_ref()).unwrap();
        let facts = fs::metadata(&file).unwrap();
        assert_eq!((facts.mode() & 0o7777, fs::read_to_string(&file).unwrap().as_str()), (0o600, "php limit=2\n"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}
