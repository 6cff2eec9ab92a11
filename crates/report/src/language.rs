//! Every sentence a reader sees, by id, in the reader's language. Numbers arrive already printed, so both languages show the
//! same digits.

use fluent_bundle::{FluentArgs, FluentBundle, FluentResource};
use serde::Serialize;

/// A language the catalogue is complete in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Language {
    /// English.
    #[serde(rename = "en")]
    English,
    /// Japanese.
    #[serde(rename = "ja")]
    Japanese,
}

impl Language {
    /// Every language.
    pub const ALL: [Language; 2] = [Language::English, Language::Japanese];

    /// Reads `ja`, `en-GB`, or the value of `LC_ALL` or `LANG` such as `ja_JP.UTF-8`; `C` and `POSIX` are English. `None` for
    /// any other language.
    #[must_use]
    pub fn parse(tag: &str) -> Option<Language> {
        match tag.split(['_', '-', '.', '@']).next()?.to_ascii_lowercase().as_str() {
            "en" | "c" | "posix" => Some(Language::English),
            "ja" => Some(Language::Japanese),
            _ => None,
        }
    }

    /// The language's tag, as HTML and `--lang` write it.
    #[must_use]
    pub fn tag(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::Japanese => "ja",
        }
    }

    fn source(self) -> &'static str {
        match self {
            Language::English => include_str!("../../../locales/en.ftl"),
            Language::Japanese => include_str!("../../../locales/ja.ftl"),
        }
    }
}

/// A sentence: its id in the catalogue, for programs, and its words, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sentence {
    /// The message's id; the same in every language.
    pub id: String,
    /// The words.
    pub text: String,
}

/// The messages of one language.
pub(crate) struct Catalogue {
    bundle: FluentBundle<FluentResource>,
}

impl Catalogue {
    /// # Panics
    /// Never: the catalogues are part of the program, and a test reads both.
    pub(crate) fn of(language: Language) -> Self {
        let resource = FluentResource::try_new(language.source().to_owned()).expect("the catalogue is valid Fluent");
        let tag = language.tag().parse().expect("`en` and `ja` are language tags");
        let mut bundle = FluentBundle::new(vec![tag]);
        // The marks that isolate an argument's direction of writing would show in terminals, and both languages run one way.
        bundle.set_use_isolating(false);
        bundle.add_resource(resource).expect("no id stands twice in the catalogue");
        Catalogue { bundle }
    }

    /// A message without arguments.
    pub(crate) fn word(&self, id: &str) -> String {
        self.text(id, &FluentArgs::new())
    }

    /// A message with its arguments by name.
    pub(crate) fn say(&self, id: &str, arguments: &[(&'static str, String)]) -> Sentence {
        let arguments: FluentArgs<'_> = arguments.iter().map(|(name, value)| (*name, value.clone())).collect();
        Sentence { id: id.to_owned(), text: self.text(id, &arguments) }
    }

    /// Whether the catalogue has a message.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.bundle.has_message(id)
    }

    fn text(&self, id: &str, arguments: &FluentArgs<'_>) -> String {
        let pattern = self.bundle.get_message(id).and_then(|message| message.value());
        debug_assert!(pattern.is_some(), "the catalogue has no message `{id}`");
        // A missing sentence must not cost the reader the report: the id says what is meant well enough.
        let Some(pattern) = pattern else { return id.to_owned() };
        let mut errors = Vec::new();
        let text = self.bundle.format_pattern(pattern, Some(arguments), &mut errors).into_owned();
        debug_assert!(errors.is_empty(), "message `{id}`: {errors:?}");
        text
    }
}
