//! The tree over a /proc made by hand: who belongs to it, what is counted, and what becomes of it in time.

use super::*;
use crate::allocations;
use testkit::fake_proc::{FakeProcess, FakeTree};

const PAGE: u64 = 4096;
const NUMBERS: [Column; 9] = [
    Column::TreeProcesses,
    Column::TreeWorkers,
    Column::TreeBusyWorkers,
    Column::TreeRunning,
    Column::TreeDiskSleep,
    Column::TreeLockWaiters,
    Column::TreeRss,
    Column::TreeRssLargest,
    Column::TreeCpuTicks,
];
/// A whole look.
fn scan(tree: &mut Tree, row: &mut Reading) -> Result<(), Errno> {
    tree.begin();
    tree.finish(row)
}

const ROOT: Root = Root { pid: Some(100), beside: Vec::new(), behind: Vec::new(), may_change: false };

/// What one more scan finds: processes, workers, busy, running, disk sleep, lock waiters, resident pages, largest, ticks.
fn check(tree: &mut Tree, expected: [u64; 9]) {
    tree.page_size = PAGE;
    let mut row = Reading::empty(0);
    scan(tree, &mut row).unwrap();
    let mut found = NUMBERS.map(|column| row.get(column).unwrap_or(u64::MAX));
    found[6] /= PAGE;
    found[7] /= PAGE;
    assert_eq!(found, expected);
}

fn process(pid: u32, parent: u32, state: char) -> FakeProcess<'static> {
    FakeProcess { pid, parent, name: "apache2", state, ticks: [1, 2, 3, 4], threads: 1, resident_pages: u64::from(pid) }
}

fn fake() -> (tempfile::TempDir, FakeTree, Tree) {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeTree::new(dir.path());
    fake.file("locks", "");
    fake.file("self/stat", "not a number");
    fake.process(process(1, 0, 'S'));
    fake.process(process(2, 0, 'S'));
    fake.process(process(50, 1, 'R'));
    fake.process(process(100, 50, 'S'));
    let mut notes = Vec::new();
    let tree = Tree::open(dir.path(), ROOT, true, &mut notes).unwrap();
    assert!(notes.is_empty());
    (dir, fake, tree)
}

#[test]
fn workers_and_what_they_started() {
    let (_dir, fake, mut tree) = fake();
    check(&mut tree, [1, 0, 0, 0, 0, 0, 100, 100, 10]);
    // A worker idle, one computing, one waiting for a disk, one with a CGI whose name is no help and whose number is small.
    [process(101, 100, 'S'), process(102, 100, 'R'), process(103, 100, 'D'), process(104, 100, 'S')]
        .into_iter()
        .for_each(|process| fake.process(process));
    fake.process(FakeProcess { name: "sh (a) R 1", ..process(60, 104, 'R') });
    fake.process(process(61, 60, 'D'));
    check(&mut tree, [7, 4, 3, 2, 2, 0, 100 + 101 + 102 + 103 + 104 + 60 + 61, 104, 70]);
    let mut row = Reading::empty(0);
    scan(&mut tree, &mut row).unwrap();
    assert_eq!(row.get(Column::TreeProgramLargest), Some(61 * PAGE), "the workers are larger, and no programs");
    // The CGI's child is dead and not yet reaped, and its parent has gone: neither makes a worker busy.
    fake.remove(60);
    fake.process(process(61, 1, 'Z'));
    check(&mut tree, [5, 4, 2, 1, 1, 0, 100 + 101 + 102 + 103 + 104, 104, 50]);
}

/// Of a server whose processes have threads nobody knows who waits for a disk, unless it is a first one.
#[test]
fn threads_at_a_disk_are_not_seen() {
    let (_dir, fake, mut tree) = fake();
    let asleep = |tree: &mut Tree| {
        let mut row = Reading::empty(0);
        scan(tree, &mut row).unwrap();
        row.get(Column::TreeDiskSleep)
    };
    let threaded = |pid, state| FakeProcess { threads: 25, ..process(pid, 100, state) };
    fake.process(threaded(101, 'S'));
    assert_eq!(asleep(&mut tree), Some(0), "one of two");
    fake.process(threaded(102, 'S'));
    assert_eq!(asleep(&mut tree), None);
    fake.process(threaded(102, 'D'));
    assert_eq!(asleep(&mut tree), Some(1));
}

