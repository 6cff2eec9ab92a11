//! Where the programs of a benchmark are, and which versions. Builds webdyno and the bare loop; installs nothing.

use super::tools::Tool;
use crate::setup::find_program;
use crate::{cargo, root};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The load generators that are here, and why the others are not.
pub(super) struct Programs(HashMap<Tool, Result<PathBuf, String>>);

impl Programs {
    /// Finds or builds them; the bare loop goes into `folder`. `webdyno` stands in for the build of this checkout.
    pub(super) fn find(folder: &Path, webdyno: Option<&Path>) -> Programs {
        let found = |tool: Tool| match tool {
            Tool::Bare => compile_bare(folder),
            Tool::Webdyno | Tool::WebdynoAb => webdyno.map_or_else(build_webdyno, |path| Ok(path.to_owned())),
            Tool::Oha => need("oha", "cargo xtask setup --oha"),
            Tool::Wrk | Tool::Ab | Tool::H2load | Tool::Hey => need(tool.name(), "cargo xtask setup --bench"),
        };
        Programs(Tool::ALL.into_iter().map(|tool| (tool, found(tool))).collect())
    }

    pub(super) fn path(&self, tool: Tool) -> Result<&Path, &str> {
        match self.0.get(&tool) {
            Some(Ok(path)) => Ok(path),
            Some(Err(why)) => Err(why),
            None => Err("never looked for"),
        }
    }

    /// Name and version of every program that has a part in the result.
    pub(super) fn versions(&self) -> Vec<(String, String)> {
        let tools = Tool::ALL.into_iter().map(|tool| {
            let version = match self.path(tool) {
                Err(why) => format!("not here: {why}"),
                Ok(_) if tool == Tool::Bare => "built from xtask/bench/bare.c by gcc -O2".to_owned(),
                Ok(path) => {
                    let says = version_flag(tool).map(|flag| output(path, &[flag]));
                    let package = package(tool).and_then(|name| {
                        let found = output("dpkg-query", &["-W", "-f=${Version}", name]);
                        found
                            .starts_with(|first: char| first.is_ascii_digit())
                            .then(|| format!("package {name} {found}"))
                    });
                    [says, package].into_iter().flatten().collect::<Vec<_>>().join("; ")
                }
            };
            (tool.name().to_owned(), version)
        });
        let others = [
            ("nginx", "-v"),
            ("openssl", "version"),
            ("gcc", "--version"),
            ("strace", "-V"),
            ("valgrind", "--version"),
        ];
        let others = others.into_iter().map(|(name, flag)| {
            let version = find_program(name).map_or_else(|| "not here".to_owned(), |path| output(path, &[flag]));
            (name.to_owned(), version)
        });
        tools.chain(others).collect()
    }
}

/// A program by its name, or which command installs it.
pub(super) fn need(name: &str, installs: &str) -> Result<PathBuf, String> {
    find_program(name).ok_or_else(|| format!("{name} is not installed; `{installs}` does that"))
}

/// The folder that cargo builds into, as far as we know: this program was built there.
pub(super) fn target() -> PathBuf {
    let program = std::env::current_exe().ok();
    let target = program.as_deref().and_then(Path::parent).and_then(Path::parent);
    target.map_or_else(|| root().join("target"), Path::to_owned)
}

/// How it says its version, when it can.
fn version_flag(tool: Tool) -> Option<&'static str> {
    match tool {
        Tool::Bare | Tool::Hey => None,
        Tool::Wrk => Some("-v"),
        Tool::Ab => Some("-V"),
        Tool::Webdyno | Tool::WebdynoAb | Tool::H2load | Tool::Oha => Some("--version"),
    }
}

/// The package of Debian that has it.
fn package(tool: Tool) -> Option<&'static str> {
    match tool {
        Tool::Bare | Tool::Webdyno | Tool::WebdynoAb | Tool::Oha => None,
        Tool::Wrk => Some("wrk"),
        Tool::Ab => Some("apache2-utils"),
        Tool::H2load => Some("nghttp2-client"),
        Tool::Hey => Some("hey"),
    }
}

