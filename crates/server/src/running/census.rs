//! Who used the CPUs beside a server: all processes counted several times, and what those that are neither the server's nor ours used
//! between two counts.
//!
//! They are told apart by session: what a program starts stays in it, so children that ended between two counts are their parents', and
//! a shell's job is one program. Kernel threads work for whoever gave them something to do, and count for nobody.

use super::PROC;
use super::processes::{Process, all, tree};
use model::others::{Others, Program};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

/// So many programs are kept.
const KEPT: usize = 32;
/// The parent of all kernel threads.
const KTHREADD: u32 = 2;
/// The parent of all orphans: their time becomes its own when they end.
const INIT: u32 = 1;

/// All processes at one instant.
#[derive(Debug)]
pub struct Census {
    at: Instant,
    everybody: Vec<Process>,
}

/// From one count to a later one.
pub type Between<'a> = (&'a Census, &'a Census);

impl Census {
    /// Counts now; it takes about a millisecond for a hundred processes.
    #[must_use]
    pub fn take() -> Census {
        Census { at: Instant::now(), everybody: all(Path::new(PROC)) }
    }

    /// How long ago it was taken.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.at.elapsed()
    }

    /// Those that are neither of the trees of `roots`, nor the kernel's, nor init.
    fn others(&self, roots: &[u32]) -> impl Iterator<Item = &Process> {
        let ours: BTreeSet<u32> =
            roots.iter().flat_map(|&root| tree(&self.everybody, root)).map(|process| process.pid).collect();
        self.everybody.iter().filter(move |process| {
            let kernels = process.pid == KTHREADD || process.parent == KTHREADD;
            // Orphans of a server that leads a session of its own are the server's.
            !kernels && process.pid != INIT && !ours.contains(&process.pid) && !ours.contains(&process.session)
        })
    }

    /// The same process as in another count.
    fn find(&self, process: &Process) -> Option<&Process> {
        self.by_pid(process.pid).filter(|known| known.started == process.started)
    }

    fn by_pid(&self, pid: u32) -> Option<&Process> {
        let place = self.everybody.binary_search_by_key(&pid, |process| process.pid).ok()?;
        Some(&self.everybody[place])
    }
}

/// What others than the trees of `roots` used: while nothing was sent, in all those times together, and in the window.
#[must_use]
pub fn others(calm: &[Between<'_>], window: Between<'_>, roots: &[u32], cpus: u32) -> Others {
    let length = |&(from, to): &Between<'_>| to.at.duration_since(from.at).as_nanos() as u64;
    let mut programs: BTreeMap<u32, Program> = BTreeMap::new();
    for (session, (used, most)) in used(window, roots) {
        let name = most.name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        programs.insert(session, Program { name, pid: most.pid, calm_ticks: 0, ticks: used });
    }
    for &between in calm {
        for (session, (used, _)) in used(between, roots) {
            if let Some(program) = programs.get_mut(&session) {
                program.calm_ticks += used;
            }
        }
    }
    let mut programs: Vec<Program> = programs.into_values().filter(|program| program.ticks > 0).collect();
    programs.sort_by_key(|program| std::cmp::Reverse(program.ticks));
    programs.truncate(KEPT);
    Others { cpus, calm_ns: calm.iter().map(length).sum(), window_ns: length(&window), programs }
}

/// By session what was used between two counts, and the process that used most.
fn used<'a>((from, to): Between<'a>, roots: &[u32]) -> BTreeMap<u32, (u64, &'a Process)> {
    let inherited = inherited(from, to);
    let mut sessions: BTreeMap<u32, (u64, u64, &Process)> = BTreeMap::new();
    for process in to.others(roots) {
        let before = from.find(process).map_or(0, |known| known.ticks);
        let before = before + inherited.get(&process.pid).copied().unwrap_or(0);
        let used = process.ticks.saturating_sub(before);
        let (sum, most, of) = sessions.entry(process.session).or_insert((0, 0, process));
        *sum += used;
        if used > *most {
            (*most, *of) = (used, process);
        }
    }
    sessions.into_iter().map(|(session, (sum, _, of))| (session, (sum, of))).collect()
}

