//! The sampler as a real process, watched from outside. This program is its own cast: started again with a word that begins
//! with `@`, it plays the sampler, a parent that dies, or a server with workers.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test program without the standard harness")]

use model::device::{Device, DeviceKind, Roster};
use model::reading::{Column, Reading, Readings};
use monitor::{Awaited, GroupDirs, MonitorError, Sampler, Watch};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const PERIOD: u64 = 100_000_000;

const TESTS: &[testkit::suite::Test] = &[
    ("rows_lie_on_the_grid", rows_lie_on_the_grid),
    ("it_ends_with_its_parent", it_ends_with_its_parent),
    ("a_stopped_sampler_says_how_late_it_was", a_stopped_sampler_says_how_late_it_was),
    ("a_killed_sampler_leaves_its_rows", a_killed_sampler_leaves_its_rows),
    ("a_deaf_sampler_is_killed", a_deaf_sampler_is_killed),
    ("a_full_ring_says_what_it_lost", a_full_ring_says_what_it_lost),
    ("what_is_collected_in_time_is_all_there", what_is_collected_in_time_is_all_there),
    ("a_follower_misses_no_look", a_follower_misses_no_look),
    ("a_wait_ends_with_the_sampler", a_wait_ends_with_the_sampler),
    ("a_storm_makes_it_hurry", a_storm_makes_it_hurry),
    ("privileges_are_had_or_noted", privileges_are_had_or_noted),
    ("sampling_takes_no_memory_and_writes_nothing", sampling_takes_no_memory_and_writes_nothing),
    ("a_start_that_fails_says_why", a_start_that_fails_says_why),
    ("the_server_is_seen_at_work", the_server_is_seen_at_work),
    ("another_root_is_followed", another_root_is_followed),
    ("the_group_is_seen", the_group_is_seen),
];

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.first().and_then(|word| word.to_str()) {
        Some("@sampler") => ExitCode::from(monitor::sampler_main(&args[1..])),
        Some(role) if role.starts_with('@') => {
            play(role, args.get(1).map(Path::new));
            ExitCode::SUCCESS
        }
        _ => testkit::suite::run(TESTS, &args),
    }
}

fn me() -> PathBuf {
    std::env::current_exe().unwrap()
}

fn watch() -> Watch {
    Watch { period_ns: PERIOD, capacity: 1000, ..Watch::default() }
}

fn start(watch: &Watch) -> Sampler {
    Sampler::start(&me(), watch).unwrap()
}

/// Waits until something is the case, and fails loudly when that takes too long.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    // Long, because what is awaited may be held back while other tests make the host wait for memory.
    let deadline = Instant::now() + Duration::from_secs(100);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn until_rows(sampler: &Sampler, count: usize) {
    until("rows", || (sampler.rows_after(0).len() >= count).then_some(()));
}

