//! Our test of a configuration and then Apache's own, and which line of the plan a complaint is about.
//!
//! Exit code 0 is not enough: `MaxRequestWorkers four` is only a warning, and `Timeout four` is taken without a word.

use super::SERVER;
use super::refuse::refused;
use super::render::Rendered;
use crate::ServerError;
use crate::control::blame;
use crate::program::ask;
use model::plan::Directive;
use std::path::Path;
use std::process::Command;

/// Directives whose whole argument is a number. Apache reads the digits it finds, and 0 when there are none.
pub(crate) const NUMBERS: [&str; 15] = [
    "ListenBacklog",
    "MaxClients",
    "MaxConnectionsPerChild",
    "MaxKeepAliveRequests",
    "MaxRequestWorkers",
    "MaxRequestsPerChild",
    "MaxSpareServers",
    "MaxSpareThreads",
    "MinSpareServers",
    "MinSpareThreads",
    "ServerLimit",
    "StartServers",
    "ThreadLimit",
    "ThreadsPerChild",
    "Timeout",
];

/// A configuration to be tested.
pub(crate) struct Test<'a> {
    /// A call of Apache that reads it.
    pub(crate) command: Command,
    /// The folder that nothing may be written outside of.
    pub(crate) dir: &'a Path,
    /// Whether it is the machine's own server that will read it.
    pub(crate) in_place: bool,
    /// The file with the plan's directives.
    pub(crate) file: &'a Path,
    pub(crate) rendered: &'a Rendered,
}

/// Looks at the plan's directives, and lets Apache read them.
pub(crate) fn check(test: Test<'_>, variant: &str, allow_warnings: &[String], plan: &Path) -> Result<(), ServerError> {
    let Test { mut command, dir, in_place, file, rendered } = test;
    let blamed = |directive: Option<&Directive>, message: String| match directive {
        Some(directive) => blame(plan, directive, message, SERVER),
        None => {
            ServerError::Configuration { plan: plan.to_owned(), variant: variant.to_owned(), message, server: SERVER }
        }
    };
    if let Some((directive, why)) = refused(&rendered.planned, dir, in_place) {
        return Err(blamed(Some(directive), why));
    }
    let output = ask(&mut command)?;
    let said = String::from_utf8_lossy(&output.stderr);
    if let Some(complaint) = complaint(&said, output.status.success(), allow_warnings) {
        let directive = match complaint.line_in(file) {
            Some(line) => rendered.planned_at(line),
            None => named_in(&complaint.message, &rendered.planned),
        };
        return Err(blamed(directive, complaint.message));
    }
    match rendered.planned.iter().find(|directive| !has_its_number(&directive.text)) {
        Some(directive) => {
            Err(blamed(Some(directive), "takes a whole number; Apache would read something else".into()))
        }
        None => Ok(()),
    }
}

pub(crate) use model::plan::canonical;

/// What Apache says against a configuration.
#[derive(Debug, PartialEq, Eq)]
struct Complaint {
    /// Line and file it points at.
    place: Option<(usize, String)>,
    /// What it says, in one line.
    message: String,
}

impl Complaint {
    fn line_in(&self, file: &Path) -> Option<usize> {
        self.place.as_ref().filter(|(_, named)| Path::new(named) == file).map(|(line, _)| *line)
    }
}