/// What processes that ended between two counts had used before: it became their parents', or the parents' of those.
fn inherited(from: &Census, to: &Census) -> BTreeMap<u32, u64> {
    let mut inherited: BTreeMap<u32, u64> = BTreeMap::new();
    for ended in from.everybody.iter().filter(|process| to.find(process).is_none()) {
        let mut heir = from.by_pid(ended.parent);
        // A tree has no more generations than processes; the kernel's are no circle, and what was read one after the other might be.
        for _ in 0..from.everybody.len() {
            match heir.filter(|heir| to.find(heir).is_none()) {
                Some(gone) => heir = from.by_pid(gone.parent),
                None => break,
            }
        }
        if let Some(heir) = heir {
            *inherited.entry(heir.pid).or_default() += ended.ticks;
        }
    }
    inherited
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: u32 = 50;

    fn process(pid: u32, parent: u32, session: u32, ticks: u64) -> Process {
        let name = if pid == 21 { "ma\u{1b}ke".to_owned() } else { format!("p{pid}") };
        Process { pid, parent, session, name, threads: 1, ticks, started: u64::from(pid) }
    }

    /// What is told of processes that were there at a second's distance: name, number, ticks before and in the window.
    fn check(counts: [&[Process]; 3], expected: &[(&str, u32, u64, u64)]) {
        let began = Instant::now();
        let [a, b, c] = [0, 1, 2].map(|second| Census {
            at: began + Duration::from_secs(second),
            everybody: counts[second as usize].to_vec(),
        });
        let found = others(&[(&a, &b)], (&b, &c), &[OURS], 2);
        assert_eq!((found.cpus, found.calm_ns, found.window_ns), (2, 1_000_000_000, 1_000_000_000));
        let told: Vec<_> =
            found.programs.iter().map(|it| (it.name.as_str(), it.pid, it.calm_ticks, it.ticks)).collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn a_programs_children_are_the_programs() {
        let make = |ticks| process(9, 8, 8, ticks);
        let shell = process(8, 7, 8, 3);
        let compiler = |pid, ticks| process(pid, 9, 8, ticks);
        // The first compiler ends in the window, and its 80 ticks become make's, with 20 more of its own; a second one begins.
        check(
            [
                &[shell.clone(), make(0)],
                &[shell.clone(), make(5), compiler(20, 80)],
                &[shell.clone(), make(105), compiler(21, 60)],
            ],
            &[("ma?ke", 21, 85, 80)],
        );
    }

    /// A job of a shell that ends, with a shell in a session of its own: its time before is not the shell's.
    #[test]
    fn what_ended_is_not_used_again() {
        let shell = |ticks| process(8, 7, 8, ticks);
        let job = |ticks| vec![process(9, 8, 9, ticks), process(10, 9, 9, ticks)];
        let other = process(11, 8, 8, 500);
        let at = |shell: Process, more: Vec<Process>| [vec![shell], more].concat();
        check(
            [
                &at(shell(1), [job(0), vec![other.clone()]].concat()),
                &at(shell(1), [job(100), vec![other]].concat()),
                // Both of the job and the other one were waited for: 230 ticks, of which 30 are new, and 500.
                &at(shell(731), vec![]),
            ],
            &[("p8", 8, 0, 30)],
        );
    }

    #[test]
    fn the_server_the_kernel_and_init_are_nobody_else() {
        let at = |ticks| {
            vec![
                process(1, 0, 1, ticks),
                process(2, 0, 0, ticks),
                process(3, 2, 0, ticks),
                process(OURS, 1, OURS, ticks),
                process(51, OURS, 51, ticks),
                // An orphan of the server's.
                process(52, 1, OURS, ticks),
                process(60, 1, 60, ticks / 2),
            ]
        };
        check([&at(0), &at(100), &at(200)], &[("p60", 60, 50, 50)]);
    }

    #[test]
    fn whoever_did_nothing_in_the_window_is_not_told_of() {
        check([&[process(60, 1, 60, 0)], &[process(60, 1, 60, 90)], &[process(60, 1, 60, 90)]], &[]);
        check([&[], &[], &[process(60, 1, 60, 90)]], &[("p60", 60, 0, 90)]);
    }
}
