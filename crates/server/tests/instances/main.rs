//! Real servers, started as an experiment starts them: the machine's Apache with the memory CGI, and the embedded server.
//!
//! This program is its own guardian, launcher and embedded server, so it brings its own `main`; a first argument that is none of these is
//! a part of the names of the tests to run.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "all of it is a test; clippy tells tests by #[test]")]

mod apache;
mod embedded;
mod stage;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.first().and_then(|word| word.to_str()) {
        Some("@guardian") => ExitCode::from(host::guardian_main(&args[1..])),
        Some("@launch") => ExitCode::from(host::launcher_main(&args[1..])),
        Some("serve") => ExitCode::from(server::serve_main(&args[1..])),
        part => run_tests(part.filter(|word| !word.starts_with('-')).unwrap_or("")),
    }
}

fn run_tests(part: &str) -> ExitCode {
    let mut failed: Vec<&str> = vec![];
    for (name, test) in embedded::TESTS.iter().chain(apache::TESTS).filter(|(name, _)| name.contains(part)) {
        let began = Instant::now();
        let ended = std::thread::Builder::new().name((*name).to_owned()).spawn(test).unwrap().join();
        let result = if ended.is_ok() { "ok" } else { "FAILED" };
        println!("test {name} ... {result} ({:.1} s)", began.elapsed().as_secs_f64());
        failed.extend(ended.is_err().then_some(name));
    }
    println!("{} failed: {failed:?}", failed.len());
    ExitCode::from(u8::from(!failed.is_empty()))
}
