//! The whole tool in a folder of its own: its store, its journals, its plans.
#![allow(dead_code, reason = "every test file uses a part of it")]

pub(crate) mod far;
pub(crate) mod scene;
pub(crate) mod small_disk;
pub(crate) mod terminal;

use rustix::process::Pid;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

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

    /// The ids of its runs, as far as the store or a journal tells them.
    pub(crate) fn run_ids(&self) -> Vec<String> {
        let state = self.path("state");
        let journals = names_in(&state)
            .filter_map(|path| Path::new(&path).file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        let listed = self.run(&["runs", "--json"]).out;
        let stored: Vec<serde_json::Value> = serde_json::from_str(&listed).unwrap_or_default();
        journals.chain(stored.iter().filter_map(|run| Some(run["id"].as_str()?.to_owned()))).collect()
    }

    pub(crate) fn run(&self, args: &[&str]) -> Finished {
        Finished::of(&self.command(args).output().expect("webdyno runs"))
    }

    /// As root's opposite, with a copy of the program: nobody can neither read the build folder nor write where root did. Only root can
    /// become nobody.
    pub(crate) fn run_as_nobody(&self, args: &[&str]) -> Finished {
        const NOBODY: u32 = 65534;
        let program = self.path("webdyno");
        // By another process: what this one had open for writing, a child that another test starts just then would have open too,
        // and what is open for writing cannot be run.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_webdyno")).arg(&program).status();
        assert!(copied.is_ok_and(|status| status.success()), "room for a copy");
        let home = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::chown(home.path(), Some(NOBODY), Some(NOBODY)).expect("root may");
        self.tmp();
        let mut command = Command::new(program);
        command.args(args).env_clear().env("HOME", home.path()).env("TMPDIR", home.path());
        command.env("WEBDYNO_STATE_DIR", home.path().join("state")).uid(NOBODY).gid(NOBODY);
        Finished::of(&command.output().expect("webdyno runs"))
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("webdyno starts")
    }

    /// Guardians of its runs.
    pub(crate) fn guardians(&self) -> Vec<Pid> {
        let state = self.path("state").to_string_lossy().into_owned();
        let ours = |pid: &i32| {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).into_owned();
            command.contains("@guardian") && command.contains(&state)
        };
        let numbers = names_in(Path::new("/proc")).filter_map(|path| path.strip_prefix("/proc/")?.parse().ok());
        numbers.filter(ours).filter_map(Pid::from_raw).collect()
    }

    /// Its journals.
    pub(crate) fn journals(&self) -> Vec<String> {
        names_in(&self.path("state")).filter(|path| path.ends_with(".journal")).collect()
    }

    /// How many changes its journals have that are not undone.
    pub(crate) fn journalled(&self) -> usize {
        let state = self.path("state");
        let texts = names_in(&state).filter_map(|journal| std::fs::read_to_string(journal).ok());
        let of = |text: &str, kind: &str| text.lines().filter(|line| line.starts_with(kind)).count();
        texts.map(|text| of(&text, "{\"change\"").saturating_sub(of(&text, "{\"done\""))).sum()
    }

    /// Has its only journal be of another boot, as after a crash of the machine.
    pub(crate) fn forget_boot(&self) {
        let journal = names_in(&self.path("state")).next().expect("a journal");
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("an id");
        let text = std::fs::read_to_string(&journal).expect("a journal");
        assert!(text.contains(boot.trim()), "{text}");
        std::fs::write(&journal, text.replace(boot.trim(), "another boot")).expect("our own file");
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

/// The tests of one file that need the machine for themselves: what thrashes or fills the CPUs is no neighbour for another of that kind.
pub(crate) fn alone() -> impl Drop {
    static MACHINE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The repository's plans with the sites that they serve and the modules that they build, copied to where a server's account may walk: a checkout may be closed to it.
pub(crate) fn open_plans(tool: &Tool) -> PathBuf {
    // Which opens the tool's folder.
    tool.tmp();
    let copy = tool.path("shipped");
    std::fs::create_dir(&copy).expect("a folder");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let of = |name: &str| repository.join(name);
    let copied = Command::new("cp").arg("-r").args([of("plans"), of("sites"), of("modules")]).arg(&copy).status();
    assert!(copied.is_ok_and(|status| status.success()), "the plans cannot be copied to {}", copy.display());
    let opened = Command::new("chmod").args(["-R", "a+rX"]).arg(&copy).status();
    assert!(opened.is_ok_and(|status| status.success()), "{} cannot be opened", copy.display());
    copy.join("plans")
}

/// Whether Apache's PHP is here with an extension of that name; says so otherwise.
pub(crate) fn has_php(extension: &str) -> bool {
    let names = |folder: &str| names_in(Path::new(folder)).collect::<Vec<_>>();
    let module = names("/usr/lib/apache2/modules").iter().any(|path| path.contains("/libphp"));
    let found = names("/usr/lib/php").iter().any(|api| Path::new(api).join(format!("{extension}.so")).exists());
    if !(module && found) {
        testkit::skip::skipped(&format!("no mod_php, or no {extension} for it"));
    }
    module && found
}

/// The program of PHP-FPM, where there is an Apache before it; says so otherwise.
pub(crate) fn apache_with_fpm() -> Option<PathBuf> {
    let programs = names_in(Path::new("/usr/sbin")).filter(|path| path.contains("/php-fpm"));
    let found = programs.max().filter(|_| Path::new("/usr/sbin/apache2").exists());
    if found.is_none() {
        testkit::skip::skipped("no Apache httpd or no PHP-FPM");
    }
    found.map(PathBuf::from)
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// What is left of this tool's runs: processes that carry its folder in their command line, environment, working directory or
/// open files, control groups, swap files and mounts of its runs, journals, temporary folders.
pub(crate) fn remains(tool: &Tool) -> Vec<String> {
    remains_of(tool, &tool.run_ids())
}

/// As [`remains`], of runs whose ids begin so.
pub(crate) fn remains_of(tool: &Tool, ids: &[String]) -> Vec<String> {
    let folder = tool.path("");
    let folder = folder.to_str().expect("UTF-8").trim_end_matches('/');
    let mut found = processes(folder);
    let of_a_run = |name: &str| ids.iter().any(|id| name.contains(&format!("webdyno-{id}")));
    for root in ["memory", "cpuacct", "cpu", "unified", ""] {
        found.extend(names_in(&Path::new("/sys/fs/cgroup").join(root)).filter(|path| of_a_run(path)));
    }
    found.extend(["/tmp", "/var/tmp"].iter().flat_map(|root| names_in(Path::new(root))).filter(|path| of_a_run(path)));
    found.extend(names_in(&tool.tmp()));
    found.extend(names_in(&tool.path("state")));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    found.extend(mounts.lines().filter(|mount| of_a_run(mount)).map(|mount| format!("mount {mount}")));
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    found.extend(
        swaps.lines().filter(|swap| swap.contains(folder) || of_a_run(swap)).map(|swap| format!("swap {swap}")),
    );
    found
}

/// How soon after its death everything of a run must be gone.
pub(crate) const PROMISE: Duration = Duration::from_secs(5);
/// As long as anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until nothing is left of a run.
#[track_caller]
pub(crate) fn nothing_remains(tool: &Tool, within: Duration) {
    let since = Instant::now();
    while !remains(tool).is_empty() {
        assert!(since.elapsed() < within, "{:?}", remains(tool));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Paths of a folder's entries; none when it is not there.
fn names_in(folder: &Path) -> impl Iterator<Item = String> {
    let entries: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().collect();
    entries.into_iter().map(|entry| entry.path().to_string_lossy().into_owned())
}

fn processes(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let path = process.path();
        if !process.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        let text =
            |name: &str| String::from_utf8_lossy(&std::fs::read(path.join(name)).unwrap_or_default()).into_owned();
        let files = std::fs::read_dir(path.join("fd")).into_iter().flatten().flatten().map(|file| file.path());
        let links = files.chain([path.join("cwd")]).filter_map(|link| std::fs::read_link(link).ok());
        let mut marks = links.map(|link| link.to_string_lossy().into_owned()).chain(["cmdline", "environ"].map(text));
        if process.file_name() != std::process::id().to_string().as_str() && marks.any(|mark| mark.contains(folder)) {
            found.push(format!("process {}: {}", path.display(), text("cmdline").replace('\0', " ")));
        }
    }
    found
}
