//! The near end: brings the generator there, gives it orders, and puts what comes back into our own time.

use crate::arrival::Arrival;
use crate::clock::{Exchange, Offset};
use crate::error::RemoteError;
use crate::line::{Line, News};
use crate::message::{Answer, Blobs, Heard, Hello, Order};
use crate::program::Program;
use crate::sent::Sent;
use crate::shell;
use crate::{agent, result};
use load::{Control, Target};
use model::latency::Latency;
use model::load::{Away, LoadInterval, LoadResult};
use model::plan::{LoadSpec, Origin};
use model::run::HostFacts;
use model::trial::Preflight;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often to look whether the user wants to end.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// Round trips of which the shortest is taken.
const EXCHANGES: u64 = 8;

/// A generator on another machine. Dropping it ends it.
pub struct Remote {
    from: String,
    hello: Hello,
    address: Option<IpAddr>,
    line: RefCell<Line>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({} on {})", self.from, self.hello.host.name)
    }
}

impl Remote {
    /// Brings the generator there and starts it. `ssh` is the command to use, as a shell reads it; `exe` this program.
    ///
    /// # Errors
    /// When there is no way there, no place for it, or it does not run there.
    pub fn open(origin: &Origin, ssh: &OsStr, exe: &Path, interrupted: &AtomicBool) -> Result<Remote, RemoteError> {
        let from = origin.to_string();
        let program = Program::read(exe).map_err(RemoteError::Program)?;
        let no_way = |error: std::io::Error| RemoteError::NoWay {
            from: from.clone(),
            why: format!("cannot start ssh: {error}"),
        };
        let mut line = Line::ssh(ssh, &origin.destination, &shell::command(&program)).map_err(no_way)?;
        let mut arrival = Arrival::new(&from, origin, &program, &mut line, interrupted);
        arrival.take_in()?;
        let hello = arrival.hello()?;
        line.keep_alive();
        Ok(Remote { from, hello, address: origin.address, line: RefCell::new(line) })
    }

    /// What the other machine is.
    #[must_use]
    pub fn host(&self) -> &HostFacts {
        &self.hello.host
    }

    /// By which address it reaches this machine.
    ///
    /// # Errors
    /// When nobody knows, or it is none of this machine's.
    pub fn our_address(&self) -> Result<IpAddr, RemoteError> {
        let no_way = |why| RemoteError::NoWay { from: self.from.clone(), why };
        let say = "say by which of this machine's addresses it is reached from there: [load] address = \"...\"";
        let address = self.address.or(self.hello.sees);
        let address = address.ok_or_else(|| no_way(format!("its ssh does not tell where we come from; {say}")))?;
        if address.is_loopback() {
            return Err(no_way("that is this machine itself; leave `from` out".to_owned()));
        }
        // Only an address of our own can be listened on.
        match load::is_ours(&std::net::SocketAddr::new(address, 0).into()) {
            true => Ok(address),
            false => Err(no_way(format!(
                "it sees this machine as {address}, which is none of its addresses (is another machine in between?); {say}"
            ))),
        }
    }

    /// Makes room there for a load; gives what may run short.
    ///
    /// # Errors
    /// When the load cannot be sent from there.
    pub fn prepare(
        &self,
        spec: &LoadSpec,
        target: &Target,
        cpus: &[u32],
        interrupted: &AtomicBool,
    ) -> Result<Vec<String>, RemoteError> {
        let (sent, blobs) = Sent::of(spec, target, cpus)?;
        self.order(&Order::Prepare(sent), &blobs)?;
        match self.answer(&|| interrupted.load(Ordering::Relaxed))? {
            Some((Answer::Ready(notes), _)) => {
                Ok(notes.into_iter().map(|note| format!("on {}: {note}", self.hello.host.name)).collect())
            }
            None => Ok(Vec::new()),
            Some((other, _)) => Err(self.odd(&other)),
        }
    }

    /// Sends a load of few requests from there, and says what came back.
    ///
    /// # Errors
    /// When it cannot be sent.
    pub fn look(
        &self,
        spec: &LoadSpec,
        target: &Target,
        cpus: &[u32],
        interrupted: &AtomicBool,
    ) -> Result<Preflight, RemoteError> {
        let (sent, blobs) = Sent::of(spec, target, cpus)?;
        self.order(&Order::Look(sent), &blobs)?;
        let mut stopping = Stopping::default();
        loop {
            if stopping.is_due(interrupted.load(Ordering::Relaxed)) {
                self.order(&Order::Stop, &[])?;
            }
            match self.answer(&|| stopping.wakes(interrupted.load(Ordering::Relaxed)))? {
                Some((Answer::Looked(found), _)) => return Ok(found),
                None => self.not_forever(&stopping)?,
                Some((other, _)) => return Err(self.odd(&other)),
            }
        }
    }

