//! `webdyno watch`, and webdyno called dstat, through the real binary: rows, files, and what becomes of them in trouble.

mod tool;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use tool::{Finished, Tool};

/// The rows of a text: what is no heading.
fn rows(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.contains("--") && !line.contains("usr") && !line.contains("15m")).collect()
}

/// webdyno under the name of dstat.
fn dstat(tool: &Tool, args: &[&str]) -> Finished {
    Finished::of(&tool.command(args).arg0("dstat").env_remove("DSTAT_OPTS").output().expect("webdyno runs"))
}

/// A watch whose rows are read one by one.
struct Watching {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Watching {
    fn new(mut command: Command) -> Watching {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("webdyno starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        Watching { child, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("text");
        assert!(!line.is_empty(), "there are no more lines");
        line
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("our own child");
    }

    /// Its exit code, what it still printed, and what it said.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut rest, mut said) = (String::new(), String::new());
        self.out.read_to_string(&mut rest).expect("text");
        self.child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
        (self.child.wait().expect("our own child").code(), rest, said)
    }
}

/// What a terminal of that width is sent, until the watch on it ends, and its exit code.
fn on_a_terminal(tool: &Tool, columns: u16, args: &[&str]) -> (String, Option<i32>) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&master).expect("our own terminal");
    unlockpt(&master).expect("our own terminal");
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).expect("our own terminal");
    let name = ptsname(&master, Vec::new()).expect("a name").into_string().expect("plain text");
    let slave = File::options().read(true).write(true).open(name).expect("our own terminal");
    let mut command = tool.command(args);
    let mut child = command.env("TERM", "xterm").stdout(slave).stderr(Stdio::null()).spawn().expect("webdyno starts");
    // Ours, or the terminal would never be left by everybody.
    drop(command);
    let (mut master, mut sent) = (File::from(master), Vec::new());
    // The end of a terminal is an error.
    let _ = master.read_to_end(&mut sent);
    (String::from_utf8(sent).expect("text"), child.wait().expect("our own child").code())
}

#[test]
fn on_a_terminal_rows_change_until_they_are_final_and_fit() {
    let tool = Tool::new();
    let (sent, code) = on_a_terminal(&tool, 40, &["watch", "-l", "-y", "-m", "4", "2"]);
    assert_eq!(code, Some(0), "{sent:?}");
    // The second line is begun once; updates and the final row come over it, how many of them is a matter of the machine's load.
    assert_eq!(sent.matches("\x1b[s").count(), 1, "{sent:?}");
    assert!(sent.contains("\x1b[u"), "{sent:?}");
    assert!(sent.contains("\x1b[1;31m") && sent.contains("load-avg") && sent.contains("csw"), "{sent:?}");
    assert!(!sent.contains("used") && sent.contains('>'), "{sent:?}");
    assert!(sent.ends_with("\n\x1b[0;0m"), "{sent:?}");
    let (sent, code) = on_a_terminal(&tool, 80, &["watch", "-l", "--nocolor", "--noupdate", "1", "2"]);
    assert_eq!((code, sent.contains('\x1b'), sent.lines().count()), (Some(0), false, 4), "{sent:?}");
}

#[test]
fn rows_into_a_pipe() {
    let tool = Tool::new();
    let done = tool.run(&["watch", "-cl", "1", "2"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.out.lines().count(), 4, "{done:?}");
    assert_eq!(done.out.lines().next(), Some("--total-cpu-usage-- ---load-avg---"));
    assert!(rows(&done.out).iter().all(|row| row.len() == 34), "{done:?}");
    assert!(done.err.lines().all(|line| line.starts_with("webdyno: ")), "{done:?}");
}

#[test]
fn the_count_is_that_of_the_version() {
    let tool = Tool::new();
    let count = |args: &[&str]| rows(&tool.run(&[&["watch", "-l"], args].concat()).out).len();
    assert_eq!(count(&["1", "1"]), 1);
    assert_eq!(count(&["--compat", "dstat-0.7.2", "1", "1"]), 2);
    assert_eq!(count(&["1", "0"]), 0);
}

#[test]
fn mistakes_are_told_as_each_name_tells_them() {
    let tool = Tool::new();
    let done = dstat(&tool, &["-x"]);
    let said = "dstat: option -x not recognized, try dstat -h for a list of all the options\n";
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (1, said, ""));
    let done = tool.run(&["watch", "-x"]);
    let said = "webdyno: option -x not recognized, try `webdyno watch --help` for a list of all the options\n";
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (2, "", said));
    let done = dstat(&tool, &["-n", "-N", "no-such"]);
    assert_eq!(done.code, 8, "{done:?}");
    assert!(done.err.ends_with("None of the stats you selected are available.\n"), "{done:?}");
}

