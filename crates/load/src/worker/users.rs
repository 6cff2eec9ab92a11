//! What a worker does in a load of users: pages asked for, what they need fetched, reloads, and those who give up or leave.

use super::Worker;
use crate::crowd::{Act, Then};
use crate::sink::{Ending, Sink};
use model::Nanos;

impl<S: Sink> Worker<'_, S> {
    /// What users do of their own accord.
    pub(super) fn act(&mut self, now: Nanos) {
        while let Some((seat, act, due_ns)) = self.crowd.as_mut().and_then(|crowd| crowd.act(now)) {
            if act != Act::Click {
                self.abandon(seat, now);
            }
            let Some(crowd) = &mut self.crowd else { return };
            match act {
                Act::Click => crowd.click(seat, due_ns, now),
                Act::Reload => crowd.reload(seat, now),
                Act::GiveUp => {
                    self.leave(seat, now);
                    continue;
                }
            }
            // That the user had to wait for us is our lateness, and part of what the user waited.
            crowd.begun_late(now.saturating_sub(due_ns));
            self.ask_for_page(seat, now);
        }
    }

    /// The page counts from when the user meant to have it; the request, as all of a user's, from when it is sent.
    pub(super) fn ask_for_page(&mut self, seat: usize, start_ns: Nanos) {
        let Some(crowd) = &mut self.crowd else { return };
        crowd.began(seat);
        let i = crowd.connections_of(seat).start;
        let progress = self.begin_kind(i, 0, None, start_ns);
        self.set_out(i, progress);
    }

    /// Goes on with the user of a connection. What fails at once leads here again, and waits its turn: a page may need more
    /// things than the stack is deep.
    pub(super) fn go_on(&mut self, i: usize, at: Nanos) {
        self.onward.push_back((i, at));
        if self.goes_on {
            return;
        }
        self.goes_on = true;
        while let Some((i, at)) = self.onward.pop_front() {
            self.fetch_more(i, at);
        }
        self.goes_on = false;
    }

    /// Fetches what the page needs on those of a user's connections that are free, or does what comes after the page.
    fn fetch_more(&mut self, i: usize, at: Nanos) {
        let Some(crowd) = &mut self.crowd else { return };
        let seat = crowd.seat_of(i);
        match crowd.then(seat) {
            Then::Leave => return self.leave(seat, at),
            Then::Think => return,
            Then::Wait => {}
        }
        for i in crowd.connections_of(seat) {
            if !self.connections[i].is_idle() {
                continue;
            }
            let Some(kind) = self.crowd.as_mut().and_then(|crowd| crowd.next_kind(seat, at)) else { return };
            let progress = self.begin_kind(i, kind, None, at);
            self.set_out(i, progress);
        }
    }

    /// Ends a user's requests on their way, and with them the connections.
    fn abandon(&mut self, seat: usize, at: Nanos) {
        let Some(crowd) = &mut self.crowd else { return };
        for i in crowd.connections_of(seat) {
            let connection = &mut self.connections[i];
            while !connection.is_idle() {
                self.in_flight.remove(i * self.line.depth + connection.oldest_place());
                self.sink.record(&connection.record(Ending::Abandoned, None, at));
                connection.forget_oldest();
                crowd.abandoned(1);
            }
            connection.close();
        }
        self.last_end = at;
    }

    /// A user's place is free for the next one.
    fn leave(&mut self, seat: usize, at: Nanos) {
        let Some(crowd) = &self.crowd else { return };
        let connections = crowd.connections_of(seat);
        let first = connections.start;
        connections.for_each(|i| self.connections[i].close());
        if self.connections[first].failures > 0 {
            self.rest(first, at);
        } else {
            self.enqueue(first, at);
        }
    }
}
