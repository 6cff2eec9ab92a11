//! `webdyno watch` where containers put it: in namespaces of its own, without rights, with files that are masked, and in the real thing (runc).

mod tool;

use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use testkit::skip::{not_here, skipped};
use tool::{Finished, Tool};

const NOBODY: u32 = 65534;

/// The rows of a watch in JSON.
fn rows(text: &str) -> Vec<Value> {
    text.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).expect("a row")).collect()
}

fn number(row: &Value, path: &str) -> f64 {
    row.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path} in {row}"))
}

/// Where anybody can run the program: the build folder may be root's alone.
fn copy(tool: &Tool) -> PathBuf {
    let program = tool.path("webdyno");
    // Not by this process: what it has open for writing cannot be run by a child that another test starts.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_webdyno")).arg(&program).status();
    assert!(copied.is_ok_and(|status| status.success()), "room for a copy");
    program
}

/// A user without rights in namespaces of users, mounts, processes and groups, and a shell in there.
fn unshared(home: &Path, script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["-U", "--map-root-user", "-m", "-p", "-C", "-n", "-i", "--fork", "--mount-proc", "sh", "-c", script]);
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", home).env("TMPDIR", home);
    command.current_dir("/");
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

fn can_unshare(home: &Path) -> bool {
    unshared(home, "mount -t tmpfs none /sys/fs/cgroup").output().is_ok_and(|output| output.status.success())
}

#[test]
fn a_user_in_namespaces_of_his_own_without_groups_and_with_masked_files() {
    let (tool, home) = (Tool::new(), tempfile::tempdir().expect("a folder"));
    tool.tmp();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(home.path(), Some(NOBODY), Some(NOBODY)).expect("root may");
    }
    if !can_unshare(home.path()) {
        return not_here("no namespaces for ordinary users");
    }
    let program = copy(&tool).display().to_string();
    let script = "\
        mount -t tmpfs none /sys/fs/cgroup
        for file in vmstat diskstats net/netstat; do mount --bind /dev/null /proc/$file; done
        ulimit -l 0
        W watch --json --record --store $HOME/s.sqlite -cmsgdlnrpyt --tree 1 1 2
        W watch --replay latest --store $HOME/s.sqlite --json
        W watch -cg 1 1
        W watch --cgroup . 1 1; echo code $?
        W watch --top-cpu --top-mem --psi --listen --tcp --udp --unix --socket --lock --ipc --fs --vm --tcp-trouble --disk-queue --run-queue 1 2
        echo code $?";
    let script = script.replace("W ", &format!("{program} "));
    let done = Finished::of(&unshared(home.path(), &script).output().expect("unshare runs"));
    let rows = rows(&done.out);
    assert_eq!(rows.len(), 4, "{done:?}");
    assert_eq!(
        rows[..2].iter().map(|row| &row["monotonic_s"]).collect::<Vec<_>>(),
        [&rows[2]["monotonic_s"], &rows[3]["monotonic_s"]]
    );
    // The shell is the first process here, and has a watch with its sampler.
    assert_eq!(number(&rows[1], "/tree/processes"), 3.0);
    assert!(number(&rows[1], "/tree/rss_bytes") > 0.0);
    assert!(rows[1]["swap"]["in_bytes_per_s"].is_null() && rows[1]["memory"]["total_bytes"].is_number(), "{}", rows[1]);
    for what in ["vmstat", "diskstats"] {
        let note = format!("/proc/{what} is empty, as containers mask files: its columns are absent");
        assert!(done.err.contains(&note) || rows[0]["notes"].to_string().contains(&note), "{note} in {done:?}");
    }
    assert!(done.err.contains("--cgroup .: no control groups are to be seen here"), "{}", done.err);
    assert!(done.out.contains("code 2") && done.out.trim_end().ends_with("code 0"), "{}", done.out);
    assert!(!done.err.contains("panicked"), "{}", done.err);
}

/// A container: a bundle below a folder, with the host's /usr in it, a limit of memory and one of CPU time.
struct Container {
    folder: tempfile::TempDir,
    name: String,
    config: Value,
}

const MEMORY: u64 = 120 << 20;

