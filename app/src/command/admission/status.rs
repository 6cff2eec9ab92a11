//! `webdyno admission status`: one look at every server.

use super::find::{self, Found};
use crate::command::report::{language, look};
use crate::exit::Exit;
use crate::flags::admission::StatusFlags;
use crate::say::print;
use report::AdmissionView;
use report::admission::{Looked, is_stale, text};
use serde_json::json;

pub(super) fn run(flags: &StatusFlags) -> anyhow::Result<Exit> {
    let found = find::all(flags.file.file.as_deref())?;
    let clock = find::now();
    let text = if flags.json { as_json(&found, clock) } else { as_text(&found, flags, clock) };
    print(&text);
    let answers = found.iter().any(|found| !is_stale(&found.status, clock));
    Ok(if answers { Exit::Done } else { Exit::Server })
}

fn as_text(found: &[Found], flags: &StatusFlags, clock: f64) -> String {
    let one = |found: &Found| {
        let file = found.file.display().to_string();
        let looked = Looked { now: &found.status, before: None, file: &file, clock, entries: flags.entries };
        text::render(&AdmissionView::of(&looked, language(&flags.lang)), look())
    };
    found.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn as_json(found: &[Found], clock: f64) -> String {
    let server = |found: &Found| {
        json!({
            "file": found.file.display().to_string(),
            "age_s": found.status.age_s(clock),
            "stale": is_stale(&found.status, clock),
            "status": found.facts,
        })
    };
    let servers: Vec<_> = found.iter().map(server).collect();
    format!("{:#}\n", json!({ "schema": "webdyno-admission", "schema_version": 1, "servers": servers }))
}
