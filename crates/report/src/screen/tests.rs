//! What is on the screen, as text: the same load on terminals of several sizes, in both languages.

use super::{Doing, Painter, Seen};
use crate::language::Language::{self, English, Japanese};
use expect_test::{Expect, expect};
use model::SECOND;
use model::latency::Latency;
use model::load::{Counts, Failure, LoadInterval};
use model::plan::{Arrivals, LoadSpec, Pace, Timetable};
use model::reading::{Column, Reading};
use model::search::{Held, Step};
use model::threshold::Threshold;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use unicode_width::UnicodeWidthStr;

const START: u64 = 1000 * SECOND;

fn closed() -> LoadSpec {
    LoadSpec { connections: 10, duration_ns: Some(30 * SECOND), ..LoadSpec::of("l", "/") }
}

fn open(arrivals: Arrivals) -> LoadSpec {
    LoadSpec { connections: 100, pace: Pace::Timetable(Timetable::constant(500.0, arrivals)), ..closed() }
}

/// A second in which so many were answered, and so many refused.
fn second(number: u64, good: u64, refused: u64, us: u64) -> LoadInterval {
    let mut total = Latency::new();
    (0..good).for_each(|n| total.record(us + n * n / 40));
    let mut counts = Counts { good, ..Counts::default() };
    counts.statuses.insert(200, good);
    if refused > 0 {
        counts.failed.insert(Failure::Refused, refused);
        counts.failed.insert(Failure::Status, 1);
        counts.statuses.insert(503, 1);
    }
    LoadInterval { start_ns: START + number * SECOND, length_ns: SECOND, counts, total: total.pack() }
}

fn reading(at_s: u64) -> Reading {
    let mut reading = Reading::empty(START + at_s * SECOND);
    let kib = 1024 * 1024;
    let levels = [
        (Column::MemAvailable, 21 * kib),
        (Column::MemTotal, 24 * kib),
        (Column::SwapTotal, 2 * kib),
        (Column::SwapFree, kib),
        (Column::Runnable, 3),
        (Column::Blocked, 0),
    ];
    let counters = [
        (Column::CpuUser, 60),
        (Column::CpuSystem, 40),
        (Column::CpuIdle, 90),
        (Column::CpuIowait, 10),
        (Column::SwapIn, 256),
        (Column::SwapOut, 0),
        (Column::PsiCpuSome, 120_000),
        (Column::PsiMemSome, 0),
        (Column::PsiIoSome, 10_000),
    ];
    levels.into_iter().for_each(|(column, value)| reading.set(column, value));
    counters.into_iter().for_each(|(column, per_second)| reading.set(column, per_second * at_s));
    reading
}

/// Twelve seconds of a load.
fn seen(spec: &LoadSpec) -> Seen {
    let mut seen = Seen::new("http://127.0.0.1:8080/", spec, true, START);
    seen.begin(Doing::Measuring, START);
    for number in 0..12 {
        let refused = if number == 7 { 3 } else { 0 };
        seen.interval(&second(number, 380 + number * 10, refused, 900 + number * 10));
        seen.reading(&reading(number));
        seen.cpu(number * SECOND / 3, START + number * SECOND);
    }
    let visitor =
        LoadSpec { pace: Pace::Timetable(Timetable::constant(1.0, Arrivals::Even)), ..LoadSpec::of("v", "/") };
    (0..11).for_each(|number| seen.visits(&visitor, &second(number, u64::from(number != 4), 0, 1500)));
    seen
}

