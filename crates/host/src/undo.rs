//! How each change is put back: newest first, twice if need be, and on past what fails.
//!
//! A journal is read by whoever comes after a crash, so it is not trusted with other people's things: files, folders and groups are
//! removed only when their names begin with `webdyno-<run>-`, and processes are ended only when they are proved to be ours.

use crate::call;
use crate::claim;
use crate::confine;
use crate::files;
use crate::journal::{Head, Journal, Undo};
use crate::mounts;
use crate::process::Members;
use crate::service;
use crate::swap;
use crate::sysctl;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the run and `restore` wait for each server that takes its time to die.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How long all servers together that the plan has asked to end in a way of its own are waited for, before they are ended by force: whoever
/// comes after a run that was killed has promised that everything is back within 5 s.
const ASKED: Duration = Duration::from_secs(3);
/// The same where a server of the machine's waits to have its own configuration read: it serves others meanwhile.
const ASKED_BEFORE_OTHERS: Duration = Duration::from_secs(1);

/// How long a command of the plan's may take: a little longer than systemd waits for a service by itself (90 s).
const TELL: Duration = Duration::from_secs(100);

/// What became of an attempt to undo a whole journal, one sentence each.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What was put back; what had gone by itself is not mentioned.
    pub(crate) put_back: Vec<String>,
    /// What was not, and why.
    pub(crate) failed: Vec<String>,
}

/// What the name of everything made by `run` begins with.
pub(crate) fn marker(run: &str) -> String {
    format!("webdyno-{run}-")
}

/// Undoes whatever the journal still names. `patience` is for each process or group that takes its time to end. As long as a file cannot be
/// given back, nobody is told to read it; as long as anything that others can claim is not as it was, nobody else may work on it, who would
/// take the run's for its own.
pub(crate) fn undo_all(journal: &mut Journal, patience: Duration) -> Outcome {
    let mut outcome = Outcome::default();
    for line in &journal.replay().unknown {
        let path = journal.path().display();
        outcome.failed.push(format!("line {line} of {path} was written by another version of webdyno: use that one"));
    }
    // Without a head nothing can have been changed.
    let Some(head) = journal.replay().head.clone() else { return outcome };
    let (mut files_left, mut claimed_left) = (false, false);
    let mut unwritten = Vec::new();
    let pending = renewed(journal, &head);
    let others_wait = pending.iter().any(|(_, undo)| matches!(undo, Undo::Tell { .. } | Undo::Restart { .. }));
    let asked_until = Instant::now() + if others_wait { ASKED_BEFORE_OTHERS } else { ASKED };
    for (id, undo) in pending {
        // Whoever is to read the files again would read the run's, and the next attempt would not tell them again.
        if files_left && undo.turn() > 0 || claimed_left && matches!(undo, Undo::Unclaim { .. }) {
            continue;
        }
        let patience = match undo {
            Undo::AskToEnd { .. } => asked_until.saturating_duration_since(Instant::now()),
            _ => patience,
        };
        match carry_out(&undo, &head, patience) {
            Ok(sentence) => {
                outcome.put_back.extend(sentence);
                unwritten.extend(journal.done(id).err().map(|error| error.to_string()));
            }
            Err(sentence) => {
                files_left |= matches!(undo, Undo::GiveBack(_));
                claimed_left |= matches!(undo, Undo::Sysctl { .. } | Undo::Tell { .. } | Undo::Restart { .. });
                outcome.failed.push(sentence);
            }
        }
    }
    // Where all is undone, the journal goes, and on a full disk that needs no room.
    if !outcome.failed.is_empty() {
        outcome.failed.append(&mut unwritten);
    }
    outcome
}

/// What is to be undone, in the order of undoing. Sessions whose leader is there are known as of now, also to whoever tries again: once it
/// has ended, be it because it was asked to, they are only known by how few processes were made since.
fn renewed(journal: &mut Journal, head: &Head) -> Vec<(u64, Undo)> {
    let mut pending = in_order(&journal.replay().pending);
    let elsewhere = head.is_of_another_boot().unwrap_or(true) || head.is_of_another_namespace().unwrap_or(true);
    for (id, undo) in pending.iter_mut().filter(|_| !elsewhere) {
        let Undo::KillSession(session) = undo else { continue };
        let now = session.renewed();
        if now != *session {
            *session = now;
            // A full disk hides it only from who tries again.
            let _ = journal.amend(*id, undo.clone());
        }
    }
    pending
}

/// What is to be undone, in the order of undoing.
pub(crate) fn in_order(pending: &BTreeMap<u64, Undo>) -> Vec<(u64, Undo)> {
    let mut ordered: Vec<(u64, Undo)> = pending.iter().rev().map(|(id, undo)| (*id, undo.clone())).collect();
    ordered.sort_by_key(|(_, undo)| undo.turn());
    ordered
}

