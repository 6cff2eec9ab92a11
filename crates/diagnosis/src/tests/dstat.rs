//! The first document's own dstat rows, replayed: one CPU, no PSI, no group, nothing but the host's counters.
//!
//! dstat tells no swap traffic; its disk traffic stands for it where the document says that it was swap. The rows around "missed 4
//! ticks" and "missed 6 ticks" are left out: dstat divided their counts by one second, not by the four and six that had passed.

use super::*;
use crate::evidence::{Evidence, Machine};
use model::SECOND;
use model::reading::{Column, Reading, Readings};

/// 1 GB as the document's server had it: used, buffers, cache and free together, KiB.
const MEMORY_KIB: f64 = 992.0 * 1024.0;

const IDLE: &str = "\
  0   0 100   0   0   0| 199M 35.1M  480M  279M|   0  4096M|   0     0 |   0 0.02 0.06| 394B  150B|   0     0
  5  11  83   0   0   1| 350M 35.1M  480M  127M|   0  4096M|   0     0 |   0 0.02 0.06| 570B 1906B|   0     0
";

const ONE: &str = "\
 27  73   0   0   0   0| 199M 34.9M  479M  279M|   0  4096M|   0     0 |   0 0.01 0.05| 240B  374B|   0     0
 29  71   0   0   0   0| 346M 34.9M  479M  132M|   0  4096M|   0     0 |   0 0.01 0.05| 334B  534B|   0     0
 29  71   0   0   0   0| 329M 34.9M  479M  150M|   0  4096M|   0     0 |   0 0.01 0.05| 796B 1240B|   0     0
 30  70   0   0   0   0| 227M 34.9M  479M  251M|   0  4096M|   0     0 |   0 0.01 0.05| 420B  102B|   0     0
 31  69   0   0   0   0| 373M 34.9M  479M  105M|   0  4096M|   0    16k|0.08 0.03 0.05| 334B  518B|   0  2.00
 34  66   0   0   0   0| 289M 35.0M  480M  189M|   0  4096M|   0     0 |1.29 0.39 0.17| 154B  534B|   0     0
";

const TEN: &str = "\
  5  59   0  36   0   0| 916M  420k 28.6M 47.7M|  69M 4027M| 616k   65M|   0 0.02 0.06| 334B  374B|13.0   727
  1  25   0  74   0   0| 932M 80.0k 10.8M 49.4M| 282M 3814M|2576k  252M|   0 0.02 0.06| 574B  518B|65.0   806
  1  26   0  73   0   0| 927M 80.0k 12.6M 52.7M| 436M 3660M| 668k  103M|   0 0.02 0.06| 454B  550B|32.0   496
  3  31   0  66   0   0| 931M 80.0k 13.2M 47.8M| 534M 3562M|1544k  112M|   0 0.02 0.06| 334B  550B|51.0   573
  1  31   0  68   0   0| 926M  216k 13.9M 51.9M| 720M 3376M|2604k  174M|1.04 0.23 0.13| 360B  550B| 118   863
  9  53   0  37   0   1| 728M  224k 14.0M  251M|  77M 4019M|6920k   50M|1.04 0.23 0.13| 420B  550B| 235   282
  4  42   0  54   0   0| 933M  228k 11.7M 47.8M| 318M 3778M|1044k  200M|1.04 0.23 0.13| 848B  550B|44.0   878
  3  35   0  62   0   0| 933M  216k 11.6M 47.7M| 470M 3626M| 180k  170M|1.04 0.23 0.13| 522B 1304B|7.00   601
  2  27   0  71   0   0| 933M  216k 11.6M 47.8M| 541M 3555M| 264k   92M|1.04 0.23 0.13| 394B  102B|13.0   434
  5  45   0  50   0   0| 931M  200k 11.4M 49.8M| 433M 3663M|2764k  118M|1.92 0.43 0.20| 394B  550B|89.0   651
 13  79   0   8   0   0| 936M  112k 8740k 47.7M| 220M 3876M|5324k  222M|1.92 0.43 0.20| 300B  550B| 233   778
  1  27   0  72   0   0| 936M  112k 8900k 47.7M| 286M 3810M| 684k   59M|1.92 0.43 0.20| 154B  550B|21.0   323
  1  30   0  68   0   1| 936M  112k 8864k 47.7M| 453M 3643M| 284k  181M|1.92 0.43 0.20| 334B  550B|16.0   706
  2  38   0  59   0   1| 935M  532k 9036k 47.7M| 651M 3445M|1072k  196M|1.92 0.43 0.20| 334B  550B| 155   841
  2  35   0  63   0   0| 935M  672k 9344k 47.7M| 662M 3434M| 648k  120M|2.65 0.60 0.25| 274B  550B|20.0   706
  6  60   0  34   0   0| 342M  632k 8792k  641M|  99M 3997M|2960k   74M|2.65 0.60 0.25| 180B  550B| 153   272
  8  58   0  33   0   0| 932M  632k 8780k 50.9M| 320M 3776M| 996k  250M|2.65 0.60 0.25| 488B  550B|81.0   845
  1  25   0  74   0   0| 933M  632k 8792k 49.8M| 363M 3733M| 124k 3904k|2.65 0.60 0.25|   0   550B|4.00  16.0
  1  28   0  71   0   0| 936M  632k 8752k 47.7M| 600M 3496M| 432k  239M|2.65 0.60 0.25| 574B  550B|15.0   846
  2  28   0  70   0   0| 936M  632k 8780k 47.6M| 662M 3434M| 448k  154M|3.48 0.81 0.32| 274B  534B|21.0   470
  2  38   0  60   0   0| 936M  592k 8204k 47.6M| 566M 3530M|1384k  118M|3.48 0.81 0.32| 120B  550B|61.0   477
  6  48   0  46   0   1| 357M  176k 8232k  627M| 106M 3990M|6276k   70M|3.48 0.81 0.32|  60B  550B| 339   259
  0  25   0  75   0   0| 933M 80.0k 11.5M 47.8M| 630M 3466M| 320k  118M|16.0 13.9 7.84| 706B  832B|30.0   529
  1  29   0  70   0   0| 933M 80.0k 11.6M 47.7M| 738M 3358M| 208k  107M|16.0 13.9 7.84| 454B   66B|13.0   457
  5  39   0  56   0   0| 934M 88.0k 10.7M 47.8M| 694M 3402M|1440k   90M|16.0 13.9 7.84| 120B  550B|81.0   438