/// What a terminal of that size shows, without the blanks at the ends of its lines.
fn screen(seen: &Seen, language: Language, columns: u16, rows: u16) -> String {
    let view = Painter::new(language).view(seen, START + 12 * SECOND);
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal in memory");
    terminal.draw(|frame| frame.render_widget(&view, frame.area())).expect("memory takes all");
    let buffer = terminal.backend().buffer();
    let mut out = String::new();
    for y in 0..rows {
        let (mut line, mut x) = (String::new(), 0);
        while x < columns {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            // A wide letter hides the cell behind it.
            x += symbol.width().max(1) as u16;
        }
        assert_eq!(x, columns, "half a letter at the edge of {line:?}");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[track_caller]
fn check(seen: &Seen, language: Language, (columns, rows): (u16, u16), expected: &Expect) {
    expected.assert_eq(&screen(seen, language, columns, rows));
}

#[test]
fn a_closed_loop_on_the_usual_terminal() {
    let closed = seen(&closed());
    check(
        &closed,
        English,
        (80, 24),
        &expect![[r#"
            http://127.0.0.1:8080/                                                 measuring
            GET /, 10 at a time, 30.0 s, keep-alive
            0:12 of 0:30, 0:18 left ██████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
            Good answers per second ─────────────  Latency from when sent (ms) ─────────────
            now 490, on average 435                       so far  last second
            good 5220, failed 4                    p50      2.13         2.50
            ▂▃▃▄▄▅▅▆▆▇▇█                           p90      4.81         5.85
            ████████████                           p99      6.34         6.89
            ████████████                           p99.9    6.87            –
            Failures ────────────────────────────  max      6.99         6.99
            3 × connection refused                 This machine ────────────────────────────
            1 × status other than 2xx (503: 1)     webdyno  33 % of one CPU
            Latency of requests ─────────────────  CPU      busy 50, iowait 5, steal 0 %
            <= 1.10 ms 929 ██████████████████████  memory   21.0 GiB of 24.0 GiB free
            <= 1.36 ms 598 ██████████████          swap     1.00 GiB, in 1.0, out 0.0 MiB/s
            <= 1.66 ms 500 ████████████            tasks    runnable 3, blocked 0
            <= 2.04 ms 485 ███████████             PSI      CPU 12, memory 0, I/O 1 %
            <= 2.51 ms 485 ███████████             What a visitor saw ──────────────────────
            <= 3.08 ms 507 ████████████            11 visits, failed 0, waiting 1
            <= 3.78 ms 536 █████████████           median 1.50 ms, longest 1.50 ms
            <= 4.64 ms 567 █████████████
            <= 5.70 ms 430 ██████████
            <= 6.99 ms 183 ████
            q ends it; what was measured is kept
        "#]],
    );
    check(
        &closed,
        Japanese,
        (80, 24),
        &expect![[r#"
            http://127.0.0.1:8080/                                                    測定中
            GET /、並列度 10、30.0 s、KeepAlive あり
            0:12 / 0:30、残り 0:18 ██████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
            1 秒あたりの正常な応答 ──────────────  送信からの応答時間（ms） ────────────────
            現在 490、平均 435                            全体  直前の 1 秒
            正常 5220、失敗 4                      p50    2.13         2.50
            ▂▃▃▄▄▅▅▆▆▇▇█                           p90    4.81         5.85
            ████████████                           p99    6.34         6.89
            ████████████                           p99.9  6.87            –
            失敗 ────────────────────────────────  最大   6.99         6.99
            3 × 接続拒否                           このマシン ──────────────────────────────
            1 × 2xx 以外のステータス（503: 1）     webdyno   CPU 1 個の 33 %
            リクエストの応答時間 ────────────────  CPU       使用 50、iowait 5、steal 0 %
            <= 1.10 ms 929 ██████████████████████  メモリー  空き 21.0 GiB / 24.0 GiB
            <= 1.36 ms 598 ██████████████          スワップ  1.00 GiB、in 1.0、out 0.0 MiB/s
            <= 1.66 ms 500 ████████████            タスク    実行可能 3、待機 0
            <= 2.04 ms 485 ███████████             PSI       CPU 12、メモリー 0、I/O 1 %
            <= 2.51 ms 485 ███████████             通りがかりの訪問者から見た応答 ──────────
            <= 3.08 ms 507 ████████████            訪問 11 回、失敗 0、応答待ち 1
            <= 3.78 ms 536 █████████████           中央値 1.50 ms、最長 1.50 ms
            <= 4.64 ms 567 █████████████
            <= 5.70 ms 430 ██████████
            <= 6.99 ms 183 ████
            q で終了（測定値は残ります）
        "#]],
    );
}

#[test]
fn an_open_loop_on_the_usual_terminal() {
    let open = seen(&open(Arrivals::Even));
    check(
        &open,
        English,
        (80, 24),
        &expect![[r#"
            http://127.0.0.1:8080/                                                 measuring
            GET /, 500 per second at equal distances, over at most 100 connections, 30.0 s,…
            0:12 of 0:30, 0:18 left ██████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
            Good answers per second ─────────────  Latency from when due (ms) ──────────────
            now 490, asked 500, on average 435            so far  last second
            good 5220, failed 4, waiting 776       p50      2.13         2.50
            ▂▃▃▄▄▅▅▆▆▇▇█                           p90      4.81         5.85
            ████████████                           p99      6.34         6.89
            ████████████                           p99.9    6.87            –
            Failures ────────────────────────────  max      6.99         6.99
            3 × connection refused                 This machine ────────────────────────────
            1 × status other than 2xx (503: 1)     webdyno  33 % of one CPU
            Latency of requests ─────────────────  CPU      busy 50, iowait 5, steal 0 %
            <= 1.10 ms 929 ██████████████████████  memory   21.0 GiB of 24.0 GiB free
            <= 1.36 ms 598 ██████████████          swap     1.00 GiB, in 1.0, out 0.0 MiB/s
            <= 1.66 ms 500 ████████████            tasks    runnable 3, blocked 0
            <= 2.04 ms 485 ███████████             PSI      CPU 12, memory 0, I/O 1 %
            <= 2.51 ms 485 ███████████             What a visitor saw ──────────────────────
            <= 3.08 ms 507 ████████████            11 visits, failed 0, waiting 1
            <= 3.78 ms 536 █████████████           median 1.50 ms, longest 1.50 ms
            <= 4.64 ms 567 █████████████
            <= 5.70 ms 430 ██████████
            <= 6.99 ms 183 ████
            q ends it; what was measured is kept
        "#]],
    );
    check(
        &open,
        Japanese,
        (80, 24),
        &expect![[r#"
            http://127.0.0.1:8080/                                                    測定中
            GET /、毎秒 500 件を等間隔で、最大 100 接続、30.0 s、KeepAlive あり
            0:12 / 0:30、残り 0:18 ██████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
            1 秒あたりの正常な応答 ──────────────  送信予定からの応答時間（ms） ────────────
            現在 490、予定 500、平均 435                  全体  直前の 1 秒
            正常 5220、失敗 4、応答待ち 776        p50    2.13         2.50
            ▂▃▃▄▄▅▅▆▆▇▇█                           p90    4.81         5.85
            ████████████                           p99    6.34         6.89
            ████████████                           p99.9  6.87            –
            失敗 ────────────────────────────────  最大   6.99         6.99
            3 × 接続拒否                           このマシン ──────────────────────────────
            1 × 2xx 以外のステータス（503: 1）     webdyno   CPU 1 個の 33 %
            リクエストの応答時間 ────────────────  CPU       使用 50、iowait 5、steal 0 %
            <= 1.10 ms 929 ██████████████████████  メモリー  空き 21.0 GiB / 24.0 GiB
            <= 1.36 ms 598 ██████████████          スワップ  1.00 GiB、in 1.0、out 0.0 MiB/s
            <= 1.66 ms 500 ████████████            タスク    実行可能 3、待機 0
            <= 2.04 ms 485 ███████████             PSI       CPU 12、メモリー 0、I/O 1 %
            <= 2.51 ms 485 ███████████             通りがかりの訪問者から見た応答 ──────────
            <= 3.08 ms 507 ████████████            訪問 11 回、失敗 0、応答待ち 1
            <= 3.78 ms 536 █████████████           中央値 1.50 ms、最長 1.50 ms
            <= 4.64 ms 567 █████████████
            <= 5.70 ms 430 ██████████
            <= 6.99 ms 183 ████
            q で終了（測定値は残ります）
        "#]],
    );
}

#[test]
fn a_large_terminal() {
    let open = seen(&open(Arrivals::Poisson));
    check(
        &open,
        English,
        (120, 40),
        &expect![[r#"
            http://127.0.0.1:8080/                                                                                         measuring
            GET /, 500 per second at random (Poisson), over at most 100 connections, 30.0 s, keep-alive
            0:12 of 0:30, 0:18 left ██████████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
            Good answers per second ────────────────────────────────  Latency from when due (ms) ───────────────────────────────────
            now 490, asked 500, on average 435                               so far  last second
            good 5220, failed 4                                       p50      2.13         2.50
                  ▁▂▄▅▆█                                              p90      4.81         5.85
            ▁▂▄▅▆███████                                              p99      6.34         6.89
            ████████████                                              p99.9    6.87            –
            ████████████                                              max      6.99         6.99
            ████████████                                              This machine ─────────────────────────────────────────────────
            ████████████                                              webdyno  33 % of one CPU
            ████████████                                              CPU      busy 50, iowait 5, steal 0 %
            ████████████                                              memory   21.0 GiB of 24.0 GiB free
            Failures ───────────────────────────────────────────────  swap     1.00 GiB, in 1.0, out 0.0 MiB/s
            3 × connection refused                                    tasks    runnable 3, blocked 0
            1 × status other than 2xx (503: 1)                        PSI      CPU 12, memory 0, I/O 1 %
            Latency of requests ────────────────────────────────────  What a visitor saw ───────────────────────────────────────────
            <= 1.10 ms 929 █████████████████████████████████████████  11 visits, failed 0, waiting 1
            <= 1.36 ms 598 ██████████████████████████                 median 1.50 ms, longest 1.50 ms
            <= 1.66 ms 500 ██████████████████████
            <= 2.04 ms 485 █████████████████████
            <= 2.51 ms 485 █████████████████████
            <= 3.08 ms 507 ██████████████████████
            <= 3.78 ms 536 ████████████████████████
            <= 4.64 ms 567 █████████████████████████
            <= 5.70 ms 430 ███████████████████
            <= 6.99 ms 183 ████████











            q ends it; what was measured is kept
        "#]],
    );
    check(
        &open,
        Japanese,
        (120, 40),
        &expect![[r#"
            http://127.0.0.1:8080/                                                                                            測定中
            GET /、毎秒 500 件をランダムな間隔（ポアソン）で、最大 100 接続、30.0 s、KeepAlive あり
            0:12 / 0:30、残り 0:18 ██████████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
            1 秒あたりの正常な応答 ─────────────────────────────────  送信予定からの応答時間（ms） ─────────────────────────────────
            現在 490、予定 500、平均 435                                     全体  直前の 1 秒
            正常 5220、失敗 4                                         p50    2.13         2.50
                  ▁▂▄▅▆█                                              p90    4.81         5.85
            ▁▂▄▅▆███████                                              p99    6.34         6.89
            ████████████                                              p99.9  6.87            –
            ████████████                                              最大   6.99         6.99
            ████████████                                              このマシン ───────────────────────────────────────────────────
            ████████████                                              webdyno   CPU 1 個の 33 %
            ████████████                                              CPU       使用 50、iowait 5、steal 0 %
            ████████████                                              メモリー  空き 21.0 GiB / 24.0 GiB
            失敗 ───────────────────────────────────────────────────  スワップ  1.00 GiB、in 1.0、out 0.0 MiB/s
            3 × 接続拒否                                              タスク    実行可能 3、待機 0
            1 × 2xx 以外のステータス（503: 1）                        PSI       CPU 12、メモリー 0、I/O 1 %
            リクエストの応答時間 ───────────────────────────────────  通りがかりの訪問者から見た応答 ───────────────────────────────
            <= 1.10 ms 929 █████████████████████████████████████████  訪問 11 回、失敗 0、応答待ち 1
            <= 1.36 ms 598 ██████████████████████████                 中央値 1.50 ms、最長 1.50 ms
            <= 1.66 ms 500 ██████████████████████
            <= 2.04 ms 485 █████████████████████
            <= 2.51 ms 485 █████████████████████
            <= 3.08 ms 507 ██████████████████████
            <= 3.78 ms 536 ████████████████████████
            <= 4.64 ms 567 █████████████████████████
            <= 5.70 ms 430 ███████████████████
            <= 6.99 ms 183 ████████











            q で終了（測定値は残ります）
        "#]],
    );
}

#[test]
fn a_small_terminal() {
    let open = seen(&open(Arrivals::Even));
    check(
        &open,
        English,
        (40, 10),
        &expect![[r#"
            http://127.0.0.1:8080/         measuring
            0:12 of 0:30, 0:18 left ██████░░░░░░░░░░
            Good answers per second ────────────────
            now 490, asked 500, on average 435
            good 5220, failed 4, waiting 776
            ▆▆▆▆▆▇▇▇▇▇▇█
            Latency from when due (ms) ─────────────
            p50 2.13  p90 4.81  p99 6.34  p99.9 6.87
            max 6.99
            q ends it; what was measured is kept
        "#]],
    );
    check(
        &open,
        Japanese,
        (40, 10),
        &expect![[r#"
            http://127.0.0.1:8080/            測定中
            0:12 / 0:30、残り 0:18 ██████░░░░░░░░░░░
            1 秒あたりの正常な応答 ─────────────────
            現在 490、予定 500、平均 435
            正常 5220、失敗 4、応答待ち 776
            ▆▆▆▆▆▇▇▇▇▇▇█
            送信予定からの応答時間（ms） ───────────
            p50 2.13  p90 4.81  p99 6.34  p99.9 6.87
            最大 6.99
            q で終了（測定値は残ります）
        "#]],
    );
    check(
        &open,
        English,
        (24, 4),
        &expect![[r#"
            0:12 of 0:30, 0:18 left
            Good answers per second
            now 490, asked 500, on …
            good 5220, failed 4, wa…
        "#]],
    );
}

#[test]
fn a_search() {
    let mut seen = seen(&open(Arrivals::Even));
    seen.searching(&["p99 < 50ms", "failed < 1%"].map(|goal| Threshold::parse(goal).expect("a threshold")));
    for (number, (rate, held)) in [(800.0, Held::No), (400.0, Held::Yes), (1200.0, Held::Generator)].iter().enumerate()
    {
        let step = Step {
            number: number as u32 + 1,
            rate: *rate,
            good: rate * 0.995,
            held: *held,
            goals: Vec::new(),
            misses: Vec::new(),
        };
        seen.step(&step);
    }
    check(
        &seen,
        English,
        (80, 24),
        &expect![[r#"
            http://127.0.0.1:8080/                                         searching, step 4
            GET /, 500 per second at equal distances, over at most 100 connections, 30.0 s,…
            0:12 of 0:30, 0:18 left ██████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
            Good answers per second ─────────────  Latency from when due (ms) ──────────────
            now 490, asked 500, on average 435            so far  last second
            good 5220, failed 4, waiting 776       p50      2.13         2.50
                  ▁▂▄▅▆█                           p90      4.81         5.85
            ▁▂▄▅▆███████                           p99      6.34         6.89
            ████████████                           p99.9    6.87            –
            ████████████                           max      6.99         6.99
            ████████████                           This machine ────────────────────────────
            ████████████                           webdyno  33 % of one CPU
            ████████████                           CPU      busy 50, iowait 5, steal 0 %
            ████████████                           memory   21.0 GiB of 24.0 GiB free
            Failures ────────────────────────────  swap     1.00 GiB, in 1.0, out 0.0 MiB/s
            3 × connection refused                 tasks    runnable 3, blocked 0
            1 × status other than 2xx (503: 1)     PSI      CPU 12, memory 0, I/O 1 %
            Steps: p99 < 50ms, failed < 1% ──────  What a visitor saw ──────────────────────
            asked 1200/s, good 1194/s: generator   11 visits, failed 0, waiting 1
            asked 400/s, good 398/s: held          median 1.50 ms, longest 1.50 ms
            asked 800/s, good 796/s: missed


            q ends it; what was measured is kept
        "#]],
    );
}

#[test]
fn before_and_at_the_end_of_a_load() {
    let limited = LoadSpec { requests: Some(5000), duration_ns: None, ..closed() };
    let mut seen = Seen::new("http://\x1b[31mred/", &limited, false, START + 11 * SECOND);
    seen.remark("answers differ in size: 10 to 12 bytes");
    seen.begin(Doing::Preflight, START + 11 * SECOND);
    check(
        &seen,
        English,
        (80, 24),
        &expect![[r#"
            http://�[31mred/                                   first requests, one at a time
            GET /, 10 at a time, 5000 requests, keep-alive
            0:01
            Good answers per second ─────────────  Latency from when sent (ms) ─────────────
            now –, on average –                           so far  last second
            good 0, failed 0                       p50         –            –
                                                   p90         –            –
                                                   p99         –            –
                                                   p99.9       –            –
                                                   max         –            –




            Notes ───────────────────────────────
            answers differ in size: 10 to
            12 bytes






            q ends it; what was measured is kept
        "#]],
    );
    seen.begin(Doing::Measuring, START);
    seen.interval(&second(0, 400, 0, 900));
    seen.begin(Doing::Ending, START + SECOND);
    seen.remark("the answer has status 301, which counts as failed; it points to http://h/new, which is not followed");
    check(
        &seen,
        English,
        (60, 16),
        &expect![[r#"
            http://�[31mred/           ending, what was measured is kept
            GET /, 10 at a time, 5000 requests, keep-alive
            0:12
            Good answers per second ────────────────────────────────────
            now 400, on average 400
            good 400, failed 0
            █
            █
            █
            Latency from when sent (ms) ────────────────────────────────
            p50 1.89  p90 4.12  p99 4.80  p99.9 –  max 4.88

            Notes ──────────────────────────────────────────────────────
            answers differ in size: 10 to 12 bytes
            the answer has status 301, which counts as failed; it points
            q again leaves at once
        "#]],
    );
}

#[test]
fn what_is_measured_next_is_counted_anew_and_an_end_stays_one() {
    let mut seen = seen(&open(Arrivals::Even));
    // 500 a second were due for 12 s.
    assert_eq!(seen.load.waiting(&seen.sending), Some(6000 - seen.load.ended()));
    assert_eq!(seen.load.waiting(&open(Arrivals::Poisson)), None);
    assert_eq!(seen.load.waiting(&closed()), None);
    seen.begin(Doing::Measuring, START + 12 * SECOND);
    assert_eq!((seen.load.ended(), seen.load.history.len(), seen.visits.is_none()), (0, 0, true));
    seen.begin(Doing::Ending, START + 13 * SECOND);
    seen.begin(Doing::Measuring, START + 14 * SECOND);
    assert_eq!((seen.doing, seen.began_ns), (Doing::Ending, START + 12 * SECOND));
}

#[test]
fn memory_is_bounded() {
    let mut seen = seen(&closed());
    (12..20_000).for_each(|number| seen.interval(&second(number, 1, 0, 10)));
    (0..1000).for_each(|_| seen.remark("again"));
    assert_eq!((seen.load.history.len(), seen.remarks().count()), (1024, 16));
    assert_eq!(seen.load.ended(), (0..12).map(|n| 380 + n * 10).sum::<u64>() + 4 + 19_988);
}

proptest! {
    #[test]
    fn no_size_is_odd_enough(columns in 1_u16..200, rows in 1_u16..80, open_loop: bool, japanese: bool, remarks in 0..9) {
        let mut seen = seen(&if open_loop { open(Arrivals::Even) } else { closed() });
        (0..remarks).for_each(|number| seen.remark(&format!("警告 {number}: {}", "長い".repeat(40))));
        let text = screen(&seen, if japanese { Japanese } else { English }, columns, rows);
        prop_assert_eq!(text.lines().count(), usize::from(rows));
        // Whatever there is room for, how far it is comes first.
        prop_assert!(columns < 20 || text.contains("0:12"));
    }
}