#[test]
fn help_version_and_list() {
    let tool = Tool::new();
    for option in ["--help", "--version", "--list"] {
        let done = tool.run(&["watch", option]);
        assert!(done.code == 0 && !done.out.is_empty() && done.err.is_empty(), "{done:?}");
        assert_eq!(dstat(&tool, &[option]).out, done.out);
    }
}

#[test]
fn options_of_the_environment_are_dstats() {
    let tool = Tool::new();
    let done = tool.command(&["1", "1"]).arg0("dstat").env("DSTAT_OPTS", "-l --noheaders").output();
    let done = Finished::of(&done.expect("webdyno runs"));
    assert_eq!(done.out.lines().next(), Some("---load-avg---"), "{done:?}");
    let ours = tool.command(&["watch", "-y", "1", "1"]).env("DSTAT_OPTS", "--nonsense").output();
    assert_eq!(Finished::of(&ours.expect("webdyno runs")).code, 0);
}

#[test]
fn a_reader_that_leaves_ends_it() {
    let tool = Tool::new();
    let mut watching = Watching::new(tool.command(&["watch", "-l"]));
    watching.line();
    drop(watching.out);
    assert_eq!(watching.child.wait().expect("our own child").code(), Some(0));
}

#[test]
fn ctrl_c_ends_it_after_a_whole_row() {
    let tool = Tool::new();
    let mut watching = Watching::new(tool.command(&["watch", "-l"]));
    (0..3).for_each(|_| drop(watching.line()));
    watching.signal(Signal::INT);
    let (code, rest, _) = watching.end();
    assert_eq!(code, Some(0));
    assert!(rest.is_empty() || rest.ends_with('\n'), "{rest:?}");
}

#[test]
fn the_file_has_every_row_and_is_continued() {
    let tool = Tool::new();
    let file = tool.path("out.csv").display().to_string();
    let lines = || {
        let text = std::fs::read_to_string(&file).expect("the file");
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(tool.run(&["watch", "-l", "--output", &file, "1", "2"]).code, 0);
    let first = lines();
    assert_eq!(first.len(), 8, "{first:?}");
    assert_eq!(first[4], "\"load avg\",,,\"epoch\"");
    assert_eq!(first[5], "\"1m\",\"5m\",\"15m\",\"epoch\"");
    let epoch = |line: &String| line.split(',').nth(3).and_then(|field| field.parse::<f64>().ok());
    assert!(epoch(&first[6]) < epoch(&first[7]), "{first:?}");
    // Under dstat's name without a column that its readers do not expect.
    assert_eq!(dstat(&tool, &["-l", "--output", &file, "1", "1"]).code, 0);
    let second = lines();
    assert_eq!(second[..8], first);
    assert_eq!(second[8..10], ["", ""]);
    assert_eq!(second[12..14], ["\"load avg\",,", "\"1m\",\"5m\",\"15m\""]);
    assert_eq!(second.len(), 15);
}

#[test]
fn a_full_disk_is_one_line_and_the_screen_goes_on() {
    let tool = Tool::new();
    let done = tool.run(&["watch", "-l", "--output", "/dev/full", "1", "2"]);
    assert_eq!((done.code, rows(&done.out).len()), (0, 2), "{done:?}");
    assert_eq!(done.err.matches("No space left on device").count(), 1, "{done:?}");
    let done = tool.run(&["watch", "-l", "--output", "/no/such/file", "1", "2"]);
    assert_eq!((done.code, done.out.as_str()), (5, ""), "{done:?}");
    let said =
        "webdyno: cannot write /no/such/file: No such file or directory; give --output a file that can be written\n";
    assert_eq!(done.err, said);
}

#[test]
fn without_privileges_it_says_once_what_is_missing_when_it_matters() {
    if !tool::is_root() {
        testkit::skip::not_here("not root: this process has no privileges to lose");
        return;
    }
    let tool = Tool::new();
    // A row that was late for it would be a reason to tell; on a busy machine there may be one.
    let done = tool.run_as_nobody(&["watch", "-l", "1", "2"]);
    assert_eq!((done.code, rows(&done.out).len()), (0, 2), "{done:?}");
    assert_eq!(done.err.contains("real-time priority"), done.out.contains(" late "), "{done:?}");
    let done = tool.run_as_nobody(&["watch", "--metrics", "0", "-l", "1", "2"]);
    assert_eq!(done.err.matches("real-time priority").count(), 1, "{done:?}");
}

#[test]
fn a_sampler_that_is_killed_is_replaced_and_no_time_is_missing() {
    let tool = Tool::new();
    let mut watching = Watching::new(tool.command(&["watch", "-l", "1", "8"]));
    // Two lines of headings and three rows.
    (0..5).for_each(|_| drop(watching.line()));
    let pid = watching.child.id();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("its children");
    let sampler: i32 = children.trim().parse().expect("one child");
    kill_process(Pid::from_raw(sampler).expect("a number"), Signal::KILL).expect("our own grandchild");
    let (code, rest, said) = watching.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("the sampler was ended by signal 9 before it was told to"), "{said}");
    assert!(said.contains("another one goes on"), "{said}");
    assert!(rest.lines().count() >= 3, "{rest}");
}

