//! The pages about the five articles: every command of ours on them is run, in the order of the page, as a reader would.
//!
//! Commands stand in blocks marked `sh`; `console` marks what needs mod_mruby, which is in no distribution, and is not run. What follows
//! `--start` goes on until the next one or the end of the page, and says where it is: `$URL`, `$PID`, `$GROUP`, `$FOLDER`. So that a page
//! takes seconds, loads of thousands become tens, and whole runs are only checked (`--dry-run`); `cargo xtask test --long` runs them, one
//! block of each: what their plans say in several is the agreement's to check.

mod tool;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{PoisonError, RwLock};
use testkit::skip::{long_results, not_here, skipped};
use tool::{Tool, open_plans};

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/articles").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines of the blocks so marked; one that ends with a backslash goes on.
fn lines(page: &str, mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for block in page.split(&format!("\n```{mark}\n")).skip(1) {
        let (block, _) = block.split_once("\n```").expect("a block ends");
        let block = block.replace("\\\n", " ");
        found.extend(
            block.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned),
        );
    }
    found
}

/// The commands that are run.
fn commands(page: &str) -> Vec<String> {
    lines(page, "sh")
}

/// The command as the test runs it.
fn shortened(command: &str, long: bool) -> String {
    let mut command = command.trim_start_matches("sudo ").to_owned();
    for (all, some) in
        [(" -n 100000 ", " -n 200 "), (" -n 10000 ", " -n 200 "), (" -n 1000 ", " -n 100 "), (" -n 100 ", " -n 20 ")]
    {
        // A load of one wave has no fewer requests than connections.
        if command.contains(all) && !command.contains(" -c 100 -n 100 ") {
            command = command.replace(all, some);
            break;
        }
    }
    let is_run =
        command.starts_with("webdyno run ") && !command.contains(" --start ") && !command.contains(" --dry-run");
    match (is_run, long) {
        (false, _) => command,
        (true, false) => command + " --dry-run",
        (true, true) => command + " --quick --budget 1s --plain",
    }
}

/// A server that a page started.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.0.id() as i32).expect("a process");
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

struct Reader {
    tool: Tool,
    /// What the page's commands find: where the started server is.
    told: BTreeMap<&'static str, String>,
    started: Option<Started>,
}

impl Reader {
    fn new() -> Reader {
        let tool = Tool::new();
        // The checkout may be closed to the server's own account.
        let place = open_plans(&tool).with_file_name("");
        fs::create_dir(place.join("bin")).expect("a folder");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_webdyno"), place.join("bin/webdyno")).expect("a link");
        Reader { tool, told: BTreeMap::new(), started: None }
    }

    fn place(&self) -> PathBuf {
        self.tool.path("shipped")
    }

    /// The shell, with everything a run leaves behind in this test's own folder.
    fn shell(&self, command: &str) -> Command {
        let path = format!("{}:{}", self.place().join("bin").display(), std::env::var("PATH").unwrap_or_default());
        let ours = self.tool.command(&[]);
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(self.place()).stdin(Stdio::null());
        for (name, value) in ours.get_envs() {
            if let Some(value) = value {
                shell.env(name, value);
            }
        }
        shell.env("PATH", path).envs(&self.told);
        shell
    }

    fn reads(&mut self, command: &str) {
        if command.contains(" --start ") {
            self.starts(command);
            return;
        }
        let output = self.shell(command).output().expect("a shell");
        let code = output.status.code().unwrap_or(-1);
        let said = [String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)].join("\n");
        // Whoever judges may judge either way.
        let judges = ["run", "check", "compare"].iter().any(|word| command.contains(&format!("webdyno {word} ")));
        assert!(code == 0 || judges && [1, 3].contains(&code), "`{command}` ended with {code}:\n{said}");
        if command.contains("webdyno ab ") && !command.contains('>') {
            assert!(said.contains("Complete requests:"), "`{command}`:\n{said}");
        }
    }

    fn starts(&mut self, command: &str) {
        // One server after the other, as the page has it.
        self.started = None;
        self.told.clear();
        let mut shell = self.shell(&format!("exec {command}"));
        let mut child = shell.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("a shell");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        self.started = Some(Started(child));
        for line in out.lines().map_while(Result::ok) {
            let parts = line.split(", ").filter_map(|part| part.trim().rsplit_once(' '));
            for (what, value) in parts {
                let name = match what {
                    "listening on" => "URL",
                    "process" => "PID",
                    "group" => "GROUP",
                    "folder" => "FOLDER",
                    _ => continue,
                };
                self.told.insert(name, value.to_owned());
            }
            if line.starts_with("Ctrl-C") {
                break;
            }
        }
        assert!(self.told.contains_key("URL"), "`{command}` starts no server");
    }
}