/// The number after a name in a file of `name: number` lines, or the first number of all when the name is empty.
fn number_in(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line[name.len()..].split_whitespace().next()?.parse().ok()
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// Appointments of rows: when each should have begun.
fn due(row: &Reading) -> u64 {
    row.at_ns - row.get(Column::SamplerLateNs).unwrap()
}

fn check_grid(rows: &[Reading]) {
    for pair in rows.windows(2) {
        assert!(pair[0].at_ns < pair[1].at_ns);
    }
    // The last row is taken at the end, without an appointment.
    for row in &rows[..rows.len() - 1] {
        assert_eq!(
            (due(row) - due(&rows[0])) % PERIOD,
            0,
            "off the grid by {} ns",
            (due(row) - due(&rows[0])) % PERIOD
        );
    }
}

fn rows_lie_on_the_grid() {
    let sampler = start(&watch());
    let first = sampler.latest().unwrap();
    until_rows(&sampler, 8);
    let newer = sampler.rows_after(first.at_ns);
    assert!(newer.iter().all(|row| row.at_ns > first.at_ns) && newer.len() >= 7);
    let before_the_end = sampler.latest().unwrap();
    let Readings { rows, notes } = sampler.finish().unwrap();
    check_grid(&rows);
    assert!(rows.last().unwrap().at_ns > before_the_end.at_ns, "there is a last reading at the end");
    let numbers: Vec<_> = rows[..rows.len() - 1].iter().map(|row| (due(row) - due(&rows[0])) / PERIOD).collect();
    let missed = numbers.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    let privileged = !notes.iter().any(|note| note.contains("real-time priority"));
    assert!(missed == 0 || !privileged, "appointments missed: {numbers:?}");
    let last = rows.last().unwrap();
    assert_eq!(last.get(Column::MemTotal), number_in("/proc/meminfo", "MemTotal:"));
    let swap_outs = number_in("/proc/vmstat", "pswpout ").unwrap();
    assert!(last.get(Column::SwapOut).unwrap() <= swap_outs);
    assert!(last.get(Column::SamplerCostNs).unwrap() > 0);
    assert_eq!(last.get(Column::TreeProcesses), None, "no tree was asked for");
}

fn it_ends_with_its_parent() {
    let mut parent = Command::new(me()).arg("@parent").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let sampler: u32 = line.trim().parse().unwrap();
    assert!(is_alive(sampler));
    parent.kill().unwrap();
    parent.wait().unwrap();
    until("the orphaned sampler to end", || (!is_alive(sampler)).then_some(()));
}

fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn a_stopped_sampler_says_how_late_it_was() {
    let sampler = start(&watch());
    until_rows(&sampler, 3);
    signal(sampler.pid(), Signal::STOP);
    let stopped = sampler.latest().unwrap();
    until("half a second", || (sampler_clock() > stopped.at_ns + 5 * PERIOD).then_some(()));
    let continued = sampler_clock();
    signal(sampler.pid(), Signal::CONT);
    until("rows after the pause", || (sampler.rows_after(continued).len() >= 3).then_some(()));
    let rows = sampler.finish().unwrap().rows;
    check_grid(&rows);
    let late = rows.iter().find(|row| row.at_ns >= continued).unwrap();
    let lateness = late.get(Column::SamplerLateNs).unwrap();
    assert!(lateness > 2 * PERIOD, "late by {lateness} ns only");
    // Its time is the true one, not the appointed, and the lateness is not handed on to the next.
    assert!(late.at_ns >= continued);
    let next = rows.iter().find(|row| row.at_ns > late.at_ns).unwrap();
    assert!(next.get(Column::SamplerLateNs).unwrap() < lateness);
    let missed = (due(next) - due(late)) / PERIOD;
    assert!(missed >= 3, "one reading stands for all the appointments missed, not for {missed}");
}

/// The clock of the readings.
fn sampler_clock() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn a_killed_sampler_leaves_its_rows() {
    let sampler = start(&watch());
    until_rows(&sampler, 3);
    let pid = sampler.pid();
    signal(pid, Signal::KILL);
    until("its death", || (!is_alive(pid)).then_some(()));
    let before = sampler.rows_after(0);
    let readings = sampler.finish().unwrap();
    assert_eq!(readings.rows, before);
    let note = readings.notes.last().unwrap();
    assert!(note.contains("was ended by signal 9 before it was told to"), "{note}");
}

fn a_deaf_sampler_is_killed() {
    let sampler = start(&watch());
    let pid = sampler.pid();
    signal(pid, Signal::STOP);
    let note = sampler.finish().unwrap().notes.pop().unwrap();
    assert_eq!(note, "the sampler was ended by signal 9 when told to end: its last reading is missing");
    assert!(!is_alive(pid));
}

fn a_full_ring_says_what_it_lost() {
    let sampler = start(&Watch { period_ns: PERIOD / 20, capacity: 8, ..watch() });
    let first = sampler.latest().unwrap();
    until("the ring to be full", || (sampler.rows_after(0).first()?.at_ns > first.at_ns).then_some(()));
    let readings = sampler.finish().unwrap();
    assert_eq!(readings.rows.len(), 7);
    let note = readings.notes.last().unwrap();
    assert!(note.ends_with(" readings were overwritten before they were collected"), "{note}");
}

fn what_is_collected_in_time_is_all_there() {
    let sampler = start(&Watch { period_ns: PERIOD / 4, capacity: 64, ..watch() });
    let first = sampler.latest().unwrap();
    until("more than the ring holds", || {
        sampler.collect();
        (sampler.latest()?.at_ns > first.at_ns + 20 * PERIOD).then_some(())
    });
    let readings = sampler.finish().unwrap();
    assert!(readings.rows.len() > 64 && readings.rows.contains(&first), "{} rows", readings.rows.len());
    assert!(readings.rows.is_sorted_by(|one, next| one.at_ns < next.at_ns));
    assert!(!readings.notes.iter().any(|note| note.contains("overwritten")), "{:?}", readings.notes);
}

fn a_follower_misses_no_look() {
    let device = |kind, name: &str| Device { kind, name: name.to_owned() };
    let devices = vec![device(DeviceKind::Interface, "no such"), device(DeviceKind::Cpu, "0")];
    let roster = Roster { devices };
    let sampler = start(&Watch { period_ns: PERIOD / 10, devices: roster.clone(), ..watch() });
    let (mut looks, mut next) = (Vec::new(), 0);
    while looks.len() < 20 {
        assert_eq!(sampler.wait(next, Duration::from_secs(20)), Awaited::Look);
        let news = sampler.looks_from(next);
        assert!(news.next > next && news.lost == 0, "woken for {news:?} after {next}");
        next = news.next;
        looks.extend(news.looks);
    }
    assert_eq!(sampler.stop().unwrap(), sampler.notes());
    let last = sampler.looks_from(next);
    assert!(last.next > next, "there is a last look at the end");
    looks.extend(last.looks);
    let of_looks: Vec<_> = looks.iter().map(|look| look.reading.clone()).collect();
    assert_eq!(of_looks, sampler.finish().unwrap().rows);
    for look in looks {
        let numbers = |kind, name| roster.of(kind, name, &look.devices).unwrap();
        assert_eq!(numbers(DeviceKind::Interface, "no such"), [u64::MAX; 2]);
        let (all, one) = (look.reading.get(Column::CpuSystem).unwrap(), numbers(DeviceKind::Cpu, "0")[2]);
        assert!(one > 0 && one <= all + 100, "ticks of cpu0 {one}, of all {all}");
    }
}

fn a_wait_ends_with_the_sampler() {
    let sampler = start(&Watch { period_ns: 3600 * 1_000_000_000, ..watch() });
    assert_eq!(sampler.wait(0, Duration::ZERO), Awaited::Look);
    assert_eq!(sampler.wait(1, Duration::from_millis(5)), Awaited::Nothing);
    signal(sampler.pid(), Signal::KILL);
    assert_eq!(sampler.wait(1, Duration::from_secs(1000)), Awaited::Ended);
    assert_eq!(sampler.wait(0, Duration::from_secs(1000)), Awaited::Look, "what it took stays");
    assert_eq!(sampler.looks_from(5).next, 5);
}

/// Where pressure gives no trigger, the counters of a /proc of our own tell the storm.
fn a_storm_makes_it_hurry() {
    let dir = tempfile::tempdir().unwrap();
    let tree = testkit::fake_proc::FakeTree::new(dir.path());
    let swapped = |pages: u64| tree.file("vmstat", &format!("pswpin {pages}\npgmajfault {pages}\n"));
    swapped(1000);
    let storm_period_ns = Some(PERIOD / 20);
    let proc_root = dir.path().to_owned();
    // The counters are read although nobody asked for them.
    let sampler = start(&Watch { storm_period_ns, proc_root, parts: Vec::new(), ..watch() });
    let storm = |row: &Reading| row.get(Column::SamplerStorm).unwrap();
    until_rows(&sampler, 3);
    assert!(sampler.rows_after(0).iter().all(|row| (storm(row), row.get(Column::SamplerExtra)) == (0, Some(0))));
    swapped(1_000_000);
    let rows = until("readings between the appointments", || {
        let rows = sampler.rows_after(0);
        let extra = rows.iter().filter(|row| row.get(Column::SamplerExtra) == Some(1));
        (extra.count() > 30).then_some(rows)
    });
    for row in rows.iter().filter(|row| row.get(Column::SamplerExtra) == Some(0)) {
        assert_eq!((due(row) - due(&rows[0])) % PERIOD, 0, "an appointment of the watch");
    }
    assert!(storm(rows.last().unwrap()) == 1);
    let notes = sampler.finish().unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("gives no trigger")), "{notes:?}");
    let odd = Watch { storm_period_ns: Some(PERIOD / 3), ..watch() };
    assert!(matches!(Sampler::start(&me(), &odd), Err(MonitorError::StormPeriod { .. })));
}

