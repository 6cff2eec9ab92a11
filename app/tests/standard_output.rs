//! Standard output that takes nothing: who reads an exit code must not take it for an answer that was never written. A pipe that was
//! closed has had enough, and is no trouble.

mod tool;

use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use testkit::scripted::{Scripted, Step, answer};
use tool::{Finished, Tool};

const SAID: &str = "webdyno: cannot write to standard output: No space left on device; send it elsewhere";

/// With an output that is full there is one line and that code; with one that was closed neither.
#[track_caller]
fn check(command: impl Fn() -> Command, code: i32) {
    let to = |out: Stdio| Finished::of(&command().stdout(out).output().expect("webdyno runs"));
    let full = to(File::options().write(true).open("/dev/full").expect("a device").into());
    let said = full.err.lines().filter(|line| *line == SAID).count();
    assert_eq!((full.code, said), (code, 1), "{full:?}");
    let (read, closed) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    drop(read);
    let closed = to(closed.into());
    assert!(closed.code == 0 && !closed.err.contains("standard output"), "{closed:?}");
}

#[test]
fn what_is_printed_once() {
    let tool = Tool::new();
    for typed in [&["--help"][..], &["load", "--help"], &["watch", "--list"], &["runs"], &["restore", "--dry-run"]] {
        check(|| tool.command(typed), 5);
    }
}

#[test]
fn the_result_of_a_load() {
    let server = Scripted::always(vec![Step::Send(answer(200, "OK"))]);
    let (tool, url) = (Tool::new(), format!("http://{}/", server.address()));
    check(|| tool.command(&["load", "--plain", "--no-probe", "--json", "-c", "1", "-n", "3", &url]), 5);
    // What did not get out was kept.
    let kept = tool.run(&["report", "--json"]);
    assert!(kept.code == 0 && kept.out.starts_with('{'), "{kept:?}");
    check(|| tool.command(&["ab", "-q", "-n", "3", &url]), 1);
}

#[test]
fn the_rows_of_a_watch() {
    let tool = Tool::new();
    // Not a hundred seconds: it ends with the first row.
    check(|| tool.command(&["watch", "-l", "1", "100"]), 5);
    check(|| tool.command(&["watch", "-l", "--json", "1", "100"]), 5);
    let dstat = || {
        let mut command = tool.command(&["-l", "1", "100"]);
        command.arg0("dstat").env_remove("DSTAT_OPTS");
        command
    };
    check(dstat, 1);
}

#[test]
fn a_mistake_keeps_its_code() {
    let tool = Tool::new();
    let mut command = tool.command(&["-x"]);
    let full = File::options().write(true).open("/dev/full").expect("a device");
    let done = command.arg0("dstat").env_remove("DSTAT_OPTS").stdout(full).output().expect("webdyno runs");
    assert_eq!(Finished::of(&done).code, 1);
}
