//! Evidence in, verdicts out: a rule is a value in one table. No I/O.
