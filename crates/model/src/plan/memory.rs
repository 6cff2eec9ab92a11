//! In what state memory is when a trial begins.

use super::ServerSpec;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What is done to memory before each trial is measured; nothing by default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryState {
    /// The machine's swap is emptied before the server starts.
    #[serde(default)]
    pub reset_swap: bool,
    /// What the kernel has of files when the measured window begins.
    #[serde(default)]
    pub page_cache: PageCache,
    /// Files and folders, beside those that the server serves, whose pages these are.
    #[serde(default)]
    pub files: Vec<PathBuf>,
}

impl MemoryState {
    /// The files and folders meant: what the server serves, as far as the plan says so, and what is named.
    #[must_use]
    pub fn files_of(&self, server: &ServerSpec) -> Vec<PathBuf> {
        let served = match server {
            ServerSpec::Apache(apache) => [apache.document_root.clone(), apache.scripts.clone()],
            ServerSpec::Nginx(nginx) => [nginx.document_root.clone(), None],
            ServerSpec::Command(_) | ServerSpec::Embedded(_) | ServerSpec::Url(_) => [None, None],
        };
        served.into_iter().flatten().chain(self.files.iter().cloned()).collect()
    }
}

/// What the kernel has of files in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageCache {
    /// Whatever it happens to have.
    #[default]
    AsItIs,
    /// Nothing of the files meant.
    Cold,
    /// Nothing of any file on the host.
    ColdHost,
    /// All of the files meant.
    Read,
}

impl PageCache {
    /// As plans write it; the first is what is so when they say nothing.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PageCache::AsItIs => "as it is",
            PageCache::Cold => "cold",
            PageCache::ColdHost => "cold-host",
            PageCache::Read => "read",
        }
    }

    /// Whether it is about certain files.
    #[must_use]
    pub fn is_of_files(self) -> bool {
        matches!(self, PageCache::Cold | PageCache::Read)
    }
}