#[test]
fn cpu_time_of_the_dead_is_kept_until_their_parent_has_it() {
    let (_dir, fake, mut tree) = fake();
    fake.process(FakeProcess { ticks: [6000, 70, 0, 0], ..process(101, 100, 'R') });
    check(&mut tree, [2, 1, 1, 1, 0, 0, 201, 101, 6080]);
    fake.process(FakeProcess { ticks: [6000, 75, 0, 0], resident_pages: 0, ..process(101, 100, 'Z') });
    check(&mut tree, [1, 0, 0, 0, 0, 0, 100, 100, 6085]);
    fake.remove(101);
    fake.process(FakeProcess { ticks: [1, 2, 3 + 6000, 4 + 75], ..process(100, 50, 'S') });
    check(&mut tree, [1, 0, 0, 0, 0, 0, 100, 100, 6085]);
}

#[test]
fn only_those_who_wait_for_a_lock_count() {
    let (_dir, fake, mut tree) = fake();
    [process(101, 100, 'S'), process(102, 100, 'S'), process(103, 100, 'S')]
        .into_iter()
        .for_each(|process| fake.process(process));
    fake.file(
        "locks",
        "1: FLOCK  ADVISORY  WRITE 101 fd:00:1 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 102 fd:00:1 0 EOF\n\
         1: -> FLOCK  ADVISORY  WRITE 50 fd:00:1 0 EOF\n2: POSIX  ADVISORY  READ 103 fd:00:2 0 EOF\n\
         2:  -> POSIX  ADVISORY  WRITE 102 fd:00:2 0 EOF\n3: -> OFDLCK ADVISORY  WRITE -1 fd:00:2 0 EOF\n",
    );
    check(&mut tree, [4, 3, 0, 0, 0, 1, 406, 103, 40]);
}

#[test]
fn a_number_used_again_is_another_process() {
    let (_dir, fake, mut tree) = fake();
    fake.process(process(200, 1, 'S'));
    check(&mut tree, [1, 0, 0, 0, 0, 0, 100, 100, 10]);
    // The foreign process ends; a scan later its number is a worker's.
    fake.remove(200);
    check(&mut tree, [1, 0, 0, 0, 0, 0, 100, 100, 10]);
    fake.process(process(200, 100, 'R'));
    check(&mut tree, [2, 1, 1, 1, 0, 0, 300, 200, 20]);
}

#[test]
fn a_child_seen_before_its_parent_is_not_lost() {
    let (_dir, fake, mut tree) = fake();
    fake.process(process(300, 299, 'S'));
    check(&mut tree, [1, 0, 0, 0, 0, 0, 100, 100, 10]);
    fake.process(process(299, 100, 'S'));
    check(&mut tree, [3, 1, 1, 0, 0, 0, 699, 300, 30]);
}

