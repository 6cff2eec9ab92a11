//! A storm of deaths under load: children killed every 200 ms, stopped and continued, crashed in a handler, restarted gracefully. Seconds of
//! it each day, ten minutes for each processing module as a long check.

use crate::oracle::{Event, Killed, most_at_once, now_ns};
use crate::server::{Mpm, Server, kill, wait};
use rustix::process::Signal;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Threads share one group, and programs whose permits outlast their server another: those of mod_cgi, which are children of the request's
/// process in all processing modules. All of them share a memory budget, for six.
const TEXT: &str = "LoadModule cgi_module /usr/lib/apache2/modules/mod_cgi.so\nAdmissionBudget memory 600M\n\
                    AdmissionGroup threads limit=4 queue=6 timeout=5s cost=100M\n\
                    AdmissionGroup programs limit=3 queue=4 timeout=5s cost=100M\n\
                    AdmissionQueueWorkers 8\n<Location /page.probe>\nAdmissionUse threads\n</Location>\n\
                    <Location /page.cgi>\nAdmissionUse programs\nAdmissionHoldFd on\n</Location>\n";
const PREFORK: &str = "ServerLimit 64\nMaxRequestWorkers 32\nStartServers 24\nMinSpareServers 8\nMaxSpareServers 32\nMaxConnectionsPerChild 200\n";
const THREADS: &str = "ServerLimit 12\nStartServers 5\nThreadsPerChild 8\nMaxRequestWorkers 64\nMinSpareThreads 24\nMaxSpareThreads 64\n\
                       MaxConnectionsPerChild 400\n";
const CLIENTS: u64 = 14;
/// Between two kills.
const PACE: Duration = Duration::from_millis(200);

/// Numbers without a pattern, told apart by where they begin.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// What clients got.
#[derive(Default)]
struct Got {
    good: AtomicU64,
    turned_away: AtomicU64,
    other: AtomicU64,
    none: AtomicU64,
}

