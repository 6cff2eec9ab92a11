//! The plan's text and its places: what a value means, or which line is to blame.

use super::PlanError;
use super::measure::{Duration, Rate, Size};
use crate::Nanos;
use crate::plan::{Directive, RUN_FOLDER};
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The plan's text and name, for messages.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) file: &'a Path,
}

impl Source<'_> {
    pub(super) fn line(&self, offset: usize) -> usize {
        self.text[..offset.min(self.text.len())].matches('\n').count() + 1
    }

    pub(super) fn at(&self, span: Range<usize>, key: &str, what: &str) -> PlanError {
        PlanError {
            file: self.file.to_owned(),
            line: Some(self.line(span.start)),
            key: Some(key.to_owned()),
            what: what.to_owned(),
        }
    }

    /// The plan's folder.
    pub(super) fn folder(&self) -> PathBuf {
        match self.file.parent() {
            Some(folder) if folder != Path::new("") => folder.to_owned(),
            _ => PathBuf::from("."),
        }
    }

    /// Relative to the plan's folder, unless it lies in the run's own.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        if path.starts_with(RUN_FOLDER) { path.to_owned() } else { self.folder().join(path) }
    }

    /// The non-empty lines of a multi-line string, each with its line in the plan.
    pub(super) fn directives(&self, text: Option<&Spanned<String>>) -> Vec<Directive> {
        let Some(text) = text else { return Vec::new() };
        let written = &self.text[text.span()];
        // A multi-line string that begins with a line break begins on the next line.
        let breaks = ["\"\"\"\n", "'''\n", "\"\"\"\r\n", "'''\r\n"];
        let first = self.line(text.span().start) + usize::from(breaks.iter().any(|open| written.starts_with(open)));
        text.get_ref()
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(i, line)| Directive { text: line.trim_end().to_owned(), line: first + i })
            .collect()
    }

    pub(super) fn duration(
        &self,
        text: Option<&Spanned<Duration>>,
        key: &str,
        default: Nanos,
    ) -> Result<Nanos, PlanError> {
        text.map_or(Ok(default), |text| self.duration_text(text, key))
    }

    /// A limit that would be over before it began is a slip of the pen.
    pub(super) fn longer_than_0(
        &self,
        text: Option<&Spanned<Duration>>,
        key: &str,
        default: Nanos,
    ) -> Result<Nanos, PlanError> {
        match (self.duration(text, key, default)?, text) {
            (0, Some(text)) => Err(self.at(text.span(), key, "must be longer than 0")),
            (length, _) => Ok(length),
        }
    }

    pub(super) fn duration_text(&self, text: &Spanned<Duration>, key: &str) -> Result<Nanos, PlanError> {
        units::duration_ns(&text.get_ref().0).map_err(|error| self.at(text.span(), key, &error.to_string()))
    }

    /// Per second, and more than nothing.
    pub(super) fn rate(&self, text: &Spanned<Rate>, key: &str) -> Result<f64, PlanError> {
        match units::rate(&text.get_ref().0) {
            Ok(rate) if rate > 0.0 => Ok(rate),
            Ok(_) => Err(self.at(text.span(), key, "must be more than 0")),
            Err(error) => Err(self.at(text.span(), key, &error.to_string())),
        }
    }

    pub(super) fn bytes(&self, text: &Spanned<Size>, key: &str) -> Result<u64, PlanError> {
        units::bytes(&text.get_ref().0).map_err(|error| self.at(text.span(), key, &error.to_string()))
    }

    /// The path of a URL as a request line can hold it.
    pub(super) fn url_path(&self, path: &Spanned<String>, key: &str) -> Result<String, PlanError> {
        self.url_path_at(path.get_ref().clone(), path.span(), key)
    }

    /// The same of a path that stands there.
    pub(super) fn url_path_at(&self, text: String, place: Range<usize>, key: &str) -> Result<String, PlanError> {
        if !text.starts_with('/') || text.bytes().any(|b| b <= b' ' || b == 0x7f) {
            let what = "must begin with / and contain no blank or control character; write %20 for a blank";
            return Err(self.at(place, key, what));
        }
        Ok(text)
    }

    pub(super) fn share(&self, value: Option<&Spanned<f64>>, key: &str, default: f64) -> Result<f64, PlanError> {
        match value {
            None => Ok(default),
            Some(v) if *v.get_ref() > 0.0 && *v.get_ref() < 1.0 => Ok(*v.get_ref()),
            Some(v) => Err(self.at(v.span(), key, "must lie between 0 and 1")),
        }
    }
}