#[test]
fn new_ones_are_found_by_their_numbers() {
    let (dir, fake, _) = fake();
    std::os::unix::fs::symlink(std::process::id().to_string(), dir.path().join("own")).unwrap();
    std::fs::remove_dir_all(dir.path().join("self")).unwrap();
    std::fs::rename(dir.path().join("own"), dir.path().join("self")).unwrap();
    let last = |number: u32| fake.file("loadavg", &format!("0.52 1.00 12.34 1/79 {number}\n"));
    let is = |pid: u32, group: u32| fake.file(&format!("{pid}/status"), &format!("Name:\tx\nTgid:\t{group}\n"));
    last(100);
    let mut tree = Tree::open(dir.path(), ROOT, true, &mut Vec::new()).unwrap();
    check(&mut tree, [1, 0, 0, 0, 0, 0, 100, 100, 10]);
    // One of ours, a thread of ours, one of another tree; and one that nobody was given a number for is not looked for.
    [(101, 101), (102, 101), (103, 103)].into_iter().for_each(|(pid, group)| is(pid, group));
    [process(101, 100, 'R'), process(102, 100, 'R'), process(103, 50, 'S'), process(200, 100, 'S')]
        .into_iter()
        .for_each(|process| fake.process(process));
    last(103);
    check(&mut tree, [2, 1, 1, 1, 0, 0, 201, 101, 20]);
    check(&mut tree, [2, 1, 1, 1, 0, 0, 201, 101, 20]);
    // A number is used again, by one of ours; and one is not seen before the scan after. A listing tells of no threads.
    fake.process(process(103, 100, 'S'));
    [102, 200].into_iter().for_each(|pid| fake.remove(pid));
    last(102);
    check(&mut tree, [2, 1, 1, 1, 0, 0, 201, 101, 20]);
    last(104);
    check(&mut tree, [3, 2, 1, 1, 0, 0, 304, 103, 30]);
    fake.process(process(104, 100, 'S'));
    is(104, 104);
    check(&mut tree, [4, 3, 1, 1, 0, 0, 408, 104, 40]);
}

#[test]
fn a_stranger_under_the_number_of_the_root_is_not_the_root() {
    let (dir, fake, _) = fake();
    std::fs::remove_dir_all(dir.path().join("self")).unwrap();
    std::os::unix::fs::symlink(std::process::id().to_string(), dir.path().join("self")).unwrap();
    let last = |number: u32| fake.file("loadavg", &format!("0.52 1.00 12.34 1/79 {number}\n"));
    let is_process = |pid: u32| fake.file(&format!("{pid}/status"), &format!("Name:\tx\nTgid:\t{pid}\n"));
    fake.process(process(101, 100, 'R'));
    [100, 101].into_iter().for_each(is_process);
    last(98);
    let mut tree = Tree::open(dir.path(), ROOT, true, &mut Vec::new()).unwrap();
    check(&mut tree, [2, 1, 1, 1, 0, 0, 201, 101, 20]);
    // The numbers began anew long ago, and pass over those that are in use.
    last(99);
    check(&mut tree, [2, 1, 1, 1, 0, 0, 201, 101, 20]);
    last(102);
    check(&mut tree, [2, 1, 1, 1, 0, 0, 201, 101, 20]);
    // The root ends, and its number is the next one that is given out.
    last(99);
    check(&mut tree, [2, 1, 1, 1, 0, 0, 201, 101, 20]);
    for pid in [100, 101] {
        // As the kernel has it: a file that is open cannot be read any more.
        fake.file(&format!("{pid}/stat"), "");
        fake.remove(pid);
    }
    fake.process(process(100, 1, 'R'));
    is_process(100);
    last(100);
    check(&mut tree, [0; 9]);
    check(&mut tree, [0; 9]);
}

#[test]
fn a_dead_root_leaves_nothing() {
    let (_dir, fake, mut tree) = fake();
    fake.process(process(101, 100, 'S'));
    check(&mut tree, [2, 1, 0, 0, 0, 0, 201, 101, 20]);
    fake.remove(100);
    fake.process(process(101, 1, 'S'));
    check(&mut tree, [0; 9]);
    // Much later its number is given to somebody else, who has children, too.
    fake.process(process(100, 50, 'S'));
    fake.process(process(102, 100, 'S'));
    check(&mut tree, [0; 9]);
    check(&mut tree, [0; 9]);
}

/// What a scan says of the root, of how many processes there are, and of their CPU time.
fn of_changing(tree: &mut Tree) -> [Option<u64>; 3] {
    let mut row = Reading::empty(0);
    scan(tree, &mut row).unwrap();
    [Column::TreeRoot, Column::TreeProcesses, Column::TreeCpuTicks].map(|column| row.get(column))
}

