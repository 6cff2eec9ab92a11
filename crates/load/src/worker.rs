//! One thread's loop over its connections: the only request loop there is.
//!
//! Each connection waits for the kernel, or for the end of a pause after a failure, or has retired because no request is left.
//! The loop sleeps in one place, until the kernel has something or the next thing is due: a timeout, the end of a pause, a new
//! second, the end of the load.

use crate::connection::{Connection, Line, Progress, Why};
use crate::in_flight::InFlight;
use crate::machine::{monotonic_ns, thread_cpu};
use crate::sink::{Ending, Sink};
use crate::stop::{Allowance, Halt};
use http1::{Answer, Memo};
use model::load::{Failure, LoadEnd};
use model::{Nanos, SECOND};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::OnceLock;

/// What a worker holds every answer to.
#[derive(Clone, Copy)]
pub(crate) struct Expectation<'a> {
    /// The longest a request may take.
    pub(crate) timeout_ns: Nanos,
    /// Whether the length below binds.
    pub(crate) same_length: bool,
    /// Length of the first good body of any worker.
    pub(crate) body_bytes: &'a OnceLock<u64>,
}

/// One thread's share of the load.
pub(crate) struct Worker<'a, S> {
    line: Line,
    expectation: Expectation<'a>,
    allowance: Allowance<'a>,
    halt: &'a Halt<'a>,
    deadline: Nanos,
    sink: S,
    connections: Vec<Connection>,
    // Failures since the last complete answer, per connection.
    failures: Vec<u32>,
    in_flight: InFlight,
    // Connections with a request granted and not begun, by the time it shall begin.
    pauses: BinaryHeap<Reverse<(Nanos, usize)>>,
    // Connections that have not retired.
    busy: usize,
    // This worker's copy of the shared length, so that answers touch nothing shared.
    body_bytes: Option<u64>,
    last_end: Nanos,
    examples: BTreeMap<Failure, String>,
    retry_example: Option<String>,
    buffer: Vec<u8>,
    // The head that the server sent last, on any connection of this worker.
    memo: Memo,
}

/// What a worker leaves behind.
pub(crate) struct Finished<T> {
    /// What its sink made of the records.
    pub(crate) summary: T,
    /// Why it stopped.
    pub(crate) end: LoadEnd,
    /// The end of its window.
    pub(crate) ended_ns: Nanos,
    /// CPU time it used.
    pub(crate) cpu_ns: Nanos,
    /// One example per kind of failure.
    pub(crate) examples: BTreeMap<Failure, String>,
    /// What went before one of the requests that were sent again.
    pub(crate) retry_example: Option<String>,
}

