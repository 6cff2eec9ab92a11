//! The sampler's own side: the hidden command `@sampler`.
//!
//! It finds its orders in its argument, the ring on its standard output and its life line on its standard input: when the other
//! end of that closes, because the parent said so or because it died, there is one last reading and the process ends. Standard
//! error is for a start that failed; it is closed once the first reading is published, which is how the parent knows.
//! While sampling it allocates nothing, writes nothing and opens nothing, apart from the stat files of new processes and, in a
//! thread that no reading waits for, the files that tell what processes share.

use crate::appointments::{Appointments, Come, Due, clock, now};
use crate::privileges;
use crate::probes::Probes;
use crate::ring::Ring;
use crate::storm::Lookout;
use crate::watch::{Part, Watch};
use model::Nanos;
use model::reading::{Column, Look};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::time::ClockId;
use std::ffi::OsString;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};

/// Readings taken before memory is locked, so that what they touch is there to be locked.
const WARM_UP: usize = 2;

/// Runs the sampler until its standard input is closed; the argument is a [`Watch`] as JSON. Returns the exit code.
#[must_use]
pub fn sampler_main(args: &[OsString]) -> u8 {
    match orders(args).and_then(|watch| sample(&watch)) {
        Ok(()) => 0,
        Err(refusal) => {
            // Nobody is left to tell when this fails too.
            let _ = writeln!(std::io::stderr(), "{}", refusal.sentence);
            refusal.exit_code
        }
    }
}

/// Why there can be no sampling.
struct Refusal {
    sentence: String,
    exit_code: u8,
}

fn orders(args: &[OsString]) -> Result<Watch, Refusal> {
    let usage = |sentence: String| Refusal { sentence, exit_code: 2 };
    let [json] = args else {
        return Err(usage("@sampler is started by webdyno itself, with one argument".to_owned()));
    };
    let watch = json
        .to_str()
        .ok_or("not UTF-8".to_owned())
        .and_then(|json| serde_json::from_str(json).map_err(|error| error.to_string()));
    watch.map_err(|error| usage(format!("@sampler cannot read its orders: {error}")))
}

fn sample(watch: &Watch) -> Result<(), Refusal> {
    let ring = Ring::open(std::io::stdout().as_fd(), watch.shape())
        .map_err(|error| environment("did not get its shared memory on standard output", error))?;
    let mut rounds = Rounds::begin(watch, ring).map_err(|error| environment("cannot have a timer", error))?;
    let_go_of_the_parent().map_err(|error| environment("cannot close its standard error", error))?;
    let life = std::io::stdin();
    while !rounds.next(life.as_fd()).map_err(|error| environment("lost its timer", error))? {}
    Ok(())
}

fn environment(what: &str, error: Errno) -> Refusal {
    let advice = if error == Errno::MFILE { "; raise the limit of open files (ulimit -n)" } else { "" };
    Refusal { sentence: format!("the sampler {what}: {error}{advice}"), exit_code: 5 }
}

/// The rounds of waiting and looking. From here on nothing is allocated.
struct Rounds {
    ring: Ring,
    eyes: Eyes,
    lookout: Option<Lookout>,
    appointments: Appointments,
    /// Between the appointments of the watch, and in a storm.
    period: Nanos,
    storm_period: Option<Nanos>,
    hurries: bool,
}

impl Rounds {
    /// Opens everything and takes the first reading.
    fn begin(watch: &Watch, mut ring: Ring) -> Result<Rounds, Errno> {
        let (mut eyes, lookout, notes) = prepare(watch);
        ring.set_notes(&notes);
        let start = now();
        let appointments = Appointments::every(watch.period_ns, start)?;
        eyes.look(Some(Due { at: start, extra: false }));
        ring.publish(&eyes.look);
        let (period, storm_period) = (watch.period_ns, watch.storm_period_ns);
        Ok(Rounds { ring, eyes, lookout, appointments, period, storm_period, hurries: false })
    }

    /// Waits for what comes next and does what it takes; true when the other end of `life` is closed.
    fn next(&mut self, life: BorrowedFd<'_>) -> Result<bool, Errno> {
        let alarm = self.lookout.as_ref().and_then(Lookout::alarm);
        let come = self.appointments.wait(life, alarm)?;
        match come {
            Come::Due(due) => {
                self.eyes.probes.follow(self.ring.root_order());
                self.publish(Some(due));
            }
            Come::End => {
                self.publish(None);
                return Ok(true);
            }
            Come::Alarm | Come::Deaf => {}
        }
        self.keep_pace(come)?;
        Ok(false)
    }

    fn publish(&mut self, due: Option<Due>) {
        self.eyes.look(due);
        self.ring.publish(&self.eyes.look);
    }

    /// Hurries in a storm, and stops to, if it is to hurry at all.
    fn keep_pace(&mut self, come: Come) -> Result<(), Errno> {
        let Some(lookout) = &mut self.lookout else { return Ok(()) };
        match come {
            Come::Alarm => lookout.alarmed(now()),
            Come::Deaf => lookout.deaf(),
            _ => lookout.saw(&self.eyes.look.reading),
        }
        let storm = lookout.storm(now());
        self.eyes.storm = self.storm_period.map(|_| storm);
        if storm != self.hurries {
            self.hurries = storm;
            self.eyes.probes.storm(storm);
            if let Some(storm_period) = self.storm_period {
                self.appointments.step(if storm { storm_period } else { self.period }, now())?;
            }
        }
        Ok(())
    }
}

