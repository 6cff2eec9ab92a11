//! Whatever a plan's text is, reading it gives a plan or one line that points into the text, quick or not; and the text that is
//! kept with a run gives the same plan again.
//!
//! A fuzz target and a test of `model` both run this.

use model::plan::{Options, parse};
use std::path::Path;

/// Reads any bytes as a plan; true when they are one.
///
/// # Panics
/// When what comes of it cannot be: that is what is looked for.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let read = |text: &str, quick: bool| {
        let options = Options { quick, read: |_| Ok(b"a body".to_vec()), ..Options::default() };
        parse(text, Path::new("plan.toml"), &options)
    };
    let found = read(&text, false);
    assert_eq!(found.is_ok(), read(&text, true).is_ok(), "quick or not, it is a plan or none");
    match found {
        Err(error) => {
            assert!(error.line.is_none_or(|line| (1..=text.lines().count().max(1) + 1).contains(&line)), "{error:?}");
            assert!(!error.what.is_empty(), "{error:?}");
            false
        }
        Ok((plan, kept)) => {
            let (again, _) = read(&kept, false).unwrap_or_else(|error| panic!("kept, and refused: {error}"));
            assert_eq!(again.name, plan.name);
            true
        }
    }
}
