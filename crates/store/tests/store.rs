//! The store as its callers see it: what goes in comes out, whatever happens to the writer, the disk or the file.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests; clippy.toml excepts only test functions"
)]

mod recordings;
mod trouble;

use model::import::{Group, Import, Pick, Source};
use model::latency::Latency;
use model::load::{Counts, Failure, Generator, LoadEnd, LoadInterval, LoadResult, OpenLoop, Unanswered};
use model::plan::{self, Options};
use model::reading::{ABSENT, COLUMNS, Reading, Readings};
use model::run::{Anchor, HostFacts, RunEnd, RunHead};
use model::trial::{Beside, EffectiveSettings, Logged, Outcome, Stop, Trial};
use proptest::prelude::*;
use std::path::Path;
use store::{Kept, Kind, Store};

const PLAN: &str = "[server]\nkind = \"embedded\"\n[load.a]\npath = \"/\"\nconnections = 2\nduration = \"1s\"\n";

fn head(id: &str) -> RunHead {
    let (plan, plan_text) = plan::parse(PLAN, Path::new("plans/first.toml"), &Options::default()).unwrap();
    RunHead {
        id: id.into(),
        plan,
        plan_text,
        seed: 7,
        anchor: Anchor { mono_ns: 5, wall_ns: 1_763_680_000_000_000_000 },
        host: HostFacts { name: "host".into(), cpus: 2, ..HostFacts::default() },
        version: "0.1.0".into(),
        end: RunEnd::Unfinished,
        server_cpus: vec![0],
        load_cpus: vec![1],
        check: None,
    }
}

fn latency(values: impl IntoIterator<Item = u64>) -> Latency {
    let mut latency = Latency::new();
    values.into_iter().for_each(|us| latency.record(us));
    latency
}

fn trial(block: u32, rows: Vec<Reading>) -> Trial {
    let counts = Counts {
        good: 40,
        failed: [(Failure::Timeout, 2), (Failure::Status, 1)].into(),
        statuses: [(200, 40), (503, 1)].into(),
        bytes_in: 9000,
        bytes_out: 800,
        connects: 43,
        retries: 3,
    };
    let interval = |second: u64, failed: u64| LoadInterval {
        start_ns: second * 1_000_000_000,
        length_ns: 1_000_000_007,
        counts: Counts {
            failed: (failed > 0).then_some((Failure::Timeout, failed)).into_iter().collect(),
            ..counts.clone()
        },
        total: latency((1..=20).map(|i| i * 1000 * second)).pack(),
    };
    let load = || LoadResult {
        connections: 2,
        started_ns: 1_000_000_000,
        ended_ns: 3_000_000_000,
        end: LoadEnd::Stopped,
        counts: counts.clone(),
        intervals: vec![interval(1, 0), interval(2, 3)],
        total: latency(1..500),
        unanswered: Unanswered {
            latency: latency([5_000_000]),
            first_byte: latency([4_000_000]),
            service: latency([3_000_000]),
        },
        first_byte: latency([3, 4, 5]),
        connect: latency([1]),
        in_flight: 2,
        in_flight_ns: 4_000_000_000,
        body_bytes: Some(100),
        examples: [(Failure::Timeout, "no answer within 30 s".into())].into(),
        retry_example: Some("closed without an answer".into()),
        generator: Generator { threads: 1, cpu_ns: 100, cpus: vec![1], away: None },
        ..LoadResult::empty()
    };
    let visits = || LoadResult {
        total: latency([70, 80]),
        unanswered: Unanswered { latency: latency([900]), ..Unanswered::default() },
        open: Some(OpenLoop { arrived: 3, ..OpenLoop::default() }),
        ..load()
    };
    Trial {
        block,
        position: 1,
        cell: "as-is".into(),
        outcome: Outcome::EndedEarly(Stop::Thrash),
        began_ns: 3,
        settings: EffectiveSettings {
            server: "webdyno serve".into(),
            values: [("Workers".into(), "2".into())].into(),
            worker_limit: Some(2),
        },
        share: None,
        preflight: None,
        load: Some(load()),
        rate: Some(12.5),
        door: None,
        workers: None,
        others: None,
        probe: Some(visits()),
        beside: ["static", "a.b"]
            .into_iter()
            .zip([visits(), load()])
            .map(|(name, load)| Beside { name: name.into(), load })
            .collect(),
        readings: Readings { rows, notes: vec!["no PSI".into()] },
        notes: vec!["waited 10 s for the host to calm down".into()],
        status: Vec::new(),
        around: None,
        accounts: None,
        log_tail: "the end\n".into(),
        logged: Some(Logged { answered: 4000, lines: 3748, files: 1, ..Logged::default() }),
    }
}

