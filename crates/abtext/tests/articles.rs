//! What five Japanese articles quote of ab, with the lines around it: every figure, and every slip.
//!
//! The samples are the outputs and the authors' words about them only; `tests/golden` holds what is read of them.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml excepts only test functions")]

use abtext::{Document, Family, Field, Report, Slip, What, headers, read};
use expect_test::{Expect, ExpectFile, expect, expect_file};
use std::fmt::Write;

fn sample(name: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/data/{name}.txt", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Everything that was read, one line each.
fn shown(document: &Document) -> String {
    let mut out = String::new();
    for (index, report) in document.reports.iter().enumerate() {
        let (number, first, last) = (index + 1, report.first_line(), report.last_line());
        writeln!(out, "report {number}: lines {first}-{last}, {:?}", report.family()).unwrap();
        if let Some(command) = &report.command {
            writeln!(out, "  {}: {}", command.line, command.written).unwrap();
        }
        for figure in &report.figures {
            let number = figure.number.map_or_else(|| "text".to_owned(), |number| number.value.to_string());
            writeln!(out, "  {:>3} {} `{}` = {number}", figure.line, figure.field, figure.written).unwrap();
        }
        if let Some(rate) = report.good_per_second() {
            writeln!(out, "  good {} at {rate:.4} per second", report.good().unwrap()).unwrap();
        }
        if let Some(first) = report.first_skipped {
            writeln!(out, "  skipped {}, the first in line {first}", report.skipped).unwrap();
        }
        report.slips().iter().for_each(|slip| told(&mut out, slip));
    }
    for stated in &document.stated {
        writeln!(out, "stated in line {}: {}", stated.line, stated.rate.value).unwrap();
    }
    let reports: Vec<&Report> = document.reports.iter().collect();
    headers(&reports).iter().chain(&document.claims).for_each(|slip| told(&mut out, slip));
    out
}

fn told(out: &mut String, slip: &Slip) {
    writeln!(out, "  ! {:?} in line {}: {}", slip.weight(), slip.line, cut(&format!("{:?}", slip.what))).unwrap();
}

/// Numbers with no more than six digits behind their points.
fn cut(text: &str) -> String {
    let mut behind = None;
    let keep = |c: &char| {
        behind = match (c, behind) {
            ('.', _) => Some(0),
            ('0'..='9', Some(digits)) => Some(digits + 1),
            _ => None,
        };
        behind.is_none_or(|digits| digits <= 6)
    };
    text.chars().filter(keep).collect()
}

fn check(name: &str, expected: &ExpectFile) -> Document {
    let document = read(&sample(name)).unwrap();
    expected.assert_eq(&shown(&document));
    document
}

fn whats(document: &Document) -> Vec<What> {
    document.reports.iter().flat_map(Report::slips).chain(document.claims.clone()).map(|slip| slip.what).collect()
}

#[test]
fn memory_and_maxclients() {
    let document = check("1-memory", &expect_file!["golden/1-memory.txt"]);
    let rates: Vec<_> = document.reports.iter().filter_map(|report| report.value(Field::Rate)).collect();
    assert_eq!(rates, [11.40, 1.49, 10.94, 11.03]);
}

#[test]
fn prefork_and_php() {
    let document = check("2-prefork", &expect_file!["golden/2-prefork.txt"]);
    let good = document.reports[0].good_per_second().unwrap();
    assert!((good - 1.339).abs() < 0.0005, "{good}");
}

#[test]
fn keep_alive() {
    let document = check("3-keepalive", &expect_file!["golden/3-keepalive.txt"]);
    assert_eq!((document.reports.len(), document.reports[0].family()), (1, None));
}

#[test]
fn limiter() {
    let document = check("4-limiter", &expect_file!["golden/4-limiter.txt"]);
    let unused = whats(&document).iter().filter(|what| matches!(what, What::KeepAliveUnused { .. })).count();
    assert_eq!(unused, 3);
}

#[test]
fn access_logs() {
    let document = check("5-logging", &expect_file!["golden/5-logging.txt"]);
    assert_eq!(document.reports.len(), 6);
    let seconds = document.reports[3].seconds().unwrap();
    assert!(seconds.unpadded && (seconds.range.low - 12.072_722).abs() < 1e-9);
}

/// What the ab of Apache 2.4.68 printed about a small server: only what is ab's own, and what any ab must be asked.
#[test]
fn today() {
    let check = |name: &str, figures: usize, expected: &Expect| {
        let document = read(&sample(name)).unwrap();
        let report = &document.reports[0];
        assert_eq!((report.family(), document.reports.len(), report.skipped), (Some(Family::Today), 1, 0), "{name}");
        let slips: Vec<String> = report.slips().iter().map(|slip| cut(&format!("{:?}", slip.what))).collect();
        expected.assert_eq(&format!("{slips:#?}"));
        assert_eq!(report.figures.len(), figures, "{name}");
    };
    check("today-plain", 45, &expect!["[]"]);
    check("today-short", 38, &expect!["[]"]);
    check(
        "today-bad",
        37,
        &expect![[r#"
            [
                "FailuresInRate { printed: 3296.88, good_rate: 2807.244356, good: 86.0, complete: 101.0 }",
            ]"#]],
    );
    check(
        "today-length",
        50,
        &expect![[r#"
            [
                "FailuresInRate { printed: 2725.41, good_rate: 2362.022, good: 52.0, complete: 60.0 }",
            ]"#]],
    );
    check("today-post", 48, &expect!["[]"]);
}

/// Copied over pages and terminals: the same is read.
#[test]
fn wide_letters_and_other_line_numbers_change_nothing() {
    let wide = |c: char| match c {
        '!'..='~' => char::from_u32(c as u32 + 0xfee0).unwrap(),
        ' ' => '\u{3000}',
        c => c,
    };
    for name in ["1-memory", "2-prefork", "4-limiter"] {
        let plain = sample(name);
        let expected = read(&plain).unwrap();
        let numbered = |separator: &str| {
            let lines = plain.lines().enumerate();
            lines.map(|(index, line)| format!("{:>4}{separator} {line}\r\n", index + 1)).collect::<String>()
        };
        let text: String = plain.chars().map(wide).collect();
        assert_eq!(read(&text).unwrap(), expected, "{name} in wide letters");
        for separator in [".", ":", " |", ")", ""] {
            let found = read(&numbered(separator)).unwrap();
            let figures = |document: &Document| document.reports.iter().map(|r| r.figures.clone()).collect::<Vec<_>>();
            assert_eq!(figures(&found), figures(&expected), "{name} numbered with `{separator}`");
        }
    }
}
