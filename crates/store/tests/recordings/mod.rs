//! Recordings of watches: what was written is there, whatever happened to the writer or the disk, and old ones go.

use super::trouble::{CHILD, again, child_of, on_small_disk};
use super::{refusal, stored};
use model::SECOND;
use model::device::{Device, DeviceKind, Roster};
use model::reading::{Column, Look};
use model::recording::{Chunk, RecordingHead, Retention};
use model::run::{Anchor, HostFacts, RunEnd};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use store::{Kind, Recorded, Store};

const HOUR: i64 = 3_600_000_000_000;

fn roster() -> Roster {
    let device = |kind, name: &str| Device { kind, name: name.to_owned() };
    Roster { devices: vec![device(DeviceKind::Disk, "sda"), device(DeviceKind::Interface, "ppp.0")] }
}

fn head(id: &str, wall_ns: i64) -> RecordingHead {
    RecordingHead {
        id: id.into(),
        anchor: Anchor { mono_ns: 0, wall_ns },
        host: HostFacts { name: "web1".into(), kernel: "6.1.0".into(), ..HostFacts::default() },
        version: "0.1.0".into(),
        words: vec!["-cd".into(), "-D".into(), "sda".into()],
        period_ns: SECOND,
        page_bytes: 4096,
        roster: roster(),
        notes: vec!["no PSI".into()],
        continues: None,
    }
}

fn look(second: u64) -> Look {
    let mut look = Look::empty(second * SECOND, roster().numbers());
    look.reading.set(Column::CpuUser, second * second);
    look.reading.set(Column::MemFree, u64::MAX - 1 - second);
    // The rest of the disk's numbers, and the interface when it is not there.
    look.devices[0] = 17 + second;
    if second.is_multiple_of(2) {
        let last = look.devices.len() - 1;
        look.devices[last] = second << 40;
    }
    look
}

fn chunk(seconds: std::ops::Range<u64>, wall_ns: i64) -> Chunk {
    Chunk {
        anchor: Anchor { mono_ns: seconds.start * SECOND, wall_ns },
        looks: seconds.map(look).collect(),
        processes: vec![],
        lost: 0,
        notes: vec![],
    }
}

fn looks(store: &Store, recorded: &Recorded) -> Vec<Look> {
    recorded.pieces.iter().flat_map(|piece| store.chunk(recorded, piece).unwrap().looks).collect()
}

fn new_store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store.sqlite")).unwrap();
    (folder, store)
}

#[test]
fn looks_come_back_exactly_with_their_devices() {
    let (_folder, mut store) = new_store();
    let head = head("20261121-120000-aa", 5 * HOUR);
    store.begin_recording(&head).unwrap();
    let gap = Chunk { lost: 7, notes: vec!["disk full".into()], ..chunk(71..73, 6 * HOUR) };
    for chunk in [chunk(0..64, 5 * HOUR), gap.clone()] {
        store.append(&head, &chunk).unwrap();
    }
    store.finish(&head.id, &RunEnd::Complete).unwrap();
    let recorded = store.recorded("latest").unwrap();
    assert_eq!((&recorded.head, &recorded.end), (&head, &RunEnd::Complete));
    assert_eq!(looks(&store, &recorded), (0..64).chain(71..73).map(look).collect::<Vec<_>>());
    assert_eq!(store.chunk(&recorded, &recorded.pieces[1]).unwrap(), gap);
    assert_eq!((recorded.pieces[1].lost, recorded.pieces[1].extent.looks), (7, 2));
    let told = refusal(store.begin_recording(&head), &store);
    assert_eq!(told, "a run `20261121-120000-aa` is already there");
}

