//! Whether this machine has what a load takes of it: open files and local ports. Asked before the first connection.
//!
//! [`judge`] decides by numbers alone; [`prepare`] reads them and raises the limit on open files as far as it goes. For a plan only its
//! hard end is asked for ([`enough_for`]): servers inherit the limit, so it is raised by each load and for no longer.

use crate::ExperimentError;
use load::{Address, Target};
use model::plan::{LoadSpec, Pace, Plan};
use model::{Nanos, SECOND};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::iter::once;
use std::path::Path;

/// Files that are opened later: the sampler's pipes, the store, and one for each thread besides.
const SPARE_FILES: u64 = 10;
/// Where nobody chose, there is a thread for so many connections at most.
const CONNECTIONS_PER_THREAD: u64 = 256;
/// A closed connection keeps its port for so long.
const TIME_WAIT_S: f64 = 60.0;
/// Where the kernel may take the port of a closed connection again, it waits so long.
const REUSE_S: f64 = 1.0;

/// What a load takes.
#[derive(Debug, Clone, Copy)]
struct Needs {
    connections: u64,
    threads: u64,
    /// Connections opened in all, and how many of them in a second; where nobody knows, as many as the server allows.
    opened: f64,
    per_second: f64,
    /// Ports are taken, and so many addresses have some.
    addresses: Option<u64>,
    loopback: bool,
}

/// What the machine has.
#[derive(Debug, Clone, Copy)]
struct Has {
    files_open: u64,
    /// Limits on open files; `None` is none.
    files_soft: Option<u64>,
    files_hard: Option<u64>,
    ports: u64,
    /// `net.ipv4.tcp_tw_reuse`: 1 everywhere, 2 on loopback.
    reuse: u64,
}

/// What follows.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    /// The limit on open files has to be raised to this.
    raise_to: Option<u64>,
    warnings: Vec<String>,
}

/// Makes room for a load, and says what may run short.
///
/// # Errors
/// When its connections alone are more than this machine can have.
pub(crate) fn prepare(
    spec: &LoadSpec,
    probe: Option<Nanos>,
    target: &Target,
    proc: &Path,
) -> Result<Vec<String>, ExperimentError> {
    let verdict = judge(needs(spec, probe, target), has(proc)).map_err(ExperimentError::Missing)?;
    if let Some(files) = verdict.raise_to {
        let maximum = getrlimit(Resource::Nofile).maximum;
        // Where it is refused, connections fail and say so.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum });
    }
    Ok(verdict.warnings)
}

/// The most of so many connections, by halves, whose files this process may have open, and a sentence where these are fewer.
pub(crate) fn fitting(most: u32, spec: &LoadSpec, proc: &Path) -> (u32, Option<String>) {
    fits(most, spec, has(proc))
}

fn fits(most: u32, spec: &LoadSpec, has: Has) -> (u32, Option<String>) {
    let needed = |connections: u32| files(connections.into(), threads_of(spec, connections.into()), has, "-c");
    let mut fitting = most;
    while fitting > 1 && needed(fitting).is_err() {
        fitting /= 2;
    }
    let few = (fitting < most).then(|| {
        format!(
            "this process may have {} open files: no more than {fitting} connections can be tried; for {most} raise its hard limit \
             first, which only root may (ulimit -n, or LimitNOFILE= in a unit)",
            has.files_hard.unwrap_or_default()
        )
    });
    (fitting, few)
}

/// The same on behalf of another machine that gives the orders; the error is one for humans.
///
/// # Errors
/// As for a load of this machine's own.
pub fn prepare_away(spec: &LoadSpec, target: &Target) -> Result<Vec<String>, String> {
    prepare(spec, None, target, Path::new("/proc")).map_err(|error| error.to_string())
}

/// Whether the loads of every trial of a plan, those beside the cell's own included, can have their files open at once.
///
/// # Errors
/// When they cannot.
pub(crate) fn enough_for(plan: &Plan, proc: &Path) -> Result<(), ExperimentError> {
    if plan.origin.is_some() {
        // Another machine sends.
        return Ok(());
    }
    enough(plan, has(proc)).map_err(ExperimentError::Missing)
}

fn enough(plan: &Plan, has: Has) -> Result<(), String> {
    for cell in &plan.cells {
        let (mut connections, mut threads) = (0, 0);
        for load in once(plan.load(cell)).chain(&plan.beside) {
            connections += u64::from(load.connections);
            threads += threads_of(load, load.connections.into());
        }
        files(connections, threads, has, "`connections`")?;
    }
    Ok(())
}

