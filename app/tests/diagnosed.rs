//! Each cause is provoked on a real server, by its plan in `plans/diagnosis`, and found.
//!
//! How busy the machine is besides must not matter for those that run every day: they are counted by the kernel or by the server, or
//! others' work can only make them plainer. The long check has all of them, and windows in which nothing is wrong.

mod tool;

use diagnosis::Cause;
use model::reading::Column;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tool::{Finished, Tool, alone, is_root, open_plans, remains, shipped};

/// What happens beside a run.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Nothing,
    /// The sampler is stopped for a while in each window.
    StoppedSampler,
    /// Somebody asks the server, too.
    Visitor,
    /// The load comes over a slow cable.
    Cable,
    /// The client has few ports.
    FewPorts,
    /// The machine swaps for others.
    Thrash,
}

/// A plan, what it provokes, and whether that must come first; a cause that only weakens what is found comes last.
struct Case {
    plan: &'static str,
    cause: Cause,
    is_primary: bool,
    beside: Beside,
    needs: &'static [&'static str],
    is_for_root: bool,
    /// Whether it needs swap.
    swaps: bool,
    /// Whether it is found on a machine on which others work as well.
    every_day: bool,
    /// What else is true of what it provokes.
    with: &'static [Cause],
}

const fn case(plan: &'static str, cause: Cause) -> Case {
    Case {
        plan,
        cause,
        is_primary: true,
        beside: Beside::Nothing,
        needs: &[],
        is_for_root: false,
        swaps: false,
        every_day: true,
        with: &[],
    }
}

const APACHE: &str = "/usr/sbin/apache2";
/// Its version stands where the star is.
const MOD_PHP: &str = "/usr/lib/apache2/modules/libphp*";

const CASES: &[Case] = &[
    Case { needs: &[APACHE, MOD_PHP], ..case("cpu-bound", Cause::CpuBound) },
    Case { needs: &["/usr/sbin/nginx"], every_day: false, ..case("one-core", Cause::OneCoreBusy) },
    Case { is_for_root: true, needs: &[APACHE, MOD_PHP], ..case("throttled", Cause::Throttled) },
    Case {
        is_for_root: true,
        needs: &[APACHE, "/usr/bin/make"],
        swaps: true,
        every_day: false,
        with: &[Cause::WorkerLimitTooHigh],
        ..case("memory-thrash", Cause::MemoryThrash)
    },
    Case {
        is_for_root: true,
        needs: &[APACHE, "/usr/bin/make"],
        with: &[Cause::WorkerLimitTooHigh, Cause::FileCacheThrash, Cause::FailuresDominate, Cause::CpuBound],
        ..case("out-of-memory", Cause::OutOfMemory)
    },
    Case { is_for_root: true, needs: &[APACHE], every_day: false, ..case("disk-bound", Cause::DiskBound) },
    // It does wait for its disk, because of that (`leads_to` in the table of rules).
    Case {
        is_for_root: true,
        needs: &[APACHE],
        every_day: false,
        with: &[Cause::DiskBound],
        ..case("file-cache-thrash", Cause::FileCacheThrash)
    },
    Case { needs: &[APACHE, MOD_PHP], ..case("worker-limit-low", Cause::WorkerLimitTooLow) },
    Case {
        needs: &[APACHE, MOD_PHP],
        every_day: false,
        with: &[Cause::CpuBound],
        ..case("worker-limit-right", Cause::WorkerLimitRight)
    },
    Case {
        is_for_root: true,
        needs: &[APACHE, "/usr/bin/python3"],
        ..case("worker-limit-memory", Cause::WorkerLimitRight)
    },
    Case {
        is_for_root: true,
        needs: &[APACHE, MOD_PHP],
        every_day: false,
        ..case("worker-limit-reached", Cause::WorkerLimitReached)
    },
    Case {
        needs: &[APACHE],
        with: &[Cause::WorkerLimitRight, Cause::CpuBound],
        ..case("accept-queue", Cause::AcceptQueueOverflow)
    },
    Case {
        needs: &[APACHE, "/usr/bin/make"],
        every_day: false,
        with: &[Cause::OneCoreBusy],
        ..case("lock", Cause::LockSerialised)
    },
    Case { needs: &["/usr/bin/python3"], every_day: false, ..case("backend", Cause::BackendSerialised) },
    Case {
        is_for_root: true,
        beside: Beside::Cable,
        needs: &[APACHE, "/usr/sbin/ip", "/usr/sbin/tc", "/usr/bin/setpriv"],
        ..case("network", Cause::Network)
    },
    Case {
        is_for_root: true,
        beside: Beside::FewPorts,
        needs: &[APACHE, "/usr/sbin/ip"],
        with: &[Cause::FailuresDominate],
        ..case("out-of-ports", Cause::OutOfPorts)
    },
    Case { needs: &[APACHE], every_day: false, ..case("generator-saturated", Cause::GeneratorSaturated) },
    Case {
        is_for_root: true,
        needs: &["/usr/bin/python3"],
        swaps: true,
        every_day: false,
        ..case("pressure-building", Cause::PressureBuilding)
    },
    Case {
        is_for_root: true,
        beside: Beside::Thrash,
        needs: &[APACHE, MOD_PHP, "/usr/bin/make"],
        every_day: false,
        ..case("host-disturbed", Cause::HostDisturbed)
    },
    Case { needs: &[APACHE, MOD_PHP], ..case("failures", Cause::FailuresDominate) },
    Case { needs: &[APACHE, MOD_PHP], ..case("no-answers", Cause::NoAnswers) },
    Case { needs: &[APACHE, MOD_PHP], ..case("client-limited", Cause::OfferedConcurrency) },
    Case {
        is_primary: false,
        beside: Beside::StoppedSampler,
        needs: &[APACHE, MOD_PHP],
        with: &[Cause::OfferedConcurrency],
        ..case("monitor-unfit", Cause::MonitorUnfit)
    },
    Case {
        beside: Beside::Visitor,
        needs: &[APACHE, MOD_PHP],
        with: &[Cause::OfferedConcurrency],
        ..case("foreign", Cause::ForeignTraffic)
    },
    Case { needs: &[APACHE], every_day: false, ..case("keep-alive", Cause::KeepAliveHeld) },
    Case { needs: &[APACHE], ..case("workers-starting", Cause::WorkersStarting) },
    Case { needs: &[APACHE], ..case("processes-ending", Cause::ProcessesEnding) },
    Case { needs: &[APACHE], ..case("held-in-front", Cause::HeldInFront) },
    Case { needs: &["/usr/bin/python3"], every_day: false, ..case("too-few-threads", Cause::TooFewThreads) },
];

