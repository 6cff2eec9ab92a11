//! Made up windows, in milliseconds.

use super::*;

const MS: u64 = 1_000_000;

fn request(start: u64, connected: u64, end: u64) -> Request {
    let [start_ns, connected, end_ns] = [start, connected, end].map(|ms| ms * MS);
    Request { due_ns: start_ns, start_ns, connect_ns: connected - start_ns, end_ns, status: 200 }
}

fn line(begin: u64, end: u64, pid: u32) -> Line {
    Line {
        begin_ns: (begin * MS) as i64,
        own_ns: (end - begin) * MS,
        pid,
        status: 200,
        thread: None,
        port: None,
        passed_on: false,
    }
}

fn process(pid: u32, parent: u32, begin: u64, end: u64) -> EndedProcess {
    let delays = Delays { on_cpu_ns: MS, ..Delays::default() };
    EndedProcess { pid, parent, at_ns: end * MS, elapsed_ns: (end - begin) * MS, delays }
}

#[test]
fn each_request_has_its_own_line() {
    let requests = [request(100, 101, 200), request(150, 151, 260), request(200, 201, 300), request(300, 301, 310)];
    // The first line is of a request that failed before, the second of one that failed meanwhile, the fourth was logged late; the last
    // request has none.
    let failed = Line { status: 503, ..line(105, 130, 3) };
    let lines = [line(90, 120, 1), failed, line(110, 198, 1), line(160, 288, 2), line(210, 298, 1)];
    assert_eq!(in_log(&requests, &lines), [Some(2), Some(3), Some(4), None]);
    // The kernel's accounts are of what failed, too.
    assert_eq!(others(&lines, &in_log(&requests, &lines), (100 * MS, 310 * MS)), [&failed]);
}

#[test]
fn a_window_put_together() {
    let requests = vec![request(100, 101, 200), request(100, 102, 300)];
    let server = b"100101000 97000 11 200 1 4000 -\n100205000 94000 11 200 1 4000 -\n".to_vec();
    let logs = Logs { server, fpm: Vec::new() };
    // The log's clock is the other one and 100 s.
    let ended =
        vec![process(50, 11, 110, 197), process(51, 11, 210, 298), process(60, 12, 0, 20), process(61, 50, 120, 130)];
    let series = |ms: [(u64, u64); 3]| {
        ms.map(|(at, on_cpu)| (at * MS, Delays { on_cpu_ns: on_cpu * MS, ..Delays::default() })).to_vec()
    };
    let books = Books {
        workers: [(11, series([(100, 1), (200, 2), (300, 5)])), (12, series([(100, 0), (200, 0), (300, 0)]))].into(),
        ended,
        threads: BTreeMap::new(),
        looks: vec![
            (150 * MS, 50, Doing::Swap),
            (250 * MS, 51, Doing::Other),
            (260 * MS, 51, Doing::Disk),
            (270 * MS, 11, Doing::Reclaim),
            (280 * MS, 11, Doing::Runnable),
            (202 * MS, 11, Doing::Other),
            (299 * MS, 77, Doing::Reclaim),
        ],
        look_ns: 50 * MS,
        queue: vec![(100 * MS, 2), (150 * MS, 1), (200 * MS, 0), (300 * MS, 9)],
        queue_was_full: false,
        cpu_by_parents_ns: Some(5 * MS),
        lost: false,
    };
    let window = (100 * MS, 300 * MS);
    let (wall_ns, threads) = (100_000 * MS as i64, Threads::new());
    let observed = Observed { requests, window, wall_ns, books, threads, turned_away: 0 };
    let accounts = observed.accounts(&logs, Crew { by_thread: false, one_by_one: true });
    let all = &accounts.all;
    assert_eq!((all.requests, all.total_ns, all.connect_ns), (2, 300 * MS, 3 * MS));
    let (before_ns, after_ns) = (103 * MS as i64, 3 * MS as i64);
    assert_eq!(all.server, Some(ServerTold { requests: 2, before_ns, before_kept_ns: 0, own_ns: 191 * MS, after_ns }));
    assert_eq!(all.queued_ns, Some(150 * MS));
    // The log knows nothing of 12, which is a backend; what 50 started is of 11's.
    assert_eq!((all.ended.processes, all.ended.elapsed_ns), (3, 185 * MS));
    assert_eq!(all.ended.cpu_by_parents_ns, None);
    assert_eq!(all.ended.looks, Looks { swap: 1, disk: 1, other: 1, ..Looks::default() });
    assert_eq!(all.workers.unwrap().delays.on_cpu_ns, 4 * MS);
    let seen = Looks { reclaim: 1, runnable: 1, ..Looks::default() };
    assert_eq!(all.workers.unwrap().blocked, Looks { other: 1, ..seen });
    // At 202 ms it was between two requests.
    assert_eq!(all.workers.unwrap().in_requests, Some(seen));
    let slowest = &accounts.slowest;
    assert_eq!((slowest.requests, slowest.total_ns), (1, 200 * MS));
    assert_eq!((slowest.ended.processes, slowest.ended.elapsed_ns), (1, 88 * MS));
    assert_eq!(slowest.ended.looks, Looks { disk: 1, other: 1, ..Looks::default() });
    // All of the 3 ms of a CPU that its worker took while it had no other.
    assert_eq!(slowest.workers.unwrap().delays.on_cpu_ns, 3_000_000);
    assert_eq!(accounts.lines_left, 0);
}

