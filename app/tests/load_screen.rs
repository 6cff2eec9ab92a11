//! `webdyno load` on a terminal, through the real binary: what is shown, that it follows the terminal's size, and that a load
//! does not care what becomes of its terminal.

mod tool;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Action, Termios, Winsize, tcflow, tcgetattr, tcsetwinsize};
use serde_json::Value;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::scripted::{Scripted, Step, answer};
use tool::Tool;

const PATIENCE: Duration = Duration::from_secs(60);
const ENTERED: &str = "\x1b[?1049h";
const LEFT: &str = "\x1b[?1049l";

/// A terminal with a load on it.
struct Terminal {
    master: OwnedFd,
    slave: OwnedFd,
    child: Child,
    shown: String,
    before: Termios,
}

impl Terminal {
    fn new(tool: &Tool, args: &[&str], term: &str) -> Terminal {
        let mut command = tool.command(&[&["load", "-c", "2", "--no-probe"], args].concat());
        command.env("TERM", term);
        Terminal::of(command)
    }

    /// A terminal of which that command is the first process.
    fn of(mut command: Command) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).expect("our own terminal");
        unlockpt(&master).expect("our own terminal");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let slave = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty());
        let slave = slave.expect("our own terminal");
        resize(&master, 80, 24);
        let end = || Stdio::from(slave.try_clone().expect("a descriptor"));
        command.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: between fork and exec only system calls are made, and nothing is allocated.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
                Ok(())
            });
        }
        let before = tcgetattr(&slave).expect("a terminal");
        Terminal { master, slave, child: command.spawn().expect("webdyno starts"), shown: String::new(), before }
    }

    /// Reads what is shown until that is among it; what was shown before counts only once.
    #[track_caller]
    fn until(&mut self, text: &str) -> &mut Terminal {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.shown.find(text) {
                self.shown.drain(..at + text.len());
                return self;
            }
            assert!(Instant::now() < deadline && self.read(100), "no {text:?} in {:?}", self.shown);
        }
    }

    /// Reads what there is; whether there may be more.
    fn read(&mut self, longest_ms: i64) -> bool {
        let length = Timespec { tv_sec: 0, tv_nsec: longest_ms * 1_000_000 };
        let ready = poll(&mut [PollFd::new(&self.master, PollFlags::IN)], Some(&length)).expect("a terminal");
        let mut piece = vec![0; 4096];
        if ready > 0 {
            let count = rustix::io::read(&self.master, piece.as_mut_slice()).expect("our end of it is open");
            self.shown.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
        ready > 0 || longest_ms > 0
    }

    fn press(&self, keys: &[u8]) {
        assert_eq!(rustix::io::write(&self.master, keys).expect("a terminal"), keys.len());
    }

    /// Goes away, and waits for how the process ends.
    fn hang_up(&mut self) -> Option<i32> {
        let (nowhere, _) = rustix::pipe::pipe().expect("a pipe");
        drop(std::mem::replace(&mut self.master, nowhere));
        self.child.wait().expect("our own child").code()
    }

    /// Reads to the end, which comes with this code; the terminal is then as it was.
    #[track_caller]
    fn ends(&mut self, code: i32) {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            self.read(20);
            if let Some(status) = self.child.try_wait().expect("our own child") {
                break status;
            }
            assert!(Instant::now() < deadline, "still running: {:?}", self.shown);
        };
        while self.read(0) {}
        assert_eq!(status.code(), Some(code), "{:?}", self.shown);
        let after = tcgetattr(&self.slave).expect("a terminal");
        assert_eq!(
            (after.local_modes, after.input_modes, after.output_modes),
            (self.before.local_modes, self.before.input_modes, self.before.output_modes)
        );
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resize(terminal: &OwnedFd, columns: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("a terminal");
}

fn server() -> (Scripted, String) {
    let server = Scripted::always(vec![Step::Send(answer(200, "abc"))]);
    let url = format!("http://{}/", server.address());
    (server, url)
}

/// The one run of the store was interrupted, and has good answers.
#[track_caller]
fn check_kept(tool: &Tool) {
    let runs: Value = serde_json::from_str(&tool.run(&["runs", "--json"]).out).expect("JSON");
    assert_eq!((runs.as_array().map(Vec::len), &runs[0]["end"]["kind"]), (Some(1), &"interrupted".into()), "{runs}");
    let report: Value = serde_json::from_str(&tool.run(&["report", "--json"]).out).expect("JSON");
    assert!(report["counts"]["good"].as_u64().is_some_and(|good| good > 0), "{report}");
}

#[test]
fn a_terminal_that_is_resized_and_hung_up() {
    let (tool, (_server, url)) = (Tool::new(), server());
    let mut terminal = Terminal::new(&tool, &["-r", "100/s", "-d", "10min", &url], "xterm");
    terminal.until(ENTERED).until("measuring").until("Good answers per second");
    for (columns, rows) in [(120, 40), (1, 1), (40, 10)] {
        resize(&terminal.master, columns, rows);
        terminal.until("\x1b[2J");
    }
    terminal.until("Latency from when due");
    assert_eq!(terminal.hang_up(), Some(130));
    check_kept(&tool);
}

#[test]
fn a_load_that_ignores_hangups_goes_on_without_its_terminal() {
    let (tool, (server, url)) = (Tool::new(), server());
    let webdyno =
        tool.command(&["load", "-c", "2", "--preflight", "0", "--no-probe", "-r", "100/s", "-n", "150", &url]);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP && exec \"$@\"", "sh"]).arg(webdyno.get_program()).args(webdyno.get_args());
    command.envs(webdyno.get_envs().filter_map(|(key, value)| Some((key, value?)))).env("TERM", "xterm");
    let mut terminal = Terminal::of(command);
    terminal.until(ENTERED);
    assert!(server.requests() < 150, "hung up too late");
    assert_eq!(terminal.hang_up(), Some(0));
    let report: Value = serde_json::from_str(&tool.run(&["report", "--json"]).out).expect("JSON");
    assert_eq!((report["counts"]["good"].as_u64(), server.requests()), (Some(150), 150));
}