fn needs(spec: &LoadSpec, probe: Option<Nanos>, target: &Target) -> Needs {
    let visits = probe.map_or(0, |every| u64::from(crate::probe::spec(spec, every).connections));
    let connections = u64::from(spec.connections) + visits;
    let seconds = spec.length_ns().map_or(f64::INFINITY, |length| length as f64 / SECOND as f64);
    let (opened, per_second) = match (&spec.pace, spec.keep_alive) {
        (_, true) => (connections as f64, 0.0),
        (Pace::Timetable(table), false) => {
            let due = spec.length_ns().map_or(f64::INFINITY, |length| table.expected(length));
            (due, due / seconds.max(1.0))
        }
        (Pace::WhenFree | Pace::Logged, false) => (f64::INFINITY, f64::INFINITY),
    };
    // A port is taken for each pair of an address of our own and one of the server.
    let pairs = (target.local.len().max(1) * target.address.all().len()) as u64;
    let addresses = (!matches!(target.address, Address::Unix(_))).then_some(pairs);
    let loopback = target.address.is_here();
    let opened = spec.requests.map_or(opened, |requests| opened.min((requests as f64).max(connections as f64)));
    let threads = threads_of(spec, connections);
    Needs { connections, threads, opened, per_second, addresses, loopback }
}

fn threads_of(spec: &LoadSpec, connections: u64) -> u64 {
    spec.threads.map_or(1 + connections / CONNECTIONS_PER_THREAD, u64::from)
}

