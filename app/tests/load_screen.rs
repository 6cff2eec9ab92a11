//! `webdyno load` on a terminal, through the real binary: what is shown, that it follows the terminal's size, and that a load
//! does not care what becomes of its terminal.

mod tool;

use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Action, tcflow};
use serde_json::Value;
use std::process::Command;
use std::time::Instant;
use testkit::scripted::{Scripted, Step, answer};
use tool::Tool;
use tool::terminal::{ENTERED, LEFT, PATIENCE, Terminal, resize};

/// A load on a terminal of that kind.
fn loading(tool: &Tool, args: &[&str], term: &str) -> Terminal {
    let mut command = tool.command(&[&["load", "-c", "2", "--no-probe"], args].concat());
    command.env("TERM", term);
    Terminal::of(command)
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
    let mut terminal = loading(&tool, &["-r", "100/s", "-d", "10min", &url], "xterm");
    terminal.until(ENTERED).shows("measuring").until("Good answers per second");
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
        let mut terminal = loading(&tool, &["-r", "100/s", "-d", "10min", &url], "xterm");
        terminal.until(ENTERED).shows("measuring");
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
    let mut terminal = loading(&tool, &["-r", "100/s", "-d", "10min", &url], "xterm");
    terminal.until(ENTERED).shows("measuring").press(b"qq");
    terminal.until(LEFT).until("webdyno: stopping now").ends(130);
}

#[test]
fn a_terminal_that_takes_nothing_does_not_hold_up_the_load() {
    let (tool, (server, url)) = (Tool::new(), server());
    let typed = ["--preflight", "0", "-r", "100/s", "-n", "200", &url];
    let mut terminal = loading(&tool, &typed, "xterm");
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
    let mut terminal = loading(&tool, &typed, "xterm");
    terminal.until(ENTERED).shows("searching, step 1").until("Steps: failed = 0").press(b"q");
    terminal.until(LEFT).until("The highest rate").ends(130);
}

#[test]
fn there_is_no_screen_where_none_is_wanted_or_possible() {
    let (tool, (_server, url)) = (Tool::new(), server());
    for (typed, term) in [(vec![], "dumb"), (vec![], ""), (vec!["--plain"], "xterm"), (vec!["--json"], "xterm")] {
        let args = [&["--preflight", "0", "-r", "20/s", "-n", "10", &url], &typed[..]].concat();
        let mut terminal = loading(&tool, &args, term);
        terminal.ends(0);
        assert!(!terminal.shown.contains(ENTERED) && terminal.shown.contains("run "), "{:?}", terminal.shown);
    }
}
