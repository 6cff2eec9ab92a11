//! A PHP-FPM as a machine has it, which webdyno has not started, behind an Apache that it starts: a pool's file, a php.ini and a setting of the
//! kernel are part of a variant. However the run ends, all of it is given back, and FPM has read it.

mod tool;

use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tool::{Finished, Tool, alone, apache_with_fpm, is_root, remains};

/// A setting of the kernel that changes nothing for anybody within seconds, and that no other test here changes.
const SETTING: &str = "/proc/sys/net/ipv4/tcp_keepalive_intvl";

/// A master that ends its workers when it is dropped.
struct Fpm(Child);

impl Drop for Fpm {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

/// All that must be as it was: of each file its number, mode, owner, times and text; the setting.
type Facts = (Vec<(u64, u32, u32, u32, i64, i64, String)>, String);

struct Pool {
    tool: Tool,
    master: Fpm,
    before: Facts,
}

impl Pool {
    /// Two workers, which may take 64 MB each.
    fn new() -> Option<Pool> {
        let fpm = apache_with_fpm()?;
        let tool = Tool::new();
        let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our own");
        tool.tmp();
        let (site, told) = (tool.path("site"), tool.path("told"));
        for (folder, mode) in [(&site, 0o755), (&told, 0o777)] {
            fs::create_dir(folder).expect("a folder");
            open(folder, mode);
        }
        fs::write(site.join("index.html"), "here\n").expect("a page");
        let page = format!(
            "<?php file_put_contents('{}', ini_get('memory_limit').' '.ini_get('user_agent').\"\\n\", FILE_APPEND); echo 'ok';",
            told.join("seen").display()
        );
        fs::write(site.join("page.php"), page).expect("a page");
        for page in ["index.html", "page.php"] {
            open(&site.join(page), 0o644);
        }
        let account = if is_root() { "user = www-data\ngroup = www-data\n" } else { "" };
        let path = |name: &str| tool.path(name).display().to_string();
        let write = |name: &str, text: &str| fs::write(tool.path(name), text).expect("a file");
        write(
            "fpm.conf",
            &format!("[global]\nerror_log = {}\ndaemonize = no\ninclude = {}\n", path("fpm.log"), path("pool.conf")),
        );
        write(
            "pool.conf",
            &format!(
                "[www]\n{account}listen = {}\nlisten.mode = 0666\npm = static\npm.max_children = 2\nphp_admin_value[memory_limit] = 64M\n",
                path("told/fpm.sock")
            ),
        );
        write("php.ini", "user_agent = before\n");
        let mut command = Command::new(fpm);
        command.args(["-F", "-y", &path("fpm.conf"), "-c", &path("php.ini")]).current_dir("/");
        let master = Fpm(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("FPM"));
        let before = facts(&tool);
        let pool = Pool { tool, master, before };
        pool.eventually("it begins", || pool.tool.path("told/fpm.sock").exists() && pool.children() == 2);
        Some(pool)
    }

    fn children(&self) -> usize {
        let pid = self.master.0.id();
        let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        listed.split_whitespace().count()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.tool.path("fpm.log")).unwrap_or_default()
    }