/// One client after the other, until it is over.
fn client(server: &Server, number: u64, got: &Got, over: &AtomicBool) {
    let mut random = Random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for n in 0.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let page = if random.below(4) == 0 { "page.cgi" } else { "page.probe" };
        let crash = if page == "page.probe" && random.below(200) == 0 { "&crash" } else { "" };
        let path = format!("/{page}?id={number}.{n}&work={}{crash}", random.below(20_000));
        let count = match server.try_get(&path).map(|answer| answer.status) {
            Some(200) => &got.good,
            Some(503) => &got.turned_away,
            Some(_) => &got.other,
            None => &got.none,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// What was done to the server.
#[derive(Default)]
struct Done {
    killed: Killed,
    kills: u64,
    stops: u64,
    restarts: u64,
    controllers: u64,
}

fn torment(server: &Server, lasts: Duration) -> Done {
    let mut random = Random(now_ns() | 1);
    let mut done = Done::default();
    let (began, mut stopped) = (Instant::now(), Vec::new());
    for turn in 1_u64.. {
        // The pace of the kills is what the goal names.
        std::thread::sleep(PACE);
        let workers = server.workers();
        let pick = |random: &mut Random| workers.get(random.below(workers.len().max(1) as u64) as usize).copied();
        if let Some(victim) = pick(&mut random) {
            done.killed.entry(victim).or_default().push(now_ns());
            kill(victim, Signal::KILL);
            done.kills += 1;
        }
        if turn % 25 == 5
            && let Some(victim) = pick(&mut random)
        {
            kill(victim, Signal::STOP);
            stopped.push((turn + 20, victim));
            done.stops += 1;
        }
        stopped.retain(|&(until, victim)| {
            if until <= turn {
                kill(victim, Signal::CONT);
            }
            until > turn
        });
        if turn % 20 == 11 {
            server.signal(Signal::USR1);
            done.restarts += 1;
        }
        if turn % 50 == 15
            && let Some(controller) = server.controller()
        {
            kill(controller, Signal::KILL);
            done.controllers += 1;
        }
        if began.elapsed() > lasts {
            stopped.into_iter().for_each(|(_, victim)| kill(victim, Signal::CONT));
            return done;
        }
    }
    unreachable!("turns do not end");
}

/// How long until the permit of a killed child is back, several times.
fn times_until_back(server: &Server, rounds: u64) -> Vec<Duration> {
    let one = |round| {
        let name = format!("back{round}");
        let _gate = server.gate(&name);
        let held = server.send(&format!("/page.probe?id={name}&gate={name}"));
        wait("the page has begun", || begun(server, &name).is_some());
        kill(begun(server, &name).expect("it has").pid, Signal::KILL);
        let killed = Instant::now();
        assert!(held.try_answer().is_none());
        wait("the permit is back", || server.number("threads", "/held") == 0);
        killed.elapsed()
    };
    (0..rounds).map(one).collect()
}

fn begun(server: &Server, id: &str) -> Option<Event> {
    server.events().into_iter().rev().find(|event| event.id == id)
}

/// What was found, as rows of a page, and what of it is wrong.
struct Found {
    page: String,
    wrong: Vec<String>,
}

impl Found {
    fn row(&mut self, what: &str, value: impl std::fmt::Display, right: bool) {
        let _ = writeln!(self.page, "| {what} | {value} | {} |", if right { "" } else { "WRONG" });
        if !right {
            self.wrong.push(format!("{what}: {value}"));
        }
    }

    fn note(&mut self, what: &str, value: impl std::fmt::Display) {
        self.row(what, value, true);
    }
}

fn storm(mpm: Mpm, lasts: Duration, rounds: u64) -> Option<Found> {
    let sizes = if mpm == Mpm::Prefork { PREFORK } else { THREADS };
    let server = Server::start(mpm, &format!("{TEXT}{sizes}LogLevel admission:error\n"))?;
    let (got, over, done) = (Got::default(), AtomicBool::new(false), Mutex::new(Done::default()));
    std::thread::scope(|scope| {
        for number in 1..=CLIENTS {
            let (server, got, over) = (&server, &got, &over);
            scope.spawn(move || client(server, number, got, over));
        }
        *done.lock().expect("no panic") = torment(&server, lasts);
        over.store(true, Ordering::Relaxed);
    });
    let done = done.into_inner().expect("no panic");
    let quiet = Instant::now();
    server.wait_idle();
    let idle = quiet.elapsed();
    // A machine that is busy with other tests may take longer than the goal.
    let allowed = Duration::from_secs(if rounds > 5 { 2 } else { 10 });
    let mut found = Found {
        page: format!(
            "# {}: {} s of kills under load\n\n| what | value | |\n|---|---|---|\n",
            mpm.name(),
            lasts.as_secs()
        ),
        wrong: Vec::new(),
    };
    tell_what_was_done(&mut found, &got, &done);
    tell_overlaps(&mut found, &server, &done.killed);
    // Minutes of events would be read again each time.
    server.put("log", "");
    found.row("all permits back after the last request (s)", format!("{:.3}", idle.as_secs_f64()), idle < allowed);
    let mut back = times_until_back(&server, rounds);
    back.sort();
    let worst = back.last().copied().unwrap_or_default();
    let seconds = |time: Duration| format!("{:.3}", time.as_secs_f64());
    found.note("permit of a killed child back, median (s)", seconds(back[back.len() / 2]));
    found.row("permit of a killed child back, longest (s)", seconds(worst), worst < allowed);
    tell_what_is_left(&mut found, &server);
    Some(found)
}

fn tell_what_was_done(found: &mut Found, got: &Got, done: &Done) {
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    found.note("children killed", done.kills);
    found.note("children stopped for four seconds", done.stops);
    found.note("controllers killed", done.controllers);
    found.note("graceful restarts", done.restarts);
    found.row("answers 200", of(&got.good), of(&got.good) > 0);
    found.note("answers 503", of(&got.turned_away));
    found.row("other answers", of(&got.other), of(&got.other) == 0);
    found.note("connections without an answer", of(&got.none));
}

fn tell_overlaps(found: &mut Found, server: &Server, killed: &Killed) {
    let all = server.events();
    // In a thread the process of the page is the server's; a program has one of its own.
    let (threads, programs): (Vec<Event>, Vec<Event>) = all.iter().cloned().partition(|event| event.child == event.pid);
    let crashed = threads.iter().filter(|event| event.word == "crash").count();
    found.note("crashes in a handler", crashed);
    let killed = with_crashes(&threads, killed);
    let most = most_at_once(&threads, &killed);
    found.row("most requests at once of living children, of 4", most, most <= 4);
    let most = most_at_once(&programs, &Killed::new());
    found.row("most programs at once, of 3", most, most <= 3);
    let most = most_at_once(&all, &killed);
    found.row("most of both at once, of 6 that memory is for", most, most <= 6);
}

/// A crash takes the other threads of its process along.
fn with_crashes(threads: &[Event], killed: &Killed) -> Killed {
    let mut all = killed.clone();
    threads
        .iter()
        .filter(|event| event.word == "crash")
        .for_each(|event| all.entry(event.pid).or_default().push(event.ns));
    all.values_mut().for_each(|times| times.sort_unstable());
    all
}

/// Nothing is turned away any more for no reason: all permits can be had, one after the other and all at once.
fn tell_what_is_left(found: &mut Found, server: &Server) {
    server.wait_idle();
    // mod_cgid's daemon was killed with the others, and who comes while another sets up its socket gets httpd's own 503.
    let no_daemon = || server.log().matches("unable to connect to cgi daemon").count();
    for page in ["page.probe", "page.cgi"] {
        let before = no_daemon();
        let answers = (0..100).map(|n| server.try_get(&format!("/{page}?id=after{n}")));
        let wrong: Vec<_> = answers.filter(|answer| answer.as_ref().is_none_or(|one| one.status != 200)).collect();
        let without = no_daemon() - before;
        if without > 0 {
            found.note(&format!("answers of {page} after it without a daemon of mod_cgid"), without);
        }
        let count = wrong.len().saturating_sub(without);
        found.row(&format!("wrong answers of {page} after it, of 100"), count, count == 0);
        if count > 0 {
            let _ =
                writeln!(found.page, "\n{wrong:?}\n{}\n{}\n", server.end_of("error.log"), server.end_of("access.log"));
        }
    }
    let gate = server.gate("all");
    let held: Vec<_> = (0..4).map(|n| server.send(&format!("/page.probe?id=all{n}&gate=all"))).collect();
    wait(&format!("four at once: {}", server.status()), || server.number("threads", "/held") == 4);
    gate.open();
    let good =
        held.into_iter().filter_map(crate::server::Pending::try_answer).filter(|answer| answer.status == 200).count();
    found.row("admitted at once after it, of 4", good, good == 4);
    server.wait_idle();
    let budget = server.status()["budget"].clone();
    let groups = ["threads", "programs"].map(|name| (name, server.group(name)));
    for (name, group) in groups.into_iter().chain([("memory", budget)]) {
        let counts = group["counts"].clone();
        let open = counts["open"].as_u64().unwrap_or(1);
        found.row(&format!("{name}: let through because the table could not say"), open, open == 0);
        found.note(&format!("{name}: counts"), counts);
    }
    let troubles = server.status()["troubles"].clone();
    let full = ["table_full", "cells_full", "owners_full"].iter().any(|name| troubles[*name] != 0);
    found.row("troubles", troubles, !full);
}

fn long(mpm: Mpm) {
    let Some(results) = testkit::skip::long_results() else { return };
    let Some(found) = storm(mpm, Duration::from_secs(600), 40) else { return };
    std::fs::write(results.join(format!("admission-kills-{}.md", mpm.name())), &found.page).expect("the results");
    assert!(found.wrong.is_empty(), "{}", found.page);
}

#[test]
fn long_check_admission_kills_prefork() {
    long(Mpm::Prefork);
}

#[test]
fn long_check_admission_kills_worker() {
    long(Mpm::Worker);
}

#[test]
fn long_check_admission_kills_event() {
    long(Mpm::Event);
}

/// Seconds of what the long checks do for minutes.
#[test]
fn a_short_storm() {
    for mpm in [Mpm::Prefork, Mpm::Worker, Mpm::Event] {
        let Some(found) = storm(mpm, Duration::from_secs(4), 2) else { return };
        assert!(found.wrong.is_empty(), "{}", found.page);
    }
}
