//! A killed writer, a full disk, a read-only one, and files that are not stores of ours.
//!
//! What must happen in another process is done by this test binary, started again with one test selected and a variable set.

use super::{head, invalid, refusal, same, trial};
use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use store::Store;

pub(crate) const CHILD: &str = "STORE_TEST_CHILD";

/// The store's file when this process is the one started for `test`.
pub(crate) fn child_of(test: &str) -> Option<PathBuf> {
    let value = std::env::var(CHILD).ok()?;
    let (name, path) = value.split_once('=')?;
    (name == test).then(|| PathBuf::from(path))
}

/// Shell words that start this binary again for `test` on `path`.
pub(crate) fn again(test: &str, path: &Path) -> (PathBuf, [String; 3], String) {
    let path_of = if test.contains("::") { test.to_owned() } else { format!("trouble::{test}") };
    let args = ["--exact".to_owned(), path_of, "--nocapture".to_owned()];
    (std::env::current_exe().unwrap(), args, format!("{test}={}", path.display()))
}

#[test]
fn a_killed_writer_leaves_every_saved_trial() {
    if let Some(path) = child_of("a_killed_writer_leaves_every_saved_trial") {
        let mut store = Store::open(&path).unwrap();
        store.begin(&head("killed")).unwrap();
        for block in 0.. {
            store.save_trial("killed", &trial(block, vec![])).unwrap();
            println!("\nsaved {block}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    let (program, args, variable) = again("a_killed_writer_leaves_every_saved_trial", &path);
    let mut writer = Command::new(program).args(args).env(CHILD, variable).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let told = lines.map_while(Result::ok).filter(|line| line.starts_with("saved")).nth(6).unwrap();
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert_eq!(told, "saved 6");
    let mut store = Store::open(&path).unwrap();
    let run = store.load("latest").unwrap();
    assert!(run.trials.len() >= 7, "{} trials", run.trials.len());
    for (block, found) in run.trials.iter().enumerate() {
        same(found, &trial(u32::try_from(block).unwrap(), vec![]));
    }
    store.save_trial("killed", &invalid(99)).unwrap();
}

/// Runs `test` again with a small tmpfs under its store, in a mount namespace of its own, so that nothing outlives it;
/// where that is not allowed, says so instead.
pub(crate) fn on_small_disk(test: &str, then: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size=400k tmpfs '{}'", folder.path().display());
    let shell = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh"]);
        command
    };
    if !shell(&mount).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        testkit::skip::not_here("no mount namespace for a small tmpfs (needs root)");
        return;
    }
    let (program, args, variable) = again(test, &folder.path().join("store.sqlite"));
    let status = shell(&format!("{mount} && {then} exec \"$@\""))
        .arg(program)
        .args(args)
        .env(CHILD, variable)
        .env("FOLDER", folder.path())
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn a_full_disk_is_one_line_and_loses_nothing() {
    let Some(path) = child_of("a_full_disk_is_one_line_and_loses_nothing") else {
        on_small_disk("a_full_disk_is_one_line_and_loses_nothing", "");
        return;
    };
    let mut store = Store::open(&path).unwrap();
    store.begin(&head("full")).unwrap();
    let saved = (0..).take_while(|&block| store.save_trial("full", &trial(block, vec![])).is_ok()).count();
    let text = refusal(store.save_trial("full", &trial(0, vec![])), &store);
    assert_eq!(text, "disk full, nothing of this was saved; make room there or give --store FILE on another disk");
    drop(store);
    assert!(saved > 0);
    assert_eq!(Store::open(&path).unwrap().load("full").unwrap().trials.len(), saved);
}

#[test]
fn a_read_only_disk_is_one_line() {
    let Some(path) = child_of("a_read_only_disk_is_one_line") else {
        on_small_disk("a_read_only_disk_is_one_line", "mount -o remount,ro \"$FOLDER\" &&");
        return;
    };
    let told = Store::open(&path).unwrap_err().to_string();
    assert!(told.ends_with("give --store FILE") && !told.contains('\n'), "{told}");
}

#[test]
fn a_writer_waits_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    let mut store = Store::open(&path).unwrap();
    store.begin(&head("r")).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let saving = std::thread::spawn(move || store.save_trial("r", &invalid(0)).map_err(|error| error.to_string()));
    other.execute_batch("COMMIT").unwrap();
    saving.join().unwrap().unwrap();
}

#[test]
fn a_store_of_somebody_else_says_so_when_written() {
    if let Some(path) = child_of("a_store_of_somebody_else_says_so_when_written") {
        let mut store = Store::open(&path).unwrap();
        assert_eq!(store.runs().unwrap().len(), 1, "reading works");
        let told = refusal(store.begin(&head("other")), &store);
        assert_eq!(told, "the store can only be read, not written; check who owns it, or give --store FILE");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    Store::open(&path).unwrap().begin(&head("r")).unwrap();
    let allow = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    allow(folder.path(), 0o777);
    allow(&path, 0o444);
    let (program, args, variable) = again("a_store_of_somebody_else_says_so_when_written", &path);
    let mut child = Command::new(program);
    child.args(args).env(CHILD, variable);
    if folder.path().metadata().unwrap().uid() == 0 {
        // Root may write anything; nobody may not.
        child.uid(65534).gid(65534);
    }
    match child.status() {
        Ok(status) => assert!(status.success()),
        Err(error) => testkit::skip::not_here(&format!("another user cannot start this test's program: {error}")),
    }
}

/// A file made by `script`, opened as a store.
fn check(script: &str, expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    rusqlite::Connection::open(&path).unwrap().execute_batch(script).unwrap();
    assert_eq!(Store::open(&path).unwrap_err().to_string(), format!("{}: {expected}", path.display()));
}

#[test]
fn files_that_are_not_ours_are_refused_untouched() {
    check(
        "PRAGMA application_id = 0x5744796E; PRAGMA user_version = 99; CREATE TABLE later (x)",
        "the store has version 99, this webdyno knows 7; use a newer webdyno",
    );
    let not_ours = "not a webdyno store; give another file with --store FILE";
    check("CREATE TABLE bookmarks (x); PRAGMA user_version = 3", not_ours);
    check("PRAGMA application_id = 5; CREATE TABLE bookmarks (x)", not_ours);
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    std::fs::write(
        &text,
        "The quick brown fox jumps over the lazy dog, again and again, for more than a hundred bytes.",
    )
    .unwrap();
    assert_eq!(Store::open(&text).unwrap_err().to_string(), format!("{}: {not_ours}", text.display()));
    let told = Store::open(folder.path()).unwrap_err().to_string();
    assert!(told.ends_with("that you may read and write it, or give --store FILE"), "{told}");
    let told = Store::open(&text.join("store.sqlite")).unwrap_err().to_string();
    assert!(told.contains("cannot make the folder of the store"), "{told}");
}
