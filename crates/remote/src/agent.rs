//! The far end: carries out orders that come through its input, and ends with it.

use crate::frame;
use crate::message::{Answer, Hello, Interval, Order, language};
use crate::result;
use crate::sent::{Arrived, Sent};
use load::{Control, Target, monotonic_ns};
use model::plan::LoadSpec;
use model::run::HostFacts;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Whoever has not been heard of for so long is gone, though nobody says so: a machine without power closes no connection.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How long a load under way may take to end then.
const GRACE: Duration = Duration::from_secs(2);

/// Makes room for a load, or says for humans why it cannot be sent.
pub type Prepare = dyn Fn(&LoadSpec, &Target) -> Result<Vec<String>, String>;

/// What the far end is told of where it is.
pub struct Place<'a> {
    /// The machine.
    pub host: HostFacts,
    /// The address by which it sees the near end.
    pub sees: Option<IpAddr>,
    /// Makes room for a load and says what may run short, or why it cannot be sent from here.
    pub prepare: &'a Prepare,
}

/// Carries out orders until there are no more of them. They are waited for by their descriptor: a reader that buffers would
/// hide them.
///
/// # Errors
/// When nobody takes the answers.
pub fn serve(
    orders: impl Read + AsFd + Send + 'static,
    answers: impl Write + Send + 'static,
    place: &Place<'_>,
) -> io::Result<()> {
    let answers = Arc::new(Mutex::new(answers));
    let stop = Arc::new(AtomicBool::new(false));
    let hello = Hello { language: language(), host: place.host.clone(), sees: place.sees };
    tell(&answers, &Answer::Hello(Box::new(hello)), &[])?;
    let (sender, loads) = mpsc::channel();
    let (ears, halt) = (Arc::clone(&answers), Arc::clone(&stop));
    let done = Arc::new(AtomicBool::new(false));
    let is_done = Arc::clone(&done);
    thread::spawn(move || {
        listen(orders, &ears, &sender, &halt);
        drop(sender);
        halt.store(true, Ordering::Relaxed);
        // A load ends at once. What stays behind that nobody takes is not waited for.
        thread::sleep(GRACE);
        if !is_done.load(Ordering::Relaxed) {
            exit(1);
        }
    });
    let worked = work(&loads, &answers, place, &stop);
    done.store(true, Ordering::Relaxed);
    worked
}

/// Reads orders until they end; answers at once what needs no work.
fn listen(
    orders: impl Read + AsFd,
    answers: &Mutex<impl Write>,
    to: &Sender<(Order, Vec<Vec<u8>>)>,
    stop: &AtomicBool,
) {
    let mut orders = Patient(orders);
    while let Ok(Some((order, blobs))) = frame::read(&mut orders) {
        match order {
            Order::Ping(number) => {
                let now = monotonic_ns();
                if tell(answers, &Answer::Pong(number, now), &[]).is_err() {
                    return;
                }
            }
            Order::Stop => stop.store(true, Ordering::Relaxed),
            order => {
                // A stop that was asked for before is none of this one's.
                stop.store(false, Ordering::Relaxed);
                if to.send((order, blobs)).is_err() {
                    return;
                }
            }
        }
    }
}

fn work(
    orders: &Receiver<(Order, Vec<Vec<u8>>)>,
    answers: &Mutex<impl Write>,
    place: &Place<'_>,
    stop: &AtomicBool,
) -> io::Result<()> {
    for (order, blobs) in orders {
        let arrive = |sent: Box<Sent>| sent.arrive(blobs).ok_or_else(|| "the load is incomplete".to_owned());
        let answer = match order {
            Order::Prepare(sent) => {
                arrive(sent).and_then(|load| (place.prepare)(&load.spec, &load.target)).map(Answer::Ready)
            }
            Order::Look(sent) => arrive(sent).and_then(|load| {
                load::look(&load.spec, &load.target, &load.cpus, stop)
                    .map(Answer::Looked)
                    .map_err(|error| error.reason())
            }),
            Order::Load(sent) => match arrive(sent).and_then(|load| carry_out(&load, answers, place, stop)) {
                Ok((answer, blobs)) => {
                    tell(answers, &answer, &blobs)?;
                    continue;
                }
                Err(why) => Err(why),
            },
            // Answered where they are read.
            Order::Ping(_) | Order::Stop => continue,
        };
        tell(answers, &answer.unwrap_or_else(Answer::Refused), &[])?;
    }
    Ok(())
}

fn carry_out(
    load: &Arrived,
    answers: &Mutex<impl Write>,
    place: &Place<'_>,
    stop: &AtomicBool,
) -> Result<(Answer, Vec<Vec<u8>>), String> {
    // What may run short was asked for before.
    (place.prepare)(&load.spec, &load.target)?;
    let mut on_interval = |interval: &model::load::LoadInterval| {
        let model::load::LoadInterval { start_ns, length_ns, ref counts, ref total } = *interval;
        let message = Answer::Interval(Interval { start_ns, length_ns, counts: counts.clone() });
        if tell(answers, &message, &[total.bytes().to_vec()]).is_err() {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let mut control = Control { stop, on_interval: &mut on_interval };
    let result = load::run(&load.spec, &load.target, &load.cpus, &mut control).map_err(|error| error.reason())?;
    let blobs = result::pack(&result);
    Ok((Answer::Done(Box::new(result)), blobs))
}

fn tell(answers: &Mutex<impl Write>, answer: &Answer, blobs: &[Vec<u8>]) -> io::Result<()> {
    let mut answers: MutexGuard<'_, _> = answers.lock().unwrap_or_else(PoisonError::into_inner);
    frame::write(&mut *answers, answer, blobs)
}

/// A reader that gives up when nothing comes.
struct Patient<R>(R);

impl<R: Read + AsFd> Read for Patient<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let wait = Timespec { tv_sec: PATIENCE.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: 0 };
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        if poll(&mut fds, Some(&wait))? == 0 {
            return Err(ErrorKind::TimedOut.into());
        }
        self.0.read(into)
    }
}
