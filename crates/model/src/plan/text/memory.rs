//! What a plan says of the state of memory before a trial, and what that means.

use super::PlanError;
use super::source::Source;
use crate::plan::{MemoryState, PageCache, ServerSpec, Variant};
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

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PageCacheWord {
    Cold,
    ColdHost,
    Read,
}

impl MemoryText {
    /// The state that all variants begin in, but for what they say themselves.
    pub(super) fn meant<'a>(
        &self,
        source: &Source<'_>,
        server: &ServerSpec,
        mut variants: impl Iterator<Item = &'a Variant>,
    ) -> Result<MemoryState, PlanError> {
        let page_cache = self.page_cache(source, "memory.page_cache", self.page_cache.as_ref(), server)?;
        let page_cache = page_cache.unwrap_or_default();
        let is_of_files = |variant: &Variant| variant.page_cache.is_some_and(PageCache::is_of_files);
        let are_meant = page_cache.is_of_files() || variants.any(is_of_files);
        if let (Some(file), false) = (self.files.first(), are_meant) {
            let what = "says whose pages are meant by `page_cache = \"cold\"` or `\"read\"`; give one of them";
            return Err(source.at(file.span(), "memory.files", what));
        }
        let reset_swap = self.reset_swap.as_ref().is_some_and(|wanted| *wanted.get_ref());
        Ok(MemoryState { reset_swap, page_cache, files: self.files(source) })
    }

    /// What a word, called `key`, asks for of the page cache. Files are those that the server is known to serve, and those that are named.
    pub(super) fn page_cache(
        &self,
        source: &Source<'_>,
        key: &str,
        word: Option<&Spanned<PageCacheWord>>,
        server: &ServerSpec,
    ) -> Result<Option<PageCache>, PlanError> {
        let Some(word) = word else { return Ok(None) };
        let page_cache = match word.get_ref() {
            PageCacheWord::Cold => PageCache::Cold,
            PageCacheWord::ColdHost => PageCache::ColdHost,
            PageCacheWord::Read => PageCache::Read,
        };
        let named = MemoryState { files: self.files(source), ..MemoryState::default() };
        if page_cache.is_of_files() && named.files_of(server).is_empty() {
            let what =
                "which files this server serves is not known; name them, or their folders, in `files` of [memory]";
            return Err(source.at(word.span(), key, what));
        }
        Ok(Some(page_cache))
    }

    fn files(&self, source: &Source<'_>) -> Vec<PathBuf> {
        self.files.iter().map(|file| source.path(file.get_ref())).collect()
    }

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
    fn a_variant_begins_with_files_of_its_own_way() {
        let text = "[server]\nkind = \"embedded\"\n[load.a]\npath = \"/\"\nconnections = 1\nrequests = 1\n\
                    [variant.read]\n[variant.cold]\npage_cache = \"cold\"\n";
        let plan = |memory: &str| {
            parse(&format!("{text}[memory]\n{memory}"), Path::new("t.toml"), &Options::default()).map(|(plan, _)| plan)
        };
        let both = plan("page_cache = \"read\"\nfiles = [\"data\"]").unwrap();
        let begins: Vec<_> = both.variants.iter().map(|variant| both.page_cache(variant)).collect();
        assert_eq!(begins, [PageCache::Read, PageCache::Cold]);
        // Named for the variant alone.
        let one = plan("files = [\"data\"]").unwrap();
        assert_eq!((one.memory.page_cache, one.page_cache(&one.variants[1])), (PageCache::AsItIs, PageCache::Cold));
        assert_eq!(
            plan("").unwrap_err().to_string(),
            "t.toml:9: variant.page_cache: which files this server serves is not known; name them, or their folders, in `files` of [memory]"
        );
    }

    #[test]
    fn what_is_unclear_is_one_line() {
        let check = |memory: &str, expected: &str| {
            assert_eq!(read(EMBEDDED, memory).unwrap_err().to_string(), format!("plans/t.toml:8: memory.{expected}"));
        };
        check(
            "page_cache = \"cold\"",
            "page_cache: which files this server serves is not known; name them, or their folders, in `files` of [memory]",
        );
        check(
            "files = [\"a\"]",
            "files: says whose pages are meant by `page_cache = \"cold\"` or `\"read\"`; give one of them",
        );
        assert!(read(EMBEDDED, "page_cache = \"warm\"").is_err());
    }
}