impl Container {
    /// `None` where runc does not work: it was told why.
    fn new() -> Option<Container> {
        if Command::new("runc").arg("--version").output().is_err() {
            skipped("no runc");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("rootfs");
        for name in ["usr", "proc", "sys", "dev", "tmp", "etc", "opt"] {
            std::fs::create_dir_all(root.join(name)).expect("a folder");
        }
        // runc gives what is mounted there the same.
        std::fs::set_permissions(root.join("tmp"), PermissionsExt::from_mode(0o1777)).expect("our own folder");
        for name in ["bin", "sbin", "lib", "lib64"] {
            symlink(format!("usr/{name}"), root.join(name)).expect("a link");
        }
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_webdyno")).arg(root.join("opt/webdyno")).status();
        assert!(copied.is_ok_and(|status| status.success()), "room for a copy");
        let made = Command::new("runc").args(["spec", "-b"]).arg(folder.path()).output().expect("runc runs");
        assert!(made.status.success(), "{made:?}");
        let text = std::fs::read_to_string(folder.path().join("config.json")).expect("runc wrote it");
        let mut config: Value = serde_json::from_str(&text).expect("runc's own file");
        config["process"]["terminal"] = json!(false);
        config["linux"]["resources"]["memory"] = json!({"limit": MEMORY});
        config["linux"]["resources"]["cpu"] = json!({"quota": 50_000, "period": 100_000});
        let name = format!("webdyno-test-{}", folder.path().file_name().expect("a name").display());
        config["linux"]["cgroupsPath"] = json!(format!("/{name}"));
        let mut container = Container { folder, name, config };
        container.push(
            "/mounts",
            json!({"destination": "/usr", "type": "none", "source": "/usr", "options": ["rbind", "ro"]}),
        );
        container.push(
            "/mounts",
            json!({"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["mode=1777"]}),
        );
        container.push("/process/env", json!("HOME=/tmp"));
        let tried = container.run("true");
        if !tried.status.success() {
            not_here(&format!("runc starts nothing: {}", String::from_utf8_lossy(&tried.stderr).trim()));
            return None;
        }
        Some(container)
    }

    fn push(&mut self, path: &str, value: Value) {
        let list = self.config.pointer_mut(path).and_then(Value::as_array_mut);
        list.unwrap_or_else(|| panic!("no {path}")).push(value);
    }

    /// A user without rights, files masked and processes hidden, and system calls refused, as careful runtimes have it.
    fn tighten(&mut self) {
        self.config["process"]["user"] = json!({"uid": 1000, "gid": 1000});
        self.config["process"]["capabilities"] = json!({});
        self.push("/process/rlimits", json!({"type": "RLIMIT_MEMLOCK", "hard": 0, "soft": 0}));
        for masked in ["/proc/vmstat", "/proc/diskstats", "/proc/pressure", "/proc/swaps", "/sys/block"] {
            self.push("/linux/maskedPaths", json!(masked));
        }
        self.config["mounts"][0]["options"] = json!(["hidepid=2"]);
        let calls = [
            "clock_settime",
            "clock_adjtime",
            "perf_event_open",
            "sched_setscheduler",
            "sched_setattr",
            "setpriority",
            "mlockall",
            "mlock2",
            "ptrace",
            "process_vm_readv",
            "bpf",
            "io_uring_setup",
        ];
        self.config["linux"]["seccomp"] = json!({
            "defaultAction": "SCMP_ACT_ALLOW",
            "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
            "syscalls": [{"names": calls, "action": "SCMP_ACT_ERRNO"}],
        });
    }

    fn run(&mut self, script: &str) -> Output {
        self.config["process"]["args"] = json!(["/bin/sh", "-c", script]);
        std::fs::write(self.folder.path().join("config.json"), self.config.to_string()).expect("room");
        Command::new("runc").arg("run").arg("-b").arg(self.folder.path()).arg(&self.name).output().expect("runc runs")
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // It has ended, unless a test failed on the way.
        let _ = Command::new("runc").args(["delete", "-f", &self.name]).output();
    }
}

/// A server and a loop, and what a watch in the container sees of them, of their group and of their sockets.
const SCRIPT: &str = "\
    /opt/webdyno serve --listen 127.0.0.1:8080 > /dev/null 2>&1 &
    server=$!
    (while :; do :; done) &
    loop=$!
    until grep -q ' 0A ' /proc/net/tcp; do kill -0 $server || exit 9; done
    /opt/webdyno watch --json --record -cmsdlnrgpyt --cgroup . --tree $server --listen -L 8080 1 3
    echo code $?
    /opt/webdyno watch --replay latest --json
    /opt/webdyno watch -cm --psi --cgroup . --tree 1 --top-cpu --top-mem --listen 1 2
    echo code $?
    kill $loop $server";

fn check_contained(container: &mut Container) -> Finished {
    let done = Finished::of(&container.run(SCRIPT));
    assert_eq!(done.out.matches("code 0").count(), 2, "{done:?}");
    assert!(!done.err.contains("panicked"), "{}", done.err);
    let rows = rows(&done.out);
    assert_eq!(rows.len(), 6, "{done:?}");
    let last = &rows[2];
    assert_eq!(number(last, "/cgroup/limit_bytes"), MEMORY as f64);
    let used = number(last, "/cgroup/memory_bytes");
    assert!(used > 0.0 && used <= MEMORY as f64, "{used}");
    let cpu = number(last, "/cgroup/cpu_percent");
    assert!(cpu > 0.0, "{cpu}");
    // The container's own sockets and processes, by its own numbers.
    assert!(number(last, "/devices/port/8080/limit") > 0.0);
    assert_eq!(number(last, "/tree/processes"), 1.0, "{last}");
    let times = |rows: &[Value]| {
        rows.iter().map(|row| [row["epoch_s"].clone(), row["monotonic_s"].clone()]).collect::<Vec<_>>()
    };
    assert_eq!(times(&rows[..3]), times(&rows[3..]));
    done
}

#[test]
fn a_container_is_watched_from_inside() {
    let Some(mut container) = Container::new() else { return };
    // Without a namespace of groups, as Docker has it under cgroup v1, and with one.
    check_contained(&mut container);
    container.push("/linux/namespaces", json!({"type": "cgroup"}));
    check_contained(&mut container);
}

#[test]
fn a_container_without_rights_is_watched_from_inside() {
    let Some(mut container) = Container::new() else { return };
    container.push("/linux/namespaces", json!({"type": "cgroup"}));
    container.tighten();
    let done = check_contained(&mut container);
    for note in [
        "real-time priority and nice -20 were refused",
        "locked memory was refused",
        "/proc/vmstat is empty, as containers mask files: its columns are absent",
        "no disk was found in /sys/block",
    ] {
        assert!(done.err.contains(note) || done.out.contains(note), "{note} in {done:?}");
    }
}
