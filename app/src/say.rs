//! Standard error, for lines nobody may be listening to any more: a closed terminal must not end a run.

use std::io::Write;

/// One line for the user.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