/// Runs the page's commands, which need these programs; those of the Japanese page are the same.
fn check(number: u32, needs: &[&str]) {
    let commands = commands(&page(&format!("{number}.md")));
    assert!(!commands.is_empty());
    assert_eq!(commands, self::commands(&page(&format!("{number}.ja.md"))), "both pages have the same commands");
    if !tool::is_root() {
        not_here("needs root: the servers change to their own account");
        return;
    }
    let programs = ["/usr/sbin/apache2", "/usr/bin/make", "/usr/bin/curl", "/usr/bin/ps"];
    if let Some(missing) = programs.iter().chain(needs).find(|file| !Path::new(file).exists()) {
        return skipped(&format!("no {missing}"));
    }
    if number == 1 && host::hierarchies().is_err() {
        return not_here("needs a memory control group");
    }
    // What thrashes is no neighbour for a load; the other pages only want their commands to work.
    static MACHINE: RwLock<()> = RwLock::new(());
    let (_alone, _beside);
    if number == 1 {
        _alone = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    } else {
        _beside = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    }
    let mut reader = Reader::new();
    commands.iter().for_each(|command| reader.reads(&shortened(command, false)));
    let Reader { tool, started, .. } = reader;
    drop(started);
    assert_eq!(tool::remains(&tool), Vec::<String>::new());
}

#[test]
fn the_first_article() {
    check(1, &["/usr/sbin/mariadbd", "/usr/sbin/haproxy", "/usr/sbin/nginx"]);
}

#[test]
fn the_second_article() {
    check(2, &["/usr/sbin/mariadbd", "/usr/share/wordpress/wp-load.php", "/usr/sbin/haproxy"]);
}

#[test]
fn the_third_article() {
    check(3, &["/usr/sbin/nginx", "/usr/bin/cronolog"]);
}

#[test]
fn the_fourth_article() {
    check(4, &["/usr/bin/apxs", "/usr/sbin/nginx", "/usr/lib/apache2/modules/mod_qos.so"]);
}

#[test]
fn the_fifth_article() {
    check(5, &["/usr/sbin/nginx", "/usr/bin/cronolog"]);
}

#[test]
fn only_what_needs_mod_mruby_is_not_run() {
    for name in (1..=5).flat_map(|number| [format!("{number}.md"), format!("{number}.ja.md")]) {
        for line in lines(&page(&name), "console").iter().filter(|line| line.contains("webdyno ")) {
            assert!(line.contains("MOD_MRUBY="), "{name}: `{line}`");
        }
    }
}

/// Every whole run of the pages, one block of each.
#[test]
fn long_check_articles() {
    let Some(results) = long_results() else { return };
    let mut told = String::from("# The runs of the articles' pages, one block of each\n");
    for number in 1..=5 {
        let mut reader = Reader::new();
        for command in
            commands(&page(&format!("{number}.md"))).iter().filter(|command| command.contains("webdyno run "))
        {
            if !command.contains(" --start ") {
                let command = shortened(command, true);
                let output = reader.shell(&command).output().expect("a shell");
                told += &format!(
                    "\n## `{command}`\n\ncode {:?}\n\n```text\n{}```\n",
                    output.status.code(),
                    String::from_utf8_lossy(&output.stdout)
                );
                assert!(
                    matches!(output.status.code(), Some(0 | 1 | 3)),
                    "`{command}`: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
            }
        }
        reader.told.clear();
    }
    fs::write(results.join("articles.md"), told).expect("a page");
}

#[test]
fn commands_are_found_and_shortened() {
    let text = "a\n\n```sh\n# a remark\nsudo webdyno run x.toml \\\n  --make-swap 2G\nwebdyno ab -n 1000 $URL/\n```\n\n```text\nwebdyno no\n```\n";
    let found = commands(text);
    assert_eq!(found, ["sudo webdyno run x.toml    --make-swap 2G", "webdyno ab -n 1000 $URL/"]);
    assert_eq!(shortened(&found[0], false), "webdyno run x.toml    --make-swap 2G --dry-run");
    assert_eq!(shortened(&found[0], true), "webdyno run x.toml    --make-swap 2G --quick --budget 1s --plain");
    assert_eq!(shortened(&found[1], false), "webdyno ab -n 100 $URL/");
}
