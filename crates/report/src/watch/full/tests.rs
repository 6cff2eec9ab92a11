//! What is on the screen, as text: the same minutes on terminals of several sizes, in both languages.

use super::*;
use crate::language::Language::{self, English, Japanese};
use expect_test::{Expect, expect};
use model::SECOND;
use model::reading::{Column as C, Kind};
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const MIB: u64 = 1 << 20;

/// A minute of calm and half a minute of a storm, in which looks came late.
fn looks() -> Vec<Look> {
    let mut looks = Vec::new();
    let mut look = Look::empty(0, 0);
    for &column in C::ALL.iter().filter(|column| column.kind() == Kind::Counter) {
        look.reading.set(column, 1000);
    }
    let levels = [
        (C::MemTotal, 1_048_576),
        (C::MemFree, 300_000),
        (C::MemAvailable, 700_000),
        (C::SwapTotal, 2_097_152),
        (C::SwapFree, 2_000_000),
        (C::Load1, 12),
        (C::Load5, 20),
        (C::Load15, 5),
        (C::Runnable, 2),
        (C::Blocked, 0),
        (C::ListenQueue, 0),
        (C::ListenLimit, 511),
        (C::TcpTimeWait, 31),
        (C::SamplerLateNs, 60_000),
    ];
    levels.iter().for_each(|&(column, value)| look.reading.set(column, value));
    for second in 0..90 {
        let storm = second >= 60;
        let mut add = |column, more: u64| look.reading.values[column as usize] += more;
        let ticks = if storm { [20, 20, 0, 160] } else { [60, 20, 118, 2] };
        [C::CpuUser, C::CpuSystem, C::CpuIdle, C::CpuIowait]
            .into_iter()
            .zip(ticks)
            .for_each(|(column, n)| add(column, n));
        add(C::DiskReadSectors, if storm { 40 * MIB / 512 } else { 0 });
        add(C::DiskWriteSectors, if storm { 90 * MIB / 512 } else { 2000 });
        add(C::DiskWrites, 50);
        add(C::DiskWeightedMs, if storm { 9000 } else { 20 });
        add(C::NetRxBytes, 20_000);
        add(C::NetTxBytes, if storm { 10_000 } else { 900_000 });
        add(C::LoopbackBytes, 400);
        if storm {
            add(C::SwapIn, 9000);
            add(C::SwapOut, 20_000);
            add(C::MajorFaults, 700);
            add(C::PsiMemSome, 700_000);
            add(C::PsiMemFull, 400_000);
            add(C::PsiIoSome, 200_000);
            add(C::TcpListenOverflows, 3);
            look.reading.set(C::MemFree, 20_000);
            look.reading.set(C::MemAvailable, 30_000);
            look.reading.set(C::SwapFree, 2_000_000 - (second - 59) * 30_000);
            look.reading.set(C::ListenQueue, 512);
            look.reading.set(C::Blocked, 12);
        }
        look.reading.at_ns = (1000 + second) * SECOND;
        // The storm's tenth to thirteenth second were missed.
        if !(70..73).contains(&second) {
            looks.push(look.clone());
        }
    }
    looks
}

fn host() -> HostFacts {
    HostFacts { name: "web1".into(), kernel: "6.1.0-18-amd64".into(), cpus: 2, ..HostFacts::default() }
}

fn scene<'a>(looks: &'a [Look], host: &'a HostFacts) -> Scene<'a> {
    Scene {
        looks,
        page_bytes: 4096,
        host,
        period_ns: SECOND,
        when: "14:03:21",
        state: State::Live,
        notes: &[],
        help: false,
        column_ns: 2 * SECOND,
    }
}

fn drawn(scene: &Scene<'_>, language: Language, columns: u16, rows: u16) -> String {
    let view = Painter::new(language).view(scene);
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| frame.render_widget(&view, frame.area())).unwrap();
    // ratatui's own text of a terminal without columns panics.
    let text = if columns > 0 { terminal.backend().to_string() } else { String::new() };
    let lines: Vec<&str> = text.lines().map(plain).collect();
    lines.join("\n")
}