fn privileges_are_had_or_noted() {
    let sampler = start(&watch());
    let pid = sampler.pid();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // Field 41, the policy: 1 is SCHED_FIFO.
    let policy = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(38).unwrap().to_owned();
    let locked = number_in(&format!("/proc/{pid}/status"), "VmLck:").unwrap();
    let oom = fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
    let notes = sampler.finish().unwrap().notes;
    let noted = |word: &str| notes.iter().any(|note| note.contains(word));
    assert!(notes.iter().all(|note| monitor::is_refusal(note) == note.contains(" refused")), "{notes:?}");
    assert_ne!(policy == "1", noted("real-time priority"), "{policy} {notes:?}");
    assert_ne!(locked > 0, noted("locked memory"), "{locked} {notes:?}");
    assert_ne!(oom.trim() == "-1000", noted("out-of-memory"), "{oom} {notes:?}");
}

fn sampling_takes_no_memory_and_writes_nothing() {
    let sampler = start(&Watch { root_pid: Some(std::process::id()), period_ns: PERIOD / 10, ..watch() });
    let pid = sampler.pid();
    let state = || {
        let of = |file: &str, name: &str| number_in(&format!("/proc/{pid}/{file}"), name);
        (of("status", "VmSize:").unwrap(), of("status", "VmData:").unwrap(), of("io", "syscw:"), of("io", "wchar:"))
    };
    until_rows(&sampler, 10);
    let before = state();
    until_rows(&sampler, 60);
    assert_eq!(state(), before, "address space, data, writes and bytes written");
}

