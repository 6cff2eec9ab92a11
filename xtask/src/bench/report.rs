//! What was found, as Markdown and as CSV. Computes nothing but the shape of text.

use super::cases::Limit;
use super::statistics::Estimate;
use std::fmt::Write as _;

/// What a case is called, and what is measured in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Heading {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
}

/// One case, measured.
pub(super) struct Section {
    pub(super) heading: Heading,
    /// Paragraphs and tables.
    pub(super) body: Vec<String>,
    pub(super) judgements: Vec<Judgement>,
    /// Commands as they were run.
    pub(super) commands: Vec<String>,
    pub(super) raw: Vec<Raw>,
}

/// One number of one repetition.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Raw {
    pub(super) tool: String,
    /// From 1.
    pub(super) repetition: usize,
    /// From 1: which turn the tool had in its repetition.
    pub(super) position: usize,
    pub(super) measure: &'static str,
    pub(super) value: f64,
}

/// A goal and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Judgement {
    /// What is judged, as "webdyno/wrk, median".
    pub(super) what: String,
    /// None when there is no such figure, and then why.
    pub(super) found: Result<f64, String>,
    pub(super) limit: Limit,
}

impl Judgement {
    /// Whether the goal is met; none when that cannot be said.
    pub(super) fn met(&self) -> Option<bool> {
        let found = *self.found.as_ref().ok()?;
        Some(match self.limit {
            Limit::AtMost(limit) => found <= limit,
            Limit::Below(limit) => found < limit,
            Limit::AtLeast(limit) => found >= limit,
        })
    }

    fn line(&self) -> String {
        let (words, limit) = match self.limit {
            Limit::AtMost(limit) => ("at most", limit),
            Limit::Below(limit) => ("below", limit),
            Limit::AtLeast(limit) => ("at least", limit),
        };
        let what = &self.what;
        match (&self.found, self.met()) {
            (Ok(found), Some(true)) => format!("- met: {what} {words} {limit:.3}: {found:.3}"),
            (Ok(found), _) => {
                let (side, by) = if *found < limit { ("low", limit - found) } else { ("high", found - limit) };
                format!("- **not met**: {what} {words} {limit:.3}: {found:.3}, too {side} by {by:.3}")
            }
            (Err(why), _) => format!("- open: {what} {words} {limit:.3}: {why}"),
        }
    }
}

