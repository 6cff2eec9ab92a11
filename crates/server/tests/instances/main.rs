//! Real servers, started as an experiment starts them: the machine's Apache with the memory CGI, and the embedded server.
//!
//! This program is its own guardian, launcher and embedded server, so it brings its own `main`; a first argument that is none of these
//! begins what cargo's own harness would be told.

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
        _ => run_tests(&args),
    }
}

/// As cargo's harness does: runs the tests whose name contains one of the words of `args` (an option is none), or all of them, and ends
/// with its line of numbers.
fn run_tests(args: &[OsString]) -> ExitCode {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word));
    let (mut failed, mut passed, mut left_out): (Vec<&str>, u32, u32) = (vec![], 0, 0);
    let start = Instant::now();
    for (name, test) in embedded::TESTS.iter().chain(apache::TESTS) {
        if !wanted(name) {
            left_out += 1;
            continue;
        }
        let began = Instant::now();
        let ended = std::thread::Builder::new().name((*name).to_owned()).spawn(test).unwrap().join();
        let result = if ended.is_ok() { "ok" } else { "FAILED" };
        println!("test {name} ... {result} ({:.1} s)", began.elapsed().as_secs_f64());
        match ended {
            Ok(()) => passed += 1,
            Err(_) => failed.push(name),
        }
    }
    println!("failed: {failed:?}");
    println!(
        "test result: {}. {passed} passed; {} failed; 0 ignored; 0 measured; {left_out} filtered out; finished in {:.2}s",
        if failed.is_empty() { "ok" } else { "FAILED" },
        failed.len(),
        start.elapsed().as_secs_f64()
    );
    ExitCode::from(u8::from(!failed.is_empty()))
}