#[test]
fn a_recording_is_no_run_and_a_run_no_recording() {
    let (_folder, mut store) = stored("20261121-11", &[]);
    let told = refusal(store.recorded("latest"), &store);
    assert_eq!(told, "the store holds no recording yet; `webdyno watch --record` makes one");
    let head = head("20261121-12", HOUR);
    store.begin_recording(&head).unwrap();
    store.append(&head, &chunk(3..5, HOUR)).unwrap();
    assert_eq!(store.load("latest").unwrap().head.id, "20261121-11");
    assert_eq!(store.recorded("latest").unwrap().head.id, "20261121-12");
    let told = refusal(store.load("20261121-12"), &store);
    assert_eq!(told, "`20261121-12` is a recording of a watch, no run; `webdyno watch --replay 20261121-12` shows it");
    let told = refusal(store.recorded("20261121-11"), &store);
    assert_eq!(told, "`20261121-11` is no recording of a watch; `webdyno report 20261121-11` shows it");
    assert_eq!(refusal(store.recorded("x"), &store), "no run `x`; `webdyno runs` lists them");
    let list = store.runs().unwrap();
    assert_eq!((list[0].kind, list[0].plan.as_str(), list[1].kind), (Kind::Watch, "-cd -D sda", Kind::Run));
    let extent = list[0].recorded.unwrap();
    assert_eq!((extent.looks, extent.length_ns(), list[1].recorded), (2, SECOND, None));
}