#[test]
fn another_root_is_followed_from_its_first_process_on() {
    let (dir, fake, _) = fake();
    let mut notes = Vec::new();
    let mut tree = Tree::open(dir.path(), Root { may_change: true, ..ROOT }, false, &mut notes).unwrap();
    fake.process(FakeProcess { ticks: [5000, 0, 0, 0], ..process(101, 100, 'S') });
    assert_eq!(of_changing(&mut tree), [Some(100), Some(2), Some(5010)]);
    // A new server is started; its processes are seen as foreign, and while the old one ends nothing is told.
    fake.process(process(200, 1, 'S'));
    fake.process(process(201, 200, 'S'));
    assert_eq!(of_changing(&mut tree), [Some(100), Some(2), Some(5010)]);
    fake.process(process(100, 50, 'Z'));
    assert_eq!(of_changing(&mut tree), [None; 3]);
    fake.remove(100);
    assert_eq!(of_changing(&mut tree), [None; 3]);
    let before = allocations::so_far();
    tree.follow_root(Some(200));
    assert_eq!(of_changing(&mut tree), [Some(200), Some(2), Some(20)]);
    assert_eq!(allocations::so_far() - before, 0, "another tree takes the room of the one before");
    // The number of a root that has gone may be that of the next one.
    [200, 201].into_iter().for_each(|pid| fake.remove(pid));
    assert_eq!(of_changing(&mut tree), [None; 3]);
    fake.process(process(200, 1, 'S'));
    assert_eq!(of_changing(&mut tree), [None; 3], "nobody has said that it is the server");
    tree.follow_root(Some(200));
    assert_eq!(of_changing(&mut tree), [Some(200), Some(1), Some(10)]);
    tree.follow_root(None);
    assert_eq!(of_changing(&mut tree), [None; 3]);
}

#[test]
fn one_that_cannot_be_opened_is_in_nobodys_way() {
    let (_dir, fake, mut tree) = fake();
    // A file instead of a folder stands for a refusal, which root never meets.
    fake.file("200", "");
    fake.process(process(201, 100, 'S'));
    check(&mut tree, [2, 1, 0, 0, 0, 0, 301, 201, 20]);
}

#[test]
fn the_table_of_locks_may_be_missing() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeTree::new(dir.path());
    fake.process(process(100, 0, 'R'));
    let mut notes = Vec::new();
    let mut tree = Tree::open(dir.path(), ROOT, true, &mut notes).unwrap();
    check(&mut tree, [1, 0, 0, 1, 0, u64::MAX, 100, 100, 10]);
    assert_eq!(notes.len(), 1, "{notes:?}");
    let mut tree = Tree::open(dir.path(), ROOT, false, &mut notes).unwrap();
    check(&mut tree, [1, 0, 0, 1, 0, u64::MAX, 100, 100, 10]);
    assert_eq!(notes.len(), 1, "nobody asked for it: {notes:?}");
}

#[test]
fn trees_beside_the_servers_count_with_it_and_are_no_workers() {
    let (dir, fake, _) = fake();
    fake.process(process(101, 100, 'S'));
    fake.process(process(110, 50, 'S'));
    fake.process(process(111, 110, 'R'));
    let root = Root { beside: vec![110], ..ROOT };
    let mut tree = Tree::open(dir.path(), root, true, &mut Vec::new()).unwrap();
    check(&mut tree, [4, 1, 0, 1, 0, 0, 100 + 101 + 110 + 111, 111, 40]);
}

#[test]
fn what_trees_use_that_run_wherever_they_like_is_told_apart() {
    let (dir, fake, _) = fake();
    fake.process(process(101, 100, 'S'));
    fake.process(process(110, 50, 'S'));
    fake.process(process(111, 110, 'R'));
    let root = Root { behind: vec![110], ..ROOT };
    let mut tree = Tree::open(dir.path(), root, true, &mut Vec::new()).unwrap();
    check(&mut tree, [4, 1, 0, 1, 0, 0, 100 + 101 + 110 + 111, 111, 40]);
    let mut row = Reading::empty(0);
    scan(&mut tree, &mut row).unwrap();
    assert_eq!(row.get(Column::TreeBehindCpuNs), Some(20 * TICK_NS));
}