";

const FOUR_WORKERS: &str = "\
 17  83   0   0   0   0| 608M 3940k 32.1M  349M|   0  4096M| 336k 4096B|   0 0.01 0.38| 394B  374B|3.00  1.00
 18  82   0   0   0   0| 317M 3940k 32.2M  639M|   0  4096M|   0     0 |   0 0.01 0.38| 412B  534B|   0     0
 19  81   0   0   0   0| 572M 3940k 33.1M  384M|   0  4096M| 996k    0 |0.40 0.10 0.40| 330B 1052B|22.0     0
 17  83   0   0   0   0| 501M 3940k 33.1M  454M|   0  4096M|4096B    0 |0.40 0.10 0.40| 454B  684B|1.00     0
 16  84   0   0   0   0| 518M 3948k 33.1M  438M|   0  4096M|   0    12k|0.40 0.10 0.40| 574B  854B|   0  2.00
 16  84   0   0   0   0| 443M 3948k 33.1M  513M|   0  4096M|   0     0 |0.69 0.16 0.42| 180B  518B|   0     0
";

const SWAPOFF: &str = "\
  1  11   0  88   0   0| 114M 4664k 51.9M  822M|  74M 4022M|  10M    0 |0.08 0.04 1.05| 180B  150B|2624     0
  0   6   0  94   0   0| 124M 4664k 51.9M  812M|  63M 4033M|  10M    0 |0.08 0.04 1.05| 574B  534B|2568     0
  0  11   0  89   0   0| 133M 4664k 51.9M  803M|  52M 4044M|9016k    0 |0.08 0.04 1.05| 334B  534B|2254     0
  0  10   0  90   0   0| 143M 4664k 51.9M  793M|  36M 4060M|  10M    0 |0.08 0.04 1.05| 300B  534B|2624     0
  0  10   0  90   0   0| 152M 4664k 53.2M  782M|  23M 4073M|  10M    0 |0.08 0.04 1.05| 488B  534B|2637     0
";

const LOCKED: &str = "\
 21  79   0   0   0   0| 255M 2844k 66.4M  668M|   0  4096M|   0     0 |   0 0.52 0.50| 306B  892B|   0     0
 21  79   0   0   0   0| 172M 2844k 66.4M  751M|   0  4096M|   0     0 |   0 0.52 0.50| 454B   94B|   0     0
 20  80   0   0   0   0| 249M 2844k 66.4M  674M|   0  4096M|   0     0 |   0 0.52 0.50| 394B  518B|   0     0
 22  78   0   0   0   0| 229M 2844k 66.4M  694M|   0  4096M|   0     0 |0.33 0.54 0.51| 394B  518B|   0     0
";

