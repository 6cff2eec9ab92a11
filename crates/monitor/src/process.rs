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
use model::reading::{Column, Look};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::time::ClockId;
use std::ffi::OsString;
use std::io::Write;
use std::os::fd::AsFd;

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
    let environment = |what: &str| {
        let what = what.to_owned();
        move |error: Errno| Refusal { sentence: format!("the sampler {what}: {error}"), exit_code: 5 }
    };
    let mut ring = Ring::open(std::io::stdout().as_fd(), watch.shape())
        .map_err(environment("did not get its shared memory on standard output"))?;
    let (mut eyes, mut lookout, notes) = prepare(watch);
    ring.set_notes(&notes);
    let start = now();
    let mut appointments = Appointments::every(watch.period_ns, start).map_err(environment("cannot have a timer"))?;
    eyes.look(Some(Due { at: start, extra: false }));
    ring.publish(&eyes.look);
    let_go_of_the_parent().map_err(environment("cannot close its standard error"))?;
    let mut hurries = false;
    loop {
        let alarm = lookout.as_ref().and_then(Lookout::alarm);
        let come = appointments.wait(std::io::stdin().as_fd(), alarm).map_err(environment("lost its timer"))?;
        match come {
            Come::Due(due) => {
                eyes.look(Some(due));
                ring.publish(&eyes.look);
            }
            Come::End => {
                eyes.look(None);
                ring.publish(&eyes.look);
                return Ok(());
            }
            Come::Alarm | Come::Deaf => {}
        }
        if let (Some(lookout), Some(storm_period)) = (&mut lookout, watch.storm_period_ns) {
            match come {
                Come::Alarm => lookout.alarmed(now()),
                Come::Deaf => lookout.deaf(),
                _ => lookout.saw(&eyes.look.reading),
            }
            eyes.storm = Some(lookout.storm(now()));
            if eyes.storm != Some(hurries) {
                hurries = !hurries;
                let step = if hurries { storm_period } else { watch.period_ns };
                appointments.step(step, now()).map_err(environment("lost its timer"))?;
            }
        }
    }
}

/// Everything that may allocate, open or be refused.
fn prepare(watch: &Watch) -> (Eyes, Option<Lookout>, Vec<String>) {
    let mut notes = Vec::new();
    privileges::many_files();
    // Before the probes are opened: one of them starts a thread, which inherits it.
    privileges::priority(&mut notes);
    let lookout = watch.storm_period_ns.map(|_| Lookout::open(&watch.proc_root, &mut notes));
    let mut watch = watch.clone();
    if lookout.as_ref().is_some_and(Lookout::needs_counters) && !watch.parts.contains(&Part::Paging) {
        watch.parts.push(Part::Paging);
    }
    let mut probes = Probes::open(&watch);
    notes.append(&mut probes.notes);
    let storm = lookout.as_ref().map(|_| false);
    let mut eyes = Eyes { probes, look: Look::empty(0, watch.devices.numbers()), storm };
    for _ in 0..WARM_UP {
        eyes.look(None);
    }
    privileges::lock_memory(&mut notes);
    privileges::survive_oom(&watch.proc_root, &mut notes);
    (eyes, lookout, notes)
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