/// Undoes one change. `Ok(None)` when there was nothing left to undo.
pub(crate) fn carry_out(undo: &Undo, head: &Head, patience: Duration) -> Result<Option<String>, String> {
    match undo {
        Undo::RemoveFile { path } => remove_file(ours(path, head)?),
        Undo::RemoveTree { path } => remove_tree(ours(path, head)?),
        Undo::GiveBack(lent) => files::give_back(lent, head),
        Undo::Tell { command, unproven } => tell(command).or_else(|why| match unproven {
            // Most likely nobody has read the change by it either.
            true => Ok(Some(format!("{why}, as in the run"))),
            false => Err(why),
        }),
        Undo::Restart { service, how } => {
            service::give_back(service, *how, head.is_of_another_boot()? || head.is_of_another_namespace()?)
        }
        Undo::Unclaim { path } => claim::unclaim(path, head),
        // Everything below went with the boot it was made in.
        _ if head.is_of_another_boot()? => Ok(None),
        Undo::AskToEnd { .. } if head.is_of_another_namespace()? => Ok(None),
        Undo::AskToEnd { session, stop } if !stop.by.reaches(|| session.leader.lives()) => Ok(None),
        // What does not end is ended by force next.
        Undo::AskToEnd { session, stop } => {
            let (server, words) = (format!("a server (session {})", session.leader.pid), stop.by.words());
            let had_ended = !session.leader.lives();
            Ok(Some(match stop.ask(&mut { session.leader }, patience) {
                Ok(()) if had_ended => format!("ran {words} for {server}, which had ended"),
                Ok(()) => format!("{server} ended by {words}"),
                Err(why) => format!("{server} {why}"),
            }))
        }
        // It may live where nothing is seen of it from here, and nobody here is one of it.
        Undo::KillSession(session) if head.is_of_another_namespace()? => Ok(Some(format!(
            "session {} belongs to another pid namespace, as a container has: no process was looked for; where that still runs, end them there",
            session.leader.pid
        ))),
        Undo::KillSession(session) => match Members::Session(*session).end(patience)? {
            0 => Ok(None),
            n => Ok(Some(format!("ended {n} of a server's processes (session {})", session.leader.pid))),
        },
        Undo::RemoveGroup { paths } => {
            let paths = paths.iter().map(|path| ours(path, head)).collect::<Result<Vec<_>, _>>()?;
            confine::remove(&paths, patience)
        }
        Undo::DisableMemory { parent } => confine::take_back(parent, "memory"),
        Undo::DisableController { parent, controller } => confine::take_back(parent, controller),
        Undo::SwapOff { file } => swap::off(ours(file, head)?),
        Undo::SwapOn { file, priority } => swap::on(file, *priority),
        Undo::Sysctl { name, value, ours } => sysctl::give_back(name, value, ours),
    }
}

/// Runs a command of the plan's, which has somebody read again what was changed or given back.
pub(crate) fn tell(command: &[String]) -> Result<Option<String>, String> {
    let [program, args @ ..] = command else { return Ok(None) };
    let ended = call::run(call::call(Path::new(program)).args(args), TELL)?;
    let words = command.join(" ");
    if ended.success() { Ok(Some(format!("ran `{words}`"))) } else { Err(format!("`{words}` ended with {ended}")) }
}

/// `path`, if its last part bears the run's name and no part leads elsewhere.
pub(crate) fn ours<'a>(path: &'a Path, head: &Head) -> Result<&'a Path, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if path.is_absolute() && plain && name.starts_with(&marker(&head.run)) {
        Ok(path)
    } else {
        Err(format!("{} does not bear the name of the run {} and was left alone", path.display(), head.run))
    }
}

