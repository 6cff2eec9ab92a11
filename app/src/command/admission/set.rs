//! `webdyno admission set`: the control file is changed, and the server is watched until it took the change or refused it.

use super::find::{self, Found};
use super::words::Word;
use super::{control, plain, words};
use crate::exit::Exit;
use crate::flags::admission::SetFlags;
use crate::say::{print, tell};
use anyhow::{Context, bail, ensure};
use model::admission::{Admission, Group};
use report::admission::is_stale;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::{self, File, Metadata, Permissions};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The controller looks at the file four times a second.
const PATIENCE: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(50);
/// A status written so long after the file is of that file: nobody need have seen it change.
const SETTLED_S: f64 = 1.0;
/// How long another `set` is waited for.
const LOCKED: Duration = Duration::from_secs(10);
/// A longer one is refused by the server.
const MOST: u64 = 64 << 10;

pub(super) fn run(flags: &SetFlags) -> anyhow::Result<Exit> {
    let found = find::one(flags.file.file.as_deref())?;
    let subject = words::subject(&flags.name, &found.status)?;
    let words = words::read(subject, &flags.words)?;
    let file = PathBuf::from(found.status.control_file.as_ref().context(NO_FILE)?);
    // Whoever writes the status names the file: it is read before it is believed, but nothing of it is told.
    let _lock = if flags.dry_run { None } else { Some(lock(&file).with_context(|| cannot(&file))?) };
    // Another `set` may have been waited for.
    let found = find::read(&found.file)?;
    // It is not made here: that would put a file wherever the status says.
    let (before, facts) = plain::read(&file, MOST)?.with_context(|| {
        format!("{0} is not there yet; make it, empty: install -m 644 /dev/null {0}", file.display())
    })?;
    plain::believe(&file, &facts)?;
    if let Some(line) = control::foreign(&before, |name, key| words::is_known(&found.status, name, key)) {
        bail!(
            "line {line} of {} is none that the server takes; put that right first: nothing is changed",
            file.display()
        );
    }
    let after =
        if flags.reset { control::reset(&before, &flags.name) } else { control::set(&before, &flags.name, &words) };
    if after == before {
        return Ok(told_nothing_to_do(&found.status, &file));
    }
    if flags.dry_run {
        print(&control::difference(&file.display().to_string(), &before, &after));
        return Ok(Exit::Done);
    }
    ensure!(is_the_same(&file, &facts), "{} was changed by somebody else just now: try again", file.display());
    write(&file, &after, &facts).with_context(|| cannot(&file))?;
    let asked = Asked { before: &found.status, name: &flags.name, words: &words, written: find::now() };
    let status = wait(&found.file, &asked);
    if status.as_ref().is_some_and(|status| status.control_error.is_some()) {
        take_back(&file, &before, &after, &facts)
            .with_context(|| format!("{} is refused and stays as it is now", file.display()))?;
    }
    Ok(told(&found, &file, status))
}

const NO_FILE: &str = "the server has no control file: add `AdmissionControlFile /etc/apache2/admission.control` to its configuration \
                       (any path that root alone may write), make that file, and restart the server, gracefully if you like";

fn cannot(file: &Path) -> String {
    format!("cannot change {}: it takes who may write there, root in general", file.display())
}

fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}

/// Keeps another `set` from changing the file at the same time, until it is dropped. The file itself is replaced; its folder stays.
fn lock(file: &Path) -> std::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder_of(file), flags, Mode::empty())?;
    let end = Instant::now() + LOCKED;
    loop {
        match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if Instant::now() < end => std::thread::sleep(STEP),
            Err(Errno::WOULDBLOCK) => return Err(std::io::Error::other("somebody else has locked its folder")),
            locked => return Ok(locked.map(|()| folder)?),
        }
    }
}

/// Whether the file is the one that was read, untouched: an editor knows nothing of the lock.
fn is_the_same(file: &Path, then: &Metadata) -> bool {
    let facts = |facts: &Metadata| (facts.ino(), facts.mtime(), facts.mtime_nsec(), facts.size());
    fs::symlink_metadata(file).is_ok_and(|now| facts(then) == facts(&now))
}

/// Puts another file in its place, with the same owner and mode: the server sees the old one or the new one.
fn write(file: &Path, text: &str, facts: &Metadata) -> std::io::Result<()> {
    let folder = folder_of(file);
    let mut new = tempfile::Builder::new().prefix(".admission-").tempfile_in(folder)?;
    new.write_all(text.as_bytes())?;
    fchown(new.as_file(), Some(facts.uid()), Some(facts.gid()))?;
    new.as_file().set_permissions(Permissions::from_mode(facts.mode() & 0o7777))?;
    new.as_file().sync_all()?;
    new.persist(file).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

/// A refused file that stays would take all it says with it when the server is started again.
fn take_back(file: &Path, before: &str, after: &str, facts: &Metadata) -> anyhow::Result<()> {
    let is_ours = plain::read(file, MOST)?.is_some_and(|(text, _)| text == after);
    if is_ours {
        write(file, before, facts)?;
    }
    Ok(())
}

/// What was asked for, and of whom.
struct Asked<'a> {
    before: &'a Admission,
    name: &'a str,
    words: &'a [Word],
    /// When the new file was in its place, seconds since 1970.
    written: f64,
}

