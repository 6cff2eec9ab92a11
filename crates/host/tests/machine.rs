//! The promise on the real machine: whatever is killed, and whenever, nothing stays behind.
//!
//! This program is its own guardian, launcher, victim (a run that gets killed) and `restore`, so it brings its own `main`; a first argument
//! that is none of these begins what cargo's own harness would be told. The tests run one after another, since they watch the whole machine.

#![expect(clippy::unwrap_used, reason = "all of it is a test; clippy tells tests by #[test]")]

use host::{Host, HostError, Launch, Stop, StopBy, hierarchies, restore};
use model::plan::{Confinement, IoLimits, StopSignal};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, kill_process_group, prlimit, setrlimit};
use std::cell::Cell;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use testkit::skip::not_here;

/// How soon after its death everything of a run must be gone.
const PROMISE: Duration = Duration::from_secs(5);
/// Names the run in the environment of everything that belongs to it.
const MARK: &str = "WEBDYNO_TEST_RUN";
const NOBODY: u32 = 65_534;
/// A setting of the kernel that changes nothing for anybody within seconds.
const SETTING: &str = "net.ipv4.tcp_keepalive_probes";
const TESTS: &[testkit::suite::Test] = &[
    ("an_orderly_run_leaves_nothing", an_orderly_run_leaves_nothing),
    ("a_dropped_run_leaves_nothing", a_dropped_run_leaves_nothing),
    ("a_server_starts_as_asked", a_server_starts_as_asked),
    ("a_name_cut_within_a_letter_hides_nobody", a_name_cut_within_a_letter_hides_nobody),
    ("a_refused_start_is_explained", a_refused_start_is_explained),
    ("sigterm_comes_first_and_grace_ends", sigterm_comes_first_and_grace_ends),
    ("a_server_is_asked_to_end_in_its_own_way", a_server_is_asked_to_end_in_its_own_way),
    ("a_group_confines", a_group_confines),
    ("a_group_limits_cpu_and_disks", a_group_limits_cpu_and_disks),
    ("two_runs_need_two_names", two_runs_need_two_names),
    ("two_runs_do_not_work_on_one_thing", two_runs_do_not_work_on_one_thing),
    ("a_file_that_a_run_borrows_twice_comes_back", a_file_that_a_run_borrows_twice_comes_back),
    ("what_somebody_else_writes_to_a_file_is_kept", what_somebody_else_writes_to_a_file_is_kept),
    ("a_setting_that_somebody_else_sets_is_left", a_setting_that_somebody_else_sets_is_left),
    ("swap_comes_and_goes", swap_comes_and_goes),
    ("swap_is_emptied_and_comes_back", swap_is_emptied_and_comes_back),
    ("killed_while_swap_is_emptied", killed_while_swap_is_emptied),
    ("killed_at_random_moments", killed_at_random_moments),
    ("killed_while_it_swaps", killed_while_it_swaps),
    ("killed_without_root", killed_without_root),
    ("killed_before_a_server_that_ends_in_its_own_way", killed_before_a_server_that_ends_in_its_own_way),
    ("a_server_is_known_when_numbers_have_come_round", a_server_is_known_when_numbers_have_come_round),
    ("killed_with_its_guardian", killed_with_its_guardian),
    ("a_session_of_another_container_is_left_alone", a_session_of_another_container_is_left_alone),
    ("what_cannot_be_read_is_not_taken_for_gone", what_cannot_be_read_is_not_taken_for_gone),
    ("signals_to_all_spare_the_guardian", signals_to_all_spare_the_guardian),
    ("a_guardian_that_cannot_open_the_journal_tries_again", a_guardian_that_cannot_open_the_journal_tries_again),
    ("a_run_goes_on_without_its_guardian", a_run_goes_on_without_its_guardian),
];

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.first().and_then(|word| word.to_str()) {
        Some("@guardian") => ExitCode::from(host::guardian_main(&args[1..])),
        Some("@launch") => ExitCode::from(host::launcher_main(&args[1..])),
        Some("@victim") => victim(&args[1..]),
        Some("@restore") => restore_with_few_files(&args[1..]),
        _ => testkit::suite::run(TESTS, &args),
    }
}

// ---- a run and what it may leave -------------------------------------------------------------------------------------

/// A place for one run's journal, and the look-out for what the run leaves.
struct Stage {
    run: String,
    dir: tempfile::TempDir,
    exe: PathBuf,
}