/// A number of dstat's: a count with a unit letter, in bytes for sizes.
fn number(text: &str) -> f64 {
    let scale = match text.chars().last() {
        Some('B') => 1.0,
        Some('k') => 1024.0,
        Some('M') => 1024.0 * 1024.0,
        _ => return text.parse().unwrap(),
    };
    text[..text.len() - 1].parse::<f64>().unwrap() * scale
}

/// The readings whose differences dstat printed, two idle ones first, and the seconds of the load.
fn replay(text: &str) -> (Vec<Reading>, std::ops::Range<u64>) {
    let mut rows = vec![Reading::empty(0)];
    let mut sums = std::collections::BTreeMap::<Column, f64>::new();
    for (line, second) in IDLE.lines().chain(text.lines()).zip(1..) {
        let cells: Vec<f64> = line.split(['|', ' ']).filter(|cell| !cell.is_empty()).map(number).collect();
        let [usr, sys, idl, wai, hiq, siq, _used, buff, cach, free, _, swap_free, read, written, load1, ..] = cells[..]
        else {
            panic!("{line}")
        };
        let counted = [
            (CpuUser, usr),
            (CpuSystem, sys),
            (CpuIdle, idl),
            (CpuIowait, wai),
            (Column::CpuIrq, hiq),
            (Column::CpuSoftirq, siq),
            (DiskReadSectors, read / 512.0),
            (DiskWriteSectors, written / 512.0),
            (SwapIn, read / 4096.0),
            (SwapOut, written / 4096.0),
            (MajorFaults, cells[19]),
        ];
        let mut row = Reading::empty(second * SECOND);
        for (column, value) in counted {
            let sum = sums.entry(column).or_default();
            *sum += value;
            row.set(column, *sum as u64);
            rows[0].set(column, 0);
        }
        row.set(Load1, (load1 * 100.0) as u64);
        row.set(Column::MemTotal, MEMORY_KIB as u64);
        row.set(Column::MemAvailable, ((buff + cach + free) / 1024.0) as u64);
        row.set(SwapTotal, 4096 * 1024);
        row.set(SwapFree, (swap_free / 1024.0) as u64);
        rows.push(row);
    }
    let end = rows.len() as u64 - 1;
    (rows, 2..end)
}

fn run(text: &str, connections: u32, per_second: f64) -> Scene {
    let (rows, load) = replay(text);
    Scene::new(1).load(connections, per_second).limit(256).rows(rows, load)
}

#[test]
fn one_at_a_time_fills_the_only_cpu() {
    let diagnosis = check(&run(ONE, 1, 11.40), &expect!["cpu-bound |  | "]);
    assert_eq!(diagnosis.primary.numbers.get(Quantity::Connections), Some(1.0));
}

#[test]
fn ten_at_once_are_short_of_memory_not_of_cpu_and_not_of_disk() {
    let diagnosis = check(
        &run(TEN, 10, 1.49),
        &expect![
            "memory-thrash | worker-limit-too-high -> memory-thrash | not-cpu-waiting, not-cpu-load-average, not-disk-swap"
        ],
    );
    let numbers = |place: usize| &diagnosis.ruled_out[place].numbers;
    // The document: "about 30 to 60 %" of the CPU, a load average of 16, idle 0.
    let busy = numbers(0).get(Quantity::CpuBusy).unwrap();
    assert!((0.30..0.60).contains(&busy), "{busy}");
    assert_eq!(numbers(1).get(Quantity::LoadAverage), Some(16.0));
    assert_eq!(numbers(1).get(Quantity::CpuIdle), Some(0.0));
    assert!(numbers(2).get(Quantity::SwapShareOfDisk).unwrap() > 0.99);
    // What did not fit at the same moment cannot be seen; the document's author chose 4.
    let fit = diagnosis.contributing[0].numbers.get(Quantity::WorkersThatFit).unwrap();
    assert!((3.0..=5.0).contains(&fit), "{fit}");
}

#[test]
fn four_workers_are_right() {
    check(&run(FOUR_WORKERS, 10, 10.94).limit(4), &expect!["worker-limit-right | cpu-bound | "]);
}

#[test]
fn the_lock_serialises() {
    let (mut rows, load) = replay(LOCKED);
    rows.iter_mut().for_each(|row| row.set(TreeLockWaiters, 9));
    let scene = Scene::new(1).load(10, 11.03).limit(256).rows(rows, load);
    check(&scene, &expect!["lock-serialised | cpu-bound | "]);
}

#[test]
fn swapoff_is_no_verdict_on_the_server() {
    let (rows, _) = replay(SWAPOFF);
    let evidence = Evidence::watched(&Machine::watched(1.0, false), &Readings { rows, notes: vec![] });
    expect!["unexplained |  | not-cpu-waiting, not-disk-iowait"].assert_eq(&shown(&crate::judge(&evidence)));
}