#[test]
fn without_a_log() {
    let observed = Observed {
        requests: vec![request(1, 1, 2)],
        window: (MS, 2 * MS),
        wall_ns: 0,
        books: Books::default(),
        threads: Threads::new(),
        turned_away: 0,
    };
    let crew = Crew { by_thread: false, one_by_one: false };
    let accounts = observed.accounts(&Logs { server: Vec::new(), fpm: Vec::new() }, crew);
    assert_eq!((accounts.all.server, accounts.all.queued_ns), (None, None));
    assert_eq!(accounts.slowest.workers.map(|workers| workers.delays), Some(Delays::default()));
}

/// Two threads of one process, and PHP-FPM behind them: the slowest waits for a process of its pool, works there, and is in both.
#[test]
fn threads_and_php_behind_them() {
    let requests = vec![request(100, 100, 120), request(100, 100, 200)];
    let server = b"100100000 20000 11 200 7 4001 proxy:a\n100100000 100000 11 200 8 4000 proxy:a\n".to_vec();
    let fpm = b"100 10000 51 200 4001\n100 60000 51 200 4000\n".to_vec();
    let series = |ms: [(u64, u64); 3]| {
        ms.map(|(at, on_cpu)| (at * MS, Delays { on_cpu_ns: on_cpu * MS, ..Delays::default() })).to_vec()
    };
    let books = Books {
        workers: [(11, series([(90, 1), (140, 5), (210, 9)])), (51, series([(90, 0), (140, 8), (210, 38)]))].into(),
        threads: [(12, series([(90, 0), (140, 2), (210, 2)])), (13, series([(90, 0), (140, 2), (210, 6)]))].into(),
        looks: vec![
            (115 * MS, 12, Doing::Other),
            (115 * MS, 13, Doing::Other),
            (115 * MS, 51, Doing::Runnable),
            (150 * MS, 13, Doing::Other),
            (150 * MS, 51, Doing::Disk),
            (190 * MS, 51, Doing::Runnable),
        ],
        ..Books::default()
    };
    let observed = Observed {
        requests,
        window: (100 * MS, 200 * MS),
        wall_ns: 100_000 * MS as i64,
        books,
        threads: [((11, 7), 12), ((11, 8), 13)].into(),
        turned_away: 0,
    };
    let logs = Logs { server, fpm };
    let accounts = observed.accounts(&logs, Crew { by_thread: true, one_by_one: false });
    let all = accounts.all.workers.unwrap();
    assert_eq!(all.in_requests, Some(Looks { runnable: 2, disk: 1, other: 1, ..Looks::default() }));
    assert_eq!((all.delays.on_cpu_ns, all.unheld_ns), ((8 + 38) * MS, 0));
    assert_eq!(all.front, Some(Front { on_cpu_ns: 8 * MS, cpu_wait_ns: 0, runnable: 0 }));
    let slowest = accounts.slowest.workers.unwrap();
    // Until 140 ms it waited for the process, which had the other.
    assert_eq!(slowest.in_requests, Some(Looks { runnable: 1, disk: 1, other: 1, ..Looks::default() }));
    // The thread's two until 140 ms, and all of the process's after that.
    assert_eq!(slowest.delays.on_cpu_ns, (2 + 30) * MS);
    // Of a thread that nobody knows nothing is seen until PHP-FPM has its request.
    let unknown =
        Observed { threads: Threads::new(), ..observed }.accounts(&logs, Crew { by_thread: true, one_by_one: false });
    assert_eq!(unknown.slowest.workers.map(|workers| workers.unheld_ns), Some(40 * MS));
}
