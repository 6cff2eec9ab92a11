//! One thread's loop over its connections: the only request loop there is.
//!
//! Each connection has requests in flight, waits in a queue for work, or rests after a failure. Whenever one has room the pacer
//! says whether a request may begin; all else is the same for every way of pacing. In a load of users the pacer says when they
//! come, and the crowd what each of them does on connections of their own. The loop sleeps in one place, until the
//! kernel has something or the next thing is due: an arrival, a timeout, the end of a rest, a new second, the end of the load.

mod users;

use crate::checks::Checks;
use crate::connection::{Connection, Heads, Inbox, Line, Progress};
use crate::crowd::Crowd;
use crate::exchange::Exchange;
use crate::in_flight::InFlight;
use crate::machine::{monotonic_ns, thread_cpu, wait_for_events, wake_on_time};
use crate::pacer::{Due, Pacer};
use crate::sink::{Ending, Record, Sink};
use crate::stop::{Gate, Halt, LOOK_FOR_HALT};
use crate::why::Why;
use http1::Answer;
use model::load::{Failure, LoadEnd, Sessions, TlsFacts};
use model::{Nanos, SECOND};
use rustix::event::epoll::EventFlags;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

/// What a worker holds every answer to.
#[derive(Clone, Copy)]
pub(crate) struct Expectation<'a> {
    /// The longest a request may take.
    pub(crate) timeout_ns: Nanos,
    /// Whether the lengths below bind.
    pub(crate) same_length: bool,
    /// Length of the first good body of any worker, for each kind of request.
    pub(crate) body_bytes: &'a [OnceLock<u64>],
}

/// How a worker waits and what it numbers its requests by.
#[derive(Clone, Copy)]
pub(crate) struct Habits {
    /// Its first request's number; the next one's is `stride` more.
    pub(crate) first: u64,
    /// How many workers share the numbers.
    pub(crate) stride: u64,
    /// Whether it asks the kernel again and again instead of sleeping.
    pub(crate) busy_poll: bool,
    /// Whether connections rest after a failure.
    pub(crate) rests: bool,
}

/// What of the load is one worker's, and how it goes about it.
pub(crate) struct Share<'a> {
    /// How many connections it has.
    pub(crate) connections: u32,
    /// What it holds answers to.
    pub(crate) expectation: Expectation<'a>,
    /// When its requests begin.
    pub(crate) pacer: Pacer<'a>,
    /// Its users, in a load of users.
    pub(crate) crowd: Option<Crowd>,
    /// How it waits and numbers.
    pub(crate) habits: Habits,
    /// What ends it before its time.
    pub(crate) halt: &'a Halt<'a>,
    /// What the load's first request waits behind or opens, if it goes alone.
    pub(crate) gate: Option<&'a Gate>,
    /// Nothing counts that happens later: the end of a closed loop. An open one waits for its last answers, and so does one that drains.
    pub(crate) deadline: Nanos,
}

/// One thread's share of the load.
pub(crate) struct Worker<'a, S> {
    line: Line<'a>,
    expectation: Expectation<'a>,
    pacer: Pacer<'a>,
    crowd: Option<Crowd>,
    habits: Habits,
    halt: &'a Halt<'a>,
    deadline: Nanos,
    sink: S,
    connections: Vec<Connection>,
    // Connections that have room, longest first.
    queue: VecDeque<usize>,
    // Connections that rest, by when they are ready again.
    resting: BinaryHeap<Reverse<(Nanos, usize)>>,
    // Requests in flight, by connection and place on it.
    in_flight: InFlight,
    // Requests whose bodies wait, by when they have waited long enough: connection and number.
    held: VecDeque<(Nanos, usize, u64)>,
    // Connections whose users go on, and since when; and whether that is being seen to.
    onward: VecDeque<(usize, Nanos)>,
    goes_on: bool,
    gate: Option<&'a Gate>,
    // Connections that have not begun because the first request goes alone.
    withheld: Range<usize>,
    // Whether there are no more requests.
    exhausted: bool,
    serial: u64,
    // This worker's copy of the shared lengths, so that answers touch nothing shared.
    body_bytes: Vec<Option<u64>>,
    last_end: Nanos,
    examples: BTreeMap<Failure, String>,
    retry_example: Option<String>,
    software: Option<String>,
    inbox: Inbox,
}

