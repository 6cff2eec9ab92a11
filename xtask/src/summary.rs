//! What cargo's test harness says at the end of each test program, added up. No process is started here.

/// Tests by how they ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// Tests that the harness left out. No attribute may cause that: see `skip.rs` of testkit.
    pub(crate) ignored: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

/// The counts of a line such as `test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; ...`.
pub(crate) fn counts(line: &str) -> Option<Counts> {
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
}