fn a_start_that_fails_says_why() {
    let error = |exe: &str, watch: &Watch| Sampler::start(Path::new(exe), watch).unwrap_err();
    assert!(matches!(error("/no/such/program", &watch()), MonitorError::Start { .. }));
    assert_eq!(error("/bin/false", &watch()).to_string(), "the sampler gave up: ended with exit code 1");
    assert!(matches!(error("/bin/false", &Watch { capacity: 1, ..watch() }), MonitorError::Watch { .. }));
    let by_hand = Command::new(me()).args(["@sampler", "{}"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(by_hand.status.code(), Some(2));
    let said = String::from_utf8_lossy(&by_hand.stderr).into_owned();
    assert!(said.starts_with("@sampler cannot read its orders: missing field"), "{said}");
}

/// A process and the pipe that keeps it and its children alive.
struct Cast {
    child: Child,
    life: Option<ChildStdin>,
}

impl Cast {
    fn start(role: &str, about: &Path) -> Self {
        let mut child = Command::new(me()).arg(role).arg(about).stdin(Stdio::piped()).spawn().unwrap();
        let life = child.stdin.take();
        Cast { child, life }
    }
}

impl Drop for Cast {
    fn drop(&mut self) {
        drop(self.life.take());
        let _ = self.child.wait();
    }
}

fn play(role: &str, about: Option<&Path>) {
    let child = |role: &str| Command::new(me()).arg(role).args(about).spawn().unwrap();
    let lock = || {
        let file = File::create(about.unwrap()).unwrap();
        file.lock().unwrap();
        file
    };
    let sampler = (role == "@parent").then(|| start(&watch()));
    if let Some(sampler) = &sampler {
        println!("{}", sampler.pid());
    }
    let (mut children, mut held, mut memory) = (Vec::new(), None, Vec::new());
    match role {
        "@server" => children.extend(["@locker", "@locker", "@with_cgi", "@idle"].map(child)),
        "@locker" => held = Some(lock()),
        "@with_cgi" => children.push(child("@idle")),
        "@hungry" => {
            // Into the group first: only memory touched inside is charged to it.
            let groups = fs::read_to_string(about.unwrap()).unwrap();
            groups.lines().for_each(|procs| fs::write(procs, "0").unwrap());
            memory = vec![1u8; 48 << 20];
        }
        _ => {}
    }
    // All share the pipe of the one that was started first, so all end when it is closed.
    let _ = std::io::stdin().read(&mut [0]);
    drop((held, memory));
    children.iter_mut().for_each(|child| drop(child.wait()));
}

/// They are absent only while the host is short of memory; the tree, too, while it is too busy to be looked at in time.
fn the_shares_are_known(sampler: &Sampler) {
    let known = |row: &Reading| {
        [Column::TreePss, Column::TreeSharesAgeNs, Column::TreeRss].iter().all(|&column| row.get(column).is_some())
    };
    let row = until("the shares", || sampler.latest().filter(known));
    let of = |column| row.get(column).unwrap();
    let (pss, uss) = (of(Column::TreePss), of(Column::TreeUss));
    // RSS was counted at another moment: processes of a few hundred kilobytes may have grown meanwhile.
    assert!(uss > 0 && uss <= pss && pss <= 2 * of(Column::TreeRss), "{uss} {pss} {}", of(Column::TreeRss));
    assert!(of(Column::TreeSharesCostNs) > 0 && row.get(Column::TreeSharesAgeNs).is_some());
}

fn the_server_is_seen_at_work() {
    let dir = tempfile::tempdir().unwrap();
    let server = Cast::start("@server", &dir.path().join("lock"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 2).unwrap();
    let address = listener.local_addr().unwrap();
    let root_pid = Some(server.child.id());
    let port = Some(address.port());
    let sampler = start(&Watch { root_pid, port, shares_period_ns: Some(PERIOD), ..watch() });
    let seen = |column| sampler.latest().unwrap().get(column);
    until("root, four workers, one CGI", || (seen(Column::TreeProcesses) == Some(6)).then_some(()));
    until("one to wait for the lock", || (seen(Column::TreeLockWaiters) == Some(1)).then_some(()));
    until("the worker with a CGI alone to be busy", || (seen(Column::TreeBusyWorkers) == Some(1)).then_some(()));
    let row = until("the tree", || sampler.latest().filter(|row| row.get(Column::TreeProcesses).is_some()));
    assert_eq!(row.get(Column::TreeWorkers), Some(4));
    assert!(row.get(Column::TreeRss) > row.get(Column::TreeRssLargest));
    // Whole ticks are no more than what the clocks say, which are read a moment later.
    let (ticks, ns) = (row.get(Column::TreeCpuTicks).unwrap(), row.get(Column::TreeCpuNs).unwrap());
    let least = Duration::from_millis(10 * ticks.saturating_sub(1));
    let most = least + Duration::from_secs(2);
    assert!(ns > 0 && (least..most).contains(&Duration::from_nanos(ns)), "{ns} ns, {ticks} ticks");
    assert_eq!((row.get(Column::AcceptQueue), row.get(Column::AcceptLimit)), (Some(0), Some(2)));
    if Path::new("/proc/self/smaps_rollup").exists() {
        the_shares_are_known(&sampler);
    } else {
        testkit::skip::not_here("no smaps_rollup (it came with Linux 4.14)");
    }
    // The kernel lets in one more than the limit.
    let waiting: Vec<_> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
    until("the accept queue to fill", || (seen(Column::AcceptQueue) == Some(3)).then_some(()));
    drop((listener, waiting));
    until("the port to be given up", || seen(Column::AcceptQueue).is_none().then_some(()));
    drop(server);
    until("the tree to be gone", || (seen(Column::TreeProcesses) == Some(0)).then_some(()));
}

/// A server is watched for before it is there, ends, and is started again.
fn another_root_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    let share = Some(PERIOD);
    let sampler = start(&Watch { root_may_change: true, shares_period_ns: share, ..watch() });
    let of_tree = || Column::ALL.iter().filter(|column| column.name().starts_with("tree."));
    let all_absent = |row: &Reading| of_tree().all(|&column| row.get(column).is_none());
    assert!(all_absent(&sampler.latest().unwrap()), "there is no server yet");
    for _ in 0..2 {
        let server = Cast::start("@server", &dir.path().join("lock"));
        let root = server.child.id();
        sampler.follow(Some(root));
        let whole = |row: &Reading| row.get(Column::TreeProcesses) == Some(6);
        let row = until("the whole tree", || sampler.latest().filter(whole));
        assert_eq!(row.get(Column::TreeRoot), Some(root.into()));
        if Path::new("/proc/self/smaps_rollup").exists() {
            the_shares_are_known(&sampler);
        }
        drop(server);
        // Without a word from us.
        until("the tree to be gone", || sampler.latest().filter(all_absent));
    }
    assert!(sampler.finish().unwrap().rows.len() > 2);
}

/// Control groups that are removed at the end.
struct Groups(Vec<PathBuf>);

impl Groups {
    fn make() -> std::io::Result<Self> {
        let name = format!("webdyno-monitor-test-{}", std::process::id());
        let mut made = Groups(Vec::new());
        for controller in ["memory", "cpuacct", "cpu", "unified"] {
            let dir = Path::new("/sys/fs/cgroup").join(controller).join(&name);
            fs::create_dir(&dir)?;
            made.0.push(dir);
        }
        Ok(made)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for dir in &self.0 {
            until("the group to be empty", || fs::remove_dir(dir).ok());
        }
    }
}

fn the_group_is_seen() {
    let groups = match Groups::make() {
        Ok(groups) => groups,
        Err(error) => return testkit::skip::not_here(&format!("the group is not seen: no cgroup v1 group ({error})")),
    };
    let limit = 256 << 20;
    fs::write(groups.0[0].join("memory.limit_in_bytes"), limit.to_string()).unwrap();
    let [memory, cpuacct, cpu, unified] = [0, 1, 2, 3].map(|index| Some(groups.0[index].clone()));
    let sampler = start(&Watch { group: GroupDirs { memory, cpuacct, cpu, unified }, ..watch() });
    let before = sampler.latest().unwrap();
    assert_eq!(before.get(Column::GroupLimit), Some(limit));
    let list = tempfile::NamedTempFile::new().unwrap();
    let procs: Vec<_> = groups.0.iter().map(|dir| dir.join("cgroup.procs").display().to_string()).collect();
    fs::write(list.path(), procs.join("\n")).unwrap();
    let hungry = Cast::start("@hungry", list.path());
    let row = until("48 MiB in the group", || {
        sampler.latest().filter(|row| row.get(Column::GroupAnon).is_some_and(|bytes| bytes >= 48 << 20))
    });
    assert!(row.get(Column::GroupUsage).unwrap() >= 48 << 20);
    let cpu = |row: &Reading| row.get(Column::GroupCpuNs).unwrap();
    until("CPU time", || sampler.latest().filter(|row| cpu(row) > cpu(&before)));
    let row = sampler.latest().unwrap();
    drop(hungry);
    let notes = sampler.finish().unwrap().notes;
    let noted = |resource: &str| notes.iter().any(|note| note.contains(&format!("/{resource}.pressure cannot")));
    for column in Column::ALL.iter().filter(|column| column.name().starts_with("group.")) {
        let excused =
            column.name().strip_prefix("group.psi.").and_then(|name| name.split('.').next()).is_some_and(noted);
        assert!(row.get(*column).is_some() || excused, "{column:?} {notes:?}");
    }
}