impl Case {
    /// Whether it can be provoked here; says why when not.
    fn can_be(&self) -> bool {
        if !has_all(self.plan, self.needs) {
            return false;
        }
        if self.is_for_root && !(is_root() && host::hierarchies().is_ok()) {
            testkit::skip::not_here(&format!("{}: needs root and control groups", self.plan));
            return false;
        }
        true
    }

    /// Runs the plan and returns what was found in each of its windows.
    fn provoke(&self) -> Result<Vec<Vec<Cause>>, String> {
        let tool = Tool::new();
        self.run(&tool, &["run", &self.file(&tool), "--seed", "1"])
    }

    /// The same, but after a block that shows it there is no other.
    fn provoke_until_shown(&self) -> Result<Vec<Vec<Cause>>, String> {
        let tool = Tool::new();
        let found = self.run(&tool, &["run", &self.file(&tool), "--seed", "1", "--budget", "1ms"])?;
        if self.is_shown(&found) {
            return Ok(found);
        }
        self.provoke()
    }

    /// Its plan, where the server's account can read the pages of it.
    fn file(&self, tool: &Tool) -> String {
        let name = format!("diagnosis/{}.toml", self.plan);
        let has_pages = self.needs.contains(&MOD_PHP);
        if has_pages { open_plans(tool).join(name).display().to_string() } else { shipped(&name) }
    }

    fn run(&self, tool: &Tool, words: &[&str]) -> Result<Vec<Vec<Cause>>, String> {
        let mut words = [words, &["--plain"]].concat();
        if self.swaps {
            words.extend(["--make-swap", "1G"]);
        }
        let mut command = tool.command(&words);
        match self.beside {
            Beside::Cable => {
                // Of the client's machine, which is the tester's own in truth.
                command = inside(&[CABLE], command.env("XDG_CACHE_HOME", tool.path("cache")));
            }
            Beside::FewPorts => command = inside(&["unshare", "--net", "sh", "-c", FEW_PORTS, "sh"], &command),
            Beside::Nothing | Beside::StoppedSampler | Beside::Visitor | Beside::Thrash => {}
        }
        let others = (self.beside == Beside::Thrash).then(Thrashing::begin).transpose()?;
        let over = AtomicBool::new(false);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = child.spawn().map_err(|error| error.to_string())?;
        let root = child.id();
        let done = std::thread::scope(|scope| {
            match self.beside {
                Beside::StoppedSampler => drop(scope.spawn(|| stop_the_sampler(root, &over))),
                Beside::Visitor => drop(scope.spawn(|| visit(root, &over))),
                Beside::Nothing | Beside::Cable | Beside::FewPorts | Beside::Thrash => {}
            }
            let output = child.wait_with_output();
            over.store(true, Ordering::Relaxed);
            output
        });
        let done = Finished::of(&done.map_err(|error| error.to_string())?);
        let found = windows(tool).map_err(|error| format!("{error}: {} {}", done.out, done.err))?;
        let mut left = remains(tool);
        left.extend(others.into_iter().flat_map(Thrashing::end));
        if left.is_empty() { Ok(found) } else { Err(format!("left behind: {left:?}")) }
    }

