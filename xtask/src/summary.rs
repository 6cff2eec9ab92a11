//! What cargo's test harness says at the end of each test program, added up. No process is started here.

/// Tests by how they ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// Tests that the harness left out. No attribute may cause that: see `skip.rs` of testkit.
    pub(crate) ignored: u64,
}

/// What one call of `cargo test` showed.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) counts: Counts,
    /// The names of the tests that failed, each once.
    pub(crate) failed: Vec<String>,
}

impl Seen {
    /// Takes in one line of what it said.
    pub(crate) fn line(&mut self, line: &str) {
        if let Some(more) = counts(line) {
            self.counts.add(more);
        } else if let Some(name) = failed(line) {
            self.failed.push(name.to_owned());
        }
    }
}

impl Counts {
    /// One step that passed.
    pub(crate) fn one() -> Counts {
        Counts { passed: 1, ..Counts::default() }
    }

    /// These, when what failed of them was run again and ended as `again`: what passed then has passed.
    pub(crate) fn asked_again(mut self, again: Counts) -> Counts {
        // The same name may stand in several programs, so more may have run than had failed; a test that did not run has not passed.
        let passed = self.failed.saturating_sub(again.failed).min(again.passed);
        self.passed += passed;
        self.failed -= passed;
        self
    }

    pub(crate) fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

/// The name in a line such as `test a::b ... FAILED`.
fn failed(line: &str) -> Option<&str> {
    let (name, how) = line.strip_prefix("test ")?.split_once(" ... ")?;
    how.starts_with("FAILED").then_some(name)
}

/// The counts of a line such as `test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; ...`.
fn counts(line: &str) -> Option<Counts> {
    let (_, counted) = line.trim().strip_prefix("test result: ")?.split_once(". ")?;
    let of = |what: &str| {
        counted.split("; ").find_map(|part| part.strip_suffix(what)?.trim_end().parse::<u64>().ok()).unwrap_or(0)
    };
    Some(Counts { passed: of("passed"), failed: of("failed"), ignored: of("ignored") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<(u64, u64, u64)>) {
        assert_eq!(counts(line).map(|c| (c.passed, c.failed, c.ignored)), expected, "{line}");
    }

    #[test]
    fn only_summary_lines_count() {
        check(
            "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.17s",
            Some((5, 0, 1)),
        );
        check(
            "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.17s",
            Some((12, 3, 0)),
        );
        // A test program with a main of its own need not say everything.
        check("test result: ok. 0 passed; 0 failed; 11 filtered out", Some((0, 0, 0)));
        check("test result: FAILED. 10 passed; 1 failed", Some((10, 1, 0)));
        check("test result_is_kept ... ok", None);
        check("running 5 tests", None);
    }

    #[test]
    fn what_failed_is_named_and_what_passes_alone_has_passed() {
        let mut seen = Seen::default();
        for line in [
            "test a::b ... ok",
            "test a::c ... FAILED",
            // A test program with a main of its own.
            "test kills ... FAILED (1.2 s)",
            "test said something ... on its way",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.17s",
        ] {
            seen.line(line);
        }
        assert_eq!(seen.failed, ["a::c", "kills"]);
        assert_eq!((seen.counts.passed, seen.counts.failed), (1, 2));
        let check = |passed: u64, failed: u64, expected: (u64, u64)| {
            let counts = seen.counts.asked_again(Counts { passed, failed, ignored: 0 });
            assert_eq!((counts.passed, counts.failed), expected);
        };
        check(2, 0, (3, 0));
        check(1, 1, (2, 1));
        check(0, 2, (1, 2));
        // Not one of them ran, or the programs died.
        check(0, 0, (1, 2));
        check(5, 0, (3, 0));
    }
}
