//! Stored facts become a view; text, JSON, Markdown and HTML draw that view and compute nothing.
//!
//! [`View::of`] judges a run anew each time, so a report drawn years later uses today's rules; [`LoadView::of`] does so for a run
//! that is one load, and [`screen::LiveView`] is one under way. Sentences come from the catalogue (`locales/*.ftl`) by id. Nothing here reads a file, measures anything or
//! knows who asked.

pub mod ab;
pub mod admission;
pub mod between;
pub mod check;
mod escape;
pub mod html;
pub mod import;
pub mod json;
mod language;
pub mod load;
pub mod markdown;
pub mod openmetrics;
pub mod screen;
pub mod search;
pub mod text;
pub mod view;
pub mod watch;

pub use admission::AdmissionView;
pub use check::CheckView;
pub use import::ImportView;
pub use language::{Language, Sentence};
pub use load::LoadView;
pub use stats::Verdict;
pub use view::View;