fn remove_file(path: &Path) -> Result<Option<String>, String> {
    match fs::remove_file(path) {
        Ok(()) => Ok(Some(format!("deleted the file {}", path.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot delete {}: {error}", path.display())),
    }
}

fn remove_tree(path: &Path) -> Result<Option<String>, String> {
    let failed = |error: io::Error| format!("cannot delete {}: {error}", path.display());
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found.map_err(failed)?,
    };
    // In a folder that everybody may write to, somebody else could have put a folder or a link of that name.
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!("{} is not a folder made by this user and was left alone", path.display()));
    }
    let real: PathBuf = path.canonicalize().map_err(failed)?;
    let mounts = mounts::mounts_of("self").map_err(|error| {
        format!("the folder {} stays, as it cannot be seen whether something is mounted in it: {error}", path.display())
    })?;
    if mounts::any_below(&mounts, &real) {
        return Err(format!("something is mounted in {}: unmount it first", path.display()));
    }
    // Does not follow links.
    fs::remove_dir_all(path).map_err(failed)?;
    Ok(Some(format!("deleted the folder {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const SOON: Duration = Duration::from_secs(1);

    fn head() -> Head {
        let dir = tempfile::tempdir().unwrap();
        Journal::create(dir.path(), "r1").unwrap().replay().head.clone().unwrap()
    }

    /// Undoes twice: the first time as `expected`, the second time either nothing is left or the refusal is the same.
    fn check(undo: &Undo, expected: Result<Option<&str>, &str>) {
        let first = carry_out(undo, &head(), SOON);
        let seen = first.as_ref().map(Option::as_deref).map_err(String::as_str);
        match (seen, expected) {
            (Err(seen), Err(part)) => assert!(seen.contains(part), "{seen}"),
            (seen, expected) => assert_eq!(seen, expected, "{undo:?}"),
        }
        assert_eq!(carry_out(undo, &head(), SOON), first.map(|_| None), "{undo:?} a second time");
    }

    #[test]
    fn only_our_own_names_are_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("webdyno-r1-x/deep")).unwrap();
        fs::create_dir_all(at("webdyno-r2-x")).unwrap();
        fs::create_dir_all(at("precious")).unwrap();
        fs::write(at("precious/file"), "kept").unwrap();
        symlink(at("precious"), at("webdyno-r1-link")).unwrap();
        symlink(at("precious"), at("webdyno-r1-x/link")).unwrap();

        let deleted = format!("deleted the folder {}", at("webdyno-r1-x").display());
        check(&Undo::RemoveTree { path: at("webdyno-r1-x") }, Ok(Some(&deleted)));
        check(&Undo::RemoveTree { path: at("webdyno-r1-none") }, Ok(None));
        check(&Undo::RemoveTree { path: at("webdyno-r1-link") }, Err("not a folder made by this user"));
        for path in
            [at("precious"), at("webdyno-r2-x"), at("webdyno-r1-y/../precious"), "webdyno-r1-x".into(), "/".into()]
        {
            check(&Undo::RemoveTree { path: path.clone() }, Err("does not bear the name"));
            check(&Undo::RemoveFile { path: path.clone() }, Err("does not bear the name"));
            check(&Undo::SwapOff { file: path.clone() }, Err("does not bear the name"));
            check(&Undo::RemoveGroup { paths: vec![path] }, Err("does not bear the name"));
        }
        assert_eq!(fs::read_to_string(at("precious/file")).unwrap(), "kept");
        assert!(at("webdyno-r2-x").exists());
    }

    #[test]
    fn a_folder_with_something_mounted_in_it_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("webdyno-r1-x/inner");
        fs::create_dir_all(&inner).unwrap();
        let run = |program: &str, args: &[&str]| {
            std::process::Command::new(program)
                .args(args)
                .arg(&inner)
                .output()
                .is_ok_and(|output| output.status.success())
        };
        if !run("mount", &["-t", "tmpfs", "-o", "size=4k", "none"]) {
            return testkit::skip::not_here("nothing can be mounted");
        }
        fs::write(inner.join("precious"), "").unwrap();
        let outcome = remove_tree(&dir.path().join("webdyno-r1-x"));
        let kept = inner.join("precious").exists();
        // A program that another test is about to start may have the file open for a moment yet.
        assert!(run("umount", &["-l"]));
        assert!(kept && outcome.is_err_and(|why| why.contains("something is mounted in")));
    }

    #[test]
    fn swap_that_is_no_more_is_not_looked_for() {
        check(&Undo::SwapOn { file: "/nowhere/at/all".into(), priority: -2 }, Ok(None));
        let no_swap = tempfile::NamedTempFile::new().unwrap();
        let expected = format!("cannot take the swap area {} into use again: ", no_swap.path().display());
        check(&Undo::SwapOn { file: no_swap.path().to_owned(), priority: 5 }, Err(&expected));
    }

    #[test]
    fn nothing_of_an_earlier_boot_is_looked_for() {
        let before = Head { boot: "another".into(), ..head() };
        let mut sleeper = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let session = crate::process::Session::of(sleeper.id()).unwrap();
        assert_eq!(carry_out(&Undo::KillSession(session), &before, SOON), Ok(None));
        assert!(sleeper.try_wait().unwrap().is_none(), "signalled although it belongs to another boot");
        // In its own boot the same entry ends it: a leader is ours even before it has made its session.
        assert!(carry_out(&Undo::KillSession(session), &head(), SOON).unwrap().is_some());
        sleeper.wait().unwrap();
    }

    #[test]
    fn a_server_of_the_machines_waits_less_for_one_that_does_not_end() {
        let dir = tempfile::tempdir().unwrap();
        let told = dir.path().join("told");
        let mut journal = Journal::create(dir.path(), "r1").unwrap();
        let tell = vec!["touch".to_owned(), told.to_str().unwrap().to_owned()];
        journal.record(Undo::Tell { command: tell, unproven: false }).unwrap();
        // It does not care for the signal.
        let mut server = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let session = crate::process::Session::of(server.id()).unwrap();
        journal.record(Undo::KillSession(session)).unwrap();
        let by = crate::stop::StopBy::Signal(model::plan::StopSignal::Winch);
        let stop = Box::new(crate::stop::Stop { by, within: Duration::from_secs(600) });
        journal.record(Undo::AskToEnd { session, stop }).unwrap();
        let outcome = undo_all(&mut journal, SOON);
        server.wait().unwrap();
        assert_eq!(outcome.failed, [""; 0]);
        let (asked, rest) = outcome.put_back[0].split_once(" s after it was asked to by SIGWINCH").unwrap();
        let waited: f64 = asked.rsplit(' ').next().unwrap().parse().unwrap();
        assert!(waited <= 1.0 && rest.is_empty(), "{outcome:?}");
        assert!(told.exists() && outcome.put_back[2].starts_with("ran `touch "), "{outcome:?}");
    }

    #[test]
    fn nobody_is_told_of_a_file_that_was_not_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let mut journal = Journal::create(dir.path(), "r1").unwrap();
        // Where the run's file would lie there is a folder, as long as there is.
        fs::create_dir(at("webdyno-r1-x.conf")).unwrap();
        let lent = format!(
            r#"{{"path":"{}","kept":null,"fresh":"{}","ours":null,"folder_changed":[0,0]}}"#,
            at("webdyno-r1-x.conf"),
            at(".webdyno-r1-x-new")
        );
        journal.record(Undo::GiveBack(serde_json::from_str(&lent).unwrap())).unwrap();
        journal.record(Undo::Unclaim { path: at("claim").into() }).unwrap();
        journal.record(Undo::Tell { command: vec!["touch".into(), at("told")], unproven: false }).unwrap();
        fs::write(at("claim"), "r1\n").unwrap();
        let there = |name: &str| Path::new(&at(name)).exists();
        let outcome = undo_all(&mut journal, SOON);
        assert_eq!((outcome.failed.len(), outcome.put_back), (1, vec![]));
        assert_eq!((there("told"), there("claim"), journal.replay().pending.len()), (false, true, 3));
        fs::remove_dir(at("webdyno-r1-x.conf")).unwrap();
        let outcome = undo_all(&mut journal, SOON);
        assert_eq!((outcome.failed, there("told"), there("claim")), (vec![], true, false));
    }

    #[test]
    fn nobody_else_works_on_what_was_not_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let claim = dir.path().join("claim");
        let check = |undo: Undo, stays: bool| {
            let mut journal = Journal::create(dir.path(), "r1").unwrap();
            journal.record(Undo::Unclaim { path: claim.clone() }).unwrap();
            journal.record(undo.clone()).unwrap();
            fs::write(&claim, "r1\n").unwrap();
            undo_all(&mut journal, SOON);
            assert_eq!(
                (claim.exists(), journal.replay().pending.len()),
                (stays, if stays { 2 } else { 0 }),
                "{undo:?}"
            );
            journal.remove().unwrap();
        };
        let tell = |command: &str| Undo::Tell { command: vec![command.into()], unproven: false };
        check(Undo::Sysctl { name: "net.core.none".into(), value: "1".into(), ours: vec![] }, true);
        check(tell("false"), true);
        check(tell("true"), false);
    }

    #[test]
    fn a_command_that_never_worked_is_no_hindrance() {
        let tell = |unproven| Undo::Tell { command: vec!["false".into()], unproven };
        let ended = carry_out(&tell(true), &head(), SOON);
        assert_eq!(ended, Ok(Some("`false` ended with exit status: 1, as in the run".to_owned())));
        assert!(carry_out(&tell(false), &head(), SOON).is_err());
    }

    #[test]
    fn one_failure_does_not_stop_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(dir.path(), "r1").unwrap();
        let (first, last) = (dir.path().join("webdyno-r1-a"), dir.path().join("webdyno-r1-b"));
        for path in [&first, &dir.path().join("precious"), &last] {
            fs::write(path, "").unwrap();
            journal.record(Undo::RemoveFile { path: path.clone() }).unwrap();
        }
        let outcome = undo_all(&mut journal, SOON);
        assert_eq!(outcome.put_back, [last, first].map(|path| format!("deleted the file {}", path.display())));
        assert_eq!((outcome.failed.len(), journal.replay().pending.len()), (1, 1));
        assert!(dir.path().join("precious").exists());
    }
}
