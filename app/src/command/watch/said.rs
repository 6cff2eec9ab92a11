//! What is said instead of watching: help, version, the list of modules, and what is wrong with the command line.

use super::place;
use crate::exit::Exit;
use crate::flags::watch::{Name, Refusal};
use crate::say::{print, tell};
use report::watch::Module;

/// Says it; how the process is to end.
pub(super) fn say(name: Name, refusal: &Refusal) -> Exit {
    match (refusal, name) {
        (Refusal::Help, _) => print(include_str!("help.txt")),
        (Refusal::Version, _) => {
            print(&format!("webdyno {}, in the place of Dstat 0.8.0\n", env!("CARGO_PKG_VERSION")));
        }
        (Refusal::List, _) => print(&list(place::terminal_size().map_or(80, |size| size.columns))),
        (Refusal::Mistake(what), Name::Dstat) => {
            print(&format!("dstat: {what}\n"));
            return Exit::Code(1);
        }
        (Refusal::Mistake(what), Name::Webdyno) => {
            tell(what.replace("dstat -h", "`webdyno watch --help`"));
            return Exit::Usage;
        }
    }
    Exit::Done
}

/// The modules as dstat lists its own: names between commas, broken before the terminal's right edge.
fn list(columns: usize) -> String {
    let names: Vec<&str> = Module::all().map(Module::name).collect();
    let mut text = "internal:\n\t".to_owned();
    let room = |columns: usize| columns.saturating_sub(8);
    let mut left = room(columns);
    for (at, name) in names.iter().enumerate() {
        match left.checked_sub(name.len() + 2).filter(|left| *left > 0) {
            Some(rest) => left = rest,
            None => {
                text += "\n\t";
                left = room(columns).saturating_sub(name.len() + 2);
            }
        }
        text += name;
        text += if at + 1 < names.len() { "," } else { "\n" };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_every_module_once_and_fits() {
        let text = list(60);
        assert!(text.lines().all(|line| line.len() + 7 <= 60), "{text}");
        let names: Vec<_> = text.split([',', '\n', '\t']).filter(|name| !name.is_empty()).collect();
        assert_eq!(names[0], "internal:");
        assert_eq!(names[1..], Module::all().map(Module::name).collect::<Vec<_>>());
    }

    #[test]
    fn the_help_names_every_module() {
        let help = include_str!("help.txt");
        for module in Module::all() {
            assert!(help.contains(&format!("--{}", module.name())), "--{}", module.name());
        }
        assert!(help.lines().all(|line| line.chars().count() <= 120));
    }
}
