//! The whole tool in a folder of its own: its store, its journals, its plans.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A folder with everything a run leaves behind.
pub(crate) struct Tool {
    folder: tempfile::TempDir,
}

impl Tool {
    pub(crate) fn new() -> Tool {
        Tool { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command, ready to run with this folder's store and journals, speaking English whatever the tester's language.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_webdyno"));
        command
            .args(args)
            .env("WEBDYNO_STORE", self.path("store.sqlite"))
            .env("WEBDYNO_STATE_DIR", self.path("state"))
            .env("TMPDIR", self.tmp())
            .env("LC_ALL", "C")
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    /// Where runs put their temporary directories: the server's own user must be able to walk through it.
    pub(crate) fn tmp(&self) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let open = || std::fs::Permissions::from_mode(0o755);
        let tmp = self.path("tmp");
        std::fs::create_dir_all(&tmp).expect("a folder");
        std::fs::set_permissions(self.folder.path(), open()).expect("our own folder");
        std::fs::set_permissions(&tmp, open()).expect("our own folder");
        tmp
    }

    pub(crate) fn run(&self, args: &[&str]) -> Finished {
        Finished::of(&self.command(args).output().expect("webdyno runs"))
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("webdyno starts")
    }

    /// Writes a plan and returns its path as text.
    pub(crate) fn plan(&self, text: &str) -> String {
        let path = self.path("plan.toml");
        std::fs::write(&path, text).expect("a plan");
        path.to_str().expect("UTF-8").to_owned()
    }
}

/// What a command said and how it ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Finished {
    pub(crate) fn of(output: &Output) -> Finished {
        Finished {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// The repository's own plan of that name.
pub(crate) fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plans").join(name);
    path.to_str().expect("UTF-8").to_owned()
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// What still lives of this tool's runs: processes that carry its folder in their command line or environment, control groups
/// whose name begins with `groups`, temporary folders, swap files.
pub(crate) fn remains(tool: &Tool, groups: &str) -> Vec<String> {
    let folder = tool.path("");
    let folder = folder.to_str().expect("UTF-8").trim_end_matches('/');
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let read = |name: &str| std::fs::read(process.path().join(name)).unwrap_or_default();
        let (cmdline, environ) = (read("cmdline"), read("environ"));
        if [&cmdline, &environ].iter().any(|text| String::from_utf8_lossy(text).contains(folder)) {
            let command = String::from_utf8_lossy(&cmdline).replace('\0', " ");
            found.push(format!("process {}: {command}", process.file_name().to_string_lossy()));
        }
    }
    for root in ["memory", "cpuacct", "cpu", "unified", ""] {
        let root = Path::new("/sys/fs/cgroup").join(root);
        for group in std::fs::read_dir(&root).into_iter().flatten().flatten() {
            if group.file_name().to_string_lossy().starts_with(groups) {
                found.push(format!("group {}", group.path().display()));
            }
        }
    }
    for file in std::fs::read_dir(tool.tmp()).into_iter().flatten().flatten() {
        found.push(format!("file {}", file.path().display()));
    }
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    found.extend(swaps.lines().filter(|swap| swap.contains(folder)).map(|swap| format!("swap {swap}")));
    found
}