fn has(proc: &Path) -> Has {
    let numbers = |name: &str| -> Vec<u64> {
        let text = std::fs::read_to_string(proc.join("sys/net/ipv4").join(name)).unwrap_or_default();
        text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    let limit = getrlimit(Resource::Nofile);
    let open = std::fs::read_dir(proc.join("self/fd")).map_or(0, |entries| entries.count() as u64);
    let ports = match numbers("ip_local_port_range")[..] {
        [first, last] if last >= first => last - first + 1,
        // The kernel's own default.
        _ => 28_232,
    };
    let reuse = numbers("tcp_tw_reuse").first().copied().unwrap_or(0);
    Has { files_open: open, files_soft: limit.current, files_hard: limit.maximum, ports, reuse }
}

/// What follows from the numbers; an error is one line that says what to do.
fn judge(needs: Needs, has: Has) -> Result<Verdict, String> {
    let files = files(needs.connections, needs.threads, has, "-c")?;
    let raise_to = has.files_soft.filter(|limit| *limit < files).map(|_| files);
    let Some(addresses) = needs.addresses else { return Ok(Verdict { raise_to, warnings: Vec::new() }) };
    let ports = has.ports * addresses;
    if needs.connections > ports {
        return Err(format!(
            "{} connections to one address take as many local ports and there are {ports}; lower -c, give more addresses of this \
             machine with --local, or widen net.ipv4.ip_local_port_range",
            needs.connections
        ));
    }
    let reused = has.reuse == 1 || (has.reuse == 2 && needs.loopback);
    let kept_s = if reused { REUSE_S } else { TIME_WAIT_S };
    // Where nobody knows how fast they are opened it is not as fast as ports come back.
    let at_once = if needs.per_second.is_finite() {
        needs.per_second * kept_s
    } else if reused {
        0.0
    } else {
        needs.opened
    };
    let short = at_once.min(needs.opened) > ports as f64;
    let warnings = if short { vec![few_ports(ports, kept_s)] } else { Vec::new() };
    Ok(Verdict { raise_to, warnings })
}

/// The files that so many connections take together with all else; an error, with the name of what to lower, when they are more than
/// this process can have.
fn files(connections: u64, threads: u64, has: Has, to_lower: &str) -> Result<u64, String> {
    let files = connections + threads + has.files_open + SPARE_FILES;
    let limit = match has.files_hard {
        Some(limit) if limit < files => limit,
        _ => return Ok(files),
    };
    let (take, lower) = match connections {
        // There is nothing to lower.
        1 => ("1 connection takes".to_owned(), String::new()),
        _ => (format!("{connections} connections take"), format!("lower {to_lower}, or ")),
    };
    Err(format!(
        "{take} {files} open files and this process may have {limit}; {lower}raise the limit first (above its hard limit only root may): \
         ulimit -n {files}"
    ))
}

fn few_ports(ports: u64, kept_s: f64) -> String {
    format!(
        "local ports may run out: each request opens a connection, there are {ports} ports, and a closed connection keeps its own \
         for {kept_s} s; give more addresses of this machine with --local, widen net.ipv4.ip_local_port_range, or set \
         net.ipv4.tcp_tw_reuse=1"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{Options, parse};

    const HAS: Has = Has { files_open: 10, files_soft: Some(1024), files_hard: Some(4096), ports: 28_000, reuse: 2 };

    fn needs(connections: u64) -> Needs {
        Needs {
            connections,
            threads: 1,
            opened: connections as f64,
            per_second: 0.0,
            addresses: Some(1),
            loopback: true,
        }
    }

    /// The limit to raise to and the beginning of each warning, or the beginning of what refuses.
    #[track_caller]
    fn check(needs: Needs, has: Has, expected: Result<(Option<u64>, &[&str]), &str>) {
        let found = judge(needs, has);
        match (&found, expected) {
            (Ok(verdict), Ok((raise_to, warnings))) => {
                assert_eq!((verdict.raise_to, verdict.warnings.len()), (raise_to, warnings.len()), "{verdict:?}");
                assert!(
                    verdict.warnings.iter().zip(warnings).all(|(found, start)| found.starts_with(start)),
                    "{verdict:?}"
                );
            }
            (Err(why), Err(start)) => assert!(why.starts_with(start), "{why}"),
            _ => panic!("{found:?}"),
        }
    }

    #[test]
    fn open_files_are_raised_or_refused() {
        check(needs(900), HAS, Ok((None, &[])));
        // A thousand connections fit below the usual limit.
        check(needs(1000), HAS, Ok((None, &[])));
        check(needs(1004), HAS, Ok((Some(1025), &[])));
        check(needs(4075), HAS, Ok((Some(4096), &[])));
        check(
            needs(4076),
            HAS,
            Err("4076 connections take 4097 open files and this process may have 4096; lower -c, or"),
        );
        let few = Has { files_soft: Some(20), files_hard: Some(20), ..HAS };
        check(
            needs(1),
            few,
            Err("1 connection takes 22 open files and this process may have 20; raise the limit first"),
        );
        check(needs(100_000), Has { files_soft: None, files_hard: None, ports: 200_000, ..HAS }, Ok((None, &[])));
    }

    #[test]
    fn who_may_have_few_files_tries_fewer_connections() {
        let spec = LoadSpec { threads: Some(1), ..LoadSpec::of("l", "/") };
        let check = |hard, expected: (u32, bool)| {
            let (most, few) = fits(512, &spec, Has { files_hard: hard, ..HAS });
            assert_eq!((most, few.is_some()), expected, "{few:?}");
        };
        check(None, (512, false));
        check(Some(533), (512, false));
        check(Some(532), (256, true));
        check(Some(40), (16, true));
        check(Some(3), (1, true));
    }

    #[test]
    fn a_plan_has_the_files_of_all_loads_of_a_trial() {
        let text = "aa = false\n[server]\nkind = \"embedded\"\n[load.own]\npath = \"/\"\nconnections = 600\nduration = \"1s\"\n\
                    [load.static]\nbeside = true\npath = \"/\"\nconnections = 600\nrate = \"5/s\"\n";
        let (plan, _) = parse(text, Path::new("t.toml"), &Options::default()).unwrap();
        let check = |hard, expected| assert_eq!(enough(&plan, Has { files_hard: hard, ..HAS }), expected);
        check(None, Ok(()));
        check(Some(1226), Ok(()));
        let refused = "1200 connections take 1226 open files and this process may have 1225; lower `connections`, or raise the limit \
                       first (above its hard limit only root may): ulimit -n 1226";
        check(Some(1225), Err(refused.to_owned()));
    }

    #[test]
    fn more_connections_than_ports_are_refused_but_for_several_addresses() {
        let has = Has { files_soft: None, files_hard: None, ..HAS };
        check(
            needs(28_001),
            has,
            Err("28001 connections to one address take as many local ports and there are 28000;"),
        );
        check(Needs { addresses: Some(2), ..needs(28_001) }, has, Ok((None, &[])));
        check(Needs { addresses: None, ..needs(28_001) }, has, Ok((None, &[])));
    }

    #[test]
    fn a_connection_per_request_may_run_short_of_ports() {
        let few = "local ports may run out: each request opens a connection, there are 28000 ports";
        let rate = |opened: f64, per_second: f64| Needs { opened, per_second, ..needs(10) };
        // On loopback ports come back after a second, elsewhere after a minute.
        check(rate(60_000.0, 1000.0), HAS, Ok((None, &[])));
        check(rate(600_000.0, 30_000.0), HAS, Ok((None, &[few])));
        let far = |needs: Needs| Needs { loopback: false, ..needs };
        check(far(rate(60_000.0, 1000.0)), HAS, Ok((None, &[few])));
        check(far(rate(20_000.0, 1000.0)), HAS, Ok((None, &[])));
        check(far(rate(60_000.0, 1000.0)), Has { reuse: 1, ..HAS }, Ok((None, &[])));
        check(far(Needs { addresses: Some(3), ..rate(60_000.0, 1000.0) }), HAS, Ok((None, &[])));
        check(rate(60_000.0, 1000.0), Has { reuse: 0, ..HAS }, Ok((None, &[few])));
        // A closed loop opens as many as the server allows.
        check(far(rate(f64::INFINITY, f64::INFINITY)), HAS, Ok((None, &[few])));
        check(rate(f64::INFINITY, f64::INFINITY), HAS, Ok((None, &[])));
        check(far(rate(5000.0, f64::INFINITY)), HAS, Ok((None, &[])));
    }

    #[test]
    fn this_machine_has_files_and_ports() {
        let has = has(Path::new("/proc"));
        assert!(has.files_open > 2 && has.ports > 0 && has.reuse <= 2, "{has:?}");
    }
}