impl<'a, S: Sink> Worker<'a, S> {
    /// A worker with so many connections, none of them open yet, that stops at `deadline`.
    pub(crate) fn new(
        line: Line,
        connections: u32,
        expectation: Expectation<'a>,
        allowance: Allowance<'a>,
        halt: &'a Halt<'a>,
        deadline: Nanos,
        sink: S,
    ) -> Worker<'a, S> {
        let count = connections as usize;
        Worker {
            line,
            expectation,
            allowance,
            halt,
            deadline,
            sink,
            connections: (0..u64::from(connections)).map(Connection::new).collect(),
            failures: vec![0; count],
            in_flight: InFlight::new(count),
            pauses: BinaryHeap::with_capacity(count),
            busy: count,
            body_bytes: None,
            last_end: 0,
            examples: BTreeMap::new(),
            retry_example: None,
            buffer: vec![0; READ_BUFFER],
            memo: Memo::default(),
        }
    }

    /// Sends requests until the load is over.
    pub(crate) fn run(mut self) -> Finished<S::Summary> {
        let cpu_before = thread_cpu();
        let began = monotonic_ns();
        self.last_end = began;
        for i in 0..self.connections.len() {
            self.grant(i, began);
        }
        let (end, ended_ns) = self.serve();
        self.cut_off(ended_ns);
        let cpu_ns = thread_cpu().saturating_sub(cpu_before);
        let Worker { sink, examples, retry_example, .. } = self;
        Finished { summary: sink.finish(), end, ended_ns, cpu_ns, examples, retry_example }
    }

    /// The loop; says why it ended and when the window closed.
    fn serve(&mut self) -> (LoadEnd, Nanos) {
        let mut events = Vec::with_capacity(self.connections.len().min(EVENTS));
        loop {
            let now = monotonic_ns();
            if self.busy == 0 {
                return (LoadEnd::Requests, self.last_end);
            }
            if now >= self.deadline {
                return (LoadEnd::Duration, self.deadline);
            }
            if self.halt.is_set() {
                return (LoadEnd::Stopped, now);
            }
            let next_second = self.sink.tick(now);
            self.expire(now);
            self.resume(now);
            let timeout = timespec(self.next_due(now, next_second).saturating_sub(now));
            events.clear();
            // Interrupted by a signal: as good as nothing ready.
            let _ = epoll::wait(&self.line.epoll, spare_capacity(&mut events), Some(&timeout));
            for event in &events {
                // Tokens are indices into `connections`.
                let i = event.data.u64() as usize;
                let progress = self.connections[i].advance(&self.line, &mut self.buffer, &mut self.memo);
                self.follow(i, progress);
            }
        }
    }

    /// Goes on with a connection until it has to wait.
    fn follow(&mut self, i: usize, mut progress: Progress) {
        loop {
            progress = match progress {
                Progress::Pending => return,
                // Known only after the deadline: the request was in flight when the load ended.
                Progress::Answered { at, .. } | Progress::Broken { at, .. } if at >= self.deadline => return,
                Progress::Answered { answer, at } => match self.answered(i, answer, at) {
                    Some(progress) => progress,
                    None => return,
                },
                Progress::Broken { ref why, .. } if self.connections[i].may_retry(why) => {
                    self.retry_example.get_or_insert_with(|| why.to_string());
                    self.connections[i].retry(&self.line)
                }
                Progress::Broken { why, at } => return self.broken(i, &why, at),
            }
        }
    }

    /// Judges a complete answer, and begins the next request straight away.
    fn answered(&mut self, i: usize, answer: Answer, at: Nanos) -> Option<Progress> {
        if at - self.connections[i].start_ns() > self.expectation.timeout_ns {
            // It came in the same wake-up that would have found it too late.
            let after = self.connections[i].received();
            self.broken(i, &Why::Late { after }, at);
            return None;
        }
        let ending = self.judge(answer);
        self.over(i, ending, Some(answer.status), at);
        self.failures[i] = 0;
        if !(answer.reusable && self.line.keep_alive) {
            self.connections[i].close();
        }
        if !self.allowance.take() {
            self.retire(i);
            return None;
        }
        self.in_flight.push(i);
        Some(self.connections[i].begin(&self.line, at))
    }

    fn judge(&mut self, answer: Answer) -> Ending {
        if !(200..300).contains(&answer.status) {
            return self.fail(Failure::Status, || format!("status {}", answer.status));
        }
        let shared = self.expectation.body_bytes;
        let expected = *self.body_bytes.get_or_insert_with(|| *shared.get_or_init(|| answer.body_bytes));
        if self.expectation.same_length && answer.body_bytes != expected {
            let received = answer.body_bytes;
            return self.fail(Failure::LengthDiffers, || {
                format!("a body of {received} bytes, where the first good one had {expected}")
            });
        }
        Ending::Good
    }

    /// A request without an answer: the connection is closed, and pauses before its next request.
    fn broken(&mut self, i: usize, why: &Why, at: Nanos) {
        let ending = self.fail(why.cause(), || why.to_string());
        self.over(i, ending, None, at);
        self.connections[i].close();
        self.failures[i] = self.failures[i].saturating_add(1);
        self.grant(i, at + pause_ns(self.failures[i]));
    }

    /// Grants a connection its next request at `due`, or retires it.
    fn grant(&mut self, i: usize, due: Nanos) {
        if self.allowance.take() {
            self.pauses.push(Reverse((due, i)));
        } else {
            self.retire(i);
        }
    }

    fn retire(&mut self, i: usize) {
        self.connections[i].close();
        self.busy -= 1;
    }

    /// Begins requests whose time has come; some at a time, so that opening many connections does not keep answers waiting.
    fn resume(&mut self, at: Nanos) {
        for _ in 0..BEGUN_AT_ONCE {
            let Some(&Reverse((due, i))) = self.pauses.peek() else { return };
            if due > at {
                return;
            }
            self.pauses.pop();
            self.in_flight.push(i);
            let progress = self.connections[i].begin(&self.line, monotonic_ns());
            self.follow(i, progress);
        }
    }

    /// Gives up on requests that have had their time.
    fn expire(&mut self, now: Nanos) {
        while let Some(i) = self.in_flight.oldest() {
            if now.saturating_sub(self.connections[i].start_ns()) < self.expectation.timeout_ns {
                return;
            }
            let after = self.connections[i].received();
            self.broken(i, &Why::Late { after }, now);
        }
    }

    fn cut_off(&mut self, at: Nanos) {
        while let Some(i) = self.in_flight.oldest() {
            self.in_flight.remove(i);
            // A request begun between the last look at the clock and the deadline.
            let at = at.max(self.connections[i].start_ns());
            self.sink.record(&self.connections[i].record(Ending::InFlight, None, at));
        }
    }

    fn over(&mut self, i: usize, ending: Ending, status: Option<u16>, at: Nanos) {
        self.in_flight.remove(i);
        self.last_end = at;
        self.sink.record(&self.connections[i].record(ending, status, at));
    }

    /// Notes an example of a failure unless there is one.
    fn fail(&mut self, cause: Failure, example: impl FnOnce() -> String) -> Ending {
        self.examples.entry(cause).or_insert_with(example);
        Ending::Failed(cause)
    }

    /// When the loop has to go round again, whatever the kernel has by then.
    fn next_due(&self, at: Nanos, next_second: Nanos) -> Nanos {
        let look_again = at + LOOK_FOR_HALT;
        let expiry = self
            .in_flight
            .oldest()
            .map_or(Nanos::MAX, |i| self.connections[i].start_ns().saturating_add(self.expectation.timeout_ns));
        let pause = self.pauses.peek().map_or(Nanos::MAX, |&Reverse((due, _))| due);
        look_again.min(self.deadline).min(next_second).min(expiry).min(pause)
    }
}

