//! The admission of a server, as its `status.json` tells it: what is held, what waits, what was turned away.
//!
//! [`AdmissionView::of`] arranges one look, or two for the rates between them; `text` draws it for a terminal, `row` as one line for
//! each group. Ages are told by the caller's clock: nothing here knows what time it is.

pub mod row;
pub mod text;

use crate::language::{Catalogue, Language, Sentence};
use crate::view::table::NOTHING;
use crate::view::{Row, RowKind, Table};
use jiff::Timestamp;
use model::admission::{Admission, Bound, Counts, Group};

/// A status older than this is that of a server that is gone, or of a controller that is stuck: it writes each second.
pub const STALE_S: f64 = 5.0;

/// What is looked at, and how.
#[derive(Debug, Clone, Copy)]
pub struct Looked<'a> {
    /// The newest look.
    pub now: &'a Admission,
    /// An earlier one of the same server, for the rates.
    pub before: Option<&'a Admission>,
    /// Where it stands.
    pub file: &'a str,
    /// Seconds since 1970.
    pub clock: f64,
    /// The single files, hosts and clients, too.
    pub entries: bool,
}

/// A server's admission in words.
#[derive(Debug, Clone)]
pub struct AdmissionView {
    /// The language of every sentence in it.
    pub language: Language,
    /// Whose it is.
    pub server: Sentence,
    /// Where that was read.
    pub file: Sentence,
    /// What must be known first.
    pub alarms: Vec<Sentence>,
    /// The memory budget and the workers that wait.
    pub room: Vec<Sentence>,
    /// Its groups, printed.
    pub table: Table,
    /// Single entries, in words.
    pub entries: Vec<Sentence>,
}

impl AdmissionView {
    /// Arranges a look.
    #[must_use]
    pub fn of(looked: &Looked<'_>, language: Language) -> AdmissionView {
        let words = Catalogue::of(language);
        AdmissionView {
            language,
            server: server(looked, &words),
            file: words.say("admission-file", &[("file", looked.file.into())]),
            alarms: alarms(looked, &words),
            room: room(looked.now, &words),
            table: table(looked, &words),
            entries: if looked.entries { entries(looked.now, &words) } else { Vec::new() },
        }
    }
}

/// Whether nobody has written it for a while; what was written well ahead of the clock is from before that was set back.
#[must_use]
pub fn is_stale(status: &Admission, clock: f64) -> bool {
    status.age_s(clock).abs() > STALE_S
}

fn server(looked: &Looked<'_>, words: &Catalogue) -> Sentence {
    let Admission { module, server_pid, started, written, .. } = looked.now;
    let pid = server_pid.map_or_else(|| NOTHING.to_owned(), |pid| pid.to_string());
    let mut arguments = vec![("module", module.as_str().into()), ("pid", pid.into())];
    let Some(started) = *started else { return words.say("admission-server", &arguments) };
    let since = Timestamp::from_millisecond((started * 1e3) as i64).unwrap_or_default();
    let since = since.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    arguments.extend([("since", since.into()), ("length", length(written - started).into())]);
    words.say("admission-server-since", &arguments)
}

/// A length of time that may be days.
fn length(seconds: f64) -> String {
    match seconds.max(0.0) {
        s if s < 120.0 => units::short_duration(s * 1e9),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} d", s / 86_400.0),
    }
}

fn alarms(looked: &Looked<'_>, words: &Catalogue) -> Vec<Sentence> {
    let status = looked.now;
    let mut alarms = Vec::new();
    if is_stale(status, looked.clock) {
        let age = status.age_s(looked.clock);
        let id = if age < 0.0 { "admission-ahead" } else { "admission-stale" };
        alarms.push(words.say(id, &[("age", length(age.abs()).into())]));
    }
    if let Some(error) = &status.control_error {
        let file = status.control_file.as_deref().unwrap_or(NOTHING);
        alarms.push(words.say("admission-refused", &[("file", file.into()), ("error", error.as_str().into())]));
    }
    let engine = match status.engine.as_deref() {
        Some("observe") => Some("admission-engine-observe"),
        Some("off") => Some("admission-engine-off"),
        Some("mixed") => Some("admission-engine-mixed"),
        _ => None,
    };
    alarms.extend(engine.map(|id| words.say(id, &[])));
    let troubles = status.troubles;
    let told = [
        ("admission-table-full", troubles.table_full),
        ("admission-cells-full", troubles.cells_full),
        ("admission-owners-full", troubles.owners_full),
        ("admission-no-memory", troubles.no_memory),
    ];
    alarms.extend(told.into_iter().filter(|(_, n)| *n > 0).map(|(id, n)| words.say(id, &[("n", n.into())])));
    alarms
}

