//! Imported reports of ab, drawn for a terminal and for programs; the texts are those that `abtext` is tested with.

use crate::one_load::check_against;
use expect_test::{Expect, ExpectFile, expect, expect_file};
use model::import::{Group, Import, Pick, Source};
use model::run::Anchor;
use report::import::{ImportView, json, text};
use report::text::{Colour, Look};
use report::{Language, import};
use serde_json::Value;

const MEMORY: &str = include_str!("../../../abtext/tests/data/1-memory.txt");
const KEEP_ALIVE: &str = include_str!("../../../abtext/tests/data/3-keepalive.txt");
const LIMITER: &str = include_str!("../../../abtext/tests/data/4-limiter.txt");
const PREFORK: &str = include_str!("../../../abtext/tests/data/2-prefork.txt");
const LOGGING: &str = include_str!("../../../abtext/tests/data/5-logging.txt");

/// Groups by name, each with the reports of the texts it consists of: text, and number in it from 1.
fn imported(texts: &[(&str, &str)], groups: &[(&str, &[(usize, usize)])]) -> Import {
    let pick = |&(source, number): &(usize, usize)| {
        let document = abtext::read(texts[source].1).unwrap();
        Pick { source, line: document.reports[number - 1].first_line() }
    };
    Import {
        id: "20261121-080020-469d".into(),
        anchor: Anchor { mono_ns: 0, wall_ns: 1_763_712_020_000_000_000 },
        version: "0.1.0".into(),
        sources: texts.iter().map(|(name, text)| Source { name: (*name).into(), text: (*text).into() }).collect(),
        groups: groups
            .iter()
            .map(|(name, picks)| Group { name: (*name).into(), picks: picks.iter().map(pick).collect() })
            .collect(),
    }
}

fn logging() -> Import {
    let groups: [(&str, &[(usize, usize)]); 3] =
        [("plain", &[(0, 1), (0, 2)]), ("cronolog", &[(0, 3), (0, 4)]), ("buffered", &[(0, 5), (0, 6)])];
    imported(&[("kept/5.txt", LOGGING)], &groups)
}

/// One run of each setting, of four articles.
fn single() -> Import {
    let texts = [("1.txt", MEMORY), ("a/2.txt", PREFORK), ("3.txt", KEEP_ALIVE), ("b/2.txt", LIMITER)];
    let groups: [(&str, &[(usize, usize)]); 5] = [
        ("MaxClients 256", &[(0, 2)]),
        ("MaxClients 4", &[(0, 3)]),
        ("c 100", &[(1, 1)]),
        ("keep-alive", &[(2, 1)]),
        ("limiter", &[(3, 3)]),
    ];
    imported(&texts, &groups)
}

fn check(import: &Import, language: Language, expected: &ExpectFile) {
    let drawn = text::render(&ImportView::of(import, language), Look { width: 80, colour: Colour::None });
    for line in drawn.lines() {
        assert!(unicode_width::UnicodeWidthStr::width(line) <= 80, "too wide: {line}");
    }
    expected.assert_eq(&drawn);
}

#[test]
fn on_a_terminal() {
    check(&logging(), Language::English, &expect_file!["../golden/import-en-80.txt"]);
    check(&logging(), Language::Japanese, &expect_file!["../golden/import-ja-80.txt"]);
    check(&single(), Language::English, &expect_file!["../golden/import-single-en-80.txt"]);
    check(&single(), Language::Japanese, &expect_file!["../golden/import-single-ja-80.txt"]);
}

#[test]
fn as_json_it_keeps_to_the_schema() {
    let schema = include_str!("../../../../docs/schemas/import.schema.json");
    for import in [logging(), single()] {
        let view = ImportView::of(&import, Language::English);
        let document: Value = serde_json::from_str(&json::render(&view)).unwrap();
        assert_eq!(check_against(schema, &document), Vec::<String>::new());
        assert!(view.slips.iter().all(|slip| slip.sentence.id != "wordless"), "a slip without words");
    }
}

/// What comparisons say, in one line each.
fn check_compared(import: &Import, expected: &Expect) {
    let view = ImportView::of(import, Language::English);
    let told = |compared: &import::ComparedView| {
        let worth = compared.worth.iter().map(|sentence| format!("  {}", sentence.text));
        std::iter::once(compared.sentence.text.clone()).chain(worth).collect::<Vec<_>>().join("\n")
    };
    let limits = view.limits.iter().map(|sentence| format!("! {}", sentence.id));
    expected.assert_eq(&view.compared.iter().map(told).chain(limits).collect::<Vec<_>>().join("\n"));
}

#[test]
fn comparisons_claim_what_the_runs_support() {
    let texts = [("5.txt", LOGGING), ("2.txt", PREFORK)];
    let check = |groups: &[(&str, &[(usize, usize)])], expected: &Expect| {
        check_compared(&imported(&texts, groups), expected);
    };
    check(&[("plain", &[(0, 1), (0, 2)])], &expect![""]);
    check(
        &[("cronolog", &[(0, 3), (0, 4)]), ("buffered", &[(0, 5), (0, 6)])],
        &expect![[r#"
        buffered: 1.061 times the good requests per second of cronolog (+6.11 %).
          95 % interval 1.017 to 1.107 (Welch's t, runs: 2 and 2, p = 0.029).
        ! import-order
        ! import-sample"#]],
    );
    check(
        &[("one", &[(0, 1)]), ("two", &[(0, 5), (0, 6)])],
        &expect![[r#"
        two: 1.048 times the good requests per second of one (+4.79 %).
          One of the two is a single run, which supports no interval: how far its runs lie apart is not known.
        ! import-order
        ! import-sample"#]],
    );
    check(
        &[("one", &[(0, 1)]), ("other", &[(0, 5)])],
        &expect![[r#"
        other: 1.055 times the good requests per second of one (+5.51 %).
        ! import-order
        ! import-sample
        ! import-one-run-each"#]],
    );
    check(
        &[("c 100", &[(1, 1)]), ("c 15", &[(1, 2)])],
        &expect![[r#"
        c 15: 1.120 times the good requests per second of c 100 (+12.04 %).
          The loads differ too: connections 100 against 15.
        ! import-order
        ! import-sample
        ! import-one-run-each"#]],
    );
    check(
        &[("copies", &[(0, 1), (0, 1)]), ("too", &[(0, 5), (0, 5)])],
        &expect![[r#"
        too: 1.055 times the good requests per second of copies (+5.51 %).
          The runs of each group are equal to the last digit, which supports no interval: are they copies of one run?
        ! import-order
        ! import-sample"#]],
    );
}

#[test]
fn what_is_not_there_any_more_is_said() {
    let mut import = logging();
    import.groups[0].picks[0].line = 3;
    import.groups[1].picks[0].source = 9;
    let view = ImportView::of(&import, Language::English);
    let lost: Vec<_> = view.slips.iter().filter(|slip| slip.sentence.id == "import-lost").collect();
    assert!(lost.iter().any(|slip| slip.line == 3 && slip.source == "kept/5.txt"), "{lost:?}");
    assert_eq!((lost.len(), view.groups[0].reports.len(), view.groups[1].reports.len()), (2, 1, 1));
}