    fn is_found(&self, causes: &[Cause]) -> bool {
        causes.first() == Some(&self.cause) || (!self.is_primary && causes.contains(&self.cause))
    }

    /// Whether it is found, and besides it nothing but what is true as well: CPUs that the hypervisor took away are, by the kernel's count.
    fn is_all_right(&self, causes: &[Cause]) -> bool {
        let is_true = |cause: &Cause| *cause == self.cause || self.with.contains(cause) || is_robbed(&[*cause]);
        self.is_found(causes) && causes.iter().all(is_true)
    }

    /// Whether a window shows it.
    fn is_shown(&self, found: &[Vec<Cause>]) -> bool {
        found.iter().any(|causes| self.is_found(causes))
    }

    /// Whether most windows show it, and nothing that is not so.
    fn is_right(&self, found: &[Vec<Cause>]) -> bool {
        2 * found.iter().filter(|causes| self.is_all_right(causes)).count() > found.len()
    }
}

/// Whether all of these files are there; says so otherwise.
fn has_all(name: &str, files: &[&str]) -> bool {
    let missing = files.iter().find(|file| !is_there(file));
    missing.iter().for_each(|missing| testkit::skip::skipped(&format!("{name}: needs {missing}")));
    missing.is_none()
}

/// Whether there is such a file; before a star, one whose name begins so.
fn is_there(file: &str) -> bool {
    let Some(start) = file.strip_suffix('*') else { return Path::new(file).exists() };
    let beside = Path::new(start).parent().map(std::fs::read_dir).into_iter().flatten().flatten().flatten();
    beside.into_iter().any(|entry| entry.path().to_string_lossy().starts_with(start))
}

/// What today's rules find in each window of the newest run, as it is stored: the primary cause first.
fn windows(tool: &Tool) -> anyhow::Result<Vec<Vec<Cause>>> {
    let store = store::Store::open_existing(&tool.path("store.sqlite"))?;
    let run = store.load(store::LATEST)?;
    let diagnosed = |trial: &model::trial::Trial| {
        let cell = run.head.plan.cell(&trial.cell)?;
        Some(diagnosis::diagnose(&run.head, cell, trial).causes().collect())
    };
    Ok(run.trials.iter().filter_map(diagnosed).collect())
}

/// Whether the host itself kept the window from being judged.
fn is_disturbed(causes: &[Cause]) -> bool {
    causes.contains(&Cause::HostDisturbed)
}

/// Whether the hypervisor took CPUs away in the window, by the kernel's count: true then, and nothing that a healthy server could change.
fn is_robbed(causes: &[Cause]) -> bool {
    causes.contains(&Cause::Stolen)
}

fn named(causes: &[Cause]) -> String {
    causes.iter().map(|cause| cause.id().trim_start_matches("cause-")).collect::<Vec<_>>().join(", ")
}

/// Programs of somebody else's that thrash in a group that is too small for them.
struct Thrashing {
    run: Running,
    tool: Tool,
}

