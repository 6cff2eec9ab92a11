//! `webdyno watch --screen` on a terminal, through the real binary: what is shown, keys, and that the terminal is given back
//! whatever ends it.

mod tool;

use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Action, tcflow};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;
use tool::Tool;
use tool::terminal::{ENTERED, LEFT, PATIENCE, Terminal, resize};

fn watching(tool: &Tool, args: &[&str]) -> Terminal {
    let mut command = tool.command(&[&["watch", "--screen"], args].concat());
    command.env("TERM", "xterm");
    Terminal::of(command)
}

#[test]
fn keys_and_signals_end_it_and_the_terminal_is_as_before() {
    let ends: [fn(&Terminal); 3] = [
        |terminal| terminal.press(b"q"),
        |terminal| terminal.press(b"\x03"),
        |terminal| kill_process(Pid::from_child(&terminal.child), Signal::TERM).expect("our own child"),
    ];
    for end in ends {
        let tool = Tool::new();
        let mut terminal = watching(&tool, &[]);
        terminal.until(ENTERED).shows("live").until("CPU").until("Accept queue");
        end(&terminal);
        terminal.until(LEFT).ends(0);
    }
}

#[test]
fn one_looks_back_and_returns() {
    let tool = Tool::new();
    let mut terminal = watching(&tool, &[]);
    terminal.until(ENTERED).shows("live").until("busy");
    terminal.press(b"p");
    terminal.shows("paused");
    terminal.press(b"?");
    terminal.shows("slower");
    terminal.press(b"?\x1b[F+");
    terminal.shows("a column is 2 s").until("live");
    resize(&terminal.master, 120, 40);
    terminal.until("\x1b[2J").until("Pressure");
    terminal.press(b"q");
    terminal.until(LEFT).ends(0);
}

#[test]
fn a_count_ends_it() {
    let tool = Tool::new();
    watching(&tool, &["1", "2"]).until(ENTERED).until(LEFT).ends(0);
}

#[test]
fn a_terminal_that_hangs_up_ends_it() {
    let tool = Tool::new();
    let mut terminal = watching(&tool, &[]);
    terminal.until(ENTERED).until("busy");
    assert_eq!(terminal.hang_up(), Some(0));
}

#[test]
fn a_terminal_that_takes_nothing_holds_up_nobody() {
    let tool = Tool::new();
    let mut terminal = watching(&tool, &["--record"]);
    terminal.until(ENTERED).until("busy");
    tcflow(&terminal.slave, Action::OOff).expect("a terminal");
    kill_process(Pid::from_child(&terminal.child), Signal::TERM).expect("our own child");
    // It writes its recording all the same; only its last words wait for the terminal.
    let deadline = Instant::now() + PATIENCE;
    while !tool.run(&["runs", "--json"]).out.contains("\"complete\"") {
        assert!(Instant::now() < deadline, "{}", tool.run(&["runs"]).out);
        std::thread::yield_now();
    }
    tcflow(&terminal.slave, Action::OOn).expect("a terminal");
    terminal.until(LEFT).ends(0);
}

#[test]
fn a_recording_is_a_film() {
    let tool = Tool::new();
    assert_eq!(tool.run(&["watch", "--record", "-c", "1", "3"]).code, 0);
    let mut terminal = watching(&tool, &["--replay", "latest", "--speed", "100"]);
    terminal.until(ENTERED).shows("end of the recording");
    terminal.press(b"\x1b[H");
    terminal.shows("recording, paused");
    terminal.press(b"<p");
    terminal.shows("recording, 50x");
    terminal.press(b"q");
    terminal.until(LEFT).ends(0);
    let mut terminal = watching(&tool, &["--replay", "nothing"]);
    terminal.until("no run `nothing`").ends(6);
    assert!(!terminal.shown.contains(ENTERED));
}

#[test]
fn metrics_are_served_behind_a_screen() {
    let tool = Tool::new();
    let mut terminal = watching(&tool, &["--metrics", "127.0.0.1:0"]);
    terminal.until("metrics are served on http://127.0.0.1:");
    let port = terminal.word_before("/metrics");
    let address = format!("127.0.0.1:{port}");
    terminal.until(ENTERED).until("busy");
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    assert!(answer.ends_with("# EOF\n"), "{answer}");
    terminal.press(b"q");
    terminal.until(LEFT).ends(0);
}

#[test]
fn without_a_terminal_it_is_refused() {
    let tool = Tool::new();
    let done = tool.run(&["watch", "--screen"]);
    assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
    assert_eq!(done.err, "webdyno: --screen needs a terminal; without it there are rows\n");
}

#[test]
fn rows_end_with_their_terminal_and_their_recording_is_whole() {
    let tool = Tool::new();
    let mut command = tool.command(&["watch", "--record", "-l", "1"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::of(command);
    terminal.until("recording ").until("15m");
    assert_eq!(terminal.hang_up(), Some(0));
    assert!(tool.run(&["runs", "--json"]).out.contains("\"complete\""), "{}", tool.run(&["runs"]).out);
}
