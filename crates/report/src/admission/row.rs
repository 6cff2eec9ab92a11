//! A server's admission in lines that grow downwards: one for each group, or all groups beside the row of a watch.
//!
//! Like the columns of a watch they are the same in every language.

use crate::escape::plain;
use crate::text::layout::width;
use crate::view::table::NOTHING;
use model::admission::{Admission, Counts, Group};

/// Between two groups beside a row.
const GAP: &str = "  ";
/// Rates too small to be seen in a row.
const LEAST: f64 = 0.005;

/// What stands over [`rows`].
#[must_use]
pub fn headings(status: &Admission) -> String {
    let names = names(status);
    format!(
        "{:8}  {:names$}  {:>7}  {:>6}  {:>6}  {:>6}  {:>7}  {:>8}  {:>8}  {:>8}  {:>8}\n",
        "time", "group", "mode", "limit", "held", "full", "waiting", "in/s", "queued/s", "reject/s", "timeout/s"
    )
}

/// A line for each group, with the rates since an earlier look.
#[must_use]
pub fn rows(now: &Admission, before: Option<&Admission>, clock: &str) -> String {
    let names = names(now);
    let row = |group: &Group| {
        let rate = |count: fn(&Counts) -> u64| {
            let rate = before.and_then(|before| now.rate(before, &group.name, count));
            rate.map_or_else(|| NOTHING.to_owned(), |rate| format!("{rate:.1}"))
        };
        let limit = limit(group).unwrap_or_else(|| "none".to_owned());
        format!(
            "{clock:8}  {:names$}  {:>7}  {limit:>6}  {:>6}  {:>6}  {:>7}  {:>8}  {:>8}  {:>8}  {:>8}\n",
            plain(&group.name),
            plain(&group.mode),
            group.held,
            group.fullest,
            group.waiting,
            rate(Counts::let_in),
            rate(|counts| counts.queued),
            rate(|counts| counts.rejected),
            rate(|counts| counts.timeout)
        )
    };
    now.groups.iter().map(row).collect()
}

/// The fullest groups first, as many as there is room for: `php 4/4 +2 3.50/s away` is four of four permits held in the fullest entry,
/// two requests that wait, and so many a second that are turned away.
#[must_use]
pub fn beside(now: &Admission, before: Option<&Admission>, room: usize) -> String {
    let mut groups: Vec<&Group> = now.groups.iter().collect();
    groups.sort_by(|a, b| b.waiting.cmp(&a.waiting).then(b.fullness().total_cmp(&a.fullness())));
    let mut text = String::new();
    for group in groups {
        let told = told(group, before.and_then(|before| now.rate(before, &group.name, Counts::turned_away)));
        let gap = if text.is_empty() { "" } else { GAP };
        if width(&text) + width(gap) + width(&told) > room {
            break;
        }
        text = text + gap + &told;
    }
    text
}

fn told(group: &Group, away: Option<f64>) -> String {
    let name = plain(&group.name);
    if group.mode == "off" {
        return format!("{name} off");
    }
    let limit = limit(group).map_or_else(String::new, |limit| format!("/{limit}"));
    let waiting = if group.waiting > 0 { format!(" +{}", group.waiting) } else { String::new() };
    let away = away.filter(|away| *away >= LEAST).map_or_else(String::new, |away| format!(" {away:.2}/s away"));
    format!("{name} {}{limit}{waiting}{away}", group.fullest)
}

fn limit(group: &Group) -> Option<String> {
    group.limit.map(|limit| limit.to_string())
}

/// Columns that the longest name takes.
fn names(status: &Admission) -> usize {
    status.groups.iter().map(|group| group.name.chars().count()).max().unwrap_or(0).max(5)
}
