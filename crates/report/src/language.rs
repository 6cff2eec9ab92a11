//! Every sentence a reader sees, by id, in the reader's language.
//!
//! Whole numbers that count something arrive as numbers, because English says "1 trial" and "2 trials". All others arrive printed,
//! so that both languages show the same digits.

use fluent_bundle::{FluentArgs, FluentBundle, FluentResource, FluentValue};
use serde::Serialize;
use std::borrow::Borrow;

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
    pub(crate) fn say(&self, id: &str, arguments: &[(&'static str, FluentValue<'_>)]) -> Sentence {
        let arguments: FluentArgs<'_> = arguments.iter().cloned().collect();
        Sentence { id: id.to_owned(), text: self.text(id, &arguments) }
    }

    /// A name that somebody gave, in quotation marks.
    pub(crate) fn quoted(&self, name: &str) -> String {
        self.say("quoted", &[("text", name.into())]).text
    }

    /// One after the other.
    pub(crate) fn list<S: Borrow<str>>(&self, items: &[S]) -> String {
        items.join(self.word("list-separator").as_str())
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// Ids and the arguments each message uses. The catalogues keep to one message per `id = ` line, indented lines continue it.
    fn messages(language: Language) -> BTreeMap<String, BTreeSet<String>> {
        let mut messages: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut id = String::new();
        for line in language.source().lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            if let Some((name, _)) = line.split_once(" =").filter(|_| !line.starts_with(' ')) {
                name.clone_into(&mut id);
                messages.insert(id.clone(), BTreeSet::new());
            }
            let arguments = line.split('$').skip(1).map(|rest| rest.split([' ', '}']).next().unwrap_or("").to_owned());
            messages.get_mut(&id).expect("a message begins with its id").extend(arguments);
        }
        messages
    }

    #[test]
    fn both_languages_say_the_same_things() {
        let (english, japanese) = (messages(Language::English), messages(Language::Japanese));
        let missing = |a: &BTreeMap<String, _>, b: &BTreeMap<String, _>| -> Vec<String> {
            a.keys().filter(|id| !b.contains_key(*id)).cloned().collect()
        };
        assert_eq!(missing(&english, &japanese), Vec::<String>::new(), "only in en.ftl");
        assert_eq!(missing(&japanese, &english), Vec::<String>::new(), "only in ja.ftl");
        for (id, arguments) in &english {
            let others: Vec<_> = japanese[id].symmetric_difference(arguments).collect();
            assert!(others.is_empty(), "{id}: {others:?} in one language only");
        }
    }

    /// A noun beside a count of one is in the singular; where it cannot be chosen, the sentence is put so that it need not be.
    #[test]
    fn one_is_singular() {
        let words = Catalogue::of(Language::English);
        let mut wrong = Vec::new();
        // One block has a sentence of its own.
        for (id, arguments) in messages(Language::English).into_iter().filter(|(id, _)| !id.contains("few-blocks")) {
            let ones: FluentArgs<'_> = arguments.iter().map(|name| (name.as_str(), FluentValue::from(1))).collect();
            let text = words.text(&id, &ones);
            let tokens: Vec<&str> = text.split([' ', '(', ')', ',', ':', '.']).collect();
            // A ratio is no count: "1.000 times".
            let plural = |word: &str| word.len() > 2 && word.ends_with('s') && word != "times";
            if tokens.windows(2).any(|pair| pair[0] == "1" && plural(pair[1])) {
                wrong.push(format!("{id}: {text}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        let say = |n: usize| words.say("amount-requests", &[("requests", n.into())]).text;
        assert_eq!(
            (say(1), say(2), say(1_234_567)),
            ("1 request".into(), "2 requests".into(), "1234567 requests".into())
        );
    }

    /// Whatever is found, the reader is told what to do next, and what would confirm it.
    #[test]
    fn every_cause_says_what_to_do_and_what_would_confirm_it() {
        let messages = messages(Language::English);
        for rule in diagnosis::rules::RULES {
            for end in ["advice", "confirm"] {
                let id = format!("{}-{end}", rule.cause.id());
                assert!(messages.contains_key(&id), "{id}");
            }
        }
    }

    /// What the rules can find, with its numbers and verdicts, must have words; what has words must be used.
    #[test]
    fn the_catalogue_is_complete_and_nothing_in_it_is_dead() {
        let findings = diagnosis::message_ids().map(str::to_owned);
        let numbers = diagnosis::Quantity::ALL.iter().map(|quantity| format!("number-{}", quantity.name()));
        let verdicts = ["better", "worse", "equivalent", "inconclusive"];
        let verdicts = verdicts.iter().flat_map(|v| [format!("verdict-{v}"), format!("verdict-{v}-long")]);
        let beside = verdicts::Metric::ALL.iter().filter(|metric| **metric != verdicts::Metric::Goodput);
        let ratios = beside.clone().map(|metric| format!("ratio-{}", metric.name()));
        let metrics = beside.map(|metric| format!("metric-{}", metric.name())).chain(ratios);
        let endings = model::plan::Ending::ALL.iter().map(|ending| format!("ending-{}", ending.name()));
        let steps = diagnosis::check::STEPS.iter().map(|step| step.id.to_owned());
        let needed: BTreeSet<String> =
            findings.chain(numbers).chain(steps).chain(verdicts).chain(metrics).chain(endings).collect();
        let messages = messages(Language::English);
        let missing: Vec<_> = needed.iter().filter(|id| !messages.contains_key(*id)).collect();
        assert!(missing.is_empty(), "no words for {missing:?}");
        let sources = [
            include_str!("ab/verdict.rs"),
            include_str!("admission/mod.rs"),
            include_str!("admission/text.rs"),
            include_str!("between/mod.rs"),
            include_str!("between/text.rs"),
            include_str!("check/mod.rs"),
            include_str!("check/server.rs"),
            include_str!("check/text.rs"),
            include_str!("html/mod.rs"),
            include_str!("html/charts.rs"),
            include_str!("import/compared.rs"),
            include_str!("import/mod.rs"),
            include_str!("import/slips.rs"),
            include_str!("import/table.rs"),
            include_str!("import/text.rs"),
            include_str!("language.rs"),
            include_str!("load/facts.rs"),
            include_str!("load/held.rs"),
            include_str!("load/mod.rs"),
            include_str!("load/probe.rs"),
            include_str!("load/text.rs"),
            include_str!("load/times.rs"),
            include_str!("screen/machine.rs"),
            include_str!("screen/words.rs"),
            include_str!("search/mod.rs"),
            include_str!("search/text.rs"),
            include_str!("text/mod.rs"),
            include_str!("text/page.rs"),
            include_str!("markdown.rs"),
            include_str!("view/beside.rs"),
            include_str!("view/cells.rs"),
            include_str!("view/compared.rs"),
            include_str!("view/contrasts.rs"),
            include_str!("view/doubts.rs"),
            include_str!("view/expected.rs"),
            include_str!("view/judged.rs"),
            include_str!("view/logged.rs"),
            include_str!("view/latency_budget.rs"),
            include_str!("view/limits.rs"),
            include_str!("view/metrics.rs"),
            include_str!("view/noise.rs"),
            include_str!("view/recommendation.rs"),
            include_str!("view/recommendation/price.rs"),
            include_str!("view/run.rs"),
            include_str!("view/scope.rs"),
            include_str!("view/sent.rs"),
            include_str!("view/series.rs"),
            include_str!("view/sweep.rs"),
            include_str!("view/table.rs"),
            include_str!("view/told.rs"),
            include_str!("view/trouble.rs"),
            include_str!("view/workers.rs"),
            include_str!("watch/explained.rs"),
            include_str!("watch/full/words.rs"),
        ];
        let used = |id: &str| {
            let of_cause = |end| id.strip_suffix(end).is_some_and(|id: &str| needed.contains(id));
            let advised = of_cause("-advice") || of_cause("-confirm");
            advised || needed.contains(id) || sources.iter().any(|source| source.contains(&format!("\"{id}\"")))
        };
        let dead: Vec<_> = messages.keys().filter(|id| !used(id)).collect();
        assert!(dead.is_empty(), "never said: {dead:?}");
    }

    #[test]
    fn languages_are_read_from_the_environment_as_it_is() {
        let check = |tag: &str, expected| assert_eq!(Language::parse(tag), expected, "{tag}");
        check("ja", Some(Language::Japanese));
        check("ja_JP.UTF-8", Some(Language::Japanese));
        check("en-GB", Some(Language::English));
        check("C.UTF-8", Some(Language::English));
        check("POSIX", Some(Language::English));
        check("de_DE@euro", None);
        check("", None);
    }
}