/// How long a connection pauses after so many failures in a row, in nanoseconds: 4 ms doubling to 256 ms. A server that is
/// gone is asked by each connection about four times a second, not in a spin; one that comes back is found within a quarter
/// of a second.
fn pause_ns(failures: u32) -> Nanos {
    4_000_000 << failures.saturating_sub(1).min(6)
}

fn timespec(nanos: Nanos) -> Timespec {
    // Both parts are far below what the types hold: a wait is never longer than `LOOK_FOR_HALT`.
    Timespec { tv_sec: (nanos / SECOND).cast_signed(), tv_nsec: (nanos % SECOND).cast_signed() }
}

/// Bytes read at once. A body of 64 kB in one call; larger gains little and leaves the cache.
const READ_BUFFER: usize = 128 * 1024;

/// Connections looked at in one wake-up.
const EVENTS: usize = 256;

/// Requests begun before answers are looked at again.
const BEGUN_AT_ONCE: usize = 64;

/// How late a wish to stop may be seen.
const LOOK_FOR_HALT: Nanos = 20_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_are_bounded() {
        let pauses: Vec<_> = [1, 2, 3, 7, 8, u32::MAX].into_iter().map(|n| pause_ns(n) / 1_000_000).collect();
        assert_eq!(pauses, [4, 8, 16, 256, 256, 256]);
    }
}