    fn eventually(&self, what: &str, condition: impl Fn() -> bool) {
        let began = Instant::now();
        while !condition() {
            assert!(began.elapsed() < Duration::from_secs(20), "{what}: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A variant `more` of three workers with 96 MB, another php.ini and, where that may be changed, another setting; `rest` is further variants and the load's end.
    fn plan(&self, variants: &str, rest: &str) -> String {
        let path = |name: &str| self.tool.path(name).display().to_string();
        let setting = SETTING.trim_start_matches("/proc/sys/").replace('/', ".");
        let can = OpenOptions::new().write(true).open(SETTING).is_ok();
        let sysctl = if can { format!("[variant.more.sysctl]\n\"{setting}\" = \"77\"\n") } else { String::new() };
        let reload = format!("reload = [\"sh\", \"-c\", \"kill -USR2 {}\"]\n", self.master.0.id());
        self.tool.plan(&format!(
            "blocks = 3\naa = false\n[server]\nkind = \"apache\"\nmodules = [\"proxy\", \"proxy_fcgi\"]\n\
             document_root = \"site\"\ndirectives = '''\n<FilesMatch \"\\.php$\">\nSetHandler \"proxy:unix:{}|fcgi://localhost\"\n\
             </FilesMatch>\n'''\n{variants}[[variant.more.files]]\npath = \"{}\"\n\
             replace = {{ \"= 64M\" = \"= 96M\", \"max_children = 2\" = \"max_children = 3\" }}\n{reload}\
             [[variant.more.files]]\npath = \"{}\"\ncontent = \"user_agent = after\\n\"\n{reload}{sysctl}\
             [load.a]\npath = \"/page.php\"\nconnections = 2\n{rest}\n[cooldown]\nlimit = \"0s\"\n",
            path("told/fpm.sock"),
            path("pool.conf"),
            path("php.ini"),
        ))
    }

    /// A run of that variant alone, whose first window is open for so long.
    fn measuring(&self, window: &str) -> Measuring {
        let plan = self.plan("", &format!("duration = \"{window}\""));
        let mut child = self.tool.spawn(&["run", &plan, "--plain"]);
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let mut said = Vec::new();
        let begun = lines.by_ref().inspect(|line| said.push(line.clone())).any(|line| line.starts_with("run "));
        assert!(begun, "it did not begin: {said:?}");
        let seen = || fs::read_to_string(self.tool.path("told/seen")).unwrap_or_default();
        let at_first = seen().len();
        self.eventually("it is measured", || seen().len() > at_first && self.children() == 3);
        Measuring { child, lines: Box::new(lines) }
    }

    #[track_caller]
    fn check_given_back(&self) {
        self.eventually("it has its own pool again", || self.children() == 2);
        assert_eq!(facts(&self.tool), self.before);
        self.eventually("nobody is left", || remains(&self.tool).iter().all(|left| left.contains("php-fpm")));
        // Each of the two files is told once; what FPM read last is what was there before.
        assert!(
            self.log().matches("Reloading in progress").count() >= 2,
            "at the change, and at the end: {}",
            self.log()
        );
    }
}

/// A run under way, and what it says.
struct Measuring {
    child: Child,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Measuring {
    fn ends(self) -> Finished {
        let err = self.lines.collect::<Vec<_>>().join("\n");
        Finished { err, ..Finished::of(&self.child.wait_with_output().expect("it ends")) }
    }
}

fn facts(tool: &Tool) -> Facts {
    let of_file = |name: &str| {
        let facts = fs::metadata(tool.path(name)).expect("a file");
        let text = fs::read_to_string(tool.path(name)).expect("a file");
        (facts.ino(), facts.mode(), facts.uid(), facts.gid(), facts.mtime(), facts.mtime_nsec(), text)
    };
    (["pool.conf", "php.ini"].map(of_file).into(), fs::read_to_string(SETTING).unwrap_or_default())
}

/// What is in force, whether a variant's or given back, is in force for the pages.
#[test]
fn a_pool_of_a_running_fpm_is_part_of_a_variant() {
    let _alone = alone();
    let Some(pool) = Pool::new() else { return };
    let ended = pool.tool.run(&["run", &pool.plan("[variant.as-is]\n", "duration = \"500ms\""), "--plain"]);
    let seen = fs::read_to_string(pool.tool.path("told/seen")).unwrap_or_default();
    assert!([0, 1, 3].contains(&ended.code), "{ended:?}");
    assert!(["64M before\n", "96M after\n"].iter().all(|one| seen.contains(one)), "{ended:?}");
    pool.check_given_back();
}

#[test]
fn ctrl_c_gives_files_and_settings_back() {
    let _alone = alone();
    let Some(pool) = Pool::new() else { return };
    let measuring = pool.measuring("60s");
    assert_ne!(facts(&pool.tool), pool.before);
    kill_process(Pid::from_child(&measuring.child), Signal::INT).expect("our own child");
    let ended = measuring.ends();
    assert_eq!(ended.code, 130, "{ended:?}");
    pool.check_given_back();
}

/// However often it is started again.
#[test]
fn a_server_that_dies_leaves_no_files_and_settings_changed() {
    let _alone = alone();
    let Some(pool) = Pool::new() else { return };
    let mut measuring = pool.measuring("1s");
    let began = Instant::now();
    while measuring.child.try_wait().expect("our own child").is_none() {
        assert!(began.elapsed() < Duration::from_secs(30), "the run does not end");
        if let Some(apache) = apache_of(&pool.tool.tmp()) {
            // It may have ended since it wrote that down.
            let _ = kill_process(apache, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = measuring.ends();
    assert_eq!(ended.code, 4, "{ended:?}");
    assert!(ended.err.lines().last().is_some_and(|line| line.starts_with("webdyno: ")), "{ended:?}");
    pool.check_given_back();
}

/// The first process of the Apache that a run has in its folder now.
fn apache_of(tmp: &Path) -> Option<Pid> {
    let below = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut servers = below(tmp).flat_map(|run| below(&run).collect::<Vec<_>>());
    let written = servers.find_map(|server| fs::read_to_string(server.join("run/httpd.pid")).ok())?;
    let pid = written.trim().parse().ok()?;
    // Not another that has its number by now.
    let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    String::from_utf8_lossy(&words).contains(&*tmp.to_string_lossy()).then_some(Pid::from_raw(pid)?)
}
