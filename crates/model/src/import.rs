//! What somebody else measured and webdyno only keeps: texts with reports of ab, and which of these belong together.
//!
//! The texts are kept as they were read, so that a later webdyno reads more in them; what they say is derived each time.

use crate::run::Anchor;
use serde::{Deserialize, Serialize};

/// Texts taken in at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// Identifier in the store, as that of a run.
    pub id: String,
    /// When it was taken in; when it was measured, nobody knows.
    pub anchor: Anchor,
    /// Version of webdyno that took it in.
    pub version: String,
    /// The texts.
    pub sources: Vec<Source>,
    /// What is compared, the baseline first.
    pub groups: Vec<Group>,
}

/// One text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Path it was read from, or `-`.
    pub name: String,
    /// All of it, with what was no UTF-8 replaced.
    pub text: String,
}

/// Reports about one setting: each is a run of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// What the user calls it.
    pub name: String,
    /// Its reports.
    pub picks: Vec<Pick>,
}

/// One report in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pick {
    /// Which of the sources, from 0.
    pub source: usize,
    /// Line in which the report begins, from 1.
    pub line: usize,
}

impl Import {
    /// What stands for a plan's name in lists: its groups, or the one text it came from.
    #[must_use]
    pub fn name(&self) -> String {
        let names: Vec<&str> = self.groups.iter().map(|group| group.name.as_str()).collect();
        match names.as_slice() {
            [first, _, .., last] if names.len() > 3 => format!("{first} ... {last}"),
            names => names.join(", "),
        }
    }
}