impl Asked<'_> {
    /// Whether a status is one of a controller that has judged the new file.
    fn is_answered_by(&self, now: &Admission) -> bool {
        let same = now.pid == self.before.pid;
        let settled = now.written - self.written >= SETTLED_S;
        let error = now.control_error != self.before.control_error;
        match &now.control_error {
            // Another controller may have judged the file of before.
            _ if !same => settled,
            Some(_) => error || settled,
            None => {
                (error || now.control_generation != self.before.control_generation) && (settled || self.is_shown(now))
            }
        }
    }

    /// Whether the values are those that were asked for; what a reset comes to nobody here knows.
    fn is_shown(&self, now: &Admission) -> bool {
        let own = [&now.budget, &now.queue_workers].into_iter().filter(|group| group.name == self.name);
        let mut groups = own.chain(now.groups.iter().filter(|group| group.name == self.name || self.name == "*"));
        groups.all(|group| self.words.iter().all(|word| words::is_shown(word, group)))
    }
}

/// The status once the controller has looked at the new file; `None` when it did not.
fn wait(status: &Path, asked: &Asked<'_>) -> Option<Admission> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        std::thread::sleep(STEP);
        let now = find::read(status).ok().map(|found| found.status);
        if let Some(now) = now.filter(|now| asked.is_answered_by(now)) {
            return Some(now);
        }
    }
    None
}

fn told_nothing_to_do(status: &Admission, file: &Path) -> Exit {
    let file = file.display();
    if let Some(error) = &status.control_error {
        tell(format!("{file} says so already, and the server refuses it: {error}; nothing is changed"));
        return Exit::Usage;
    }
    if is_stale(status, find::now()) {
        tell(format!("{file} says so already, but the server is gone, or its controller; nothing is changed"));
        return Exit::Server;
    }
    print(&format!("{file} says so already; nothing is changed\n"));
    Exit::Done
}

fn told(before: &Found, file: &Path, after: Option<Admission>) -> Exit {
    let file = file.display();
    let Some(after) = after else {
        let why = if is_stale(&before.status, find::now()) {
            "the server is gone, or its controller"
        } else {
            "is the server running, and is this its control file?"
        };
        tell(format!("{file} is changed, but no server took it within {} s: {why}", PATIENCE.as_secs()));
        return Exit::Server;
    };
    if let Some(error) = &after.control_error {
        tell(format!("the server refuses that: {error}; the values before it stay in force, and {file} is as it was"));
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
        fs::write(&file, "php limit=1\n").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let (text, facts) = plain::read(&file, MOST).unwrap().unwrap();
        assert_eq!(text, "php limit=1\n");
        assert!(is_the_same(&file, &facts));
        write(&file, "php limit=2\n", &facts).unwrap();
        assert!(!is_the_same(&file, &facts), "another file");
        let facts = fs::metadata(&file).unwrap();
        assert_eq!((facts.mode() & 0o7777, fs::read_to_string(&file).unwrap().as_str()), (0o600, "php limit=2\n"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_refused_file_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("control");
        fs::write(&file, "php limit=9\n").unwrap();
        let facts = fs::metadata(&file).unwrap();
        take_back(&file, "# old\n", "php limit=8\n", &facts).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "php limit=9\n", "another one's");
        take_back(&file, "# old\n", "php limit=9\n", &facts).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "# old\n");
    }

    #[test]
    fn only_one_changes_the_file_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("control");
        let first = lock(&file).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let second = std::thread::spawn(move || sender.send(lock(&file).is_ok()));
        assert!(receiver.recv_timeout(Duration::from_millis(150)).is_err());
        drop(first);
        assert_eq!(receiver.recv(), Ok(true));
        second.join().unwrap().unwrap();
    }

    #[test]
    fn an_answer_is_one_to_the_new_file() {
        let mut before = golden();
        before.control_error = None;
        let words = [Word { key: "limit".to_owned(), value: "8".to_owned() }];
        // Seconds after the file, controller, count, error, limit of the group.
        let check = |after_s: f64, pid: u32, generation: u64, error: Option<&str>, limit: u64, expected: bool| {
            let mut now = before.clone();
            now.written += after_s;
            (now.pid, now.control_generation) = (Some(pid), generation);
            now.control_error = error.map(str::to_owned);
            now.groups[0].configured_limit = Some(limit);
            let asked = Asked { before: &before, name: "php", words: &words, written: before.written };
            assert_eq!(asked.is_answered_by(&now), expected, "{after_s} {pid} {generation} {error:?} {limit}");
        };
        check(0.1, 4243, 3, None, 4, false);
        check(2.0, 4243, 3, None, 8, false);
        check(0.1, 4243, 4, None, 8, true);
        // Somebody else's file before ours.
        check(0.1, 4243, 4, None, 5, false);
        check(1.5, 4243, 5, None, 5, true);
        check(0.1, 4243, 3, Some("line 1"), 4, true);
        // Another controller begins with the old file.
        check(0.1, 5000, 4, None, 4, false);
        check(0.1, 5000, 4, None, 8, false);
        check(1.5, 5000, 3, None, 8, true);
        check(1.5, 5000, 1, Some("line 1"), 4, true);
        // The same mistake as before.
        before.control_error = Some("line 2".to_owned());
        let asked = Asked { before: &before, name: "php", words: &words, written: before.written };
        let mut now = before.clone();
        assert!(!asked.is_answered_by(&now));
        now.written += 1.5;
        assert!(asked.is_answered_by(&now));
    }
}
