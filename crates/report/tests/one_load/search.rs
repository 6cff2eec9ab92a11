//! A search for a rate, drawn for a terminal and for programs.

use super::{check_against, scene};
use expect_test::{ExpectFile, expect_file};
use model::run::RunEnd;
use report::Language;
use report::search::{SearchView, json, text};
use report::text::{Colour, Look};
use serde_json::Value;

fn check(language: Language, expected: &ExpectFile) {
    let view = SearchView::of(&scene::search(), language).unwrap();
    expected.assert_eq(&text::render(&view, Look { width: 80, colour: Colour::None }));
}

#[test]
fn on_a_terminal() {
    check(Language::English, &expect_file!["../golden/search-en-80.txt"]);
    check(Language::Japanese, &expect_file!["../golden/search-ja-80.txt"]);
    assert!(SearchView::of(&scene::open(), Language::English).is_none());
}

#[test]
fn as_json_it_keeps_to_the_schema() {
    let mut cut = scene::search();
    cut.trials.truncate(2);
    cut.head.end = RunEnd::Interrupted;
    for run in [scene::search(), cut] {
        let view = SearchView::of(&run, Language::English).unwrap();
        let document: Value = serde_json::from_str(&json::render(&view)).unwrap();
        let schema = include_str!("../../../../docs/schemas/search.schema.json");
        assert_eq!(check_against(schema, &document), Vec::<String>::new());
        assert_eq!(document["held_per_s"].as_f64(), if run.trials.len() > 2 { Some(800.0) } else { None });
    }
}