impl Stage {
    fn new() -> Stage {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let run = format!("t{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let dir = tempfile::Builder::new().prefix("host-test-").tempdir_in("/tmp").unwrap();
        Stage { run, dir, exe: std::env::current_exe().unwrap() }
    }

    /// The same for a user without rights.
    fn for_nobody() -> Stage {
        let mut stage = Stage::new();
        chown(stage.dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        // The folder cargo builds in may be closed to others.
        let exe = stage.dir.path().join("machine");
        fs::copy(&stage.exe, &exe).unwrap();
        fs::set_permissions(&exe, fs::Permissions::from_mode(0o755)).unwrap();
        stage.exe = exe;
        stage
    }

    /// The same for who is told that this machine has few numbers for processes, so that after 3 000 forks they may have come round.
    /// `None`, and it is said, where nobody can be told so.
    fn of_few_numbers() -> Option<Stage> {
        let mut stage = Stage::new();
        let (few, exe) = (stage.dir.path().join("pid_max"), stage.dir.path().join("machine"));
        fs::write(&few, "6000\n").unwrap();
        let inside = format!("mount --bind {} /proc/sys/kernel/pid_max && exec \"$@\"", few.display());
        let script = format!(
            "#!/bin/sh\nexec unshare --mount --propagation private sh -c '{inside}' sh {} \"$@\"\n",
            stage.exe.display()
        );
        fs::write(&exe, script).unwrap();
        fs::set_permissions(&exe, fs::Permissions::from_mode(0o755)).unwrap();
        stage.exe = exe;
        let tried = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", &inside, "sh", "true"])
            .output();
        if !tried.is_ok_and(|tried| tried.status.success()) {
            not_here("nothing can be mounted");
            return None;
        }
        Some(stage)
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    fn open(&self) -> Host {
        Host::open(&self.exe, &self.state(), &self.run).unwrap()
    }

    /// A shell script as a server.
    fn script(&self, host: &Host, script: &str) -> Launch {
        let dir = host.temporary_dir().unwrap();
        Launch {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![(MARK.into(), self.run.clone().into())],
            stdout: dir.join("out"),
            stderr: dir.join("err"),
            dir,
            cpus: vec![],
        }
    }

    /// Starts a run that does `what` until it is killed.
    fn victim(&self, what: &str, change: impl FnOnce(&mut Command)) -> Victim {
        let mut command = Command::new(&self.exe);
        command.args(["@victim", what]).arg(self.state()).arg(&self.run).env(MARK, &self.run);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
        change(&mut command);
        let mut process = command.spawn().unwrap();
        let told = BufReader::new(process.stdout.take().unwrap());
        Victim { process, told }
    }

    /// Everything on this machine that bears the run's name.
    fn left(&self) -> Vec<String> {
        let mark = format!("{MARK}={}", self.run);
        let mut left: Vec<String> = processes(|pid| environment(pid).split('\0').any(|variable| variable == mark))
            .into_iter()
            .map(|pid| format!("process {pid}: {}", command_line(pid)))
            .collect();
        let prefix = format!("webdyno-{}-", self.run);
        let mut places = vec![PathBuf::from("/tmp"), "/var/tmp".into()];
        places.extend(children(Path::new("/sys/fs/cgroup")));
        let paths = places.iter().flat_map(|place| children(place)).filter(|path| name(path).starts_with(&prefix));
        left.extend(paths.map(|path| path.display().to_string()));
        left.extend(children(&self.state()).into_iter().map(|path| path.display().to_string()));
        left.extend(
            fs::read_to_string("/proc/swaps").unwrap().lines().filter(|line| line.contains(&prefix)).map(str::to_owned),
        );
        left
    }

    /// Fails unless everything is gone `within` so long.
    fn nothing_left(&self, within: Duration, when: &str) {
        let deadline = Instant::now() + within;
        while !self.left().is_empty() {
            assert!(Instant::now() < deadline, "left {when}: {:#?}", self.left());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A run in a process of its own.
struct Victim {
    process: Child,
    told: BufReader<std::process::ChildStdout>,
}

impl Victim {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    /// Waits until it tells `word`, and returns what follows the word.
    fn wait_for(&mut self, word: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.told.read_line(&mut line).unwrap() > 0, "the victim ended before it told {word}");
            if let Some(rest) = line.trim().strip_prefix(word) {
                return rest.trim().to_owned();
            }
        }
    }

    fn guardian(&self) -> u32 {
        let parent = self.process.id();
        let found = processes(|pid| parent_of(pid) == Some(parent) && command_line(pid).contains("@guardian"));
        assert_eq!(found.len(), 1, "guardians of {parent}");
        found[0]
    }

    /// Nobody is left then who would give anything back.
    fn kill_with_guardian(self) {
        kill_process(Pid::from_raw(self.guardian().cast_signed()).unwrap(), Signal::KILL).unwrap();
        self.kill();
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn children(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn processes(wanted: impl Fn(u32) -> bool) -> Vec<u32> {
    let own = std::process::id();
    let pids = children(Path::new("/proc")).into_iter().filter_map(|path| name(&path).parse().ok());
    pids.filter(|&pid| pid != own && wanted(pid)).collect()
}

fn environment(pid: u32) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()).into_owned()
}

fn command_line(pid: u32) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).replace('\0', " ")
}

fn status(pid: u32, key: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).unwrap_or_default().trim().to_owned()
}

fn parent_of(pid: u32) -> Option<u32> {
    status(pid, "PPid").parse().ok()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    // Long enough for a host that does something else as well; nobody waits so long for what comes.
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether the test can go on: it needs groups.
fn groups_possible() -> bool {
    hierarchies().inspect_err(|why| not_here(&why.to_string())).is_ok()
}

/// Whether this kernel and disk take a swap file at all.
fn swap_possible() -> bool {
    let stage = Stage::new();
    let host = stage.open();
    let made = host.make_swap(1 << 20).inspect_err(|why| not_here(&why.to_string()));
    host.close().unwrap();
    made.is_ok()
}

// ---- the run that gets killed ----------------------------------------------------------------------------------------

const TREE: &str = "sleep 1000 & sleep 1000 & (sleep 1000; true) & wait";
const NO_LIMITS: IoLimits = IoLimits { read: None, write: None, read_ops: None, write_ops: None };
const LIMIT: Confinement = Confinement { memory: Some(64 << 20), swap: 64 << 20, cpu_thousandths: None, io: NO_LIMITS };

/// `@victim WHAT STATE_DIR RUN`: never ends by itself.
fn victim(args: &[OsString]) -> ExitCode {
    let [what, state, run] = args else { return ExitCode::from(2) };
    let stage = Stage {
        run: run.to_str().unwrap().to_owned(),
        dir: tempfile::Builder::new()
            .prefix("host-test-")
            .disable_cleanup(true)
            .tempdir_in(Path::new(state).parent().unwrap())
            .unwrap(),
        exe: std::env::current_exe().unwrap(),
    };
    let host = Host::open(&stage.exe, Path::new(state), &stage.run).unwrap();
    tell("open");
    match what.to_str().unwrap() {
        "trials" => loop {
            let group = hierarchies().is_ok().then(|| host.group("server", &LIMIT).unwrap());
            let child = host.spawn(&stage.script(&host, TREE), group.as_ref()).unwrap();
            tell(&format!("started {}", child.pid));
            child.terminate(Duration::from_millis(20)).unwrap();
            drop(group);
        },
        "asked" => {
            let asked = Path::new(state).with_file_name("asked");
            let says = |word: &str, then: &str| {
                let script = format!("echo {word} >> {}; sleep 1000 & {then}", asked.display());
                StopBy::Command(stage.script(&host, &script))
            };
            let leaves = says("leaves", "kill -QUIT $(cat pid-leaves)");
            let quit = StopBy::Signal(StopSignal::Quit);
            let servers =
                [("hangs", says("hangs", "wait")), ("leaves", leaves), ("gone", says("gone", "true")), ("quit", quit)];
            let within = Duration::from_secs(600);
            let start = |(name, by): (&str, StopBy)| {
                let trap = format!("trap 'echo quit >> {}; exit' QUIT", asked.display());
                let goes_on = if name == "gone" { "exit" } else { LOOP };
                let launch = stage.script(&host, &format!("echo $$ > pid-{name}; {trap}; {goes_on}"));
                let child = host.spawn_with_stop(&launch, None, &Stop { by, within }).unwrap();
                tell(&format!("started {}", child.pid));
                child
            };
            let _children = servers.map(start);
            loop {
                std::thread::park();
            }
        }
        "forks" => many_forks(&stage, &host),
        "swap" => {
            host.make_swap(64 << 20).unwrap();
            let group = host.group("server", &Confinement { memory: Some(16 << 20), swap: 48 << 20, ..LIMIT }).unwrap();
            // tail keeps what has no line ends: twice the group's memory, over and over.
            let hog = "while :; do head -c 32M /dev/zero | tail | wc -c; done";
            let _child = host.spawn(&stage.script(&host, hog), Some(&group)).unwrap();
            tell("started");
            loop {
                std::thread::park();
            }
        }
        "reset" => loop {
            host.reset_swap().unwrap();
        },
        what @ ("idle" | "ungrouped") => {
            let grouped = what == "idle" && hierarchies().is_ok();
            let group = grouped.then(|| host.group("server", &LIMIT).unwrap());
            let child = host.spawn(&stage.script(&host, TREE), group.as_ref()).unwrap();
            tell(&format!("started {}", child.pid));
            loop {
                std::thread::park();
            }
        }
        _ => ExitCode::from(2),
    }
}

/// A server after whose start so many processes are made that numbers may have come round: one is stopped, and another one left to be killed.
fn many_forks(stage: &Stage, host: &Host) -> ! {
    let forks = "i=0; while [ $i -lt 3000 ]; do (:); i=$((i + 1)); done";
    let launch =
        stage.script(host, &format!("trap exit QUIT; echo $$ > pid; sleep 1000 & {forks}; echo ready; {LOOP}"));
    // Until then its number is its own.
    let until_collected = "kill -QUIT $(cat pid); while kill -0 $(cat pid); do sleep 0.01; done";
    let by = StopBy::Command(stage.script(host, until_collected));
    let stop = Stop { by, within: Duration::from_secs(60) };
    let start = |times: usize| {
        let child = host.spawn_with_stop(&launch, None, &stop).unwrap();
        let said = || fs::read_to_string(&launch.stdout).unwrap_or_default();
        wait_until("it has forked", || said().lines().count() == times);
        child
    };
    tell(&format!("stopped {:?}", start(1).stop(Duration::ZERO)));
    let _child = start(2);
    tell("started");
    loop {
        std::thread::park();
    }
}

/// `@restore STATE_DIR FILES`: [`restore`] in a process that may have only so many files open; prints why it fails.
fn restore_with_few_files(args: &[OsString]) -> ExitCode {
    let [state, files] = args else { return ExitCode::from(2) };
    let current = files.to_str().unwrap().parse().ok();
    setrlimit(Resource::Nofile, Rlimit { current, ..getrlimit(Resource::Nofile) }).unwrap();
    match restore(Path::new(state)) {
        Ok(_) => ExitCode::SUCCESS,
        Err(why) => {
            tell(&why.to_string());
            ExitCode::FAILURE
        }
    }
}

fn tell(line: &str) {
    // The reader may have stopped listening; the victim goes on until it is killed.
    let _ = writeln!(std::io::stdout(), "{line}");
}

// ---- tests -----------------------------------------------------------------------------------------------------------

fn an_orderly_run_leaves_nothing() {
    let stage = Stage::new();
    let host = stage.open();
    let group = hierarchies().is_ok().then(|| host.group("server", &LIMIT).unwrap());
    let mut child = host.spawn(&stage.script(&host, TREE), group.as_ref()).unwrap();
    assert!(child.is_alive() && host.is_guarded());
    let dir = host.temporary_dir().unwrap();
    assert_eq!(dir, host.temporary_dir().unwrap());
    assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o7777, 0o711);
    // The whole tree: the shell, a subshell, three sleepers.
    wait_until("the tree has grown", || stage.left().iter().filter(|thing| thing.contains("sleep")).count() >= 4);
    child.terminate(Duration::from_secs(1)).unwrap();
    drop(group);
    let again = host.clone();
    host.close().unwrap();
    assert!(matches!(again.temporary_dir(), Ok(path) if path == dir), "what is known needs no change");
    assert!(matches!(again.make_swap(1 << 20), Err(HostError::Closed | HostError::NoSwap(_) | HostError::NotRoot(_))));
    assert!(matches!(again.close(), Err(HostError::Closed)));
    stage.nothing_left(Duration::ZERO, "after close");
}

fn a_dropped_run_leaves_nothing() {
    let stage = Stage::new();
    {
        let host = stage.open();
        let _child = host.spawn(&stage.script(&host, TREE), None).unwrap();
    }
    stage.nothing_left(Duration::ZERO, "after drop");
    // Handles that outlive the run find everything done.
    let host = stage.open();
    let child = host.spawn(&stage.script(&host, TREE), None).unwrap();
    host.close().unwrap();
    stage.nothing_left(Duration::ZERO, "after close with a child");
    child.terminate(Duration::ZERO).unwrap();
}

fn a_server_starts_as_asked() {
    let stage = Stage::new();
    let host = stage.open();
    let group = hierarchies().is_ok().then(|| host.group("server", &LIMIT).unwrap());
    let mut launch = stage.script(&host, "pwd; env | sort; umask; echo oops >&2; exec sleep 1000");
    launch.cpus = vec![0];
    launch.env.push(("A".into(), "1 2".into()));
    let child = host.spawn(&launch, group.as_ref()).unwrap();
    let pid = child.pid;
    wait_until("the script has run", || command_line(pid).starts_with("sleep"));
    let printed = fs::read_to_string(&launch.stdout).unwrap();
    let expected = [
        "A=1 2",
        &format!("{MARK}={}", stage.run),
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "0022",
    ];
    expected.iter().for_each(|line| assert!(printed.lines().any(|seen| seen == *line), "{line} in {printed}"));
    assert!(!printed.contains("HOME=") && printed.starts_with(launch.dir.to_str().unwrap()), "{printed}");
    assert_eq!(fs::read_to_string(&launch.stderr).unwrap(), "oops\n");
    assert_eq!(status(pid, "Cpus_allowed_list"), "0");
    // Signals 32 and 33 are the C library's own; it lets nobody change them.
    let ignored = u64::from_str_radix(&status(pid, "SigIgn"), 16).unwrap() & !(0b11 << 31);
    assert_eq!((ignored, status(pid, "SigBlk").as_str()), (0, "0000000000000000"));
    let mut files: Vec<String> =
        children(Path::new(&format!("/proc/{pid}/fd"))).iter().map(|path| name(path)).collect();
    files.sort();
    assert_eq!(files, ["0", "1", "2"]);
    assert_eq!(
        rustix::process::getsid(Pid::from_raw(pid.cast_signed())).unwrap().as_raw_nonzero().get().cast_unsigned(),
        pid
    );
    if let Some(group) = &group {
        let paths = group.paths();
        for dir in [&paths.memory, &paths.cpuacct, &paths.unified].into_iter().flatten() {
            let inside = fs::read_to_string(dir.join("cgroup.procs")).unwrap();
            assert_eq!(inside.trim(), pid.to_string(), "{}", dir.display());
        }
    }
    child.terminate(Duration::from_secs(1)).unwrap();
    host.close().unwrap();
    stage.nothing_left(Duration::ZERO, "after close");
}

fn a_name_cut_within_a_letter_hides_nobody() {
    let stage = Stage::new();
    let host = stage.open();
    let program = host.temporary_dir().unwrap().join("aサーバー起動");
    fs::copy("/bin/sleep", &program).unwrap();
    let launch = Launch { program, args: vec!["1000".into()], ..stage.script(&host, "") };
    let child = host.spawn(&launch, None).unwrap();
    let name = || fs::read(format!("/proc/{}/comm", child.pid)).unwrap();
    wait_until("it bears its name, or what the kernel keeps of it", || String::from_utf8(name()).is_err());
    host.close().unwrap();
    stage.nothing_left(Duration::ZERO, "after close");
}

fn a_refused_start_is_explained() {
    let stage = Stage::new();
    let host = stage.open();
    let check = |change: fn(&mut Launch), expected: &str| {
        let mut launch = stage.script(&host, "true");
        change(&mut launch);
        let error = host.spawn(&launch, None).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(
        |launch| launch.program = "/no/such/server".into(),
        "cannot start /no/such/server: No such file or directory",
    );
    check(|launch| launch.program = "/etc/passwd".into(), "cannot start /etc/passwd: Permission denied");
    check(|launch| launch.dir = "/no/folder".into(), "its working directory /no/folder does not exist");
    check(
        |launch| launch.stdout = "/no/folder/out".into(),
        "cannot write to /no/folder/out: No such file or directory",
    );
    check(|launch| launch.cpus = vec![5000], "there is no CPU 5000");
    check(|launch| launch.cpus = vec![1000], "cannot be pinned to the CPUs [1000]");
    assert!(matches!(host.group("a/b", &LIMIT), Err(HostError::Name(_))));
    host.close().unwrap();
    stage.nothing_left(Duration::ZERO, "after refusals");
}

fn sigterm_comes_first_and_grace_ends() {
    let stage = Stage::new();
    let host = stage.open();
    let check = |script: &str, expected: &str| {
        let launch = stage.script(&host, script);
        let child = host.spawn(&launch, None).unwrap();
        wait_until("it is ready", || fs::read_to_string(&launch.stdout).is_ok_and(|text| text.ends_with("ready\n")));
        let began = Instant::now();
        let root = PathBuf::from(format!("/proc/{}", child.pid));
        child.terminate(Duration::from_millis(500)).unwrap();
        assert!(!root.exists(), "the root was not collected");
        assert!(fs::read_to_string(&launch.stdout).unwrap().ends_with(expected));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    };
    check("trap 'echo bye; exit' TERM; echo ready; while :; do sleep 0.01; done", "bye\n");
    // Deaf to SIGTERM, as are its children.
    check("trap '' TERM; sleep 1000 & echo ready; while :; do sleep 1; done", "ready\n");
    // Dead already, with a child left.
    check("sleep 1000 & echo ready; exit 3", "ready\n");
    host.close().unwrap();
    stage.nothing_left(Duration::ZERO, "after terminate");
}

const LOOP: &str = "while :; do sleep 0.01; done";

fn a_server_is_asked_to_end_in_its_own_way() {
    let stage = Stage::new();
    let host = stage.open();
    let dir = host.temporary_dir().unwrap();
    // What it wrote, and what had to be ended by force.
    let stopped = |server: &str, by: StopBy, within: Duration| {
        let _ = fs::remove_file(dir.join("out"));
        let launch = stage.script(&host, &format!("echo $$ > pid; {server}"));
        let child = host.spawn_with_stop(&launch, None, &Stop { by, within }).unwrap();
        let text = || fs::read_to_string(&launch.stdout).unwrap_or_default();
        wait_until("it is ready", || text().ends_with("ready\n"));
        let root = PathBuf::from(format!("/proc/{}", child.pid));
        // Without a way of its own it would have been killed at once.
        let said = child.stop(Duration::ZERO).unwrap();
        assert!(!root.exists(), "the root was not collected");
        (text(), said)
    };
    let check = |server: &str, by: StopBy, wrote: &str, forced: Option<&str>| {
        let (text, said) = stopped(server, by, Duration::from_secs(60));
        assert_eq!((text.as_str(), said.as_deref()), (wrote, forced));
    };
    // The time is over while the command has come as far as that: a busy machine is given more, as nothing else tells that it has.
    let late = |server: &str, by: StopBy, wrote: &str, forced: &dyn Fn(&str) -> String| {
        let mut seen = Vec::new();
        for within in [300, 3_000, 30_000].map(Duration::from_millis) {
            let (text, said) = stopped(server, by.clone(), within);
            let expected = forced(&format!("{:.1} s", within.as_secs_f64()));
            if (text.as_str(), said.as_deref()) == (wrote, Some(expected.as_str())) {
                return;
            }
            seen.push((text, said));
        }
        panic!("it has never come so far as {wrote:?}: {seen:?}");
    };
    let script = |text: &str| StopBy::Command(stage.script(&host, text));
    let on = |signal: &str| format!("trap 'echo {signal}; exit' {signal}; sleep 1000 & echo ready; {LOOP}");
    for signal in StopSignal::ALL {
        let name = signal.name();
        check(&on(name), StopBy::Signal(signal), &format!("ready\n{name}\n"), None);
    }
    let ask = "echo asked; kill -USR2 $(cat pid)";
    check(&on("USR2"), script(ask), "ready\nasked\nUSR2\n", None);
    // How it ended counts for nothing, as long as the server did; and it may finish what it has to do.
    check(&on("USR2"), script(&format!("{ask}; exit 3")), "ready\nasked\nUSR2\n", None);
    let finishes = format!("{ask}; while kill -0 $(cat pid); do sleep 0.01; done; echo finished");
    check(&on("USR2"), script(&finishes), "ready\nasked\nUSR2\nfinished\n", None);
    let deaf = format!("trap '' QUIT; echo ready; {LOOP}");
    late(&deaf, StopBy::Signal(StopSignal::Quit), "ready\n", &|seconds| {
        format!("had not ended {seconds} after it was asked to by SIGQUIT")
    });
    late(&deaf, script("exit 3"), "ready\n", &|seconds| {
        format!("had not ended {seconds} after it was asked to by `/bin/sh -c exit 3`, which ended with exit code 3")
    });
    let hangs = format!("{ask}; sleep 1000");
    late(&on("USR2"), script(&hangs), "ready\nasked\nUSR2\n", &|seconds| {
        format!("has ended, but `/bin/sh -c {hangs}` had not after {seconds}")
    });
    let nosuch = Launch { program: "/no/such/stop".into(), ..stage.script(&host, "") };
    let forced = "cannot be asked to end: cannot start /no/such/stop: No such file or directory (os error 2)";
    check(&deaf, StopBy::Command(nosuch), "ready\n", Some(forced));
    // Who has ended by itself gets no signal, but may have begun what only its command ends. Who is killed is not asked.
    let launch = stage.script(&host, "sleep 1000 & exit 3");
    let dies = |by: StopBy, end: fn(host::Child) -> Result<Option<String>, HostError>, wrote: &str| {
        fs::remove_file(&launch.stdout).unwrap();
        let stop = Stop { by, within: Duration::from_secs(60) };
        let mut child = host.spawn_with_stop(&launch, None, &stop).unwrap();
        while child.is_alive() {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(end(child).unwrap(), None);
        assert_eq!(fs::read_to_string(&launch.stdout).unwrap(), wrote);
    };
    dies(script("echo asked"), |child| child.stop(Duration::ZERO), "asked\n");
    dies(StopBy::Signal(StopSignal::Quit), |child| child.stop(Duration::ZERO), "");
    dies(script("echo asked"), |child| child.kill().map(|()| None), "");
    host.close().unwrap();
    stage.nothing_left(Duration::ZERO, "after close");
}

fn a_group_confines() {
    if !groups_possible() {
        return;
    }
    let stage = Stage::new();
    let host = stage.open();
    let group = host.group("small", &Confinement { memory: Some(32 << 20), swap: 0, ..LIMIT }).unwrap();
    assert!(host.group("small", &LIMIT).unwrap_err().to_string().contains("exists"));
    let launch = stage.script(&host, "head -c 200M /dev/zero | tail | wc -c; echo over");
    let child = host.spawn(&launch, Some(&group)).unwrap();
    let memory = group.paths().memory.clone().unwrap();
    let kills = || {
        let files = ["memory.oom_control", "memory.events"];
        let text = files.map(|file| fs::read_to_string(memory.join(file)).unwrap_or_default()).concat();
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")).unwrap().to_owned()
    };
    // Or the shell was killed, too, before the memory of what it started was given back.
    let over = || fs::read_to_string(&launch.stdout).is_ok_and(|text| text.ends_with("over\n"));
    wait_until("the hog has ended", || over() || kills() != "0");
    assert_ne!(kills(), "0", "200 MB went into a group of 32 MB");
    child.terminate(Duration::ZERO).unwrap();
    group.remove().unwrap();
    assert!(!memory.exists());
    host.close().unwrap();
    stage.nothing_left(Duration::ZERO, "after close");
}

fn a_group_limits_cpu_and_disks() {
    if !groups_possible() {
        return;
    }
    let confine = Confinement {
        memory: None,
        cpu_thousandths: Some(100),
        io: IoLimits { read: Some(32 << 20), write_ops: Some(5000), ..NO_LIMITS },
        ..LIMIT
    };
    if let Err(why) = hierarchies().and_then(|found| found.allow(&confine)) {
        return not_here(&why.to_string());
    }
    let stage = Stage::new();
    let host = stage.open();
    let group = host.group("slow", &confine).unwrap();
    let held = |file: &str| group.limits().iter().find(|(name, _)| name == file).map(|(_, held)| held.clone());
    let quota = held("cpu.cfs_quota_us").or_else(|| held("cpu.max")).unwrap();
    assert!(["10000", "10000 100000"].contains(&quota.as_str()), "{quota}");
    let disks = held("blkio.throttle.read_bps_device").or_else(|| held("io.max")).unwrap();
    assert!(disks.contains("33554432"), "{disks}");
    assert!(held("memory.limit_in_bytes").is_none() && held("memory.max").is_none());
    // Whoever runs all the time is held up: the kernel counts it.
    let child = host.spawn(&stage.script(&host, "while :; do :; done"), Some(&group)).unwrap();
    let stat = group.paths().cpu.clone().unwrap().join("cpu.stat");
    let throttled = || {
        let text = fs::read_to_string(&stat).unwrap();
        text.lines().find_map(|line| line.strip_prefix("nr_throttled ")).unwrap().parse::<u64>().unwrap()
    };
    wait_until("the loop is throttled", || throttled() >= 3);
    child.terminate(Duration::ZERO).unwrap();
    let all = [group.paths().cpu.clone(), group.paths().io.clone()];
    group.remove().unwrap();
    assert!(all.into_iter().flatten().all(|dir| !dir.exists()));
    host.close().unwrap();
    stage.nothing_left(Duration::ZERO, "after close");
}

fn two_runs_need_two_names() {
    let stage = Stage::new();
    let host = stage.open();
    let again = Host::open(&stage.exe, &stage.state(), &stage.run).unwrap_err();
    assert!(matches!(again, HostError::AlreadyRunning { pid, .. } if pid == std::process::id()), "{again}");
    assert!(matches!(Host::open(&stage.exe, &stage.state(), "../x"), Err(HostError::Name(_))));
    let broken = Host::open(Path::new("/bin/false"), &stage.state(), "other").unwrap_err();
    assert!(matches!(broken, HostError::Guardian(_)), "{broken}");
    assert_eq!(restore(&stage.state()).unwrap(), [""; 0], "a living run was touched");
    host.close().unwrap();
    stage.nothing_left(Duration::ZERO, "after close");
}

fn two_runs_do_not_work_on_one_thing() {
    let (first, second) = (Stage::new(), Stage::new());
    let file = first.dir.path().join("php.ini");
    fs::write(&file, "the original").unwrap();
    let (one, other) = (first.open(), second.open());
    one.borrow_file(&file, Some(&[b"one".to_vec()])).unwrap().put(Some(b"one")).unwrap();
    let refused = |what: &str, got: Result<(), HostError>| {
        let expected = format!("the run {} works on {what}; let it end first", first.run);
        assert_eq!(got.map_err(|error| error.to_string()), Err(expected));
    };
    let two = [b"two".to_vec()];
    refused(file.to_str().unwrap(), other.borrow_file(&file, Some(&two)).map(drop));
    match one.borrow_sysctl(SETTING, &[]) {
        Ok(_) => refused(&place(SETTING), other.borrow_sysctl(SETTING, &[]).map(drop)),
        Err(why) => not_here(&why.to_string()),
    }
    one.close().unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "the original");
    other.borrow_file(&file, Some(&two)).unwrap().put(Some(b"two")).unwrap();
    other.close().unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "the original");
}

/// A plan may change a file of the server's of which the variant's directives change another line.
fn a_file_that_a_run_borrows_twice_comes_back() {
    let stage = Stage::new();
    let file = stage.dir.path().join("server.conf");
    fs::write(&file, "the original").unwrap();
    let host = stage.open();
    let check = |expected: &str| assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    let outer = host.borrow_file(&file, Some(&[b"one".to_vec(), b"two".to_vec()])).unwrap();
    outer.put(Some(b"one")).unwrap();
    let inner = host.borrow_file(&file, Some(&[b"one, and more".to_vec()])).unwrap();
    inner.put(Some(b"one, and more")).unwrap();
    check("one, and more");
    inner.give_back().unwrap();
    check("one");
    outer.put(Some(b"two")).unwrap();
    check("two");
    outer.put(None).unwrap();
    check("the original");
    outer.put(Some(b"one")).unwrap();
    host.close().unwrap();
    check("the original");
    stage.nothing_left(Duration::ZERO, "after close");
}

fn what_somebody_else_writes_to_a_file_is_kept() {
    let stage = Stage::new();
    let [file, new, aside] = ["php.ini", "new.ini", "php.ini.before-webdyno"].map(|name| stage.dir.path().join(name));
    fs::write(&file, "the original").unwrap();
    let host = stage.open();
    let ours = [b"ours".to_vec()];
    let kept = format!(", what the file was before goes to {}", aside.display());
    for (path, kept) in [(&file, kept.as_str()), (&new, "")] {
        let lent = host.borrow_file(path, Some(&ours)).unwrap();
        lent.put(Some(b"ours")).unwrap();
        fs::write(path, "theirs").unwrap();
        let (name, why) = (path.display(), lent.put(None).unwrap_err());
        let said = "was changed by somebody else while webdyno worked with it; that change is kept";
        assert_eq!(why.to_string(), format!("{name} {said}{kept}, and the run ends"));
    }
    host.close().unwrap();
    let found = [&file, &new, &aside].map(|path| fs::read_to_string(path).unwrap());
    assert_eq!(found, ["theirs", "theirs", "the original"]);
    stage.nothing_left(Duration::ZERO, "after close");
}

fn a_setting_that_somebody_else_sets_is_left() {
    let stage = Stage::new();
    let host = stage.open();
    let setting = match host.borrow_sysctl(SETTING, &["7".to_owned()]) {
        Ok(setting) => setting,
        Err(why) => return not_here(&why.to_string()),
    };
    let value = || fs::read_to_string(place(SETTING)).unwrap().trim().to_owned();
    let before = value();
    setting.put(Some("7")).unwrap();
    fs::write(place(SETTING), "11").unwrap();
    let why = setting.put(None).unwrap_err().to_string();
    let restored = host.close();
    let now = value();
    fs::write(place(SETTING), &before).unwrap();
    assert_eq!(
        why,
        format!("{SETTING}: somebody else set it to 11 while webdyno worked with it; that is kept, and the run ends")
    );
    assert!(restored.is_ok() && now == "11", "{restored:?} {now}");
    // The kernel keeps one of two.
    let host = stage.open();
    let kept = |name: &str| fs::read_to_string(place(name)).is_ok_and(|text| text.trim() != "0");
    let (set, other) = match kept("vm.dirty_ratio") {
        true => ("vm.dirty_ratio", "vm.dirty_bytes"),
        false => ("vm.dirty_bytes", "vm.dirty_ratio"),
    };
    let why = host.borrow_sysctl(other, &[]).unwrap_err().to_string();
    assert_eq!(why, format!("{other}: {set} is set, and the kernel would forget it over this one; set {set} instead"));
    host.close().unwrap();
}

/// Where the kernel has a setting.
fn place(setting: &str) -> String {
    format!("/proc/sys/{}", setting.replace('.', "/"))
}

fn swap_comes_and_goes() {
    if !swap_possible() {
        return;
    }
    let stage = Stage::new();
    let host = stage.open();
    let before = host::swap_total();
    host.make_swap(64 << 20).unwrap();
    assert_eq!(host::swap_total(), before + (64 << 20));
    let much = host.make_swap(1 << 50).unwrap_err().to_string();
    assert!(much.contains("no place for a swap file"), "{much}");
    host.close().unwrap();
    assert_eq!(host::swap_total(), before);
    stage.nothing_left(Duration::ZERO, "after close");
}

/// A swap area that is no run's, as the machine's are: a small file with a priority of its own.
struct Area(PathBuf);

impl Area {
    /// `None`, and it is said, where there can be none.
    fn new() -> Option<Area> {
        if !groups_possible() || !swap_possible() {
            return None;
        }
        let swaps = fs::read_to_string("/proc/swaps").unwrap();
        let used = |line: &str| line.split_whitespace().nth(3).is_some_and(|used| used != "0");
        if swaps.lines().skip(1).any(used) {
            not_here("this machine's own swap holds something, which a test does not move");
            return None;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let area = Area(format!("/var/tmp/host-test-swap-{}-{count}", std::process::id()).into());
        fs::write(&area.0, "").unwrap();
        fs::set_permissions(&area.0, fs::Permissions::from_mode(0o600)).unwrap();
        let done = [("fallocate", "-l64M"), ("mkswap", "-q"), ("swapon", "-p32767")]
            .iter()
            .all(|(program, word)| Command::new(program).arg(word).arg(&area.0).status().is_ok_and(|it| it.success()));
        if !done {
            not_here("no area of swap can be made");
        }
        done.then_some(area)
    }

    /// Bytes in it and its priority, while it is in use.
    fn state(&self) -> Option<(u64, i32)> {
        let swaps = fs::read_to_string("/proc/swaps").unwrap();
        let line = swaps.lines().find(|line| line.starts_with(self.0.to_str().unwrap()))?;
        let words: Vec<&str> = line.split_whitespace().collect();
        Some((words[3].parse::<u64>().unwrap() << 10, words[4].parse().unwrap()))
    }

    /// Has a group swap to it, and then lets it have all that it swapped out.
    fn fill(&self, stage: &Stage, host: &Host) -> (host::Child, host::Group) {
        let group = host.group("server", &Confinement { memory: Some(16 << 20), swap: 48 << 20, ..LIMIT }).unwrap();
        // tail keeps all of it, as nobody reads what it says.
        let hog = "head -c 40M /dev/zero | tail -c 40M | sleep 1000";
        let child = host.spawn(&stage.script(host, hog), Some(&group)).unwrap();
        wait_until("something is swapped out", || self.state().is_some_and(|(used, _)| used > 8 << 20));
        let memory = group.paths().memory.clone().unwrap();
        let file = ["memory.max", "memory.limit_in_bytes"].into_iter().find(|file| memory.join(file).exists()).unwrap();
        fs::write(memory.join(file), (60 << 20).to_string()).unwrap();
        (child, group)
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        let _ = Command::new("swapoff").arg(&self.0).stderr(Stdio::null()).status();
        let _ = fs::remove_file(&self.0);
    }
}

fn swap_is_emptied_and_comes_back() {
    let Some(area) = Area::new() else { return };
    let stage = Stage::new();
    let host = stage.open();
    assert_eq!(area.state().map(|(_, priority)| priority), Some(32767));
    let filled = area.fill(&stage, &host);
    assert!(host.reset_swap().unwrap() > 0);
    // It was empty for a moment; whoever else swaps on this machine may use it since.
    assert_eq!(area.state().map(|(_, priority)| priority), Some(32767));
    drop(filled);
    host.close().unwrap();
    assert!(area.state().is_some(), "the machine's swap is as it was");
    stage.nothing_left(Duration::ZERO, "after close");
}

/// Wherever it is: before, within or behind the call that takes the area out of use.
fn killed_while_swap_is_emptied() {
    let Some(area) = Area::new() else { return };
    let other = Stage::new();
    let host = other.open();
    let filled = area.fill(&other, &host);
    let stage = Stage::new();
    let mut victim = stage.victim("reset", |_| {});
    victim.wait_for("open");
    let journal = stage.state().join(format!("{}.journal", stage.run));
    // The last line tells of the call that is under way; once the area is empty there is no such call.
    let is_open = || fs::read_to_string(&journal).unwrap().lines().last().is_some_and(|line| line.contains("swap_on"));
    let is_over = || area.state().is_some_and(|(used, _)| used == 0);
    let was_open = Cell::new(false);
    wait_until("swap is taken out of use", || {
        was_open.set(is_open());
        was_open.get() || is_over()
    });
    victim.kill();
    if !was_open.get() {
        not_here("swap was empty before the call could be seen");
    }
    stage.nothing_left(PROMISE, "by a run killed while it emptied swap");
    assert_eq!(area.state().map(|(_, priority)| priority), Some(32767), "the machine's swap is as it was");
    drop(filled);
    host.close().unwrap();
}

fn killed_at_random_moments() {
    for _ in 0..20 {
        let stage = Stage::new();
        let victim = stage.victim("trials", |_| {});
        let mut byte = [0];
        rustix::rand::getrandom(&mut byte[..], rustix::rand::GetRandomFlags::empty()).unwrap();
        // Not a wait for anything: the moment is the point. A trial takes about 30 ms, coming up some more.
        let moment = Duration::from_millis(u64::from(byte[0]));
        std::thread::sleep(moment);
        victim.kill();
        stage.nothing_left(PROMISE, &format!("by a run killed after {moment:?}"));
    }
}

fn killed_while_it_swaps() {
    if !groups_possible() || !swap_possible() {
        return;
    }
    let stage = Stage::new();
    let mut victim = stage.victim("swap", |_| {});
    victim.wait_for("started");
    let file = || {
        fs::read_to_string("/proc/swaps").unwrap().lines().find(|line| line.contains(&stage.run)).unwrap().to_owned()
    };
    wait_until("something is swapped out", || file().split_whitespace().nth(3).unwrap() != "0");
    victim.kill();
    stage.nothing_left(PROMISE, "by a run killed while it swapped");

    let stage = Stage::new();
    let mut victim = stage.victim("swap", |_| {});
    victim.wait_for("open");
    victim.kill();
    stage.nothing_left(PROMISE, "by a run killed while it made swap");
}

fn killed_without_root() {
    if !is_root() {
        return not_here("this user has no rights anyway: every test here is this one");
    }
    for _ in 0..5 {
        let stage = Stage::for_nobody();
        let mut victim = stage.victim("idle", |command| {
            command.uid(NOBODY).gid(NOBODY);
        });
        let server: u32 = victim.wait_for("started").parse().unwrap();
        assert!(status(server, "Uid").starts_with(&NOBODY.to_string()));
        assert!(!fs::read_to_string(format!("/proc/{server}/cgroup")).unwrap().contains(&stage.run), "it has a group");
        victim.kill();
        stage.nothing_left(PROMISE, "by a run without rights");
    }
}

/// One server ends by its signal, one has ended by itself, one ends by a command that leaves something in the background, and one by none, as
/// its command does not end: all are asked, and all are gone in time.
fn killed_before_a_server_that_ends_in_its_own_way() {
    let stage = Stage::new();
    let mut victim = stage.victim("asked", |_| {});
    let pids = [(); 4].map(|()| victim.wait_for("started"));
    let traps = |pid: &String| u64::from_str_radix(&status(pid.parse().unwrap(), "SigCgt"), 16).unwrap_or(0);
    // The one that has ended is not collected as long as its run lives.
    let has_ended = |pid: &String| status(pid.parse().unwrap(), "State").starts_with('Z');
    wait_until("one has ended, and the others have set their traps", || {
        pids.iter().all(|pid| has_ended(pid) || traps(pid) & 1 << 2 != 0) && pids.iter().any(has_ended)
    });
    victim.kill();
    stage.nothing_left(PROMISE, "by a guardian that asks");
    let asked = fs::read_to_string(stage.dir.path().join("asked")).unwrap();
    assert_eq!(asked, "quit\ngone\nleaves\nquit\nhangs\n", "the newest is asked first");
}

/// Its first process ends when it is asked to, and what that has started goes on: whose it is, is still known then, to everybody who asks.
fn a_server_is_known_when_numbers_have_come_round() {
    let Some(stage) = Stage::of_few_numbers() else { return };
    let mut victim = stage.victim("forks", |_| {});
    assert_eq!(victim.wait_for("stopped"), "Ok(None)");
    victim.wait_for("started");
    victim.kill();
    stage.nothing_left(PROMISE, "by a guardian");

    let stage = Stage::of_few_numbers().unwrap();
    let mut victim = stage.victim("forks", |_| {});
    victim.wait_for("started");
    victim.kill_with_guardian();
    let restored = Command::new(&stage.exe).arg("@restore").arg(stage.state()).arg("1024").output().unwrap();
    assert!(restored.status.success(), "{restored:?}");
    stage.nothing_left(Duration::ZERO, "after restore");
}

fn killed_with_its_guardian() {
    let stage = Stage::new();
    let mut victim = stage.victim("idle", |_| {});
    let server: u32 = victim.wait_for("started").parse().unwrap();
    victim.kill_with_guardian();
    assert!(Path::new(&format!("/proc/{server}")).exists(), "who ended the server?");
    // What one run has left is not in the way of another, not even when it cannot be put back.
    let broken = stage.state().join("a.journal");
    fs::create_dir(&broken).unwrap();
    Host::open(&stage.exe, &stage.state(), "next").unwrap().close().unwrap();
    fs::remove_dir(&broken).unwrap();
    let put_back = restore(&stage.state()).unwrap();
    stage.nothing_left(Duration::ZERO, "after restore");
    assert!(put_back.iter().any(|sentence| sentence.starts_with("ended ")), "{put_back:?}");
    assert!(put_back.iter().any(|sentence| sentence.starts_with("deleted the folder /tmp/webdyno-")), "{put_back:?}");
}

fn a_session_of_another_container_is_left_alone() {
    let stage = Stage::new();
    let mut victim = stage.victim("ungrouped", |_| {});
    let server: u32 = victim.wait_for("started").parse().unwrap();
    victim.kill_with_guardian();
    let journal = stage.state().join(format!("{}.journal", stage.run));
    let written = fs::read_to_string(&journal).unwrap();
    let own = format!("\"number\":{}", fs::metadata("/proc/self/ns/pid").unwrap().ino());
    assert!(written.contains(&own), "{written}");
    fs::write(&journal, written.replace(&own, "\"number\":1")).unwrap();
    let said = restore(&stage.state()).unwrap();
    let left = format!("session {server} belongs to another pid namespace");
    assert!(said.iter().any(|sentence| sentence.starts_with(&left)), "{said:?}");
    assert!(!command_line(server).is_empty() && !journal.exists());
    // A journal of before knows nothing of it, and its session is ended.
    let (begin, rest) = written.split_once(",\"namespace\":").unwrap();
    let (_, end) = rest.split_once('}').unwrap();
    fs::write(&journal, format!("{begin}{end}")).unwrap();
    let said = restore(&stage.state()).unwrap();
    assert!(said.iter().any(|sentence| sentence.starts_with("ended ")), "{said:?}");
    stage.nothing_left(Duration::ZERO, "after restore");
}

fn what_cannot_be_read_is_not_taken_for_gone() {
    let stage = Stage::new();
    let mut victim = stage.victim("ungrouped", |_| {});
    let server: u32 = victim.wait_for("started").parse().unwrap();
    victim.kill_with_guardian();
    let journal = stage.state().join(format!("{}.journal", stage.run));
    let mut said = String::new();
    // With each file more it gets further; the last has enough.
    for files in 3..64 {
        let mut command = Command::new(&stage.exe);
        let tried = command.arg("@restore").arg(stage.state()).arg(files.to_string()).output().unwrap();
        if tried.status.success() {
            break;
        }
        said.push_str(&String::from_utf8_lossy(&tried.stdout));
        assert!(journal.exists() && !command_line(server).is_empty(), "with {files} files: {said}");
    }
    for unread in ["boot_id", "/stat", "whether something is mounted in it"] {
        assert!(said.contains(&format!("{unread}: Too many open files")), "{said}");
    }
    stage.nothing_left(Duration::ZERO, "after restore");
}

fn signals_to_all_spare_the_guardian() {
    for signal in [Signal::INT, Signal::HUP, Signal::TERM, Signal::QUIT] {
        if is_ignored(signal) {
            // Nor would it end the victim: so a shell's `&` and nohup hand it on.
            continue;
        }
        let stage = Stage::new();
        let mut victim = stage.victim("idle", |_| {});
        victim.wait_for("started");
        let guardian = victim.guardian();
        let mut files: Vec<String> =
            children(Path::new(&format!("/proc/{guardian}/fd"))).iter().map(|path| name(path)).collect();
        files.sort();
        assert_eq!(files, ["0", "1", "2"], "files the guardian holds open");
        // To the guardian itself, and to everything Ctrl-C reaches.
        kill_process(Pid::from_raw(guardian.cast_signed()).unwrap(), signal).unwrap();
        kill_process_group(victim.pid(), signal).unwrap();
        victim.process.wait().unwrap();
        stage.nothing_left(PROMISE, &format!("after {signal:?} to all"));
    }
}

/// Whether this process, and so every one it starts, ignores a signal.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << (signal.as_raw() - 1)) != 0
}

fn a_guardian_that_cannot_open_the_journal_tries_again() {
    let stage = Stage::new();
    let mut victim = stage.victim("idle", |_| {});
    victim.wait_for("started");
    let guardian = victim.guardian();
    let may_open = |files| prlimit(Pid::from_raw(guardian.cast_signed()), Resource::Nofile, files).unwrap();
    // None but the three that it has.
    let usual = may_open(Rlimit { current: Some(3), ..getrlimit(Resource::Nofile) });
    let sleeps = || status(guardian, "State").starts_with('S');
    let slept = || status(guardian, "voluntary_ctxt_switches").parse::<u64>().unwrap_or(0);
    wait_until("the guardian waits for its run's end", sleeps);
    let before = slept();
    victim.kill();
    wait_until("the guardian waits for its next attempt", || sleeps() && slept() > before);
    assert!(!stage.left().is_empty());
    may_open(usual);
    stage.nothing_left(2 * PROMISE, "by a guardian that may open files again");
}

fn a_run_goes_on_without_its_guardian() {
    let stage = Stage::new();
    let host = stage.open();
    let own = std::process::id();
    let guardian = processes(|pid| parent_of(pid) == Some(own) && command_line(pid).contains("@guardian"));
    kill_process(Pid::from_raw(guardian[0].cast_signed()).unwrap(), Signal::KILL).unwrap();
    wait_until("the guardian is seen to be gone", || !host.is_guarded());
    let child = host.spawn(&stage.script(&host, TREE), None).unwrap();
    child.terminate(Duration::ZERO).unwrap();
    host.close().unwrap();
    stage.nothing_left(Duration::ZERO, "after close");
}
