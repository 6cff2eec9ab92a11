//! What ab says of itself (`-h`), and what is said of our own long options.

use super::{Said, USAGE};
use clap::error::ErrorKind;
use std::ffi::OsString;

/// `ab -h`, as Debian builds it (httpd 2.4, OpenSSL 3).
pub(super) const USAGE_TEXT: &str = include_str!("usage.txt");

/// The help on our options, or the line about a mistake in them.
pub(super) fn of_extras(error: &clap::Error) -> Said {
    let args = ["webdyno", "ab"].map(OsString::from);
    let wrong = |line: String| Said { out: String::new(), err: format!("ab: {line}\n"), code: USAGE };
    match (error.kind(), crate::usage::complaint(error, &args)) {
        (ErrorKind::DisplayHelp, _) => Said { out: error.render().to_string(), err: String::new(), code: 0 },
        (_, Some(line)) => wrong(line),
        (_, None) => wrong(error.to_string()),
    }
}
