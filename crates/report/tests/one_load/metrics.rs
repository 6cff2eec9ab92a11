//! A strict reader of OpenMetrics text: the rules of the format (1.0) that a writer can break, one by one.

use std::collections::{BTreeMap, BTreeSet};

/// A family as its head announced it.
struct Family {
    name: String,
    kind: String,
}

/// Panics at the first broken rule.
#[track_caller]
pub(super) fn check(text: &str) {
    let body = text.strip_suffix("# EOF\n").expect("ends with its end mark and a line break");
    assert!(!body.contains("# EOF"), "nothing stands behind the end mark");
    let mut families: Vec<Family> = Vec::new();
    let mut series = BTreeSet::new();
    let mut histograms: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let mut described = BTreeSet::new();
    for line in body.lines() {
        assert!(!line.is_empty() && line.trim() == line, "no empty line, no blanks around: {line:?}");
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (word, name, rest) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            head(&mut families, &mut described, word, name, rest);
            continue;
        }
        let (name, labels, value) = sample(line);
        let family = families.last().expect("a sample has a family above it");
        assert!(series.insert((name.clone(), labels.clone())), "a series stands once: {line}");
        belongs(family, &name, &labels, value);
        if family.kind == "histogram" {
            collect(&mut histograms, family, &name, &labels, value);
        }
    }
    histograms.values().for_each(|points| assert!(!points.is_empty()));
}

fn head(families: &mut Vec<Family>, described: &mut BTreeSet<(String, String)>, word: &str, name: &str, rest: &str) {
    assert!(described.insert((word.to_owned(), name.to_owned())), "{word} of {name} stands once");
    match word {
        "TYPE" => {
            assert!(["counter", "gauge", "histogram", "info"].contains(&rest), "{rest}");
            assert!(is_name(name), "{name}");
            // A family's name and what its kind adds to it must not meet another's.
            let kind = rest.to_owned();
            assert!(kind != "counter" || !name.ends_with("_total"), "{name}");
            families.push(Family { name: name.to_owned(), kind });
        }
        "UNIT" => {
            assert!(name.ends_with(&format!("_{rest}")), "the name {name} ends with its unit {rest}");
            assert!(["seconds", "bytes"].contains(&rest), "base units only: {rest}");
        }
        "HELP" => assert!(!rest.is_empty()),
        _ => panic!("no such line: {word}"),
    }
    assert_eq!(families.last().map(|family| family.name.as_str()), Some(name), "what describes a family is together");
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let starts = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    starts && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

type Labels = Vec<(String, String)>;

/// Name, labels and value of a line such as `a_total{b="c"} 1`.
fn sample(line: &str) -> (String, Labels, f64) {
    let end = line.find(['{', ' ']).unwrap();
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (key, after) = rest.split_once("=\"").expect("a label has a quoted value");
            assert!(is_name(key), "{line}");
            let (value, after) = quoted(after);
            assert!(!labels.iter().any(|(other, _)| other == key), "a label stands once: {line}");
            labels.push((key.to_owned(), value));
            match after.strip_prefix(',') {
                Some(more) => rest = more,
                None => {
                    rest = after.strip_prefix('}').expect("labels are closed");
                    break;
                }
            }
        }
    }
    let value = rest.strip_prefix(' ').expect("one blank before the value");
    assert!(!value.contains(' '), "no time stamp: {line}");
    (name.to_owned(), labels, value.parse().unwrap())
}

/// What stands before the closing quote, unescaped, and what is behind it.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => match characters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, c @ ('\\' | '"'))) => value.push(c),
                other => panic!("no such escape: {other:?}"),
            },
            c => value.push(c),
        }
    }
    panic!("not closed: {text}")
}

fn belongs(family: &Family, name: &str, labels: &Labels, value: f64) {
    let end = name.strip_prefix(family.name.as_str()).unwrap_or_else(|| panic!("{name} stands below {}", family.name));
    let allowed: &[&str] = match family.kind.as_str() {
        "counter" => &["_total"],
        "histogram" => &["_bucket", "_sum", "_count"],
        "info" => &["_info"],
        _ => &[""],
    };
    assert!(allowed.contains(&end), "{name} of a {}", family.kind);
    assert_eq!(labels.iter().any(|(key, _)| key == "le"), end == "_bucket", "{name}");
    assert!(value >= 0.0 && value.is_finite(), "{name} {value}");
    assert!(family.kind != "info" || (value - 1.0).abs() < f64::EPSILON);
}

/// Buckets ascend, cumulate, end at infinity, and agree with the count that follows them.
fn collect(
    histograms: &mut BTreeMap<String, Vec<(f64, f64)>>,
    family: &Family,
    name: &str,
    labels: &Labels,
    value: f64,
) {
    let points = histograms.entry(family.name.clone()).or_default();
    let last = points.last().copied();
    match (name.ends_with("_bucket"), labels.as_slice()) {
        (true, [(_, le)]) => {
            let bound: f64 = if le == "+Inf" { f64::INFINITY } else { le.parse().unwrap() };
            assert!(le == "+Inf" || le.contains(['.', 'e']), "a bound is written as a fraction: {le}");
            assert!(last.is_none_or(|(before, count)| before < bound && count <= value), "{name} {le}");
            points.push((bound, value));
        }
        (true, other) => panic!("{other:?}"),
        (false, _) => {
            assert_eq!(last.map(|(bound, _)| bound), Some(f64::INFINITY), "the last bucket is infinite");
            let (_, count) = last.unwrap();
            assert!(!name.ends_with("_count") || (count - value).abs() < f64::EPSILON, "{name}");
        }
    }
}