/// The first line that a program writes, on whichever output.
pub(super) fn output(program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> String {
    let Ok(output) = Command::new(program).args(args).stdin(Stdio::null()).output() else {
        return "does not say".to_owned();
    };
    let lines = [output.stdout, output.stderr].concat();
    let lines = String::from_utf8_lossy(&lines);
    lines.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("does not say").to_owned()
}

fn compile_bare(folder: &Path) -> Result<PathBuf, String> {
    let program = folder.join("bare");
    let source = root().join("xtask/bench/bare.c");
    let made = Command::new("gcc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .args([&program, &source])
        .stdin(Stdio::null())
        .output();
    match made {
        Err(error) => Err(format!("cannot run gcc: {error}")),
        Ok(made) if !made.status.success() => {
            Err(format!("gcc: {}", String::from_utf8_lossy(&made.stderr).lines().next().unwrap_or("failed")))
        }
        Ok(_) => Ok(program),
    }
}

pub(super) fn build_webdyno() -> Result<PathBuf, String> {
    let built = cargo(&["build", "--release", "--bin", "webdyno"]).status();
    let program = target().join("release/webdyno");
    match built {
        Ok(status) if status.success() && program.exists() => Ok(program),
        Ok(status) if status.success() => Err("cargo built it elsewhere; name it with --webdyno".to_owned()),
        _ => Err("`cargo build --release --bin webdyno` failed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::child::Child;
    use super::super::tools::{Page, Ports, Until, Work, arguments, tally};
    use super::*;
    use crate::signals::HeldSignals;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    /// Answers every request of a connection, and counts before it answers. The first comes in two pieces.
    fn serve(mut stream: TcpStream, close: bool, served: &AtomicU64) {
        let mut input = [0; 4096];
        while stream.read(&mut input).is_ok_and(|read| read > 0) {
            served.fetch_add(1, Ordering::SeqCst);
            let answer = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le").and_then(|()| {
                std::thread::sleep(Duration::from_millis(1));
                stream.write_all(b"ngth: 2\r\n\r\nok")
            });
            if close || answer.is_err() {
                return;
            }
        }
    }

    /// That the bare loop counts what was served, but for the first request and those cut off at the end, and `at_most`.
    fn check(close: bool, rate: Option<u32>, at_most: u64) {
        let folder = tempfile::tempdir().unwrap();
        let program = match compile_bare(folder.path()) {
            Ok(program) => program,
            Err(why) => return testkit::skip::skipped(&why),
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ports = Ports { plain: listener.local_addr().unwrap().port(), tls: 0 };
        let served = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&served);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counter = Arc::clone(&counter);
                std::thread::spawn(move || serve(stream, close, &counter));
            }
        });
        let work =
            Work { connections: 4, page: Page::Small, tls: false, close, rate, until: Until::Seconds(1), threads: 1 };
        let written = folder.path().join("output");
        let mut command = Command::new(program);
        command.args(arguments(Tool::Bare, &work, ports).unwrap()).stdout(std::fs::File::create(&written).unwrap());
        let signals = HeldSignals::begin().unwrap();
        let cost = Child::start(&mut command, None).unwrap().wait(Duration::from_secs(20), &signals, None).unwrap();
        assert!(cost.status.success(), "{cost:?}");
        let done = tally(Tool::Bare, &std::fs::read_to_string(written).unwrap()).unwrap().done;
        let served = served.load(Ordering::SeqCst);
        assert!(done > 0 && (1..=5).contains(&(served - done)), "{done} of {served}");
        assert!(done <= at_most, "{done}");
    }

    #[test]
    fn the_bare_loop_counts_what_was_served() {
        check(false, None, u64::MAX);
        check(true, None, u64::MAX);
        check(false, Some(50), 51);
    }
}