#[test]
fn a_killed_writer_leaves_every_chunk() {
    const TEST: &str = "recordings::a_killed_writer_leaves_every_chunk";
    if let Some(path) = child_of(TEST) {
        let mut store = Store::open(&path).unwrap();
        let head = head("killed", HOUR);
        store.begin_recording(&head).unwrap();
        for minute in 0.. {
            store.append(&head, &chunk(minute * 60..minute * 60 + 60, HOUR)).unwrap();
            println!("\nsaved {minute}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    let (program, args, variable) = again(TEST, &path);
    let mut writer = Command::new(program).args(args).env(CHILD, variable).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let told = lines.map_while(Result::ok).filter(|line| line.starts_with("saved")).nth(4).unwrap();
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert_eq!(told, "saved 4");
    let store = Store::open(&path).unwrap();
    let recorded = store.recorded("killed").unwrap();
    assert_eq!(recorded.end, RunEnd::Unfinished);
    let found = looks(&store, &recorded);
    assert!(found.len() >= 300 && found.len().is_multiple_of(60), "{} looks", found.len());
    assert_eq!(found, (0..found.len() as u64).map(look).collect::<Vec<_>>());
}

#[test]
fn a_full_disk_keeps_what_was_written_and_takes_more_when_there_is_room() {
    const TEST: &str = "recordings::a_full_disk_keeps_what_was_written_and_takes_more_when_there_is_room";
    let Some(path) = child_of(TEST) else {
        on_small_disk(TEST, "");
        return;
    };
    let ballast = path.with_file_name("ballast");
    std::fs::write(&ballast, vec![1; 120 << 10]).unwrap();
    let mut store = Store::open(&path).unwrap();
    let head = head("full", HOUR);
    store.begin_recording(&head).unwrap();
    let minute = |minute: u64| chunk(minute * 60..minute * 60 + 60, HOUR);
    let saved = (0..).take_while(|&at| store.append(&head, &minute(at)).is_ok()).count() as u64;
    let told = refusal(store.append(&head, &minute(saved)), &store);
    assert_eq!(told, "disk full, nothing of this was saved; make room there or give --store FILE on another disk");
    let seen = looks(&store, &store.recorded("full").unwrap());
    assert!(saved > 0 && seen.len() as u64 == saved * 60, "{saved} minutes, {} looks", seen.len());
    std::fs::remove_file(ballast).unwrap();
    store.append(&head, &minute(saved)).unwrap();
    assert_eq!(looks(&store, &store.recorded("full").unwrap()).len() as u64, saved * 60 + 60);
}

/// What SQLite calls an error of the disk when it cannot make the files that it needs beside the store's.
#[test]
fn a_disk_without_any_room_is_one_line_from_the_beginning() {
    const TEST: &str = "recordings::a_disk_without_any_room_is_one_line_from_the_beginning";
    let Some(path) = child_of(TEST) else {
        on_small_disk(TEST, "");
        return;
    };
    drop(Store::open(&path).unwrap());
    let mut ballast = std::fs::File::create(path.with_file_name("ballast")).unwrap();
    while std::io::Write::write_all(&mut ballast, &[1; 512]).is_ok() {}
    let begun = Store::open(&path).and_then(|mut store| store.begin_recording(&head("full", HOUR)));
    let told = begun.unwrap_err().to_string();
    let expected = "disk full, nothing of this was saved; make room there or give --store FILE on another disk";
    assert_eq!(told, format!("{}: {expected}", path.display()));
}

/// Records `count` old recordings beside one of now, and forgets all but that.
fn forgets(path: &Path, count: i64) -> (u64, u64) {
    let mut store = Store::open(path).unwrap();
    for at in 0..count {
        let head = head(&format!("old-{at}"), at * HOUR);
        store.begin_recording(&head).unwrap();
        (0..20).for_each(|_| store.append(&head, &chunk(0..60, at * HOUR)).unwrap());
        store.finish(&head.id, &RunEnd::Complete).unwrap();
    }
    let now = 1000 * HOUR;
    let current = head("now", now);
    store.begin_recording(&current).unwrap();
    store.append(&current, &chunk(0..60, now)).unwrap();
    rusqlite::Connection::open(path).unwrap().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let before = std::fs::metadata(path).unwrap().len();
    let forgotten = store.forget(Retention { age_ns: u64::MAX, bytes: 0 }, now + HOUR / 2).unwrap();
    assert_eq!(forgotten, (0..count).map(|at| format!("old-{at}")).collect::<Vec<_>>());
    assert_eq!(looks(&store, &store.recorded("now").unwrap()).len(), 60);
    assert!(store.forget(Retention::default(), now + HOUR / 2).unwrap().is_empty());
    (before, std::fs::metadata(path).unwrap().len())
}

#[test]
fn a_watch_with_rare_looks_is_not_forgotten_between_two_of_them() {
    let (_folder, mut store) = new_store();
    let now = 1000 * HOUR;
    let slow = RecordingHead { period_ns: 2 * HOUR.unsigned_abs(), ..head("slow", now) };
    store.begin_recording(&slow).unwrap();
    store.append(&slow, &chunk(0..1, now)).unwrap();
    let retention = Retention { age_ns: u64::MAX, bytes: 0 };
    // The next look was two hours later, and is written when the one after it comes.
    assert!(store.forget(retention, now + 4 * HOUR).unwrap().is_empty());
    store.append(&slow, &chunk(7200..7201, now + 2 * HOUR)).unwrap();
    assert_eq!(store.forget(retention, now + 9 * HOUR).unwrap(), ["slow"]);
}

#[test]
fn what_is_forgotten_gives_its_room_back() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = forgets(&folder.path().join("new.sqlite"), 8);
    assert!(after * 2 < before, "{before} -> {after}");
    // A store from before there were recordings.
    let path = folder.path().join("old.sqlite");
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/v1.sqlite"), &path).unwrap();
    let bare = std::fs::metadata(&path).unwrap().len();
    let (before, after) = forgets(&path, 30);
    assert!(before > bare + (64 << 10) && after < bare + (before - bare) / 2, "{bare}: {before} -> {after}");
    assert_eq!(Store::open(&path).unwrap().load("latest").unwrap().trials.len(), 10);
}

#[test]
fn a_look_takes_little_room() {
    // Every column grows somehow; real ones are mostly still.
    let busy = |second: u64| {
        let mut look = look(second);
        for (at, value) in look.reading.values.iter_mut().enumerate() {
            *value = (at as u64 + 1) * 1_000_003 + second * (at as u64 % 7) * 250 + (second * 7919 * at as u64) % 97;
        }
        look
    };
    let (_folder, mut store) = new_store();
    let head = head("size", HOUR);
    store.begin_recording(&head).unwrap();
    store.append(&head, &Chunk { looks: (0..60).map(busy).collect(), ..chunk(0..0, HOUR) }).unwrap();
    let bytes = store.recorded("size").unwrap().pieces[0].extent.bytes;
    assert!(bytes < 60 * 200, "{bytes} bytes for 60 looks");
}