fn invalid(block: u32) -> Trial {
    Trial {
        outcome: Outcome::Invalid("the server died".into()),
        load: None,
        probe: None,
        beside: vec![],
        ..trial(block, vec![])
    }
}

/// That two trials hold the same facts. Histograms are equal when they count the same, however much room each has.
fn same(found: &Trial, saved: &Trial) {
    let meta = |trial: &Trial| serde_json::to_value(trial).unwrap();
    assert_eq!(meta(found), meta(saved));
    assert_eq!(found.readings, saved.readings);
    same_load(found.probe.as_ref(), saved.probe.as_ref());
    same_load(found.load.as_ref(), saved.load.as_ref());
    found.beside.iter().zip(&saved.beside).for_each(|(a, b)| same_load(Some(&a.load), Some(&b.load)));
}

fn same_load(found: Option<&LoadResult>, saved: Option<&LoadResult>) {
    let (Some(found), Some(saved)) = (found, saved) else { return };
    let bounds = |load: &LoadResult| {
        [&load.unanswered.latency, &load.unanswered.first_byte, &load.unanswered.service].map(Clone::clone)
    };
    assert!(bounds(found) == bounds(saved));
    assert!(found.total == saved.total && found.first_byte == saved.first_byte && found.connect == saved.connect);
    assert_eq!(found.intervals.len(), saved.intervals.len());
    for (found, saved) in found.intervals.iter().zip(&saved.intervals) {
        let numbers = |interval: &LoadInterval| (interval.start_ns, interval.length_ns, interval.counts.clone());
        assert_eq!(numbers(found), numbers(saved));
        assert!(found.total == saved.total, "the histogram of the interval at {}", saved.start_ns);
    }
}

/// A store in a fresh folder that holds one run `id` with these trials.
fn stored(id: &str, trials: &[Trial]) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("deep/er/store.sqlite")).unwrap();
    store.begin(&head(id)).unwrap();
    trials.iter().for_each(|trial| store.save_trial(id, trial).unwrap());
    (folder, store)
}

/// What `store` says, as text.
fn refusal<T>(result: Result<T, store::StoreError>, store: &Store) -> String {
    let text = result.err().expect("a refusal").to_string();
    text.strip_prefix(&format!("{}: ", store.path().display())).expect("the file comes first").to_owned()
}

#[test]
fn what_goes_in_comes_out() {
    let mut row = Reading::empty(17);
    row.set(model::reading::Column::CpuUser, 99);
    let trials = [trial(0, vec![row]), invalid(0), trial(1, vec![])];
    let (_folder, mut store) = stored("20261120-1", &trials);
    store.finish("20261120-1", &RunEnd::Failed("why".into())).unwrap();
    let run = store.load("20261120-1").unwrap();
    assert_eq!(run.trials.len(), trials.len());
    run.trials.iter().zip(&trials).for_each(|(found, saved)| same(found, saved));
    let expected = RunHead { end: RunEnd::Failed("why".into()), ..head("20261120-1") };
    assert_eq!(format!("{:?}", run.head), format!("{expected:?}"));
}

#[test]
fn runs_are_found_by_prefix_and_by_latest() {
    let (_folder, mut store) = stored("20261120-aa", &[trial(0, vec![])]);
    store.begin(&head("20261121-ab")).unwrap();
    store.begin(&head("20261121-cd")).unwrap();
    store.finish("20261121-ab", &RunEnd::Complete).unwrap();
    let found = |wanted: &str| store.load(wanted).map(|run| run.head.id);
    assert_eq!(found("20261120").unwrap(), "20261120-aa");
    assert_eq!(found("latest").unwrap(), "20261121-cd");
    assert_eq!(refusal(found("20261122"), &store), "no run `20261122`; `webdyno runs` lists them");
    assert_eq!(refusal(found("%"), &store), "no run `%`; `webdyno runs` lists them");
    assert_eq!(
        refusal(found("20261121"), &store),
        "more than one run begins with `20261121`: 20261121-ab, 20261121-cd; give more of the id"
    );
    let list: Vec<_> = store.runs().unwrap().into_iter().map(|r| (r.id, r.plan, r.end, r.trials)).collect();
    let row = |id: &str, end, trials| (id.to_owned(), "first".to_owned(), end, trials);
    assert_eq!(
        list,
        [
            row("20261121-cd", RunEnd::Unfinished, 0),
            row("20261121-ab", RunEnd::Complete, 0),
            row("20261120-aa", RunEnd::Unfinished, 1)
        ]
    );
    assert_eq!(refusal(store.begin(&head("20261121-ab")), &store), "a run `20261121-ab` is already there");
    assert_eq!(refusal(store.save_trial("x", &invalid(0)), &store), "no run `x`; `webdyno runs` lists them");
    assert_eq!(refusal(store.finish("x", &RunEnd::Complete), &store), "no run `x`; `webdyno runs` lists them");
}