/// What a worker leaves behind.
pub(crate) struct Finished<T> {
    /// What its sink made of the records.
    pub(crate) summary: T,
    /// Why it stopped.
    pub(crate) end: LoadEnd,
    /// The end of its window.
    pub(crate) ended_ns: Nanos,
    /// The end of its last request, which may lie behind the window.
    pub(crate) last_ns: Nanos,
    /// CPU time it used.
    pub(crate) cpu_ns: Nanos,
    /// One example per kind of failure.
    pub(crate) examples: BTreeMap<Failure, String>,
    /// What went before one of the requests that were sent again.
    pub(crate) retry_example: Option<String>,
    /// What became of its users, if it had some.
    pub(crate) sessions: Option<Sessions>,
    /// What was kept of the last body on its first connection, if bodies are looked at.
    pub(crate) kept: Vec<u8>,
    /// What its first answer calls its server.
    pub(crate) software: Option<String>,
    /// What TLS came to.
    pub(crate) tls: Option<TlsFacts>,
}

impl<'a, S: Sink> Worker<'a, S> {
    /// A worker whose connections are not open yet, and what its records go to.
    pub(crate) fn new(line: Line<'a>, share: Share<'a>, sink: S) -> Worker<'a, S> {
        let Share { connections, expectation, pacer, crowd, habits, halt, gate, deadline } = share;
        let count = connections as usize;
        let depth = line.depth;
        Worker {
            body_bytes: vec![None; line.requests.len()],
            connections: (0..u64::from(connections)).map(|i| Connection::new(i, &line)).collect(),
            line,
            expectation,
            pacer,
            crowd,
            habits,
            halt,
            deadline,
            sink,
            queue: VecDeque::with_capacity(count),
            resting: BinaryHeap::with_capacity(count),
            in_flight: InFlight::new(count * depth),
            held: VecDeque::new(),
            onward: VecDeque::new(),
            goes_on: false,
            gate,
            withheld: 0..0,
            exhausted: false,
            serial: habits.first,
            last_end: 0,
            examples: BTreeMap::new(),
            retry_example: None,
            software: None,
            inbox: Inbox::new(),
        }
    }

    /// Sends requests until the load is over.
    pub(crate) fn run(mut self) -> Finished<S::Summary> {
        let cpu_before = thread_cpu();
        if self.pacer.calls().is_some() {
            wake_on_time();
        }
        self.last_end = monotonic_ns();
        match (&self.crowd, self.gate) {
            // A user's first connection stands for the seat.
            (Some(crowd), _) => (0..crowd.seats()).map(|seat| crowd.connections_of(seat).start).collect::<Vec<_>>(),
            (None, Some(gate)) if self.habits.first == 0 && !gate.is_open() => {
                self.withheld = 1..self.connections.len();
                vec![0]
            }
            (None, Some(gate)) => {
                gate.wait(self.halt, self.deadline);
                (0..self.connections.len()).collect()
            }
            (None, None) => (0..self.connections.len()).collect(),
        }
        .into_iter()
        .for_each(|i| self.enqueue(i, 0));
        let (end, ended_ns) = self.serve();
        self.release();
        self.cut_off(ended_ns);
        let cpu_ns = thread_cpu().saturating_sub(cpu_before);
        let last_ns = self.last_end.max(ended_ns);
        let Worker { sink, examples, retry_example, connections, crowd, software, line, .. } = self;
        let tls = line.tls.into_inner();
        let kept = connections.into_iter().next().map(Connection::into_body).unwrap_or_default();
        let sessions = crowd.map(|crowd| crowd.account(ended_ns));
        Finished {
            summary: sink.finish(),
            end,
            ended_ns,
            last_ns,
            cpu_ns,
            examples,
            retry_example,
            sessions,
            kept,
            software,
            tls,
        }
    }

    /// The loop; says why it ended and when the window closed.
    fn serve(&mut self) -> (LoadEnd, Nanos) {
        let mut events = Vec::with_capacity((self.connections.len() + 1).min(EVENTS));
        loop {
            let now = monotonic_ns();
            if self.sink.is_enough() {
                self.halt.broken.store(true, Ordering::Relaxed);
            }
            if self.halt.is_set() {
                // Stopping the wait for the last answers makes no window longer.
                return (LoadEnd::Stopped, now.min(self.closes_ns()));
            }
            if let Some(end) = self.is_over(now) {
                return end;
            }
            let next_second = self.sink.tick(now);
            self.expire(now);
            self.wake_up(now);
            self.let_go(now);
            self.act(now);
            let next_arrival = self.hand_out(now);
            if self.halt.is_closed() {
                self.close(now);
            }
            let due = self.next_due(now, next_second, next_arrival);
            // Where something is due at a time of its own it counts how long all that has just been done took.
            let is_punctual = next_arrival < Nanos::MAX || self.crowd.is_some();
            let now = if is_punctual { monotonic_ns() } else { now };
            let wait = due.saturating_sub(now);
            wait_for_events(&self.line.epoll, &mut events, if self.habits.busy_poll { 0 } else { wait });
            for event in &events {
                // Tokens are indices into `connections`.
                self.attend(event.data.u64() as usize, event.flags);
            }
        }
    }

    /// A timetable ends now, unless it has ended. What was due until now was handed out just before, as far as connections were free.
    fn close(&mut self, now: Nanos) {
        if self.pacer.calls().is_some_and(|calls| calls.end_at(now)) {
            self.sink.closes(now);
        }
    }

    fn is_over(&mut self, now: Nanos) -> Option<(LoadEnd, Nanos)> {
        if now >= self.deadline {
            return Some((LoadEnd::Duration, self.deadline));
        }
        let drains = self.pacer.drains(now);
        let Some(calls) = self.pacer.calls() else {
            // Users who are in the middle of something when the others are waited for do not go on with it.
            let is_done = drains || self.exhausted && self.crowd.as_ref().is_none_or(Crowd::is_empty);
            return (is_done && self.in_flight.is_empty()).then_some((LoadEnd::Requests, self.last_end));
        };
        let end = calls.end();
        if now < end {
            let over =
                calls.is_complete() && self.in_flight.is_empty() && self.crowd.as_ref().is_none_or(Crowd::is_empty);
            return over.then_some((LoadEnd::Requests, self.last_end));
        }
        // What is due begins as far as connections are free: that the load itself was late at the end is nothing that the server did. A user
        // would find nobody who goes on with him.
        if self.crowd.is_none() && self.hand_out(now) == now {
            return None;
        }
        // What finds no connection is never sent; what was sent is waited for, no longer than its own time.
        self.give_up_unsent(end);
        // The window is the timetable's; the last answers may come behind it.
        self.in_flight.is_empty().then_some((LoadEnd::Duration, end))
    }

    /// Where the window ends, if time ends it.
    fn closes_ns(&mut self) -> Nanos {
        self.pacer.calls().map_or(self.deadline, |calls| calls.end())
    }

    /// Does what an event asks for, and what follows from it.
    fn attend(&mut self, i: usize, ready: EventFlags) {
        let progress = self.connections[i].advance(&self.line, &mut self.inbox, ready);
        if self.gate.is_some() && (i > 0 || self.connections[i].oldest().first_byte_ns.is_some()) {
            self.release();
        }
        if self.connections[i].is_idle() {
            // The server closed a connection that waited for work, or sent what nobody asked for.
            if matches!(progress, Progress::Broken { .. }) || !self.inbox.is_empty() {
                self.connections[i].close();
            }
            self.inbox.clear();
            return;
        }
        self.follow(i, progress);
    }

    /// Goes on with a connection until it has to wait.
    fn follow(&mut self, i: usize, mut progress: Progress) {
        loop {
            progress = match progress {
                Progress::Pending => return,
                // Known only after the deadline: the request was in flight when the load ended.
                Progress::Answered { at, .. } | Progress::Broken { at, .. } if at >= self.deadline => {
                    return self.inbox.clear();
                }
                Progress::Answered { answer, at } => match self.answered(i, answer, at) {
                    Some(progress) => progress,
                    None => return,
                },
                Progress::Broken { why, at } if why.is_on_the_way() => {
                    match self.connections[i].elsewhere(&self.line) {
                        Some(progress) => progress,
                        None => return self.broken(i, &why, at),
                    }
                }
                Progress::Broken { ref why, at } if self.connections[i].may_retry(why, &self.line) => {
                    self.retry_example.get_or_insert_with(|| why.to_string());
                    let progress = self.connections[i].retry(&self.line);
                    self.hold(i, at);
                    progress
                }
                Progress::Broken { why, at } => return self.broken(i, &why, at),
            }
        }
    }

    /// Judges a complete answer, and begins the next request straight away.
    fn answered(&mut self, i: usize, answer: Answer, at: Nanos) -> Option<Progress> {
        let exchange = self.connections[i].oldest();
        if at - exchange.start_ns > self.expectation.timeout_ns {
            // It came in the same wake-up that would have found it too late.
            let after = exchange.bytes_in;
            self.broken(i, &Why::Late { after }, at);
            return None;
        }
        let ending = self.judge(i, exchange.kind, answer);
        if self.line.heads.get() != Heads::Nobodys {
            self.look_at_head(i);
        }
        self.over(i, ending, Some(answer), at);
        let connection = &mut self.connections[i];
        connection.failures = 0;
        let open = answer.reusable && self.line.keep_alive;
        if open {
            connection.catch_up(&self.line);
        }
        if open && !connection.is_idle() && !self.inbox.is_empty() {
            return Some(connection.parse(&self.line, &mut self.inbox));
        }
        // Bytes behind the last answer belong to no request of ours.
        let open = open && self.inbox.is_empty();
        self.inbox.clear();
        if !open {
            if !connection.is_idle() {
                return Some(Progress::broken(Why::Closed { after: 0 }, at));
            }
            connection.close();
        }
        self.fill(i, at)
    }

    fn look_at_head(&mut self, i: usize) {
        let head = self.connections[i].take_head();
        if self.software.is_none() {
            self.software = http1::field(&head, "server").map(|value| value.escape_ascii().to_string());
        }
        match self.line.heads.get() {
            Heads::First => self.line.heads.set(Heads::Nobodys),
            _ => self.sink.head(&head),
        }
    }

    fn judge(&mut self, i: usize, kind: usize, answer: Answer) -> Ending {
        let decided_by_check = self.line.checks.as_ref().is_some_and(Checks::decide_status);
        if !(200..300).contains(&answer.status) && !decided_by_check {
            return self.fail(Failure::Status, || format!("status {}", answer.status));
        }
        if let (Some(checks), Some(seen)) = (&self.line.checks, self.connections[i].seen())
            && let Some(missed) = checks.missed(answer, seen)
        {
            self.examples.entry(Failure::Check).or_insert_with(|| missed.to_string());
            return Ending::Failed(Failure::Check);
        }
        let shared = &self.expectation.body_bytes[kind];
        let expected = *self.body_bytes[kind].get_or_insert_with(|| *shared.get_or_init(|| answer.body_bytes));
        if self.expectation.same_length && answer.body_bytes != expected {
            let received = answer.body_bytes;
            return self.fail(Failure::LengthDiffers, || {
                format!("a body of {received} bytes, where the first good one had {expected}")
            });
        }
        Ending::Good
    }

    /// A connection without an answer: it is closed, and rests.
    fn broken(&mut self, i: usize, why: &Why, at: Nanos) {
        self.release();
        let mut blame = true;
        while !self.connections[i].is_idle() {
            let ending = if blame {
                self.fail(why.cause(), || why.to_string())
            } else {
                self.fail(Failure::ClosedEarly, || "one before it on the connection took too long".to_owned())
            };
            self.over(i, ending, None, at);
            // Only the oldest was late; those behind it go down with the connection.
            blame = !matches!(why, Why::Late { .. });
        }
        self.inbox.clear();
        self.connections[i].close();
        if let Some(crowd) = &self.crowd {
            let first = crowd.connections_of(crowd.seat_of(i)).start;
            self.connections[first].failures = self.connections[first].failures.saturating_add(1);
            // The user goes on without it, or leaves.
            return self.go_on(i, at);
        }
        let connection = &mut self.connections[i];
        if !self.habits.rests {
            return self.enqueue(i, at);
        }
        connection.failures = connection.failures.saturating_add(1);
        self.rest(i, at);
    }

    /// Lets all that was held back for the first request begin.
    fn release(&mut self) {
        if let Some(gate) = self.gate.take() {
            gate.open();
            std::mem::take(&mut self.withheld).for_each(|i| self.enqueue(i, 0));
        }
    }

    fn rest(&mut self, i: usize, at: Nanos) {
        self.connections[i].rests = true;
        self.resting.push(Reverse((at + rest_ns(self.connections[i].failures), i)));
    }

    /// Begins as many requests on a connection as it has room for and the pacer allows.
    fn fill(&mut self, i: usize, at: Nanos) -> Option<Progress> {
        if self.crowd.is_some() {
            self.go_on(i, at);
            return None;
        }
        if !self.queue.is_empty() && self.pacer.calls().is_none() {
            // Others stand in line, such as those that are not open yet: a busy server would never get to them.
            self.enqueue(i, at);
            return Some(self.connections[i].flush(&self.line));
        }
        loop {
            match self.pacer.next(at) {
                Due::Now(due_ns) => {
                    let progress = self.begin(i, due_ns, at);
                    if !matches!(progress, Progress::Pending) {
                        return Some(progress);
                    }
                    if !self.connections[i].has_room() {
                        break;
                    }
                }
                Due::At(_) => {
                    self.enqueue(i, at);
                    break;
                }
                Due::Never => {
                    self.exhausted = true;
                    // A server may have a worker wait for it that others could use.
                    if self.connections[i].is_idle() {
                        self.connections[i].close();
                    }
                    break;
                }
            }
        }
        Some(self.connections[i].flush(&self.line))
    }

    fn begin(&mut self, i: usize, due_ns: Option<Nanos>, start_ns: Nanos) -> Progress {
        self.begin_kind(i, self.line.requests.pick(self.serial), due_ns, start_ns)
    }

    fn begin_kind(&mut self, i: usize, kind: usize, due_ns: Option<Nanos>, start_ns: Nanos) -> Progress {
        let serial = self.serial;
        self.serial += self.habits.stride;
        let due_ns = due_ns.unwrap_or(start_ns);
        let (place, progress) = self.connections[i].begin(&self.line, kind, serial, due_ns, start_ns);
        self.hold(i, start_ns);
        self.in_flight.push(i * self.line.depth + place);
        progress
    }

    /// Sees to it that a body which waits for the server to ask for it does not wait for ever.
    fn hold(&mut self, i: usize, since: Nanos) {
        if let Some(serial) = self.connections[i].body_waits() {
            self.held.push_back((since.saturating_add(CONTINUE_AFTER), i, serial));
        }
    }

    fn enqueue(&mut self, i: usize, at: Nanos) {
        if self.connections[i].free_since.is_none() {
            self.connections[i].free_since = Some(at);
            self.queue.push_back(i);
        }
    }

    /// Gives requests that are due to connections that wait, some at a time, so that opening many does not keep answers
    /// waiting. Says when the next one is due.
    fn hand_out(&mut self, now: Nanos) -> Nanos {
        let mut begun = 0;
        while begun < BEGUN_AT_ONCE {
            let Some(&i) = self.queue.front() else { return Nanos::MAX };
            if !self.connections[i].is_free() {
                // It found work or broke while it stood here; whoever has room again comes back.
                self.queue.pop_front();
                self.connections[i].free_since = None;
                continue;
            }
            let due_ns = match self.pacer.next(now) {
                Due::Now(due_ns) => due_ns,
                Due::At(at) => return at,
                Due::Never => {
                    self.exhausted = true;
                    return Nanos::MAX;
                }
            };
            begun += 1;
            self.queue.pop_front();
            let free_since = self.connections[i].free_since.take().unwrap_or(now);
            let start_ns = monotonic_ns();
            let late_ns = start_ns.saturating_sub(due_ns.unwrap_or(start_ns).max(free_since));
            if let Some(crowd) = &mut self.crowd {
                let (seat, due_ns) = (crowd.seat_of(i), due_ns.unwrap_or(start_ns));
                crowd.begun_late(late_ns);
                crowd.arrive(seat, due_ns, start_ns);
                // Whoever comes new has no cookies.
                self.line.jars.get_mut().get_mut(seat).map(std::mem::take);
                self.ask_for_page(seat, start_ns);
                continue;
            }
            if due_ns.is_some() {
                self.sink.begun_late(late_ns);
            }
            let progress = self.begin(i, due_ns, start_ns);
            self.set_out(i, progress);
            if self.connections[i].is_free() {
                self.enqueue(i, start_ns);
            }
        }
        now
    }

    /// Lets connections that have rested wait for work again.
    fn wake_up(&mut self, now: Nanos) {
        while let Some(&Reverse((ready, i))) = self.resting.peek() {
            if ready > now {
                return;
            }
            self.resting.pop();
            self.connections[i].rests = false;
            self.enqueue(i, ready);
        }
    }

    /// Sends bodies that have waited long enough for the server to ask for them.
    fn let_go(&mut self, now: Nanos) {
        while let Some(&(until, i, serial)) = self.held.front() {
            let waits = self.connections[i].body_waits() == Some(serial);
            if waits && until > now {
                return;
            }
            self.held.pop_front();
            if waits {
                let progress = self.connections[i].send_body(&self.line);
                self.follow(i, progress);
            }
        }
    }

    /// Gives up on requests that have had their time.
    fn expire(&mut self, now: Nanos) {
        while let Some((i, exchange)) = self.longest_in_flight() {
            if now.saturating_sub(exchange.start_ns) < self.expectation.timeout_ns {
                return;
            }
            let after = exchange.bytes_in;
            self.broken(i, &Why::Late { after }, now);
        }
    }

    /// The request that began first of those in flight, and its connection.
    fn longest_in_flight(&self) -> Option<(usize, &Exchange)> {
        let slot = self.in_flight.oldest()?;
        let (i, place) = (slot / self.line.depth, slot % self.line.depth);
        Some((i, self.connections[i].exchange(place)))
    }

    /// Arrivals until `end` that no connection was free for.
    fn give_up_unsent(&mut self, end: Nanos) {
        self.exhausted = true;
        while let Some(due_ns) = self.pacer.calls().and_then(|calls| calls.take_before(end)) {
            match &mut self.crowd {
                Some(crowd) => crowd.turn_away(due_ns, end),
                None => self.sink.record(&Record::unsent(due_ns, end)),
            }
        }
    }

    fn cut_off(&mut self, at: Nanos) {
        self.give_up_unsent(at);
        while let Some((i, exchange)) = self.longest_in_flight() {
            // A request begun between the last look at the clock and the deadline.
            let at = at.max(exchange.start_ns);
            let place = self.connections[i].oldest_place();
            self.sink.record(&self.connections[i].record(Ending::InFlight, None, at));
            self.in_flight.remove(i * self.line.depth + place);
            self.connections[i].forget_oldest();
        }
    }

    fn over(&mut self, i: usize, ending: Ending, answer: Option<Answer>, at: Nanos) {
        let connection = &mut self.connections[i];
        self.in_flight.remove(i * self.line.depth + connection.oldest_place());
        self.last_end = at;
        self.sink.record(&connection.record(ending, answer, at));
        let kind = connection.oldest().kind;
        connection.forget_oldest();
        if let Some(crowd) = &mut self.crowd {
            crowd.over(crowd.seat_of(i), kind, ending, at);
        }
    }

    fn set_out(&mut self, i: usize, mut progress: Progress) {
        if matches!(progress, Progress::Pending) {
            progress = self.connections[i].flush(&self.line);
        }
        self.follow(i, progress);
    }

    /// Notes an example of a failure unless there is one.
    fn fail(&mut self, cause: Failure, example: impl FnOnce() -> String) -> Ending {
        self.examples.entry(cause).or_insert_with(example);
        Ending::Failed(cause)
    }

    /// When the loop has to go round again, whatever the kernel has by then.
    fn next_due(&mut self, now: Nanos, next_second: Nanos, next_arrival: Nanos) -> Nanos {
        let look_again = now + LOOK_FOR_HALT;
        let timeout_ns = self.expectation.timeout_ns;
        let expiry =
            self.longest_in_flight().map_or(Nanos::MAX, |(_, exchange)| exchange.start_ns.saturating_add(timeout_ns));
        let rested = self.resting.peek().map_or(Nanos::MAX, |&Reverse((ready, _))| ready);
        // Behind its end an open loop waits for its last answers only.
        let end = self.closes_ns();
        let end = if end > now { end } else { Nanos::MAX };
        let held = self.held.front().map_or(Nanos::MAX, |&(until, ..)| until);
        let act = self.crowd.as_ref().map_or(Nanos::MAX, Crowd::next_act);
        look_again.min(act).min(held).min(end).min(next_second).min(expiry).min(rested).min(next_arrival)
    }
}

/// How long a connection rests after so many failures in a row, in nanoseconds: 4 ms doubling to 256 ms. A server that is
/// gone is asked by each connection about four times a second, not in a spin; one that comes back is found within a quarter
/// of a second.
fn rest_ns(failures: u32) -> Nanos {
    4_000_000 << failures.saturating_sub(1).min(6)
}

/// Connections looked at in one wake-up.
const EVENTS: usize = 256;

/// Requests begun before answers are looked at again.
const BEGUN_AT_ONCE: usize = 64;

/// So long a body waits for the server to ask for it; then it is sent unasked: RFC 9110 section 10.1.1.
const CONTINUE_AFTER: Nanos = SECOND;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_double_and_are_bounded() {
        let rests: Vec<_> = [1, 2, 3, 7, 8, u32::MAX].into_iter().map(|n| rest_ns(n) / 1_000_000).collect();
        assert_eq!(rests, [4, 8, 16, 256, 256, 256]);
    }
}