/// The first error, or the first warning that nobody allowed.
fn complaint(said: &str, accepted: bool, allowed: &[String]) -> Option<Complaint> {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|l| !l.is_empty() && *l != "Syntax OK").collect();
    if let Some(at) = lines.iter().position(|line| line.contains("Syntax error on line ")) {
        let (_, rest) = lines[at].split_once(" on line ")?;
        let (number, rest) = rest.split_once(" of ")?;
        // The message follows on this line or on the next ones; a file name with a colon and a blank is beyond us.
        let (file, message) = rest.split_once(": ").unwrap_or((rest.trim_end_matches(':'), ""));
        let message = [message].into_iter().chain(lines[at + 1..].iter().copied()).filter(|l| !l.is_empty());
        let place = number.parse().ok().map(|number| (number, file.to_owned()));
        return Some(Complaint { place, message: message.collect::<Vec<_>>().join(" ") });
    }
    let refused = |line: &&&str| !allowed.iter().any(|part| line.contains(part.as_str()));
    let warning = lines.iter().filter(|line| is_warning(line)).find(refused);
    match (accepted, warning) {
        (true, warning) => warning.map(|line| Complaint { place: None, message: (*line).to_owned() }),
        (false, _) if lines.is_empty() => {
            Some(Complaint { place: None, message: "the configuration is refused without a reason".to_owned() })
        }
        (false, _) => Some(Complaint { place: None, message: lines.join(" ") }),
    }
}

/// Why Apache does not accept a configuration, and the line it names, if it does.
pub(crate) fn complaint_of(said: &str, accepted: bool) -> Option<(Option<usize>, String)> {
    let refused = complaint(said, accepted, &[]).filter(|_| !accepted);
    refused.map(|complaint| (complaint.place.map(|(line, _)| line), complaint.message))
}

/// What Apache says of a configuration that it accepts.
pub(crate) fn warnings(said: &str) -> Vec<String> {
    // Without time and process, which differ every time.
    let message = |line: &str| line[tag_in(line).unwrap_or(0)..].to_owned();
    said.lines().map(str::trim).filter(|line| is_warning(line)).map(message).collect()
}

/// `AH00180: WARNING: ...` before logs are open, `[core:warn] [pid 1] AH00112: ...` after.
fn is_warning(line: &str) -> bool {
    if [":notice]", ":info]", ":debug]"].iter().any(|level| line.contains(level)) {
        return false;
    }
    tag_in(line).is_some() || line.to_ascii_uppercase().contains("WARNING")
}

/// Where `AH00180:` or the like stands.
fn tag_in(line: &str) -> Option<usize> {
    line.match_indices("AH").map(|(at, _)| at).find(|at| {
        let digits = line[at + 2..].bytes().take_while(u8::is_ascii_digit).count();
        digits == 5 && line[at + 7..].starts_with(':')
    })
}

/// The directive a message is about: the one it names first, and of several with that name the last, which is in force.
/// Some messages name it in small letters only (`bad user name nosuch`), so those are looked for when nothing else is found.
fn named_in<'a>(message: &str, planned: &'a [Directive]) -> Option<&'a Directive> {
    let small = message.to_ascii_lowercase();
    let exact = |directive: &Directive| place_of(name_of(directive), message);
    let in_small_letters = |directive: &Directive| place_of(&name_of(directive).to_ascii_lowercase(), &small);
    first(planned, exact).or_else(|| first(planned, in_small_letters))
}

fn first(planned: &[Directive], place: impl Fn(&Directive) -> Option<usize>) -> Option<&Directive> {
    let least = planned.iter().filter_map(&place).min()?;
    planned.iter().rfind(|directive| place(directive) == Some(least))
}

fn name_of(directive: &Directive) -> &str {
    canonical(directive.text.split_whitespace().next().unwrap_or_default())
}

/// Where `name` stands in `message` as a word of its own.
fn place_of(name: &str, message: &str) -> Option<usize> {
    let letter = |c: char| c.is_ascii_alphanumeric();
    let alone = |at: usize| !message[..at].ends_with(letter) && !message[at + name.len()..].starts_with(letter);
    message.match_indices(name).map(|(at, _)| at).find(|&at| !name.is_empty() && alone(at))
}