fn room(status: &Admission, words: &Catalogue) -> Vec<Sentence> {
    let (budget, workers) = (&status.budget, &status.queue_workers);
    let memory = budget.limit.map(|limit| {
        let (held, limit) = (units::short_bytes(budget.held), units::short_bytes(limit));
        let arguments = [("held", held.into()), ("limit", limit.into()), ("waiting", budget.waiting.into())];
        words.say("admission-memory", &arguments)
    });
    let waiting = workers
        .limit
        .map(|limit| words.say("admission-workers", &[("held", workers.held.into()), ("limit", limit.into())]));
    memory.into_iter().chain(waiting).collect()
}

/// The groups as columns. Figures that are nought in all of them and need not be known are left out.
fn table(looked: &Looked<'_>, words: &Catalogue) -> Table {
    let groups = &looked.now.groups;
    let mut rows = Vec::new();
    let mut add = |id: &str, figure: &dyn Fn(&Group) -> String| {
        rows.push(Row { kind: RowKind::Rate, label: words.word(id), figures: groups.iter().map(figure).collect() });
    };
    add("admission-row-mode", &|group| group.mode.clone());
    add("admission-row-limit", &|group| limit(group, words));
    add("admission-row-held", &|group| group.held.to_string());
    add("admission-row-fullest", &|group| group.fullest.to_string());
    add("admission-row-waiting", &|group| group.waiting.to_string());
    for (id, count) in COUNTS {
        if ALWAYS.contains(&id) || groups.iter().any(|group| count(&group.counts) > 0) {
            add(id, &|group| count(&group.counts).to_string());
        }
    }
    add("admission-row-let-in-rate", &|group| printed(rate(looked, group, Counts::let_in)));
    add("admission-row-away-rate", &|group| printed(rate(looked, group, Counts::turned_away)));
    add("admission-row-hold-mean", &|group| {
        group.service.mean_us().map_or_else(|| NOTHING.to_owned(), |us| units::short_duration(us * 1e3))
    });
    add("admission-row-hold-p50", &|group| bound(group.service.percentile(50)));
    add("admission-row-hold-p99", &|group| bound(group.service.percentile(99)));
    add("admission-row-wait-p50", &|group| bound(group.wait.percentile(50)));
    add("admission-row-wait-p99", &|group| bound(group.wait.percentile(99)));
    let notes = if groups.is_empty() {
        vec![words.say("admission-no-groups", &[])]
    } else {
        let rates = if looked.before.is_some() { "admission-note-rates-between" } else { "admission-note-rates" };
        vec![words.say(rates, &[]), words.say("admission-note", &[])]
    };
    Table { heads: groups.iter().map(|group| group.name.clone()).collect(), rows, notes }
}