impl Thrashing {
    /// Returns when the machine swaps for them.
    fn begin() -> Result<Thrashing, String> {
        let tool = Tool::new();
        let text = std::fs::read_to_string(shipped("diagnosis/memory-thrash.toml")).expect("a plan");
        assert!(text.contains("requests = 40") && text.contains("\"../../sites"), "{text}");
        let sites = concat!("\"", env!("CARGO_MANIFEST_DIR"), "/../sites");
        let text = text.replace("\"../../sites", sites).replace("requests = 40", "duration = \"5min\"");
        let mut run = tool.command(&["run", &tool.plan(&text), "--plain", "--seed", "1", "--make-swap", "1G"]);
        let run = Running(run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("webdyno starts"));
        let before = swapped_in();
        let mut thrashing = Thrashing { run, tool };
        // A file for a gigabyte of swap is written first.
        let until = Instant::now() + Duration::from_secs(120);
        while swapped_in() <= before + 1000 {
            let ended = thrashing.run.0.try_wait().expect("our own child");
            if ended.is_some() || Instant::now() > until {
                return Err(format!("the machine does not swap: {ended:?}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(thrashing)
    }

    /// Says what is left of them.
    fn end(mut self) -> Vec<String> {
        self.interrupt();
        remains(&self.tool)
    }

    fn interrupt(&mut self) {
        if matches!(self.run.0.try_wait(), Ok(None)) {
            interrupt(&self.run.0);
            self.run.0.wait().expect("our own child");
        }
    }
}

impl Drop for Thrashing {
    fn drop(&mut self) {
        // Ended by force, it would leave its swap to a guardian whose journal goes with the folder.
        self.interrupt();
    }
}

/// Pages that the machine has read from swap.
fn swapped_in() -> u64 {
    let counters = std::fs::read_to_string("/proc/vmstat").expect("counters");
    let pages = counters.lines().find_map(|line| line.strip_prefix("pswpin "));
    pages.expect("the kernel counts them").parse().expect("a number")
}

/// A network of its own for a command, and a cable from there to a client.
const CABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../sites/network/cable.sh");
/// A network of its own for a command, with a hundred ports.
const FEW_PORTS: &str = "ip link set lo up && echo 40000 40099 > /proc/sys/net/ipv4/ip_local_port_range && exec \"$@\"";

/// The same command, run by another one.
fn inside(words: &[&str], command: &Command) -> Command {
    let mut inside = Command::new(words[0]);
    inside.args(&words[1..]).arg(command.get_program()).args(command.get_args());
    command.get_envs().for_each(|(name, value)| match value {
        Some(value) => drop(inside.env(name, value)),
        None => drop(inside.env_remove(name)),
    });
    inside.stdin(Stdio::null());
    inside
}

/// A network of its own for a command: what others' sockets do is not counted there.
const OWN_NETWORK: &str = "ip link set lo up && exec \"$@\"";

/// The group of the server of the tool's only run, once it was held back there in a trial.
fn held_back_group(tool: &Tool) -> Option<String> {
    let id = tool.run_ids().pop()?;
    let groups = host::hierarchies().ok()?.cpu?;
    let names = std::fs::read_dir(&groups).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let is_held_back = |name: &String| {
        let counted = std::fs::read_to_string(groups.join(name).join("cpu.stat")).unwrap_or_default();
        let periods = counted.lines().find_map(|line| line.strip_prefix("nr_throttled "));
        name.starts_with(&format!("webdyno-{id}-trial")) && periods.is_some_and(|periods| periods != "0")
    };
    names.into_iter().find(is_held_back)
}

/// The processes below one, with their command lines.
fn below(root: u32) -> Vec<(u32, String)> {
    let read = |pid: u32, file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let parent = |pid: u32| read(pid, "stat").rsplit(')').next()?.split_whitespace().nth(1)?.parse::<u32>().ok();
    let is_below = |pid: u32| {
        let mut at = pid;
        while let Some(up) = parent(at).filter(|&up| up > 1) {
            if up == root {
                return true;
            }
            at = up;
        }
        false
    };
    pids.into_iter().filter(|&pid| is_below(pid)).map(|pid| (pid, read(pid, "cmdline").replace('\0', " "))).collect()
}

/// Stops every sampler for two seconds, a little after it was started, and lets it go on.
fn stop_the_sampler(root: u32, over: &AtomicBool) {
    let mut known = Vec::new();
    while !over.load(Ordering::Relaxed) {
        for (pid, _) in below(root).into_iter().filter(|(_, words)| words.contains("@sampler")) {
            if known.contains(&pid) {
                continue;
            }
            known.push(pid);
            // The load is on from here to six seconds later; where it begins a little later, it is stopped from its beginning.
            std::thread::sleep(Duration::from_secs(2));
            let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { continue };
            let _ = kill_process(pid, Signal::STOP);
            std::thread::sleep(Duration::from_secs(2));
            let _ = kill_process(pid, Signal::CONT);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Asks every server for its page, again and again.
fn visit(root: u32, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let port = below(root).iter().find_map(|(pid, _)| listens_on(*pid));
        let stream = port.and_then(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok());
        let Some(mut stream) = stream else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
        let mut answer = [0; 4096];
        while !over.load(Ordering::Relaxed)
            && stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").is_ok()
            && stream.read(&mut answer).is_ok_and(|read| read > 0)
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The port on which a process listens.
fn listens_on(pid: u32) -> Option<u16> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let links = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    let inodes: Vec<String> =
        links.filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())).collect();
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_its = fields.get(3) == Some(&"0A") && inodes.iter().any(|inode| Some(&inode.as_str()) == fields.get(9));
        is_its.then(|| u16::from_str_radix(fields[1].split(':').nth(1)?, 16).ok()).flatten()
    })
}

#[test]
fn what_is_provoked_is_found() {
    let _alone = alone();
    let mut wrong = Vec::new();
    for case in CASES.iter().filter(|case| case.every_day && case.can_be()) {
        match case.provoke_until_shown() {
            Ok(found) if case.is_shown(&found) => {}
            // What swaps for others says nothing of a server, and says so.
            Ok(found) if found.iter().any(|causes| is_disturbed(causes)) => {
                testkit::skip::not_here(&format!("{}: this machine swaps for others: {found:?}", case.plan));
            }
            other => wrong.push(format!("{}: {other:?}", case.plan)),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_watch_says_it_while_it_is_so() {
    let case =
        Case { is_for_root: true, needs: &["/usr/sbin/ip", APACHE, MOD_PHP], ..case("throttled", Cause::Throttled) };
    if !case.can_be() {
        return;
    }
    let _alone = alone();
    let tool = Tool::new();
    let plan = case.file(&tool);
    let text = std::fs::read_to_string(&plan).expect("a plan");
    assert!(text.contains("duration = \"3s\""), "{text}");
    std::fs::write(&plan, text.replace("duration = \"3s\"", "duration = \"5min\"")).expect("a copy of our own");
    let mut run = tool.command(&["run", &plan, "--plain", "--seed", "1"]);
    run = inside(&["unshare", "--net", "sh", "-c", OWN_NETWORK, "sh"], &run);
    let run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("unshare runs");
    let mut run = Running(run);
    let mut group = None;
    tool::far::wait_until("the server is held back", || {
        group = held_back_group(&tool);
        group.is_some()
    });
    let group = group.expect("it is there");
    let network = format!("--net=/proc/{}/ns/net", run.0.id());
    // Rows of a second each, as many as it takes, and no more than are in a minute.
    let told = |more: &[&str]| {
        let watch = tool.command(&[&["watch", "-c", "--explain", "--cgroup", &group], more, &["1", "60"]].concat());
        let mut watch = inside(&["nsenter", &network], &watch);
        let mut watch = watch.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("nsenter runs");
        let mut lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let mut seen = Vec::new();
        let found = lines.by_ref().inspect(|line| seen.push(line.clone())).any(|line| line.contains(LIMITED));
        let next = lines.next();
        // What it still writes has a reader until it has heard.
        interrupt(&watch);
        lines.for_each(drop);
        let code = watch.wait().expect("our own child").code();
        assert!(found && code == Some(0), "{code:?}: {seen:#?}");
        (seen, next)
    };
    let (rows, next) = told(&[]);
    // A verdict stands below its row, and what it is made of below it.
    assert!(rows.len() > 3 && rows[rows.len() - 2].contains('|'), "{rows:#?}");
    assert!(next.is_some_and(|line| line.starts_with("    ")), "{rows:#?}");
    let (objects, _) = told(&["--json"]);
    let last: serde_json::Value = serde_json::from_str(objects.last().expect("a row")).expect("JSON");
    let notes = last["notes"].as_array().expect("notes");
    assert!(notes.iter().any(|note| note.as_str().is_some_and(|note| note.starts_with(LIMITED))), "{last:#}");
    interrupt(&run.0);
    run.0.wait().expect("our own child");
    assert_eq!(remains(&tool), Vec::<String>::new());
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).expect("our own child");
}

/// How a watch begins to say it.
const LIMITED: &str = "What limits it now: throttled: the server uses up its limit of CPU time and is held back";

/// A child that has no end of its own within a test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended, unless a test failed on the way.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_cable_is_gone_with_its_command_however_that_ended() {
    if !CASES.iter().filter(|case| case.beside == Beside::Cable).all(Case::can_be) {
        return;
    }
    let mut command = inside(&[CABLE], &Command::new("sleep"));
    let mut child = Running(command.arg("infinity").spawn().expect("a shell"));
    let is_sleep = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n");
    tool::far::wait_until("the cable is laid", || is_sleep(child.0.id()));
    let network = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let (near, far) = (network(child.0.id()), below(child.0.id()).into_iter().find_map(|(pid, _)| network(pid)));
    assert!(near.is_some() && far.is_some() && near != far, "{near:?} {far:?}");
    // A network of the kernel's is there as long as somebody is in it.
    let is_there = |end: &Option<PathBuf>| {
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        processes.map(|entry| entry.path().join("ns/net")).any(|network| std::fs::read_link(network).ok() == *end)
    };
    assert!(is_there(&near) && is_there(&far));
    child.0.kill().expect("our own child");
    child.0.wait().expect("our own child");
    tool::far::wait_until("both ends are gone", || !is_there(&near) && !is_there(&far));
}

#[test]
fn every_plan_is_a_case() {
    let plans = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../plans/diagnosis")).expect("plans");
    let mut plans: Vec<String> = plans.flatten().map(|plan| plan.file_name().to_string_lossy().into_owned()).collect();
    let mut cases: Vec<String> = CASES.iter().map(|case| format!("{}.toml", case.plan)).collect();
    plans.sort();
    cases.sort();
    assert_eq!(plans, cases);
}

/// A server and a load with nothing wrong.
struct Healthy {
    name: &'static str,
    load: &'static str,
    on: On,
    /// What a window may be called: a CPU that works and a client that asks for no more are no fault, where they are so. All else is a
    /// false alarm, also when it only contributes.
    is: &'static [Cause],
}

/// The server of a healthy window.
enum On {
    /// The embedded one.
    Embedded,
    /// The embedded one, in a group: what runs there before it does, and the group's limits.
    Group(&'static str, &'static str),
    /// A real one: the lines of its table, and what they need.
    Real(&'static str, &'static [&'static str]),
}

/// Fewer are asked for than the server could do.
const ASKED_FOR_LITTLE: &[Cause] = &[Cause::OfferedConcurrency];
/// Two or four at a time for what takes next to no time: nearly all of the server's CPU, and whether it is all is a matter of chance. That
/// nothing is known to limit is said where it is neither nearly nor enough.
const ASKED_FOR_MUCH: &[Cause] = &[Cause::OfferedConcurrency, Cause::CpuBound, Cause::Unexplained];
/// A limit that is reached and right, as there is no more CPU.
const AT_ITS_LIMIT: &[Cause] = &[Cause::WorkerLimitRight, Cause::CpuBound];

const fn healthy(name: &'static str, load: &'static str, is: &'static [Cause]) -> Healthy {
    Healthy { name, load, on: On::Embedded, is }
}

const HEALTHY: &[Healthy] = &[
    healthy("one at a time", "path = \"/sleep/5ms\"\nconnections = 1", ASKED_FOR_LITTLE),
    healthy("many that wait", "path = \"/sleep/20ms\"\nconnections = 16", ASKED_FOR_LITTLE),
    healthy("small pages", "path = \"/static/1K\"\nconnections = 2", ASKED_FOR_MUCH),
    healthy("a full CPU at a right limit", "path = \"/cpu/3ms\"\nconnections = 40\nkeep_alive = false", AT_ITS_LIMIT),
    healthy("nearly idle", "path = \"/\"\nconnections = 2\nrate = \"20/s\"", ASKED_FOR_LITTLE),
    healthy("large pages", "path = \"/static/1M\"\nconnections = 2", ASKED_FOR_MUCH),
    // The kernel keeps of a file what the group has room for, and gives it up for whatever needs the room.
    Healthy {
        on: On::Group("head -c 80M /dev/zero >file && sync file", "memory = \"64M\"\nswap = \"0\""),
        ..healthy("the page cache full", "path = \"/static/1K\"\nconnections = 2", ASKED_FOR_MUCH)
    },
    // dd has its whole block in memory before the first byte of it is written, and then waits for a reader that never comes. A larger one
    // pushes it out to swap, and ends.
    Healthy {
        on: On::Group(
            "dd if=/dev/zero bs=30M count=1 2>err | { head -c 1 >first; touch full; exec sleep 600; } & until [ -e full ]; do :; done; \
             dd if=/dev/zero of=/dev/null bs=36M count=1 2>err2",
            "memory = \"40M\"\nswap = \"200M\"",
        ),
        ..healthy("swap in use and quiet", "path = \"/static/1K\"\nconnections = 2", ASKED_FOR_MUCH)
    },
    Healthy {
        on: On::Real(
            "kind = \"apache\"\nmpm = \"prefork\"\ndocument_root = \"../sites/static\"\n\
             directives = \"\"\"\nStartServers 8\nMaxRequestWorkers 32\n\"\"\"",
            &[APACHE],
        ),
        ..healthy("Apache, prefork", "path = \"/\"\nconnections = 4", ASKED_FOR_MUCH)
    },
    Healthy {
        on: On::Real("kind = \"apache\"\nmpm = \"event\"\ndocument_root = \"../sites/static\"", &[APACHE]),
        ..healthy(
            "Apache, event, kept connections that pause",
            "path = \"/\"\nconnections = 64\nrate = \"200/s\"",
            ASKED_FOR_LITTLE,
        )
    },
    Healthy {
        on: On::Real(
            "kind = \"apache\"\nmpm = \"prefork\"\nphp = \"module\"\ndocument_root = \"../sites/php\"\n\
             ready = \"/work.php\"\ndirectives = \"\"\"\nStartServers 4\nMinSpareServers 1\nMaxSpareServers 4\nMaxRequestWorkers 4\n\"\"\"",
            &[APACHE, MOD_PHP],
        ),
        ..healthy(
            "Apache with PHP at a right limit",
            "path = \"/work.php?cpu=3\"\nconnections = 20\nkeep_alive = false",
            AT_ITS_LIMIT,
        )
    },
    Healthy {
        on: On::Real("kind = \"nginx\"\ndocument_root = \"../sites/static\"", &["/usr/sbin/nginx"]),
        ..healthy("nginx", "path = \"/\"\nconnections = 4", ASKED_FOR_MUCH)
    },
];

/// What the kernel calls a file system in memory.
const TMPFS: u64 = 0x0102_1994;

/// Windows of each healthy kind.
const WINDOWS: usize = 34;

impl Healthy {
    /// Whether it can be had here; says so otherwise.
    fn can_be(&self) -> bool {
        match self.on {
            On::Embedded => true,
            On::Group(..) => {
                // Files in memory are no cache of anything.
                let on_disk = || rustix::fs::statfs(std::env::temp_dir()).is_ok_and(|it| it.f_type as u64 != TMPFS);
                let can = is_root() && host::hierarchies().is_ok() && on_disk();
                if !can {
                    let needs = format!("{}: needs root, control groups and a /tmp on a disk", self.name);
                    testkit::skip::not_here(&needs);
                }
                can
            }
            On::Real(_, needs) => has_all(self.name, needs),
        }
    }

    fn server(&self) -> String {
        match self.on {
            On::Embedded => "[server]\nkind = \"embedded\"\ndirectives = \"Workers 32\"\n".to_owned(),
            On::Group(beside, limits) => {
                let serve = format!("exec {} serve --listen 127.0.0.1:${{port}}", env!("CARGO_BIN_EXE_webdyno"));
                format!(
                    "[server]\nkind = \"command\"\ncommand = ['sh', '-c', '{beside}; {serve}']\n[confine]\n{limits}\n"
                )
            }
            On::Real(lines, _) => format!("[server]\n{lines}\n"),
        }
    }

    fn swaps(&self) -> bool {
        matches!(self.on, On::Group(_, limits) if !limits.contains("swap = \"0\""))
    }

    fn is_quiet(&self, causes: &[Cause]) -> bool {
        causes.iter().all(|cause| self.is.contains(cause))
    }

    /// What is found in so many windows.
    fn windows(&self, tool: &Tool, count: usize) -> Vec<Vec<Cause>> {
        // A plan has two blocks or more.
        let blocks = count.max(2);
        let (server, load) = (self.server(), self.load);
        let plan = format!(
            "blocks = {blocks}\naa = false\n{server}[load.a]\n{load}\nduration = \"2s\"\n[warmup]\nrequests = 20\n[cooldown]\nlimit = \"100ms\"\n"
        );
        let plan = match self.on {
            On::Real(..) => {
                let file = open_plans(tool).join("healthy.toml");
                std::fs::write(&file, plan).expect("a plan");
                file.display().to_string()
            }
            On::Embedded | On::Group(..) => tool.plan(&plan),
        };
        let swap: &[&str] = if self.swaps() { &["--make-swap", "256M"] } else { &[] };
        let run = tool.run(&[&["run", &plan, "--plain", "--seed", "1"], swap].concat());
        windows(tool).unwrap_or_else(|error| panic!("{error}: {}{}", run.out, run.err))
    }
}

/// Causes that memory has a part in.
const OF_MEMORY: [Cause; 5] = [
    Cause::MemoryThrash,
    Cause::OutOfMemory,
    Cause::WorkerLimitTooHigh,
    Cause::FileCacheThrash,
    Cause::PressureBuilding,
];

/// The two that need a group are what their names say, and no fault of the memory's.
#[test]
fn a_full_cache_and_quiet_swap_are_had_and_no_fault() {
    let _alone = alone();
    for kind in HEALTHY.iter().filter(|kind| matches!(kind.on, On::Group(..))) {
        if !kind.can_be() {
            return;
        }
        let tool = Tool::new();
        let found = kind.windows(&tool, 2);
        assert!(!found.iter().flatten().any(|cause| OF_MEMORY.contains(cause)), "{}: {found:?}", kind.name);
        let store = store::Store::open_existing(&tool.path("store.sqlite")).expect("a store");
        for trial in store.load(store::LATEST).expect("a run").trials {
            let rows = &trial.readings.rows;
            let most = |column| rows.iter().filter_map(|row| row.get(column)).max().unwrap_or(0);
            let [used, limit, swapped] = [Column::GroupUsage, Column::GroupLimit, Column::GroupSwap].map(most);
            // How much of the block the kernel has pushed out is its own affair.
            let is_so = if kind.swaps() { swapped > 1 << 20 } else { used * 10 > limit * 9 && swapped == 0 };
            assert!(is_so, "{}: {used} of {limit}, {swapped} in swap", kind.name);
        }
    }
}

#[test]
fn long_check_diagnosis() {
    let Some(results) = testkit::skip::long_results() else { return };
    let _alone = alone();
    let began = Instant::now();
    let mut page = "# Every cause provoked, and windows in which nothing is wrong\n\n\
                    The confusion matrix: what was provoked, and what each window was called, the primary cause first.\n\n\
                    | provoked | found | windows | right |\n|---|---|---|---|\n"
        .to_owned();
    let (mut wrong, mut alarms, mut quiet) = (Vec::new(), Vec::new(), 0);
    let rows = |page: &mut String, name: &str, found: &[Vec<Cause>], right: &dyn Fn(&[Cause]) -> bool| {
        let mut counted = BTreeMap::<(String, bool), u32>::new();
        found.iter().for_each(|causes| *counted.entry((named(causes), right(causes))).or_default() += 1);
        for ((causes, right), n) in counted {
            let _ = writeln!(page, "| {name} | {causes} | {n} | {} |", if right { "yes" } else { "no" });
        }
    };
    for case in CASES.iter().filter(|case| case.can_be()) {
        let found = case.provoke().unwrap_or_else(|error| {
            let _ = writeln!(page, "| {} | {error} | 0 | no |", case.plan);
            Vec::new()
        });
        rows(&mut page, case.cause.id(), &found, &|causes| case.is_all_right(causes));
        if !case.is_right(&found) {
            wrong.push(case.plan);
        }
    }
    for kind in HEALTHY.iter().filter(|kind| kind.can_be()) {
        let name = kind.name;
        let (mut disturbed, mut robbed, mut found) = (Vec::new(), Vec::new(), Vec::new());
        // In the place of windows in which the machine was not left alone, others are made, at most as many again.
        while found.len() < WINDOWS && disturbed.len() + robbed.len() < WINDOWS {
            let more = kind.windows(&Tool::new(), WINDOWS - found.len());
            assert!(!more.is_empty(), "{name}: no window was made");
            for causes in more {
                let place = match &causes {
                    causes if is_disturbed(causes) => &mut disturbed,
                    causes if is_robbed(causes) => &mut robbed,
                    _ => &mut found,
                };
                place.push(causes);
            }
        }
        let is_quiet = |causes: &[Cause]| kind.is_quiet(causes);
        // Now and then a window shows nothing; where most do the rules know nothing of its kind.
        let unexplained = found.iter().filter(|causes| causes.contains(&Cause::Unexplained)).count();
        if 4 * unexplained > found.len() {
            wrong.push(name);
        }
        rows(&mut page, &format!("nothing: {name}, while the host swapped for others"), &disturbed, &|_| true);
        let but_for_that =
            |causes: &[Cause]| causes.iter().all(|cause| is_robbed(&[*cause]) || kind.is.contains(cause));
        rows(&mut page, &format!("nothing: {name}, while the hypervisor took CPUs away"), &robbed, &but_for_that);
        rows(&mut page, &format!("nothing: {name}"), &found, &is_quiet);
        alarms.extend(robbed.into_iter().filter(|causes| !but_for_that(causes)));
        quiet += found.len();
        alarms.extend(found.into_iter().filter(|causes| !is_quiet(causes)));
    }
    let _ = writeln!(
        page,
        "\n{} false alarms in {quiet} healthy windows; {:.0} s.",
        alarms.len(),
        began.elapsed().as_secs_f64()
    );
    std::fs::write(results.join("diagnosis.md"), page).expect("results");
    assert!(wrong.is_empty() && alarms.is_empty(), "not found: {wrong:?}; false alarms: {alarms:?}");
}
