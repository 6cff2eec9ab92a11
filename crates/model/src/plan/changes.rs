//! What a variant changes on the machine beside a server's directives: files of others, such as php.ini, and settings of the kernel.

use super::as_text;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Changes that are made before a trial and given back at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Files that are made, replaced or edited.
    pub files: Vec<FileChange>,
    /// Settings of the kernel, by their name with dots: `net.core.somaxconn`.
    pub sysctl: BTreeMap<String, Sysctl>,
}

/// A file with other content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The file; absolute.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// What becomes of it.
    pub edit: Edit,
    /// A command that has somebody read it again, run after the change and after it was given back; empty when nobody needs to be told.
    pub reload: Vec<String>,
    /// Line in the plan, for messages.
    pub line: usize,
}

/// How a file's content changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edit {
    /// It becomes this.
    Content(String),
    /// It becomes that of another file.
    Copy(#[serde(serialize_with = "as_text")] PathBuf),
    /// It stays, but for these.
    Change {
        /// Texts and what takes their place, wherever they stand; each must be there.
        replace: BTreeMap<String, String>,
        /// What is added at its end.
        append: String,
    },
}

/// A setting of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sysctl {
    /// What is written to it.
    pub value: String,
    /// Line in the plan, for messages.
    pub line: usize,
}

impl Changes {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.sysctl.is_empty()
    }

    /// These and then others, which win where both change the same.
    #[must_use]
    pub fn and(&self, others: &Changes) -> Changes {
        let replaced = |file: &&FileChange| !others.files.iter().any(|other| other.path == file.path);
        let files = self.files.iter().filter(replaced).chain(&others.files).cloned().collect();
        let mut sysctl = self.sysctl.clone();
        sysctl.extend(others.sysctl.clone());
        Changes { files, sysctl }
    }
}
