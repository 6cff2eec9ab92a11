//! What a plan says of the state of memory before a trial, and what that means.

use super::PlanError;
use super::source::Source;
use crate::plan::{MemoryState, PageCache, ServerSpec};
use serde::Deserialize;
use std::ops::Range;
use std::path::PathBuf;
use toml::Spanned;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryText {
    reset_swap: Option<Spanned<bool>>,
    page_cache: Option<Spanned<PageCacheWord>>,
    #[serde(default)]
    files: Vec<Spanned<PathBuf>>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum PageCacheWord {
    Cold,
    ColdHost,
    Read,
}

impl MemoryText {
    /// Where the plan says something of it.
    pub(super) fn place(&self) -> Option<Range<usize>> {
        let spans = [
            self.reset_swap.as_ref().map(Spanned::span),
            self.page_cache.as_ref().map(Spanned::span),
            self.files.first().map(Spanned::span),
        ];
        spans.into_iter().flatten().min_by_key(|span| span.start)
    }
}

/// The state; files are those that the server is known to serve, and those that are named.
pub(super) fn memory_meant(
    source: &Source<'_>,
    text: &MemoryText,
    server: &ServerSpec,
) -> Result<MemoryState, PlanError> {
    let files: Vec<PathBuf> = text.files.iter().map(|file| source.path(file.get_ref())).collect();
    let page_cache = match text.page_cache.as_ref().map(|word| *word.get_ref()) {
        None => PageCache::AsItIs,
        Some(PageCacheWord::Cold) => PageCache::Cold,
        Some(PageCacheWord::ColdHost) => PageCache::ColdHost,
        Some(PageCacheWord::Read) => PageCache::Read,
    };
    let of_files = matches!(page_cache, PageCache::Cold | PageCache::Read);
    if let (Some(file), false) = (text.files.first(), of_files) {
        let what = "says whose pages are meant by `page_cache = \"cold\"` or `\"read\"`; give one of them";
        return Err(source.at(file.span(), "memory.files", what));
    }
    let state =
        MemoryState { reset_swap: text.reset_swap.as_ref().is_some_and(|wanted| *wanted.get_ref()), page_cache, files };
    if let Some(word) = text.page_cache.as_ref().filter(|_| of_files && state.files_of(server).is_empty()) {
        let what = "which files this server serves is not known; name them, or their folders, in `files`";
        return Err(source.at(word.span(), "memory.page_cache", what));
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use crate::plan::{MemoryState, Options, PageCache, PlanError, parse};
    use std::path::Path;

    fn read(server: &str, memory: &str) -> Result<MemoryState, PlanError> {
        let text =
            format!("[server]\n{server}\n[load.a]\npath = \"/\"\nconnections = 1\nrequests = 1\n[memory]\n{memory}\n");
        parse(&text, Path::new("plans/t.toml"), &Options::default()).map(|(plan, _)| plan.memory)
    }

    const EMBEDDED: &str = "kind = \"embedded\"";

    #[test]
    fn memory_is_as_it_is_unless_said_otherwise() {
        assert_eq!(read(EMBEDDED, "").unwrap(), MemoryState::default());
        assert!(read(EMBEDDED, "reset_swap = true").unwrap().reset_swap);
        assert_eq!(read(EMBEDDED, "page_cache = \"cold-host\"").unwrap().page_cache, PageCache::ColdHost);
        let named = read(EMBEDDED, "page_cache = \"read\"\nfiles = [\"../data\", \"/var/lib/mysql\"]").unwrap();
        assert_eq!(
            (named.page_cache, named.files),
            (PageCache::Read, vec!["plans/../data".into(), "/var/lib/mysql".into()])
        );
        let apache = "kind = \"apache\"\ndocument_root = \"../sites/static\"";
        assert_eq!(read(apache, "page_cache = \"cold\"").unwrap().page_cache, PageCache::Cold);
    }

    #[test]
    fn what_is_unclear_is_one_line() {
        let check = |memory: &str, expected: &str| {
            assert_eq!(read(EMBEDDED, memory).unwrap_err().to_string(), format!("plans/t.toml:8: memory.{expected}"));
        };
        check(
            "page_cache = \"cold\"",
            "page_cache: which files this server serves is not known; name them, or their folders, in `files`",
        );
        check(
            "files = [\"a\"]",
            "files: says whose pages are meant by `page_cache = \"cold\"` or `\"read\"`; give one of them",
        );
        assert!(read(EMBEDDED, "page_cache = \"warm\"").is_err());
    }
}
