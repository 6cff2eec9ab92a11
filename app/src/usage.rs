//! What was typed and makes no sense, as one line: clap's own sentence, its suggestion, and where the help is.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use std::error::Error as _;
use std::ffi::OsString;

/// The one line about a mistake in `args`; `None` for help and version, which are answers and not mistakes.
pub(crate) fn complaint(error: &Error, args: &[OsString]) -> Option<String> {
    let what = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            return None;
        }
        ErrorKind::MissingRequiredArgument => {
            format!("{} is missing", told(error, ContextKind::InvalidArg)?.join(", "))
        }
        // Our own parsers say it all.
        ErrorKind::ValueValidation => format!("{} {}", flag(error)?, error.source()?),
        _ => sentence(error),
    };
    let suggested = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue]
        .into_iter()
        .find_map(|kind| told(error, kind));
    // The best guess comes last.
    let suggestion =
        suggested.and_then(|names| Some(format!("; did you mean '{}'?", names.last()?))).unwrap_or_default();
    Some(format!("{what}{suggestion} (try `{}`)", help(args)))
}

/// What clap says first, in one line; its tips, the usage and the way to the help come after a blank line.
fn sentence(error: &Error) -> String {
    let text = error.render().to_string();
    let first: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let first = first.join(" ");
    first.strip_prefix("error: ").unwrap_or(&first).to_owned()
}

/// The flag with the wrong value, without the name of the value.
fn flag(error: &Error) -> Option<String> {
    let told = told(error, ContextKind::InvalidArg)?;
    told.first()?.split_whitespace().next().map(str::to_owned)
}

/// One part of what clap knows about a mistake.
fn told(error: &Error, kind: ContextKind) -> Option<Vec<String>> {
    match error.get(kind)? {
        ContextValue::String(name) => Some(vec![name.clone()]),
        ContextValue::Strings(names) => Some(names.clone()),
        _ => None,
    }
}

/// The command that shows the help for what was typed.
fn help(args: &[OsString]) -> String {
    let command = args.get(1).and_then(|word| word.to_str());
    let known = |name: &&str| crate::flags::Flags::command().find_subcommand(name).is_some();
    command.filter(known).map_or_else(|| "webdyno --help".to_owned(), |name| format!("webdyno {name} --help"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Flags;
    use clap::Parser;

    fn check(typed: &str, expected: Option<&str>) {
        let args: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
        let error = Flags::try_parse_from(&args).expect_err(typed);
        assert_eq!(complaint(&error, &args).as_deref(), expected, "{typed}");
    }

    #[test]
    fn mistakes_are_one_line() {
        let run = |what: &str| format!("{what} (try `webdyno run --help`)");
        check("webdyno run --bogus p", Some(&run("unexpected argument '--bogus' found")));
        check("webdyno run --pla p", Some(&run("unexpected argument '--pla' found; did you mean '--plain'?")));
        check("webdyno run", Some(&run("<PLAN> is missing")));
        check("webdyno run p --seed x", Some(&run("--seed `x` is not a whole number from 0 to 18446744073709551615")));
        check("webdyno run p --seed", Some(&run("a value is required for '--seed <N>' but none was supplied")));
        check("webdyno run p --make-swap 0", Some(&run("--make-swap must be more than 0")));
        check(
            "webdyno run p --lang xx",
            Some(&run("invalid value 'xx' for '--lang <LANG>' [possible values: en, ja]")),
        );
        check("webdyno run p --json --markdown", Some(&run("the argument '--json' cannot be used with '--markdown'")));
        check("webdyno report a b", Some("unexpected argument 'b' found (try `webdyno report --help`)"));
        check("webdyno repor", Some("unrecognized subcommand 'repor'; did you mean 'report'? (try `webdyno --help`)"));
        check("webdyno --bogus", Some("unexpected argument '--bogus' found (try `webdyno --help`)"));
    }

    #[test]
    fn answers_are_no_mistakes() {
        for typed in ["webdyno", "webdyno --help", "webdyno run --help", "webdyno --version", "webdyno help run"] {
            check(typed, None);
        }
    }
}