/// Everything that may allocate, open or be refused.
fn prepare(watch: &Watch) -> (Eyes, Option<Lookout>, Vec<String>) {
    let mut notes = Vec::new();
    privileges::many_files();
    // Before the probes are opened: one of them starts a thread, which inherits it.
    privileges::priority(&mut notes);
    let lookout = lookout(watch, &mut notes);
    let mut watch = watch.clone();
    let needs_counters = lookout.as_ref().is_some_and(Lookout::needs_counters);
    if watch.storm_period_ns.is_some() && needs_counters && !watch.parts.contains(&Part::Paging) {
        watch.parts.push(Part::Paging);
    }
    let mut probes = Probes::open(&watch);
    notes.append(&mut probes.notes);
    let storm = watch.storm_period_ns.map(|_| false);
    let mut eyes = Eyes { probes, look: Look::empty(0, watch.devices.numbers()), storm };
    for _ in 0..WARM_UP {
        eyes.look(None);
    }
    privileges::lock_memory(&mut notes);
    privileges::survive_oom(&watch.proc_root, &mut notes);
    (eyes, lookout, notes)
}

/// Who looks out for storms: for readings that come more often in one, and for looks at a tree, which leave more to their own thread then.
/// The latter do without where the kernel gives no trigger.
fn lookout(watch: &Watch, notes: &mut Vec<String>) -> Option<Lookout> {
    if watch.storm_period_ns.is_some() {
        return Some(Lookout::open(&watch.proc_root, notes));
    }
    let has_tree = watch.root_pid.is_some() || watch.root_may_change;
    let lookout = (has_tree && !watch.lock_waiters).then(|| Lookout::open(&watch.proc_root, &mut Vec::new()));
    lookout.filter(|lookout| !lookout.needs_counters())
}

/// What looks, and what it saw last.
struct Eyes {
    probes: Probes,
    look: Look,
    /// Whether there is a storm, when that was asked for.
    storm: Option<bool>,
}

impl Eyes {
    /// One look; `due` is when it should have begun, if there was an appointment. Its cost is elapsed time: with a process tree
    /// most of it is waiting for the kernel's table of locks, after all other columns have been read.
    fn look(&mut self, due: Option<Due>) {
        let began = now();
        self.look.clear(began);
        // All clocks together, so that they tell of the same instant.
        self.look.reading.set(Column::WallNs, clock(ClockId::Realtime));
        self.look.reading.set(Column::BootNs, clock(ClockId::Boottime));
        self.probes.read(&mut self.look);
        let reading = &mut self.look.reading;
        reading.set(Column::SamplerLateNs, due.map_or(0, |due| began.saturating_sub(due.at)));
        if let Some(storm) = self.storm {
            reading.set(Column::SamplerStorm, storm.into());
            reading.set(Column::SamplerExtra, due.is_some_and(|due| due.extra).into());
        }
        reading.set(Column::SamplerCostNs, now().saturating_sub(began));
    }
}

/// Replaces standard output and error by nothing: the parent sees the end of the latter, and no stray line can reach the ring.
fn let_go_of_the_parent() -> Result<(), Errno> {
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocations;
    use crate::watch::{GroupDirs, Table};
    use model::SECOND;
    use model::device::{Device, DeviceKind, Roster};

    /// Rounds of a watch with a reading every two milliseconds, and how often they allocated.
    fn allocated_by(watch: &Watch) -> u64 {
        let watch = Watch { period_ns: SECOND / 500, capacity: 16, ..watch.clone() };
        let (ring, _file) = Ring::create(watch.shape()).unwrap();
        let (life, _other_end) = rustix::pipe::pipe().unwrap();
        let mut rounds = Rounds::begin(&watch, ring).unwrap();
        let before = allocations::so_far();
        for _ in 0..40 {
            assert!(!rounds.next(life.as_fd()).unwrap());
        }
        assert!(rounds.ring.published() > 20);
        allocations::so_far() - before
    }

    #[test]
    fn allocations_are_counted() {
        let before = allocations::so_far();
        drop(std::hint::black_box(vec![1, 2, 3]));
        assert_eq!(allocations::so_far() - before, 1);
    }

    #[test]
    fn looks_at_a_tree_know_of_storms_although_readings_do_not_hurry() {
        if Lookout::open(std::path::Path::new("/proc"), &mut Vec::new()).needs_counters() {
            return testkit::skip::not_here("no triggers of pressure");
        }
        let looks_out = |watch: &Watch| lookout(watch, &mut Vec::new()).is_some();
        let tree = Watch { root_pid: Some(std::process::id()), lock_waiters: false, ..Watch::default() };
        // The thread does everything then.
        let locks = Watch { lock_waiters: true, ..tree.clone() };
        assert_eq!([looks_out(&Watch::default()), looks_out(&tree), looks_out(&locks)], [false, true, false]);
        let (ring, _file) = Ring::create(tree.shape()).unwrap();
        let mut rounds = Rounds::begin(&tree, ring).unwrap();
        rounds.lookout.as_mut().unwrap().believe();
        rounds.keep_pace(Come::Alarm).unwrap();
        assert!(rounds.hurries && rounds.eyes.storm.is_none());
    }

    #[test]
    fn nothing_is_allocated_while_sampling() {
        let device = |kind, name: &str| Device { kind, name: name.to_owned() };
        let devices = vec![device(DeviceKind::Cpu, "0"), device(DeviceKind::Interface, "lo")];
        let everything = Watch {
            parts: Part::ALL.to_vec(),
            group: GroupDirs::default(),
            root_pid: Some(std::process::id()),
            storm_period_ns: Some(SECOND / 1000),
            port: Some(1),
            listeners: true,
            tables: vec![Table::Tcp, Table::Udp, Table::Raw, Table::Unix],
            devices: Roster { devices },
            ..Watch::default()
        };
        assert_eq!(allocated_by(&Watch::default()), 0, "the host's columns");
        assert_eq!(allocated_by(&everything), 0, "everything");
    }
}