/// A line as it is seen, without what ratatui says of letters that are two columns wide.
fn plain(line: &str) -> &str {
    line.split("\" Hidden by").next().unwrap_or(line).trim_matches('"').trim_end()
}

fn check(scene: &Scene<'_>, language: Language, columns: u16, rows: u16, expected: &Expect) {
    expected.assert_eq(&drawn(scene, language, columns, rows));
}

#[test]
fn on_a_terminal_of_80_by_24() {
    let (looks, host) = (looks(), host());
    check(
        &scene(&looks, &host),
        English,
        80,
        24,
        &expect![[r#"
        web1, Linux 6.1.0-18-amd64, CPUs: 2              a column is 2 s  14:03:21  live
        CPU ───────────────────────────── 100 %  Disks ─────────────────────── 200 MiB/s
        busy 20 %  waiting for disks 80 %        read 40.0 MiB/s  written 90.0 MiB/s
        load 0.12 0.20 0.05  runnable 2          operations 50/s  under way 9.0
        blocked 12
                                ███████████████                          ▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂
        ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃                          ███████████████
        Memory ────────────────────────── 100 %                          ███████████████
        used 995 MiB  cache 9.77 MiB             ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁███████████████
        to be had 29.3 MiB  of 1.00 GiB          Network ──────────────────── 1.00 MiB/s
        ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇  received 19.5 KiB/s  sent 9.77 KiB/s
        ███████████████████████████████████████  loopback 400 B/s
        ███████████████████████████████████████  ▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
        Swap ──────────────────────── 200 MiB/s  ████████████████████████
        in 35.2 MiB/s  out 78.1 MiB/s            ████████████████████████
        used 974 MiB  of 2.00 GiB                ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
        major faults 700/s                       Accept queue ────────────────────── 512
                                ▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅  waiting 512  room for 511  refused 3/s
        Pressure (PSI) ────────────────── 100 %  sent again 0/s  TIME_WAIT 31
        memory 70 %  I/O 20 %  CPU 0 %                                   ███████████████
        everybody on memory 40 %                                         ███████████████
        everybody on I/O 0 %                                             ███████████████
                                ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇                          ███████████████
        q end  p pause  ←→ look back  +- zoom  ? help"#]],
    );
    check(
        &scene(&looks, &host),
        Japanese,
        80,
        24,
        &expect![[r#"
        web1、Linux 6.1.0-18-amd64、CPU 2 個                1 列は 2 s  14:03:21  表示中
        CPU ───────────────────────────── 100 %  ディスク ──────────────────── 200 MiB/s
        使用 20 %  ディスク待ち 80 %             読み込み 40.0 MiB/s
        ロードアベレージ 0.12 0.20 0.05          書き込み 90.0 MiB/s  操作 50/s
        実行可能 2  待機 12                      処理中 9.0
                                ███████████████
        ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃                          ▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅
        メモリー ──────────────────────── 100 %                          ███████████████
        使用 995 MiB  キャッシュ 9.77 MiB        ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆
        利用可能 29.3 MiB  全体 1.00 GiB         ネットワーク ─────────────── 1.00 MiB/s
        ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇  受信 19.5 KiB/s  送信 9.77 KiB/s
        ███████████████████████████████████████  ループバック 400 B/s
        ███████████████████████████████████████  ▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
        スワップ ──────────────────── 200 MiB/s  ████████████████████████
        in 35.2 MiB/s  out 78.1 MiB/s            ████████████████████████
        使用 974 MiB  全体 2.00 GiB              ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
        メジャーフォルト 700/s                   accept キュー ───────────────────── 512
                                ▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅  待ち 512  上限 511  あふれ 3/s
        プレッシャー（PSI） ───────────── 100 %  再送 0/s  TIME_WAIT 31
        メモリー 70 %  I/O 20 %  CPU 0 %                                 ███████████████
        全タスクがメモリー待ち 40 %                                      ███████████████
        全タスクが I/O 待ち 0 %                                          ███████████████
                                ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇                          ███████████████
        q 終了  p 停止  ←→ 戻る・進む  +- 拡大・縮小  ? ヘルプ"#]],
    );
}

#[test]
fn a_server_and_its_group_are_panels_too() {
    let (mut looks, host) = (looks(), host());
    for look in &mut looks {
        let levels = [
            (C::TreeWorkers, 10),
            (C::TreeBusyWorkers, 4),
            (C::TreeProcesses, 12),
            (C::TreeRss, 300 * MIB),
            (C::GroupUsage, 190 * MIB),
            (C::GroupLimit, 200 * MIB),
            (C::GroupAnon, 150 * MIB),
            (C::GroupFile, 40 * MIB),
            (C::GroupSwap, 70 * MIB),
        ];
        levels.iter().for_each(|&(column, value)| look.reading.set(column, value));
    }
    check(
        &scene(&looks, &host),
        English,
        100,
        30,
        &expect![[r#"
        web1, Linux 6.1.0-18-amd64, CPUs: 2                                  a column is 2 s  14:03:21  live
        CPU ─────────────────────────────────────── 100 %  Disks ───────────────────────────────── 200 MiB/s
        busy 20 %  waiting for disks 80 %                  read 40.0 MiB/s  written 90.0 MiB/s
        load 0.12 0.20 0.05  runnable 2  blocked 12        operations 50/s  under way 9.0
                                          ███████████████
            ▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂███████████████                                    ▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅
            ██████████████████████████████▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅                                    ███████████████
        Memory ──────────────────────────────────── 100 %      ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆
        used 995 MiB  cache 9.77 MiB  to be had 29.3 MiB   Network ────────────────────────────── 1.00 MiB/s
        of 1.00 GiB                                        received 19.5 KiB/s  sent 9.77 KiB/s
            ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇  loopback 400 B/s
            █████████████████████████████████████████████      ▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
            █████████████████████████████████████████████      ██████████████████████████████
        Swap ────────────────────────────────── 200 MiB/s      ██████████████████████████████
        in 35.2 MiB/s  out 78.1 MiB/s  used 974 MiB            ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
        of 2.00 GiB  major faults 700/s                    Accept queue ──────────────────────────────── 512
                                                           waiting 512  room for 511  refused 3/s
                                          ▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆  sent again 0/s  TIME_WAIT 31
                                          ▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄                                    ███████████████
        Pressure (PSI) ──────────────────────────── 100 %                                    ███████████████
        memory 70 %  I/O 20 %  CPU 0 %                                                       ███████████████
        everybody on memory 40 %  everybody on I/O 0 %                                       ███████████████
                                          ▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆  Server ─────────────────────────────────────── 10
                                          ███████████████  busy 4  idle 6  processes 12  RSS 300 MiB
        Control group ───────────────────────────── 100 %      █████████████████████████████████████████████
        own 150 MiB  files 40.0 MiB  of 200 MiB                █████████████████████████████████████████████
        swap 70.0 MiB  CPU 0 %                                 █████████████████████████████████████████████
            ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇      █████████████████████████████████████████████
            █████████████████████████████████████████████      █████████████████████████████████████████████
        q end  p pause  ←→ look back  +- zoom  ? help"#]],
    );
}

#[test]
fn back_in_the_storm_when_looks_were_missed() {
    let (looks, host) = (looks(), host());
    let until = looks.iter().position(|look| look.at_ns() == 1073 * SECOND).unwrap();
    let shown = Scene { state: State::Back(16 * SECOND), column_ns: SECOND, ..scene(&looks[..=until], &host) };
    check(
        &shown,
        English,
        60,
        20,
        &expect![[r#"
        web1, Linux 6…  a column is 1 s  14:03:21  paused, 16 s back
        between the last two readings passed 4 s
        CPU ────────────────────────────────────────────────── 100 %
        busy 20 %  waiting for disks 80 %  load 0.12 0.20 0.05
        ▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▂▂▂▂▂▂▂▂▂▂▂▂▂▂
        Disks ──────────────────────────────────────────── 200 MiB/s
        read 40.0 MiB/s  written 90.0 MiB/s  operations 50/s
        ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▅▅▅▅▅▅▅▅▅▅▅▅▅▅
        Memory ─────────────────────────────────────────────── 100 %
        used 995 MiB  cache 9.77 MiB  to be had 29.3 MiB
        ▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆██████████████
        Network ───────────────────────────────────────── 1.00 MiB/s
        received 19.5 KiB/s  sent 9.77 KiB/s  loopback 400 B/s
        Swap ───────────────────────────────────────────── 200 MiB/s
        in 35.2 MiB/s  out 78.1 MiB/s  used 505 MiB  of 2.00 GiB
        Accept queue ─────────────────────────────────────────── 512
        waiting 512  room for 511  refused 3/s  sent again 0/s
        Pressure (PSI) ─────────────────────────────────────── 100 %
        memory 70 %  I/O 20 %  CPU 0 %  everybody on memory 40 %
        q end  p pause  ←→ look back  +- zoom  ? help"#]],
    );
}

#[test]
fn help_explains_the_keys() {
    let (looks, host) = (looks(), host());
    let shown =
        Scene { help: true, state: State::Playing(10.0), notes: &["no PSI".to_owned()], ..scene(&looks, &host) };
    check(
        &shown,
        English,
        60,
        16,
        &expect![[r#"
        web1, Linux 6.1.…  a column is 2 s  14:03:21  recording, 10x
        no PSI
        Keys ───────────────────────────────────────────────────────
        q: end
        p or space: pause, and go on
        ← →: a column back or forth; Page Up, Page Down: a screen
        Home, End: the first reading there is, and the newest
        + -: less or more time in a column
        < >: a recording slower or faster
        A chart's two colours are those of the two numbers below its
        name; its height is the number at the right.




        q end  p pause  ←→ look back  +- zoom  ? help"#]],
    );
}

#[test]
fn nothing_is_known_at_first() {
    let host = host();
    let first = [Look::empty(SECOND, 0)];
    for looks in [&[][..], &first] {
        let text = drawn(&scene(looks, &host), English, 80, 24);
        assert!(text.contains("CPU") && text.contains("this kernel does not tell it"), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_size_and_any_numbers_are_drawn(
        // The backend of these tests cannot tell lines without columns.
        columns in 1..200_u16,
        rows in 0..60_u16,
        values in prop::collection::vec(any::<u64>(), 0..12),
        zoom in 0..ZOOMS.len(),
    ) {
        let look = |(at, value): (u64, &u64)| {
            let mut look = Look::empty(at * SECOND, 0);
            look.reading.values.iter_mut().for_each(|slot| *slot = value.rotate_left(at as u32) >> (at % 50));
            look
        };
        let looks: Vec<Look> = (0..).zip(&values).map(look).collect();
        let host = host();
        let shown = Scene { column_ns: ZOOMS[zoom] * SECOND, ..scene(&looks, &host) };
        drawn(&shown, if values.len().is_multiple_of(2) { English } else { Japanese }, columns, rows);
    }
}

#[test]
fn what_became_of_time_is_told() {
    let host = host();
    let mut looks = looks();
    let [.., from, to] = looks.as_mut_slice() else { panic!("there are many") };
    let check = |from: &Look, to: &Look, language, expected: &str| {
        let looks = [from.clone(), to.clone()];
        let text = drawn(&scene(&looks, &host), language, 120, 40);
        assert!(text.replace(' ', "").contains(&expected.replace(' ', "")), "{expected}: {text}");
    };
    for look in [&mut *from, &mut *to] {
        look.reading.set(C::WallNs, look.reading.at_ns);
        look.reading.set(C::BootNs, look.reading.at_ns);
    }
    to.reading.values[C::WallNs as usize] += 3600 * SECOND;
    check(from, to, English, "the clock was set forward by");
    check(to, &with_time_of(from, to), Japanese, "戻されました");
    to.reading.values[C::BootNs as usize] += 3600 * SECOND;
    check(from, to, English, "the machine was suspended for");
    check(from, to, Japanese, "サスペンドしていました");
}

/// A look a second after another one, whose clock on the wall shows the time of an earlier one.
fn with_time_of(earlier: &Look, look: &Look) -> Look {
    let mut later = look.clone();
    later.reading.at_ns += SECOND;
    later.reading.values[C::BootNs as usize] += SECOND;
    later.reading.set(C::WallNs, earlier.reading.get(C::WallNs).unwrap());
    later
}
