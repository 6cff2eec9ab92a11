//! The words of a control file, judged before they are written into it: a file with a mistake is refused as a whole.
//!
//! What fits together (a limit between `min` and `max`, a cost within the budget) is the server's to judge.

use anyhow::{Context, bail, ensure};
use model::admission::{Admission, Group};

/// Largest limit.
const NUMBER: u64 = 1_000_000;
/// Largest queue.
const QUEUE: u64 = 4096;
/// Most workers that may wait.
const WORKERS: u64 = 4096;
const HOUR_MS: u64 = 3_600_000;

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Group,
    Memory,
    Workers,
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) key: String,
    pub(super) value: String,
}

/// What that name means to this server.
pub(super) fn subject(name: &str, status: &Admission) -> anyhow::Result<Subject> {
    match name {
        "memory" => Ok(Subject::Memory),
        "queue-workers" => Ok(Subject::Workers),
        "*" => Ok(Subject::Group),
        _ if status.groups.iter().any(|group| group.name == name) => Ok(Subject::Group),
        _ => {
            let known: Vec<&str> = status.groups.iter().map(|group| group.name.as_str()).collect();
            let known = if known.is_empty() { "no group".to_owned() } else { known.join(", ") };
            bail!("there is no group `{name}`; the server has {known}, and `memory`, `queue-workers` and `*`")
        }
    }
}

/// Reads `limit=8 queue=20`.
pub(super) fn read(subject: Subject, typed: &[String]) -> anyhow::Result<Vec<Word>> {
    let mut words: Vec<Word> = Vec::new();
    for text in typed {
        let (key, value) = text.split_once('=').with_context(|| format!("`{text}` is not of the form KEY=VALUE"))?;
        let (_, allowed, is_right) = rules(subject)
            .find(|(known, ..)| *known == key)
            .with_context(|| format!("`{key}` cannot be changed here; what can is {}", keys(subject)))?;
        ensure!(is_right(value), "{key} takes {allowed}, not `{value}`");
        ensure!(words.iter().all(|word| word.key != key), "`{key}` is said twice");
        words.push(Word { key: key.to_owned(), value: value.to_owned() });
    }
    Ok(words)
}

/// Whether a control file of that server may say this of that name.
pub(super) fn is_known(status: &Admission, name: &str, key: &str) -> bool {
    subject(name, status).is_ok_and(|subject| rules(subject).any(|(known, ..)| known == key))
}

/// Whether a group has that value. Sizes are rounded by the server; those are not compared.
pub(super) fn is_shown(word: &Word, group: &Group) -> bool {
    let number = || word.value.parse::<u64>().ok();
    match word.key.as_str() {
        "limit" if word.value == "none" => group.configured_limit.is_none(),
        // The memory's has a unit, or it is bytes and rounded, too.
        "limit" if group.name == "memory" => true,
        "limit" => group.configured_limit == number(),
        "queue" => Some(group.queue) == number(),
        "timeout" => Some(group.timeout_ms) == duration_ms(&word.value),
        "order" => group.order == word.value,
        "status" => Some(group.status) == number(),
        "mode" => group.mode == word.value,
        "min" => group.min == number(),
        "max" => group.max == number(),
        _ => true,
    }
}

/// A key, what it takes in words, and whether a value is that.
type Rule = (&'static str, &'static str, fn(&str) -> bool);

const GROUP: [Rule; 9] = [
    ("limit", "a number from 1 to 1000000, or `none`", |value| value == "none" || number(value, 1, NUMBER)),
    ("queue", "a number from 0 to 4096", |value| number(value, 0, QUEUE)),
    ("timeout", "a time from 1ms to 1h, such as 3s or 500ms", |value| {
        duration_ms(value).is_some_and(|ms| (1..=HOUR_MS).contains(&ms))
    }),
    ("order", "fifo, lifo or adaptive", |value| ["fifo", "lifo", "adaptive"].contains(&value)),
    ("status", "a number from 400 to 599", |value| number(value, 400, 599)),
    ("cost", "a size such as 200M, `none`, `learn` or learn:SIZE", is_cost),
    ("mode", "off, observe or enforce", |value| ["off", "observe", "enforce"].contains(&value)),
    ("min", "a number from 1 to 1000000", |value| number(value, 1, NUMBER)),
    ("max", "a number from 1 to 1000000", |value| number(value, 1, NUMBER)),
];

const MEMORY_LIMIT: Rule = ("limit", "a size such as 800M, or `none`", |value| value == "none" || is_size(value, 1));
const WORKERS_LIMIT: Rule =
    ("limit", "a number from 1 to 4096, or `none`", |value| value == "none" || number(value, 1, WORKERS));

