//! A test program that brings its own `main`, because it also plays other processes, and still looks to cargo like any other.
//!
//! The tests run one after another, each in a thread of its name, so that what panics is named and the rest goes on.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

/// A test and its name.
pub type Test = (&'static str, fn());

/// Runs the tests whose name contains one of the words of `args` (an option is none), or all of them, and ends with the line of
/// numbers that cargo's own harness prints.
///
/// # Panics
/// When no thread can be started.
#[must_use]
pub fn run(tests: &[Test], args: &[OsString]) -> ExitCode {
    run_to(&mut std::io::stdout(), tests, args)
}

fn run_to(out: &mut dyn Write, tests: &[Test], args: &[OsString]) -> ExitCode {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word));
    let mut failed: Vec<&str> = Vec::new();
    let began = Instant::now();
    let chosen: Vec<&Test> = tests.iter().filter(|(name, _)| wanted(name)).collect();
    for (name, test) in &chosen {
        let began = Instant::now();
        let thread = std::thread::Builder::new().name((*name).to_owned()).spawn(*test).expect("a thread");
        let ended = thread.join();
        let result = if ended.is_ok() { "ok" } else { "FAILED" };
        // A closed standard output does not fail a test.
        let _ = writeln!(out, "test {name} ... {result} ({:.1} s)", began.elapsed().as_secs_f64());
        if ended.is_err() {
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        let _ = writeln!(out, "failed: {}", failed.join(", "));
    }
    let _ = writeln!(
        out,
        "test result: {}. {} passed; {} failed; 0 ignored; 0 measured; {} filtered out; finished in {:.2}s",
        if failed.is_empty() { "ok" } else { "FAILED" },
        chosen.len() - failed.len(),
        failed.len(),
        tests.len() - chosen.len(),
        began.elapsed().as_secs_f64()
    );
    ExitCode::from(u8::from(!failed.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    static RUN: AtomicU32 = AtomicU32::new(0);

    fn passes() {
        RUN.fetch_add(1, Ordering::Relaxed);
    }

    fn fails() {
        panic!("on purpose");
    }

    #[test]
    fn words_choose_and_options_do_not() {
        let check = |args: &[&str], runs: u32, code: u8| {
            RUN.store(0, Ordering::Relaxed);
            let args: Vec<OsString> = args.iter().map(Into::into).collect();
            let mut said = Vec::new();
            let ended = run_to(&mut said, &[("a_b", passes), ("b_c", passes), ("x", fails)], &args);
            assert_eq!(format!("{ended:?}"), format!("{:?}", ExitCode::from(code)), "{args:?}");
            assert_eq!(RUN.load(Ordering::Relaxed), runs, "{args:?}");
            let numbers = format!("{runs} passed; {code} failed;");
            assert!(String::from_utf8(said).unwrap().contains(&numbers), "{args:?}: {numbers}");
        };
        check(&["a_"], 1, 0);
        check(&["--test-threads=1", "b"], 2, 0);
        check(&["none_of_them"], 0, 0);
        check(&["x"], 0, 1);
        check(&[], 2, 1);
    }
}