    /// Runs a load there to its end and gives what it counted, all instants in our own time. Seconds are told as they come.
    ///
    /// # Errors
    /// When it cannot be sent, or the other machine is lost before it is over.
    pub fn run(
        &self,
        spec: &LoadSpec,
        target: &Target,
        cpus: &[u32],
        control: &mut Control<'_>,
        interrupted: &AtomicBool,
    ) -> Result<LoadResult, RemoteError> {
        let (sent, blobs) = Sent::of(spec, target, cpus)?;
        let before = self.clock()?;
        self.order(&Order::Load(sent), &blobs)?;
        let mut intervals = Vec::new();
        let mut stopping = Stopping::default();
        let (mut load, blobs) = loop {
            let asked = || control.stop.load(Ordering::Relaxed) || interrupted.load(Ordering::Relaxed);
            if stopping.is_due(asked()) {
                self.order(&Order::Stop, &[])?;
            }
            match self.answer(&|| stopping.wakes(asked()))? {
                None => self.not_forever(&stopping)?,
                Some((Answer::Interval(second), blobs)) => {
                    let total = Latency::decode(blobs.first().map_or(&[], Vec::as_slice));
                    let total = total.map_err(|error| self.lost(error.to_string()))?.pack();
                    let start_ns = before.ours(second.start_ns);
                    let interval = LoadInterval { start_ns, length_ns: second.length_ns, counts: second.counts, total };
                    (control.on_interval)(&interval);
                    intervals.push(interval);
                }
                Some((Answer::Done(result), blobs)) => break (result, blobs),
                Some((other, _)) => return Err(self.odd(&other)),
            }
        };
        result::unpack(&mut load, &blobs).map_err(|why| self.lost(why))?;
        let after = self.clock()?;
        before.bring_home(&mut load);
        load.intervals = intervals;
        load.generator.away = Some(Away {
            from: self.from.clone(),
            host: self.hello.host.clone(),
            offset_ns: before.offset_ns,
            uncertainty_ns: before.uncertainty(&after),
            round_trip_ns: before.round_trip_ns.min(after.round_trip_ns),
        });
        Ok(*load)
    }

    /// How far apart the clocks are now.
    fn clock(&self) -> Result<Offset, RemoteError> {
        let mut exchanges = Vec::new();
        for number in 1..=EXCHANGES {
            let sent_ns = self.order(&Order::Ping(number), &[])?;
            let (there_ns, back_ns) = loop {
                match self.heard(&|| false)? {
                    // Answers to what only kept the line alive come in between.
                    Some(Heard { at_ns, what: (Answer::Pong(of, there_ns), _) }) if of == number => {
                        break (there_ns, at_ns);
                    }
                    Some(Heard { what: (Answer::Pong(..), _), .. }) | None => {}
                    Some(Heard { what: (other, _), .. }) => return Err(self.odd(&other)),
                }
            };
            exchanges.push(Exchange { sent_ns, there_ns, back_ns });
        }
        Offset::of(&exchanges).ok_or_else(|| self.lost("it does not tell the time".to_owned()))
    }

    fn order(&self, order: &Order, blobs: &[Vec<u8>]) -> Result<u64, RemoteError> {
        let ordered = self.line.borrow().order(order, blobs);
        ordered.map_err(|_| self.ended(None))
    }

    /// The next answer that is no pong; `None` when `wakes` says so first.
    fn answer(&self, wakes: &dyn Fn() -> bool) -> Result<Option<(Answer, Blobs)>, RemoteError> {
        loop {
            match self.heard(wakes)? {
                Some(Heard { what: (Answer::Pong(..), _), .. }) => {}
                Some(heard) => return Ok(Some(heard.what)),
                None => return Ok(None),
            }
        }
    }

    fn heard(&self, wakes: &dyn Fn() -> bool) -> Result<Option<Heard<(Answer, Blobs)>>, RemoteError> {
        let since = Instant::now();
        loop {
            let next = self.line.borrow().next(LOOK);
            match next {
                Some(Heard { at_ns, what: News::Answer(answer, blobs) }) => {
                    return Ok(Some(Heard { at_ns, what: (answer, blobs) }));
                }
                Some(Heard { what: News::End(why), .. }) => return Err(self.ended(why)),
                Some(Heard { what: News::Line(_), .. }) => {}
                None if wakes() => return Ok(None),
                // It answers at least what keeps the line alive.
                None if since.elapsed() > agent::PATIENCE => {
                    return Err(self.lost(format!("nothing was heard of it for {} s", agent::PATIENCE.as_secs())));
                }
                None => {}
            }
        }
    }

    /// Whoever was told to stop and does not is lost.
    fn not_forever(&self, stopping: &Stopping) -> Result<(), RemoteError> {
        if stopping.since.is_some_and(|since| since.elapsed() > agent::PATIENCE) {
            return Err(self.lost("it does not stop".to_owned()));
        }
        Ok(())
    }

    fn ended(&self, why: Option<std::io::Error>) -> RemoteError {
        let said = self.line.borrow_mut().complaints().pop();
        let why = why.map(|why| why.to_string());
        self.lost(said.or(why).unwrap_or_else(|| "its generator was ended there".to_owned()))
    }

    fn lost(&self, why: String) -> RemoteError {
        RemoteError::Lost { from: self.from.clone(), why }
    }

    fn odd(&self, answer: &Answer) -> RemoteError {
        match answer {
            Answer::Refused(why) => RemoteError::Refused { from: self.from.clone(), why: why.clone() },
            _ => self.lost("it answers what nobody asked".to_owned()),
        }
    }
}

/// A wish to stop that is passed on once.
#[derive(Default)]
struct Stopping {
    since: Option<Instant>,
}

impl Stopping {
    fn is_due(&mut self, asked: bool) -> bool {
        let due = asked && self.since.is_none();
        if due {
            self.since = Some(Instant::now());
        }
        due
    }

    /// Whether there is something to do before the next answer.
    fn wakes(&self, asked: bool) -> bool {
        asked && self.since.is_none_or(|since| since.elapsed() > agent::PATIENCE)
    }
}

#[cfg(test)]
mod tests;