fn rules(subject: Subject) -> impl Iterator<Item = Rule> {
    let keys: &[&str] = match subject {
        Subject::Group => &["limit", "queue", "timeout", "order", "status", "cost", "mode", "min", "max"],
        Subject::Memory => &["limit", "order", "mode"],
        Subject::Workers => &["limit"],
    };
    let rules = GROUP.into_iter().filter(|(key, ..)| keys.contains(key));
    rules.map(move |rule| match subject {
        Subject::Memory if rule.0 == "limit" => MEMORY_LIMIT,
        Subject::Workers if rule.0 == "limit" => WORKERS_LIMIT,
        _ => rule,
    })
}

fn keys(subject: Subject) -> String {
    rules(subject).map(|(key, ..)| key).collect::<Vec<_>>().join(", ")
}

/// Digits and nothing else.
fn digits(text: &str) -> Option<u64> {
    let only = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    only.then(|| text.parse().ok()).flatten()
}

fn number(text: &str, least: u64, most: u64) -> bool {
    digits(text).is_some_and(|number| (least..=most).contains(&number))
}

fn duration_ms(text: &str) -> Option<u64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let factor = match unit {
        "" | "s" => 1000,
        "ms" => 1,
        "m" | "min" => 60_000,
        "h" => HOUR_MS,
        _ => return None,
    };
    digits(text.strip_suffix(unit)?)?.checked_mul(factor)
}

/// At most 1 TiB less 64 KiB, which is what a permit can say.
fn is_size(text: &str, least: u64) -> bool {
    let (number, power) = match text.char_indices().last() {
        Some((at, letter)) if letter.is_ascii_alphabetic() => match letter.to_ascii_lowercase() {
            'k' => (&text[..at], 10),
            'm' => (&text[..at], 20),
            'g' => (&text[..at], 30),
            't' => (&text[..at], 40),
            _ => return false,
        },
        _ => (text, 0),
    };
    let bytes = digits(number).and_then(|number| number.checked_mul(1 << power));
    bytes.is_some_and(|bytes| (least..=0xff_ffff << 16).contains(&bytes))
}

fn is_cost(text: &str) -> bool {
    match text.strip_prefix("learn:") {
        Some(size) => is_size(size, 0),
        None => text == "none" || text == "learn" || is_size(text, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(subject: Subject, typed: &str, expected: Result<(), &str>) {
        let typed: Vec<String> = typed.split(' ').map(str::to_owned).collect();
        let found = read(subject, &typed).map(|words| assert_eq!(words.len(), typed.len()));
        assert_eq!(found.map_err(|error| error.to_string()), expected.map_err(str::to_owned), "{typed:?}");
    }

    #[test]
    fn words_are_judged_one_by_one() {
        use Subject::{Group, Memory, Workers};
        let words = "limit=8 queue=0 timeout=500ms order=adaptive status=429 cost=learn:200M mode=observe min=1 max=16";
        check(Group, words, Ok(()));
        check(Group, "limit=none timeout=3 cost=none", Ok(()));
        check(Memory, "limit=800M mode=observe", Ok(()));
        check(Workers, "limit=4096", Ok(()));
        check(Workers, "limit=none", Ok(()));
        check(Workers, "limit=0", Err("limit takes a number from 1 to 4096, or `none`, not `0`"));
        check(Workers, "limit=4097", Err("limit takes a number from 1 to 4096, or `none`, not `4097`"));
        check(Group, "limit=0", Err("limit takes a number from 1 to 1000000, or `none`, not `0`"));
        for (key, least, most) in [("limit", 1, NUMBER), ("min", 1, NUMBER), ("max", 1, NUMBER), ("queue", 0, QUEUE)] {
            check(Group, &format!("{key}={most}"), Ok(()));
            let refused = read(Group, &[format!("{key}={}", most + 1)]).expect_err("too many").to_string();
            assert!(refused.starts_with(&format!("{key} takes a number from {least} to {most}")), "{refused}");
        }
        check(Group, "limit", Err("`limit` is not of the form KEY=VALUE"));
        check(Group, "queue=-1", Err("queue takes a number from 0 to 4096, not `-1`"));
        check(Group, "timeout=2h", Err("timeout takes a time from 1ms to 1h, such as 3s or 500ms, not `2h`"));
        check(Group, "mode=on", Err("mode takes off, observe or enforce, not `on`"));
        check(Group, "cost=200MB", Err("cost takes a size such as 200M, `none`, `learn` or learn:SIZE, not `200MB`"));
        check(Group, "cost=2000G", Err("cost takes a size such as 200M, `none`, `learn` or learn:SIZE, not `2000G`"));
        check(Group, "limit=1 limit=2", Err("`limit` is said twice"));
        check(
            Group,
            "key=file",
            Err("`key` cannot be changed here; what can is limit, queue, timeout, order, status, cost, mode, min, max"),
        );
        check(Memory, "limit=8x", Err("limit takes a size such as 800M, or `none`, not `8x`"));
        check(Memory, "status=429", Err("`status` cannot be changed here; what can is limit, order, mode"));
        check(Workers, "queue=2", Err("`queue` cannot be changed here; what can is limit"));
    }
}