#[test]
fn keys_and_signals_end_it_and_the_terminal_is_as_before() {
    let ends: [fn(&Terminal); 3] = [
        |terminal| terminal.press(b"q"),
        |terminal| terminal.press(b"\x03"),
        |terminal| kill_process(Pid::from_child(&terminal.child), Signal::TERM).expect("our own child"),
    ];
    for end in ends {
        let (tool, (server, url)) = (Tool::new(), server());
        let mut terminal = Terminal::new(&tool, &["-r", "100/s", "-d", "10min", &url], "xterm");
        terminal.until(ENTERED).until("measuring");
        let sent = server.requests();
        while server.requests() < sent + 5 {
            std::thread::yield_now();
        }
        end(&terminal);
        // The report follows on the ordinary screen.
        terminal
            .until(LEFT)
            .until("good answers")
            .until("interrupted; what was measured until then is shown")
            .ends(130);
        check_kept(&tool);
    }
}

#[test]
fn a_second_key_leaves_at_once() {
    let (tool, (_server, url)) = (Tool::new(), server());
    let mut terminal = Terminal::new(&tool, &["-r", "100/s", "-d", "10min", &url], "xterm");
    terminal.until(ENTERED).until("measuring").press(b"qq");
    terminal.until(LEFT).until("webdyno: stopping now").ends(130);
}

#[test]
fn a_terminal_that_takes_nothing_does_not_hold_up_the_load() {
    let (tool, (server, url)) = (Tool::new(), server());
    let typed = ["--preflight", "0", "-r", "100/s", "-n", "200", &url];
    let mut terminal = Terminal::new(&tool, &typed, "xterm");
    terminal.until(ENTERED);
    tcflow(&terminal.slave, Action::OOff).expect("a terminal");
    let deadline = Instant::now() + PATIENCE;
    let kept = || tool.run(&["runs", "--json"]).out.contains("\"complete\"");
    while server.requests() < 200 || !kept() {
        assert!(Instant::now() < deadline, "{} requests", server.requests());
        std::thread::yield_now();
    }
    tcflow(&terminal.slave, Action::OOn).expect("a terminal");
    terminal.until(LEFT).until("200 in ").ends(0);
}

#[test]
fn a_search_shows_its_steps() {
    let (tool, (_server, url)) = (Tool::new(), server());
    let typed = ["--find-rate", "failed = 0", "-r", "20/s", "-d", "1s", &url];
    let mut terminal = Terminal::new(&tool, &typed, "xterm");
    terminal.until(ENTERED).until("searching, step 1").until("Steps: failed = 0").press(b"q");
    terminal.until(LEFT).until("The highest rate").ends(130);
}

#[test]
fn there_is_no_screen_where_none_is_wanted_or_possible() {
    let (tool, (_server, url)) = (Tool::new(), server());
    for (typed, term) in [(vec![], "dumb"), (vec![], ""), (vec!["--plain"], "xterm"), (vec!["--json"], "xterm")] {
        let args = [&["--preflight", "0", "-r", "20/s", "-n", "10", &url], &typed[..]].concat();
        let mut terminal = Terminal::new(&tool, &args, term);
        terminal.ends(0);
        assert!(!terminal.shown.contains(ENTERED) && terminal.shown.contains("run "), "{:?}", terminal.shown);
    }
}
