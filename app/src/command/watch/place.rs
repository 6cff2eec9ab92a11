//! Where a watch runs: the terminal it writes to, the time of day, host and user. Nothing here is remembered.

use super::rows::{Machine, Size};
use crate::flags::watch::Layout;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use model::reading::Look;
use report::watch::Compat;
use std::io::IsTerminal;

/// The size of the terminal on standard output; `None` when it is none.
pub(super) fn terminal_size() -> Option<Size> {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let told = rustix::termios::tcgetwinsize(&out).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
    // What dstat takes for granted.
    Some(told.map_or(Size { lines: 25, columns: 80 }, |size| Size {
        lines: size.ws_row.into(),
        columns: size.ws_col.into(),
    }))
}

/// The machine as it is made.
pub(super) fn machine() -> Machine {
    // As dstat counts CPUs, which includes those that this process may not use.
    let online = std::fs::read_to_string("/proc/stat")
        .map_or(0, |text| text.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count());
    Machine { page_bytes: rustix::param::page_size() as u64, cpus: online.max(1) }
}

/// What the terminal can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Terminal {
    /// Draw a row anew.
    pub(super) updates: bool,
    /// Show colours.
    pub(super) colour: bool,
}

/// The terminal on standard output.
pub(super) fn terminal() -> Terminal {
    let kind = std::env::var("TERM").unwrap_or_default();
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    can(std::io::stdout().is_terminal(), &kind, no_colour)
}

fn can(is_terminal: bool, kind: &str, no_colour: bool) -> Terminal {
    let updates = is_terminal && !["", "dumb"].contains(&kind);
    // Terminals of old, which terminfo gives no colours.
    let monochrome = kind.starts_with("vt") || kind.ends_with("-m") || kind.ends_with("-mono");
    Terminal { updates, colour: updates && !monochrome && !no_colour }
}

/// The clock on the wall, as a layout shows it.
#[derive(Debug)]
pub(super) struct Clock {
    format: String,
    zone: TimeZone,
}

impl Clock {
    /// dstat's format or dool's, or what the environment has instead.
    pub(super) fn new(layout: Layout) -> Clock {
        let (usual, variable) = match layout {
            Layout::Modules(Compat::Dool) => ("%b-%d %H:%M:%S", "DOOL_TIMEFMT"),
            _ => ("%d-%m %H:%M:%S", "DSTAT_TIMEFMT"),
        };
        let format = std::env::var(variable).ok().filter(|format| is_known(format));
        Clock { format: format.unwrap_or_else(|| usual.to_owned()), zone: TimeZone::system() }
    }

    /// The time of day, for seconds since 1970.
    pub(super) fn text(&self, epoch: f64) -> String {
        let time = Timestamp::from_millisecond((epoch * 1000.0) as i64).unwrap_or_default();
        time.to_zoned(self.zone.clone()).strftime(&self.format).to_string()
    }
}

/// A format with something that is not known would end the program when it is used.
fn is_known(format: &str) -> bool {
    jiff::fmt::strtime::format(format, &Zoned::now()).is_ok()
}

/// Seconds since 1970.
pub(super) fn epoch() -> f64 {
    Timestamp::now().as_nanosecond() as f64 / 1e9
}

/// When a look was taken, seconds since 1970, as the clock on the wall stood then: it may have been set since.
pub(super) fn epoch_of(look: &Look) -> f64 {
    look.reading.epoch_s().unwrap_or_else(epoch)
}

/// The date as dstat writes it into its file.
pub(super) fn date() -> String {
    Zoned::now().strftime("%d %b %Y %H:%M:%S %Z").to_string()
}

/// Seconds since 1970 as a time of day here.
pub(super) fn time_of(epoch: f64) -> String {
    let time = Timestamp::from_millisecond((epoch * 1000.0) as i64).unwrap_or_default();
    time.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
}

/// Nanoseconds since 1970 as a date and a time of day here.
pub(super) fn date_of(wall_ns: i64) -> String {
    let time = Timestamp::from_nanosecond(i128::from(wall_ns)).unwrap_or_default();
    time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// The name of the host.
pub(super) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The name of the user, as Python's getpass finds it; the number of one that has none.
pub(super) fn user() -> String {
    let told = ["LOGNAME", "USER", "LNAME", "USERNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    let number = rustix::process::getuid().as_raw().to_string();
    let known = || std::fs::read_to_string("/etc/passwd").ok().and_then(|users| name_of(&users, &number));
    told.into_iter().find(|name| !name.is_empty()).or_else(known).unwrap_or(number)
}

fn name_of(users: &str, number: &str) -> Option<String> {
    let found = users.lines().find(|line| line.split(':').nth(2) == Some(number))?;
    found.split(':').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_terminals_can() {
        let check = |is_terminal, kind, no_colour, updates, colour| {
            assert_eq!(can(is_terminal, kind, no_colour), Terminal { updates, colour }, "{kind}");
        };
        check(true, "xterm-256color", false, true, true);
        check(true, "xterm-256color", true, true, false);
        check(true, "vt220", false, true, false);
        check(true, "dumb", false, false, false);
        check(true, "", false, false, false);
        check(false, "xterm", false, false, false);
    }

    #[test]
    fn users_by_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33::/:\n";
        assert_eq!(name_of(users, "33").as_deref(), Some("www-data"));
        assert_eq!(name_of(users, "34"), None);
    }

    #[test]
    fn formats_that_are_not_known_are_not_used() {
        assert!(is_known("%H:%M"));
        assert!(!is_known("%é"));
    }
}