#[test]
fn an_interface_that_comes_and_goes_costs_dashes_alone() {
    if !tool::is_root() {
        return testkit::skip::not_here("no interface comes and goes: a network namespace needs root");
    }
    let tool = Tool::new();
    let program = tool.command(&["watch", "-n", "-N", "total,wdv0", "-d", "-f", "1"]);
    let mut command = Command::new("unshare");
    let script = "ip link set lo up && ip link add wdv0 type veth peer name wdv1 && exec \"$@\"";
    command.args(["--net", "sh", "-c", script, "sh"]).arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        value.map(|value| command.env(name, value));
    }
    let mut watching = Watching::new(command);
    if watching.child.try_wait().expect("our own child").is_some_and(|status| !status.success()) {
        return testkit::skip::not_here("no interface comes and goes: no network namespace, or no veth in it");
    }
    let link = |words: &[&str]| {
        let pid = watching.child.id().to_string();
        let done = Command::new("nsenter").args(["-t", &pid, "-n", "ip", "link"]).args(words).status();
        assert!(done.is_ok_and(|done| done.success()), "{words:?}");
    };
    let out = &mut watching.out;
    // Of the row, what stands under the interface alone.
    let mut until = |what: &str, gone: bool| {
        for _ in 0..30 {
            let mut line = String::new();
            out.read_line(&mut line).expect("text");
            let Some((total, rest)) = line.split_once(':').filter(|_| !line.contains("recv")) else { continue };
            let own = rest.split('|').next().unwrap_or_default();
            assert!(!total.contains(['k', 'M', 'G']) && !own.contains(['k', 'M', 'G']), "nothing was sent: {line}");
            if own.contains('-') == gone {
                return;
            }
        }
        panic!("no row in which {what}");
    };
    until("it is there", false);
    link(&["del", "wdv0"]);
    until("it has gone", true);
    link(&["add", "wdv0", "type", "veth", "peer", "name", "wdv1"]);
    until("it is there again", false);
    watching.signal(Signal::TERM);
    let (code, _, said) = watching.end();
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_loop_device_that_loses_its_file_is_still_shown() {
    let tool = Tool::new();
    let image = tool.path("image");
    std::fs::write(&image, vec![0; 1 << 20]).expect("a file");
    let loops = |words: &[&str]| Command::new("losetup").args(words).arg(&image).stderr(Stdio::null()).output();
    let made = loops(&["--find", "--show"]).ok().filter(|made| made.status.success());
    let Some(made) = made else {
        return testkit::skip::not_here("no loop device comes and goes: none can be made here");
    };
    let device = String::from_utf8(made.stdout).expect("text").trim().to_owned();
    let mut watching = Watching::new(tool.command(&["watch", "-d", "-D", &device, "1", "4"]));
    (0..3).for_each(|_| drop(watching.line()));
    let done = Command::new("losetup").args(["--detach", &device]).status();
    assert!(done.is_ok_and(|done| done.success()));
    let (code, rest, said) = watching.end();
    assert_eq!((code, rest.lines().count()), (Some(0), 3), "{said} {rest}");
    assert!(!rest.contains(['M', 'G']), "{rest}");
}
