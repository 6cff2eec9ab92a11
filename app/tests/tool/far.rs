//! Two machines: network namespaces with a cable between them, and a real sshd in the far one.
//!
//! Nothing of the tester's own account is used or written: keys, known hosts and caches are the scene's.

use super::{Finished, Tool, is_root};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use testkit::skip::{not_here, skipped};

/// How long something may take that happens at once.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// The near machine's address.
pub(crate) const NEAR: &str = "10.77.0.1";
const SSHD: &str = "/usr/sbin/sshd";

/// The two machines.
pub(crate) struct Far {
    pub(crate) tool: Tool,
    near: String,
    far: String,
    sshd: Child,
}

impl Far {
    /// Both, if this machine has what they need. `settings` are further lines for the far sshd.
    pub(crate) fn new(settings: &str) -> Option<Far> {
        Far::with(settings, &[])
    }

    /// Both, where the far machine was started so many seconds before.
    pub(crate) fn older(seconds: u32) -> Option<Far> {
        let clock = ["unshare", "--time", "--fork", "--kill-child", "--monotonic", &seconds.to_string()];
        if !done(&[&clock[..], &["true"]].concat()) {
            not_here("no clock of one's own can be had");
            return None;
        }
        Far::with("", &clock)
    }

    /// `by` is the beginning of what starts the far sshd.
    fn with(settings: &str, by: &[&str]) -> Option<Far> {
        if !is_root() {
            not_here("network namespaces are root's");
            return None;
        }
        if !Path::new(SSHD).exists() {
            skipped("there is no sshd");
            return None;
        }
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("wd{}x{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let (near, far) = (format!("{name}n"), format!("{name}f"));
        if !done(&["ip", "netns", "add", &near]) {
            not_here("no network namespace can be made");
            return None;
        }
        let tool = Tool::new();
        for command in [
            format!("ip netns add {far}"),
            format!("ip link add v0 netns {near} type veth peer name v0 netns {far}"),
            format!("ip -n {near} addr add {NEAR}/24 dev v0"),
            format!("ip -n {far} addr add 10.77.0.2/24 dev v0"),
            format!("ip -n {near} link set lo up"),
            format!("ip -n {far} link set lo up"),
            format!("ip -n {near} link set v0 up"),
            format!("ip -n {far} link set v0 up"),
        ] {
            assert!(done(&command.split(' ').collect::<Vec<_>>()), "{command}");
        }
        let sshd = sshd(&tool, &far, settings, by);
        let scene = Far { tool, near, far, sshd };
        wait_until("sshd listens", || scene.ssh("true").code == 0);
        Some(scene)
    }

    /// This thread, and whatever it starts from now on, is on the near machine.
    pub(crate) fn enter(&self) {
        let near = fs::File::open(format!("/run/netns/{}", self.near)).expect("our own");
        move_into_link_name_space(near.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may");
    }

    /// How the far machine is gone to.
    pub(crate) fn way(&self) -> String {
        format!("ssh -F {}", self.tool.path("config").display())
    }

    /// Webdyno on the near machine.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let tool = self.tool.command(args);
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.near)).arg(tool.get_program()).args(tool.get_args());
        for (name, value) in tool.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("WEBDYNO_SSH", self.way()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Finished {
        Finished::of(&self.command(args).output().expect("nsenter runs"))
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("nsenter starts")
    }

    /// A shell command on the far machine.
    pub(crate) fn ssh(&self, command: &str) -> Finished {
        let config = self.tool.path("config");
        let mut ssh = Command::new("nsenter");
        ssh.arg(format!("--net=/run/netns/{}", self.near)).args(["ssh", "-F"]).arg(config).args(["far", command]);
        Finished::of(&ssh.stdin(Stdio::null()).output().expect("ssh runs"))
    }

    /// The cable from the near to the far machine carries no more than `rate`, as tc says it.
    pub(crate) fn limit(&self, rate: &str) {
        let args = ["tc", "-n", &self.near, "qdisc", "add", "dev", "v0", "root", "tbf", "rate", rate];
        assert!(done(&[&args[..], &["burst", "16kb", "latency", "100ms"]].concat()));
    }

    /// A rule of routing on one of the machines, as ip says it: what it catches gets no further, as behind a firewall.
    pub(crate) fn block(&self, on_the_far_one: bool, rule: &str) {
        let machine = if on_the_far_one { &self.far } else { &self.near };
        let command = format!("ip -n {machine} rule add {rule}");
        assert!(done(&command.split(' ').collect::<Vec<_>>()), "{command}");
    }

    /// The cable is out: no connection is closed by that.
    pub(crate) fn pull_out(&self) {
        assert!(done(&["ip", "-n", &self.near, "link", "set", "v0", "down"]));
    }

    /// The generators on the far machine.
    pub(crate) fn generators(&self) -> Vec<Pid> {
        let there = fs::read_link(format!("/proc/{}/ns/net", self.sshd.id())).expect("sshd runs");
        let is_one = |folder: &Path| {
            let line = fs::read(folder.join("cmdline")).unwrap_or_default();
            line.split(|&byte| byte == 0).any(|word| word == b"@generator")
                && fs::read_link(folder.join("ns/net")).is_ok_and(|space| space == there)
        };
        let folders = fs::read_dir("/proc").expect("proc").flatten().map(|entry| entry.path());
        let ones = folders.filter(|folder| is_one(folder));
        ones.filter_map(|folder| Pid::from_raw(folder.file_name()?.to_str()?.parse().ok()?)).collect()
    }

    /// What lies in the far account's cache.
    pub(crate) fn cached(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.tool.path("cache/webdyno")).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        for pid in self.generators() {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
        for name in [&self.near, &self.far] {
            done(&["ip", "netns", "del", name]);
        }
    }
}

fn sshd(tool: &Tool, far: &str, settings: &str, by: &[&str]) -> Child {
    let at = |name: &str| tool.path(name).display().to_string();
    for key in ["host", "id", "stranger"] {
        assert!(done(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &at(key)]));
    }
    fs::create_dir_all("/run/sshd").expect("root may");
    fs::create_dir_all(tool.path("cache")).expect("our own folder");
    fs::create_dir_all(tool.path("far-tmp")).expect("our own folder");
    fs::copy(at("id.pub"), at("authorized_keys")).expect("our own folder");
    let sshd = format!(
        "Port 22\nListenAddress 10.77.0.2\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
         SetEnv XDG_CACHE_HOME={} TMPDIR={} {settings}\n",
        at("host"),
        at("authorized_keys"),
        at("cache"),
        at("far-tmp"),
    );
    fs::write(tool.path("sshd_config"), sshd).expect("our own folder");
    let host = fs::read_to_string(tool.path("host.pub")).expect("our own folder");
    fs::write(tool.path("known"), format!("10.77.0.2 {host}")).expect("our own folder");
    let config = format!(
        "Host far stranger unknown\n  HostName 10.77.0.2\n  User root\n  IdentitiesOnly yes\n  BatchMode yes\n\
         Host stranger\n  IdentityFile {}\nHost far unknown\n  IdentityFile {}\n\
         Host unknown\n  UserKnownHostsFile /dev/null\n  GlobalKnownHostsFile /dev/null\n\
         Host far stranger\n  UserKnownHostsFile {}\n",
        at("stranger"),
        at("id"),
        at("known"),
    );
    fs::write(tool.path("config"), config).expect("our own folder");
    fs::set_permissions(tool.path("config"), fs::Permissions::from_mode(0o600)).expect("our own file");
    let mut command = Command::new("nsenter");
    command
        .arg(format!("--net=/run/netns/{far}"))
        .args(by)
        .args([SSHD, "-D", "-e", "-f"])
        .arg(tool.path("sshd_config"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("nsenter starts")
}

/// Whether a command does what it should.
pub(crate) fn done(words: &[&str]) -> bool {
    let command = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).stderr(Stdio::null()).status();
    command.is_ok_and(|status| status.success())
}

/// Waits for what must come.
pub(crate) fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is() {
        assert!(since.elapsed() < SOON, "not in {SOON:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