/// Something that is counted, by the id of its row.
type Count = (&'static str, fn(&Counts) -> u64);

const COUNTS: [Count; 11] = [
    ("admission-row-admitted", |counts| counts.admitted),
    ("admission-row-queued", |counts| counts.queued),
    ("admission-row-rejected", |counts| counts.rejected),
    ("admission-row-timeout", |counts| counts.timeout),
    ("admission-row-gone", |counts| counts.gone),
    ("admission-row-would-reject", |counts| counts.would_reject),
    ("admission-row-would-queue", |counts| counts.would_queue),
    ("admission-row-open", |counts| counts.open),
    ("admission-row-bypass", |counts| counts.bypass),
    ("admission-row-reaped", |counts| counts.reaped),
    ("admission-row-long-hold", |counts| counts.long_hold),
];
const ALWAYS: [&str; 5] = [
    "admission-row-admitted",
    "admission-row-queued",
    "admission-row-rejected",
    "admission-row-timeout",
    "admission-row-reaped",
];

/// Since the earlier look, or since counting began.
fn rate(looked: &Looked<'_>, group: &Group, count: fn(&Counts) -> u64) -> Option<f64> {
    match looked.before {
        Some(before) => looked.now.rate(before, &group.name, count),
        None => looked.now.mean_rate(group, count),
    }
}

fn printed(rate: Option<f64>) -> String {
    rate.map_or_else(|| NOTHING.to_owned(), |rate| units::si(rate).print(rate))
}

/// What is in force, and what is configured where that differs.
fn limit(group: &Group, words: &Catalogue) -> String {
    let told = |limit: Option<u64>| limit.map_or_else(|| words.word("admission-none"), |limit| limit.to_string());
    match (told(group.limit), told(group.configured_limit)) {
        (now, configured) if now == configured => now,
        (now, configured) => format!("{now} ({configured})"),
    }
}

fn bound(bound: Option<Bound>) -> String {
    match bound {
        None => NOTHING.to_owned(),
        Some(Bound::Below(us)) => format!("< {}", units::short_duration(us as f64 * 1e3)),
        Some(Bound::AtLeast(us)) => format!("≥ {}", units::short_duration(us as f64 * 1e3)),
    }
}

fn entries(status: &Admission, words: &Catalogue) -> Vec<Sentence> {
    let mut told = Vec::new();
    for group in &status.groups {
        for entry in &group.entries {
            let arguments = [
                ("group", group.name.as_str().into()),
                ("label", entry.label.as_str().into()),
                ("held", entry.held.into()),
                ("lingering", entry.lingering.into()),
                ("waiting", entry.waiting.into()),
                ("oldest", units::short_duration(entry.oldest_ms as f64 * 1e6).into()),
            ];
            let id = if entry.lingering > 0 { "admission-entry-lingering" } else { "admission-entry" };
            let used = arguments.into_iter().filter(|(name, _)| *name != "lingering" || entry.lingering > 0);
            told.push(words.say(id, &used.collect::<Vec<_>>()));
        }
        if group.entries_left_out > 0 {
            let arguments = [("group", group.name.as_str().into()), ("n", group.entries_left_out.into())];
            told.push(words.say("admission-entries-more", &arguments));
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Colour, Look};
    use expect_test::{Expect, expect};

    fn golden() -> Admission {
        let text = include_str!("../../../../modules/mod_admission/tests/golden/status.json");
        serde_json::from_str(text).expect("the module's format")
    }

    fn check(before: Option<&Admission>, age_s: f64, entries: bool, language: Language, expected: &Expect) {
        let now = golden();
        let looked = Looked { now: &now, before, file: "/run/x/status.json", clock: now.written + age_s, entries };
        let text = text::render(&AdmissionView::of(&looked, language), Look { width: 100, colour: Colour::None });
        expected.assert_eq(&text);
    }

    #[test]
    fn a_status_of_the_future_is_stale() {
        let now = golden();
        let at = |age_s: f64| is_stale(&now, now.written + age_s);
        assert_eq!([at(0.0), at(4.9), at(-4.9), at(5.1), at(-5.1)], [false, false, false, true, true]);
        let clock = now.written - 300.0;
        let looked = Looked { now: &now, before: None, file: "/x", clock, entries: false };
        for (language, part) in [(Language::English, "5 min ahead of this"), (Language::Japanese, "5 min先の時刻")]
        {
            let told = alarms(&looked, &Catalogue::of(language))[0].text.clone();
            assert!(told.contains(part), "{told}");
        }
    }

    #[test]
    fn the_status_of_the_modules_own_tests() {
        check(
            None,
            0.4,
            true,
            Language::English,
            &expect![[r#"
                mod_admission/0.1.0 of the server with process 4242, counting since 2026-11-22 17:00:00 UTC (60 min)
                read from /run/x/status.json
                ! The control file /etc/apache2/admission.control is refused, the values before it stay in force:
                  line 2: no group is called "pph"
                ! AdmissionEngine observe: nobody is turned away, whatever the modes of the groups; it is only
                  counted who would be.
                ! Requests let through because the table had no place for their entry: 4. Raise AdmissionTableSize.
                Memory budget: 375 MiB of 800 MiB held; waiting for it: 0
                Workers that wait: 2 of 38

                                          php    uploads  never-set
                ───────────────────────────────────────────────────
                mode                  enforce    observe        off
                limit (configured)          4      2 (8)          0
                held                        5          2          0
                fullest                     4          2          0
                waiting                     2          0          0
                admitted                12345         20          0
                after a wait              678          0          0
                rejected                   90          0          0
                timed out                  12          0          0
                client gone                 3          0          0
                would reject                0          7          0
                would wait                  0         11          0
                let through                 1          0          0
                bypassed                    5          0          0
                taken back                  2          0          0
                let in/s                 3.62       0.01          0
                turned away/s            0.03          0          0
                held, mean            96.0 ms          –          –
                held, p50            < 131 ms          –          –
                held, p99            < 1.05 s          –          –
                wait, p50           < 1.02 ms          –          –
                wait, p99            ≥ 67.1 s          –          –
                Rates are means since counting began.
                The limit bounds each entry (a file, a host, a client): “fullest” is what the fullest one holds,
                “held” what all hold. Waits are those of requests that had to wait.

                Entries
                  php  /var/www/html/sleep.php: held 4, waiting 2, the oldest for 2.50 s
                  php  /var/www/html/日本/"<b>".php: held 1, waiting 0, the oldest for 12.0 ms
                  uploads  cut�� within a letter: held 2, waiting 0, the oldest for 70.0 s
            "#]],
        );
    }

    #[test]
    fn rates_between_two_looks_and_a_server_that_is_gone() {
        let mut before = golden();
        before.written -= 2.0;
        before.groups[0].counts.rejected -= 7;
        before.groups[0].counts.admitted -= 25;
        check(
            Some(&before),
            12.0,
            false,
            Language::Japanese,
            &expect![[r#"
                サーバー（プロセス 4242）の mod_admission/0.1.0。2026-11-22 17:00:00 UTC から数えている（60 min）
                /run/x/status.json より
                ! 12.0 s前に書かれたまま更新されていない。サーバーか、その制御プロセスが終了している。以下は最後の内
                  容である。
                ! 制御ファイル /etc/apache2/admission.control は受け付けられず、以前の値のまま動いている: line 2: no
                  group is called "pph"
                ! AdmissionEngine observe: グループのモードにかかわらず、誰も拒否しません。拒否したはずの数だけを数
                  えます。
                ! 表に空きがなく、制限せずに通したリクエスト: 4。AdmissionTableSize を大きくする。
                メモリー枠: 800 MiB のうち 375 MiB を使用中、待っているリクエスト: 0
                待っているワーカー: 2（上限 38）

                                        php    uploads  never-set
                ─────────────────────────────────────────────────
                モード              enforce    observe        off
                上限（設定値）            4      2 (8)          0
                使用中                    5          2          0
                最大のエントリー          4          2          0
                待ち                      2          0          0
                許可                  12345         20          0
                待って許可              678          0          0
                拒否                     90          0          0
                時間切れ                 12          0          0
                クライアント切断          3          0          0
                本来なら拒否              0          7          0
                本来なら待ち              0         11          0
                制限せず通過              1          0          0
                対象外                    5          0          0
                回収                      2          0          0
                許可/s                 12.5          0          0
                拒否/s                 3.50          0          0
                使用時間 平均       96.0 ms          –          –
                使用時間 p50       < 131 ms          –          –
                使用時間 p99       < 1.05 s          –          –
                待ち時間 p50      < 1.02 ms          –          –
                待ち時間 p99       ≥ 67.1 s          –          –
                毎秒の値は、直近の 2 回の読み取りの間のもの。
                上限はエントリー（ファイル、ホスト、クライアント）ごとの値。「最大のエントリー」は最も多く使っている
                エントリーの値、「使用中」は全エントリーの合計。待ち時間は、待つ必要があったリクエストのもの。
            "#]],
        );
    }

    #[test]
    fn a_server_without_groups() {
        let mut now = golden();
        (now.groups, now.control_error, now.troubles, now.started) = (Vec::new(), None, Default::default(), None);
        (now.budget.limit, now.queue_workers.limit) = (None, None);
        let looked = Looked { now: &now, before: None, file: "/x", clock: now.written, entries: true };
        let text =
            text::render(&AdmissionView::of(&looked, Language::English), Look { width: 100, colour: Colour::None });
        expect![[r#"
            mod_admission/0.1.0 of the server with process 4242
            read from /x
            ! AdmissionEngine observe: nobody is turned away, whatever the modes of the groups; it is only
              counted who would be.

            No group is configured (AdmissionGroup).
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn one_line_for_each_group() {
        let (mut before, now) = (golden(), golden());
        before.written -= 2.0;
        before.groups[0].counts.rejected -= 7;
        let text =
            row::headings(&now) + &row::rows(&now, Some(&before), "12:00:01") + &row::rows(&now, None, "12:00:02");
        expect![[r#"
            time      group         mode   limit    held    full  waiting      in/s  queued/s  reject/s  timeout/s
            12:00:01  php        enforce       4       5       4        2       0.0       0.0       3.5       0.0
            12:00:01  uploads    observe       2       2       2        0       0.0       0.0       0.0       0.0
            12:00:01  never-set      off       0       0       0        0       0.0       0.0       0.0       0.0
            12:00:02  php        enforce       4       5       4        2         –         –         –         –
            12:00:02  uploads    observe       2       2       2        0         –         –         –         –
            12:00:02  never-set      off       0       0       0        0         –         –         –         –
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn what_stands_beside_a_row_of_a_watch() {
        let (mut before, now) = (golden(), golden());
        before.written -= 2.0;
        before.groups[0].counts.rejected -= 7;
        let check = |room: usize, expected: &str| assert_eq!(row::beside(&now, Some(&before), room), expected);
        check(80, "php 4/4 +2 3.50/s away  uploads 2/2  never-set off");
        check(40, "php 4/4 +2 3.50/s away  uploads 2/2");
        check(10, "");
    }
}