/// A Markdown table. A row that is too short is filled up.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| {
        let filled = (0..head.len()).map(|i| cells.get(i).map_or("", String::as_str).replace('|', "\\|"));
        format!("| {} |", filled.collect::<Vec<_>>().join(" | "))
    };
    let head_line = line(&head.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    // Names to the left, numbers to the right.
    let rule = format!("|---|{}", "---:|".repeat(head.len().saturating_sub(1)));
    let rows = rows.iter().map(|row| line(row));
    [head_line, rule].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

/// "1.06", and "[1.02, 1.09]" or why there is none.
pub(super) fn cells(estimate: Option<&Estimate>) -> [String; 2] {
    match estimate {
        None => ["".to_owned(), "".to_owned()],
        Some(Estimate { median, interval: None }) => [format!("{median:.3}"), "none".to_owned()],
        Some(Estimate { median, interval: Some(it) }) => {
            [format!("{median:.3}"), format!("[{:.3}, {:.3}]", it.low, it.high)]
        }
    }
}

/// The whole document: facts on top, then the goals of all cases, then the cases.
pub(super) fn markdown(title: &str, warnings: &[String], facts: &[(String, String)], sections: &[Section]) -> String {
    let mut text = format!("# {title}\n\n");
    for warning in warnings {
        let _ = writeln!(text, "**{warning}**\n");
    }
    let rows: Vec<Vec<String>> = facts.iter().map(|(name, value)| vec![name.clone(), value.clone()]).collect();
    // Facts are text: both columns to the left.
    let _ = writeln!(text, "{}\n", table(&["fact", "value"], &rows).replace("---:|", "---|"));
    let _ = writeln!(text, "## Goals\n\n{}\n", table(&["case", "met", "not met", "open"], &goals(sections)));
    for section in sections {
        let Heading { name, about } = section.heading;
        let _ = writeln!(text, "## {name}\n\n{about}.\n", about = capitalised(about));
        for paragraph in &section.body {
            let _ = writeln!(text, "{paragraph}\n");
        }
        if !section.judgements.is_empty() {
            let lines: Vec<String> = section.judgements.iter().map(Judgement::line).collect();
            let _ = writeln!(text, "Goals:\n\n{}\n", lines.join("\n"));
        }
        if !section.commands.is_empty() {
            let _ = writeln!(text, "Commands:\n\n```\n{}\n```\n", section.commands.join("\n"));
        }
    }
    format!("{}\n", text.trim_end())
}

fn goals(sections: &[Section]) -> Vec<Vec<String>> {
    let count = |section: &Section, met| section.judgements.iter().filter(|it| it.met() == met).count().to_string();
    let rows = sections.iter().filter(|section| !section.judgements.is_empty());
    rows.map(|it| vec![it.heading.name.to_owned(), count(it, Some(true)), count(it, Some(false)), count(it, None)])
        .collect()
}

/// With a capital first letter.
pub(super) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// One line per number of one repetition.
pub(super) fn csv(sections: &[Section]) -> String {
    let mut text = "case,tool,repetition,position,measure,value\n".to_owned();
    for section in sections {
        for Raw { tool, repetition, position, measure, value } in &section.raw {
            let tool =
                if tool.contains([',', '"']) { format!("\"{}\"", tool.replace('"', "\"\"")) } else { tool.clone() };
            let _ = writeln!(text, "{},{tool},{repetition},{position},{measure},{value}", section.heading.name);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::cases::CASES;
    use super::super::statistics::Interval;
    use super::*;
    use expect_test::expect;

    fn check(found: Result<f64, &str>, limit: Limit, expected: &str) {
        let judgement =
            Judgement { what: "webdyno/wrk, median".to_owned(), found: found.map_err(str::to_owned), limit };
        assert_eq!(judgement.line(), expected);
    }

    #[test]
    fn judgements() {
        check(Ok(0.999), Limit::Below(1.0), "- met: webdyno/wrk, median below 1.000: 0.999");
        check(Ok(1.0), Limit::Below(1.0), "- **not met**: webdyno/wrk, median below 1.000: 1.000, too high by 0.000");
        check(Ok(0.95), Limit::AtLeast(0.95), "- met: webdyno/wrk, median at least 0.950: 0.950");
        check(
            Ok(0.9),
            Limit::AtLeast(0.95),
            "- **not met**: webdyno/wrk, median at least 0.950: 0.900, too low by 0.050",
        );
        check(Ok(1.06), Limit::AtMost(1.06), "- met: webdyno/wrk, median at most 1.060: 1.060");
        check(
            Ok(1.11),
            Limit::AtMost(1.06),
            "- **not met**: webdyno/wrk, median at most 1.060: 1.110, too high by 0.050",
        );
        check(
            Err("webdyno did not run"),
            Limit::AtMost(1.06),
            "- open: webdyno/wrk, median at most 1.060: webdyno did not run",
        );
    }

    #[test]
    fn estimates() {
        let interval = Some(Interval { low: 0.9, high: 1.1, rank: 1, confidence: 0.98 });
        assert_eq!(cells(Some(&Estimate { median: 1.0, interval })), ["1.000", "[0.900, 1.100]"]);
        assert_eq!(cells(Some(&Estimate { median: 1.0, interval: None })), ["1.000", "none"]);
        assert_eq!(cells(None), ["", ""]);
    }

    #[test]
    fn a_document() {
        let judgement =
            Judgement { what: "webdyno/bare, median".to_owned(), found: Ok(1.0), limit: Limit::AtMost(1.06) };
        let raw =
            |tool: &str| Raw { tool: tool.to_owned(), repetition: 1, position: 2, measure: "requests", value: 58552.0 };
        let rows = [vec!["bare".to_owned(), "5.35".to_owned()], vec!["hey".to_owned()]];
        let section = Section {
            heading: CASES[0].heading(),
            body: vec![table(&["tool", "us/request", "ratio"], &rows)],
            judgements: vec![judgement],
            commands: vec!["bare keep-alive 80 / 100 2".to_owned()],
            raw: vec![raw("bare"), raw("bare, \"kept\"")],
        };
        let facts = [("kernel".to_owned(), "6.18".to_owned())];
        let sections = [section];
        expect![[r"
            # Load

            **Not to be published.**

            | fact | value |
            |---|---|
            | kernel | 6.18 |

            ## Goals

            | case | met | not met | open |
            |---|---:|---:|---:|
            | keep-alive-100 | 1 | 0 | 0 |

            ## keep-alive-100

            100 connections kept open, a body of 44 bytes.

            | tool | us/request | ratio |
            |---|---:|---:|
            | bare | 5.35 |  |
            | hey |  |  |

            Goals:

            - met: webdyno/bare, median at most 1.060: 1.000

            Commands:

            ```
            bare keep-alive 80 / 100 2
            ```
        "]]
        .assert_eq(&markdown("Load", &["Not to be published.".to_owned()], &facts, &sections));
        expect![[r#"
            case,tool,repetition,position,measure,value
            keep-alive-100,bare,1,2,requests,58552
            keep-alive-100,"bare, ""kept""",1,2,requests,58552
        "#]]
        .assert_eq(&csv(&sections));
    }
}