/// Whether a directive that takes one number has one; `${...}` is Apache's to fill in.
fn has_its_number(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let value = words.next().unwrap_or_default().trim_matches('"');
    !NUMBERS.iter().any(|number| number.eq_ignore_ascii_case(name))
        || value.contains("${")
        || (!value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// What Apache said (as it did say it), how it exited, and what a plan may hold.
    fn check(said: &str, accepted: bool, allowed: &[&str], expected: &Expect) {
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        let shown = match complaint(said, accepted, &allowed) {
            None => "fine".to_owned(),
            Some(Complaint { place, message }) => format!("{place:?}\n{message}"),
        };
        expected.assert_eq(&shown);
    }

    const EXCEEDS: &str = "AH00180: WARNING: MaxRequestWorkers of 300 exceeds ServerLimit value of 256 servers, decreasing MaxRequestWorkers to 256. To increase, please see the ServerLimit directive.\nSyntax OK\n";

    #[test]
    fn errors_have_a_place() {
        check("Syntax OK\n", true, &[], &expect!["fine"]);
        check(
            "AH00526: Syntax error on line 27 of /r/httpd.conf:\nInvalid command 'MaxRequestWorker', perhaps misspelled\n",
            false,
            &[],
            &expect![[r#"
                Some((27, "/r/httpd.conf"))
                Invalid command 'MaxRequestWorker', perhaps misspelled"#]],
        );
        check(
            "apache2: Syntax error on line 27 of /r/httpd.conf: Expected </IfModule> before end of configuration\n",
            false,
            &[],
            &expect![[r#"
                Some((27, "/r/httpd.conf"))
                Expected </IfModule> before end of configuration"#]],
        );
        check(
            "AH00543: apache2: bad user name nosuch\n",
            false,
            &["AH00543"],
            &expect![[r#"
            None
            AH00543: apache2: bad user name nosuch"#]],
        );
        check(
            "",
            false,
            &[],
            &expect![[r#"
            None
            the configuration is refused without a reason"#]],
        );
    }

    #[test]
    fn warnings_are_failures_unless_allowed() {
        check(
            EXCEEDS,
            true,
            &[],
            &expect![[r#"
            None
            AH00180: WARNING: MaxRequestWorkers of 300 exceeds ServerLimit value of 256 servers, decreasing MaxRequestWorkers to 256. To increase, please see the ServerLimit directive."#]],
        );
        check(EXCEEDS, true, &["exceeds ServerLimit"], &expect!["fine"]);
        check("[core:notice] [pid 1] AH00094: Command line\nSyntax OK\n", true, &[], &expect!["fine"]);
        check(
            "PHP Warning:  Module already loaded\nSyntax OK\n",
            true,
            &[],
            &expect![[r#"
            None
            PHP Warning:  Module already loaded"#]],
        );
    }

    fn check_named(message: &str, planned: &[&str], expected: Option<usize>) {
        let directive = |(i, text): (usize, &&str)| Directive { text: (*text).into(), line: i };
        let planned: Vec<_> = planned.iter().enumerate().map(directive).collect();
        assert_eq!(named_in(message, &planned).map(|d| d.line), expected, "{message}");
    }

    #[test]
    fn a_warning_is_about_the_directive_it_names_first() {
        check_named(EXCEEDS, &["ServerLimit 256", "MaxRequestWorkers 4", "MaxRequestWorkers 300"], Some(2));
        check_named(EXCEEDS, &["ServerLimit 256", "MaxClients 300"], Some(1));
        check_named(EXCEEDS, &["Server x"], None);
        check_named("AH00543: apache2: bad user name nosuch", &["Username x", "User nosuch"], Some(1));
        check_named("nothing", &["Timeout 1"], None);
    }

    #[test]
    fn numbers_are_numbers() {
        for (text, expected) in [
            ("MaxRequestWorkers 4", true),
            ("maxrequestworkers \"4\"", true),
            ("MaxRequestWorkers ${N}", true),
            ("MaxRequestsPerChild x", false),
            ("StartServers", false),
            ("StartServers -1", false),
            ("SetEnv A b", true),
        ] {
            assert_eq!(has_its_number(text), expected, "{text}");
        }
    }
}