#[test]
fn an_empty_store_says_how_to_fill_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("s")).unwrap();
    assert_eq!(refusal(store.load("latest"), &store), "the store holds no run yet; make one with `webdyno run PLAN`");
    assert!(store.runs().unwrap().is_empty());
}

#[test]
fn whom_the_user_operates_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    // A store of the first format learns it too.
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/v1.sqlite"), &path).unwrap();
    let mut store = Store::open(&path).unwrap();
    assert!(!store.is_operated("example.test").unwrap());
    store.remember_operated("example.test").unwrap();
    store.remember_operated("example.test").unwrap();
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!((store.is_operated("example.test").unwrap(), store.is_operated("other.test").unwrap()), (true, false));
}

#[test]
fn texts_of_others_are_kept_beside_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    // A store of the first format learns it too.
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/v1.sqlite"), &path).unwrap();
    let mut store = Store::open(&path).unwrap();
    let group = Group { name: "as it was".into(), picks: vec![Pick { source: 0, line: 3 }] };
    let import = Import {
        id: "29990101-000000-abcd".into(),
        anchor: Anchor { mono_ns: 0, wall_ns: 5 },
        version: "0.1.0".into(),
        sources: vec![Source { name: "-".into(), text: "約\nab\n".into() }],
        groups: vec![group],
    };
    store.save_import(&import).unwrap();
    drop(store);
    let mut store = Store::open(&path).unwrap();
    let Kept::Import(found) = store.kept("latest").unwrap() else { panic!("an import is no run") };
    assert_eq!(found, import);
    let runs = store.runs().unwrap();
    assert_eq!((runs[0].kind, runs[0].plan.as_str(), runs[0].trials), (Kind::Import, "as it was", 0));
    assert_eq!(runs[1].kind, Kind::Run);
    assert!(matches!(store.kept(&runs[1].id).unwrap(), Kept::Run(_)));
    let told = "`29990101-000000-abcd` was imported, so it is no run of webdyno; `webdyno report 29990101-000000-abcd` shows it";
    assert_eq!(refusal(store.load("2999"), &store), told);
    let told = "a run `29990101-000000-abcd` is already there";
    assert_eq!(refusal(store.save_import(&import), &store), told);
}

/// Written once by the first format and kept; a field added since, without a default, would make every old run unreadable.
#[test]
fn a_store_of_the_first_format_is_still_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/v1.sqlite"), &path).unwrap();
    let mut store = Store::open(&path).unwrap();
    let run = store.load("latest").unwrap();
    assert_eq!((run.head.end, run.trials.len()), (RunEnd::Complete, 10));
    let invalid = run.trials.iter().filter(|trial| trial.load.is_none()).count();
    assert_eq!((invalid, run.trials[6].outcome.clone()), (1, Outcome::EndedEarly(Stop::Thrash)));
    let load = run.trials[0].load.as_ref().unwrap();
    assert!(load.counts.good > 300 && load.total.len() == load.counts.good && load.intervals.len() > 10);
    assert!(run.trials[0].readings.rows.len() > 10 && run.trials[0].readings.notes == ["locked memory refused"]);
    store.save_trial(&run.head.id, &run.trials[0]).unwrap();
    assert_eq!(store.load("latest").unwrap().trials.len(), 11);
}

fn readings() -> impl Strategy<Value = Vec<Reading>> {
    let value = prop_oneof![3 => 0..1_000_u64, 1 => Just(ABSENT), 1 => any::<u64>()];
    let row = (any::<u64>(), prop::collection::vec(value, COLUMNS))
        .prop_map(|(at_ns, values)| Reading { at_ns, values: values.try_into().unwrap() });
    prop::collection::vec(row, 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn readings_come_back_exactly(rows in readings()) {
        let (_folder, store) = stored("r", &[trial(0, rows.clone())]);
        let run = store.load("r").unwrap();
        prop_assert_eq!(&run.trials[0].readings.rows, &rows);
    }
}
