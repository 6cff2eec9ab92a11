//! How servers fare, asked without taking a worker: every worker is held by a client, and it is told all the same.

use crate::stage::{Stage, ask, eventually};
use model::status::WebStatus;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};
use testkit::skip::{not_here, skipped};

pub(crate) const TESTS: &[testkit::suite::Test] = &[
    ("the_scoreboard_is_read_with_all_workers_held", the_scoreboard_is_read_with_all_workers_held),
    ("nginx_tells_its_counters_apart", nginx_tells_its_counters_apart),
];

/// Longer than idle workers take to be given connections that are there.
const AWHILE: Duration = Duration::from_secs(1);

/// Clients that begin a request and do not end it.
fn holding(address: std::net::SocketAddr, clients: usize) -> Vec<TcpStream> {
    let hold = |_| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: t\r\n").unwrap();
        stream
    };
    (0..clients).map(hold).collect()
}

/// An Apache whose workers are all held: how many of them are busy, before and meanwhile.
fn check(mpm: &str, directives: &str, workers: usize) {
    let stage = Stage::new();
    let keys = format!("mpm = \"{mpm}\"\ndirectives = \"\"\"\n{directives}\n\"\"\"");
    let running = stage.start(&stage.plan("apache", &keys, ""), &[]).unwrap();
    if running.status.is_empty() {
        return not_here("the memory of another process may not be read");
    }
    let look = || running.status.look().web.unwrap();
    eventually("all are ready", || look().ready() == Some(workers as u64) && look().busy() == Some(0));
    let accesses = |web: WebStatus| match web {
        WebStatus::Apache { places, .. } => places.values().sum::<u64>(),
        WebStatus::Nginx { .. } | WebStatus::Embedded { .. } => 0,
    };
    assert!(accesses(look()) >= workers as u64);
    let served = || look().served().unwrap();
    let before = served();
    (0..5).for_each(|_| drop(ask(running.address, "GET /")));
    // What it says of itself on its own page, which counts those before it.
    let page = ask(running.address, "GET /server-status?auto");
    let total = page.lines().find_map(|line| line.strip_prefix("Total Accesses: ")?.parse::<u64>().ok()).unwrap();
    eventually("all are counted", || served() == before + 6);
    assert_eq!(total, before + 5, "{page}");
    eventually("all are ready again", || look().ready() == Some(workers as u64));
    // Many more than there are workers: event may take all of a few with one of its processes, and leave the other idle.
    let (mut held, mut since) = (holding(running.address, 3 * workers), Instant::now());
    eventually("all are busy", || {
        // event's listener may rest beside an idle worker, with a full accept queue, until a connection of its own ends.
        if since.elapsed() > AWHILE {
            (held, since) = (holding(running.address, 3 * workers), Instant::now());
        }
        look().busy() == Some(workers as u64) && look().ready() == Some(0)
    });
    drop(held);
    running.stop().unwrap();
}

fn the_scoreboard_is_read_with_all_workers_held() {
    if !["/usr/sbin/apache2", "/usr/sbin/httpd"].iter().any(|path| Path::new(path).exists()) {
        return skipped("there is no apache2");
    }
    check("prefork", "StartServers 4\nMaxRequestWorkers 4", 4);
    let threads = "ServerLimit 2\nStartServers 2\nThreadsPerChild 3\nThreadLimit 5\nMaxRequestWorkers 6\nMinSpareThreads 1\nMaxSpareThreads 6";
    check("worker", threads, 6);
    check("event", threads, 6);
}

fn nginx_tells_its_counters_apart() {
    if !Path::new("/usr/sbin/nginx").exists() {
        return skipped("there is no nginx");
    }
    let stage = Stage::new();
    let running = stage.start(&stage.plan("nginx", "directives = \"worker_processes 1\"", ""), &[]).unwrap();
    if running.status.is_empty() {
        return not_here("this nginx has no stub_status");
    }
    let look = || running.status.look().web.unwrap();
    assert_eq!(look().busy(), Some(0));
    let before = look().served().unwrap();
    (0..5).for_each(|_| drop(ask(running.address, "GET /")));
    assert_eq!(look().served(), Some(before + 6), "and the one that asks");
    let held = holding(running.address, 3);
    eventually("three are in work", || look().busy() == Some(3));
    drop(held);
    eventually("nobody is there", || look().busy() == Some(0));
    running.stop().unwrap();
}
