//! Users: who comes, fetches a page and what belongs to it, waits, gives up, reloads, thinks, and comes back or leaves.
//!
//! It knows no socket. The worker tells it how each request ended and asks what comes next; a **seat** is a user's place with the
//! few connections that a browser opens. Kind 0 of the load's requests is the page, all others are what belongs to it.

use crate::pacer::uniform;
use crate::sink::{Ending, micros};
use model::Nanos;
use model::load::{Failure, Sessions};
use model::plan::SessionSpec;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// One worker's users.
pub(crate) struct Crowd {
    behaviour: SessionSpec,
    kinds: usize,
    seats: Vec<Seat>,
    // When to look at which seat again; what is due there stands in the seat, so an outdated entry finds nothing.
    timers: BinaryHeap<Reverse<(Nanos, usize)>>,
    chance: ChaCha8Rng,
    // From then on nobody asks for anything any more.
    closes_ns: Nanos,
    account: Sessions,
}

/// What a user does of their own accord.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Asks for the page, having thought.
    Click,
    /// Asks for it again: what is on its way is abandoned.
    Reload,
    /// Is tired of waiting and leaves: what is on its way is abandoned.
    GiveUp,
}

/// What follows from what is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// The user still waits; there may be more to fetch.
    Wait,
    /// The page is there, or will not come; the user thinks.
    Think,
    /// The user leaves.
    Leave,
}

/// A user's place.
#[derive(Default, Clone)]
struct Seat {
    // When the page was asked for first, while it is awaited.
    clicked_ns: Option<Nanos>,
    // The next thing to fetch; none before the page itself is there.
    next_kind: Option<usize>,
    in_flight: usize,
    last_end_ns: Nanos,
    incomplete: bool,
    timed_out: bool,
    reloads: u32,
    click_at: Option<Nanos>,
    reload_at: Option<Nanos>,
    give_up_at: Option<Nanos>,
}

impl Crowd {
    /// Seats for users on so many connections, who ask for so many kinds of things and click until `closes_ns`.
    pub(crate) fn new(spec: &SessionSpec, kinds: usize, connections: u32, closes_ns: Nanos, seed: u64) -> Crowd {
        let seats = (connections / spec.connections.max(1)).max(1) as usize;
        Crowd {
            behaviour: spec.clone(),
            kinds,
            seats: vec![Seat::default(); seats],
            timers: BinaryHeap::new(),
            chance: independent(seed),
            closes_ns,
            account: Sessions::default(),
        }
    }

    /// How many seats there are.
    pub(crate) fn seats(&self) -> usize {
        self.seats.len()
    }

    /// Whose connection that is.
    pub(crate) fn seat_of(&self, connection: usize) -> usize {
        (connection / self.behaviour.connections.max(1) as usize).min(self.seats.len() - 1)
    }

    /// A seat's connections.
    pub(crate) fn connections_of(&self, seat: usize) -> Range<usize> {
        let each = self.behaviour.connections.max(1) as usize;
        seat * each..(seat + 1) * each
    }

    /// Whether nobody is there.
    pub(crate) fn is_empty(&self) -> bool {
        self.seats.iter().all(|seat| seat.clicked_ns.is_none() && seat.click_at.is_none())
    }

    /// A user comes, who meant to at `due_ns`.
    pub(crate) fn arrive(&mut self, seat: usize, due_ns: Nanos, now: Nanos) {
        self.account.users += 1;
        self.click(seat, due_ns, now);
    }

    /// The user asks for the page.
    pub(crate) fn click(&mut self, seat: usize, due_ns: Nanos, now: Nanos) {
        let give_up_at = self.behaviour.patience_ns.map(|patience| due_ns.saturating_add(patience));
        self.seats[seat] = Seat { clicked_ns: Some(due_ns), give_up_at, ..Seat::default() };
        self.look_again(seat, give_up_at);
        self.plan_reload(seat, now);
    }

    /// The user asks for the page again.
    pub(crate) fn reload(&mut self, seat: usize, now: Nanos) {
        let place = &mut self.seats[seat];
        (place.next_kind, place.in_flight, place.incomplete, place.timed_out) = (None, 0, false, false);
        place.reloads += 1;
        self.account.reloads += 1;
        self.plan_reload(seat, now);
    }

    /// The page itself is asked for.
    pub(crate) fn began(&mut self, seat: usize) {
        self.seats[seat].in_flight += 1;
    }

    /// The next thing that the page needs, if there is one and it is not too late; it is asked for.
    pub(crate) fn next_kind(&mut self, seat: usize, now: Nanos) -> Option<usize> {
        let kind = self.seats[seat].next_kind.filter(|&kind| kind < self.kinds && now < self.closes_ns)?;
        self.seats[seat].next_kind = Some(kind + 1);
        self.seats[seat].in_flight += 1;
        Some(kind)
    }

    /// A request of that seat is over.
    pub(crate) fn over(&mut self, seat: usize, kind: usize, ending: Ending, at: Nanos) {
        let place = &mut self.seats[seat];
        place.in_flight = place.in_flight.saturating_sub(1);
        place.last_end_ns = at;
        place.timed_out |= ending == Ending::Failed(Failure::Timeout);
        match (kind, ending) {
            (0, Ending::Good) => place.next_kind = Some(1),
            (0, _) => (place.incomplete, place.next_kind) = (true, Some(usize::MAX)),
            (_, Ending::Good) => {}
            _ => place.incomplete = true,
        }
    }

    /// What follows from all that is over. A page that is there, or will not come, is counted now.
    pub(crate) fn then(&mut self, seat: usize) -> Then {
        let place = &mut self.seats[seat];
        let Some(clicked_ns) = place.clicked_ns else {
            return if place.click_at.is_some() { Then::Think } else { Then::Leave };
        };
        let page_failed = place.next_kind == Some(usize::MAX);
        let more = place.next_kind.is_none_or(|next| next < self.kinds);
        if more || place.in_flight > 0 {
            return Then::Wait;
        }
        let (at, timed_out) = (place.last_end_ns, place.timed_out);
        let took = micros(at.saturating_sub(clicked_ns));
        (place.clicked_ns, place.reload_at, place.give_up_at) = (None, None, None);
        if place.incomplete {
            self.account.incomplete += 1;
            if timed_out {
                // What it waited for would have come later still.
                self.account.page_at_least.record(took);
            }
        } else {
            self.account.pages += 1;
            self.account.page.record(took);
        }
        if page_failed || at >= self.closes_ns || self.uniform() > self.behaviour.returns {
            return Then::Leave;
        }
        self.account.returned += 1;
        let thought = (-self.uniform().ln() * self.behaviour.think_ns as f64) as Nanos;
        let click_at = Some(at.saturating_add(thought));
        self.seats[seat].click_at = click_at;
        self.look_again(seat, click_at);
        Then::Think
    }

    /// What a user does by `now`, if anybody does anything, and when they meant to.
    pub(crate) fn act(&mut self, now: Nanos) -> Option<(usize, Act, Nanos)> {
        while let Some(&Reverse((at, seat))) = self.timers.peek() {
            if at > now {
                return None;
            }
            self.timers.pop();
            let place = &mut self.seats[seat];
            if place.give_up_at == Some(at) {
                self.account.gave_up += 1;
                if let Some(clicked_ns) = place.clicked_ns {
                    self.account.page_at_least.record(micros(at.saturating_sub(clicked_ns)));
                }
                self.seats[seat] = Seat::default();
                return Some((seat, Act::GiveUp, at));
            }
            if place.reload_at == Some(at) && now < self.closes_ns {
                return Some((seat, Act::Reload, at));
            }
            if place.click_at.take_if(|click_at| *click_at == at).is_some() && now < self.closes_ns {
                return Some((seat, Act::Click, at));
            }
        }
        None
    }

    /// When somebody may do something next.
    pub(crate) fn next_act(&self) -> Nanos {
        self.timers.peek().map_or(Nanos::MAX, |&Reverse((at, _))| at)
    }

    /// A user who meant to come at `due_ns` has found no place until `end`.
    pub(crate) fn turn_away(&mut self, due_ns: Nanos, end: Nanos) {
        self.account.turned_away += 1;
        self.account.page_at_least.record(micros(end.saturating_sub(due_ns)));
    }

    /// So many requests were abandoned.
    pub(crate) fn abandoned(&mut self, requests: u64) {
        self.account.abandoned += requests;
    }

    /// A page was asked for so long after a user meant to.
    pub(crate) fn begun_late(&mut self, late_ns: Nanos) {
        self.account.lateness.record(micros(late_ns));
    }

    /// What became of the users until it was over.
    pub(crate) fn account(mut self, over_ns: Nanos) -> Sessions {
        for clicked_ns in self.seats.iter().filter_map(|seat| seat.clicked_ns) {
            self.account.page_at_least.record(micros(over_ns.saturating_sub(clicked_ns)));
        }
        self.account
    }

    fn plan_reload(&mut self, seat: usize, now: Nanos) {
        let more = self.seats[seat].reloads < self.behaviour.reloads;
        let reload_at = self.behaviour.reload_after_ns.filter(|_| more).map(|after| now.saturating_add(after));
        self.seats[seat].reload_at = reload_at;
        self.look_again(seat, reload_at);
    }

    fn look_again(&mut self, seat: usize, at: Option<Nanos>) {
        if let Some(at) = at {
            self.timers.push(Reverse((at, seat)));
        }
    }

    /// Above 0, at most 1.
    fn uniform(&mut self) -> f64 {
        uniform(&mut self.chance)
    }
}

/// Chance that has nothing to do with when users come, which is drawn from the low streams of the same seed.
fn independent(seed: u64) -> ChaCha8Rng {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    chance.set_stream(u64::MAX);
    chance
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SECOND;

    const MS: Nanos = 1_000_000;

    fn spec() -> SessionSpec {
        SessionSpec {
            connections: 2,
            think_ns: SECOND,
            returns: 0.0,
            patience_ns: None,
            reload_after_ns: None,
            reloads: 0,
        }
    }

    /// One user for a page with two things, whose requests end so, in order; what follows from the last one.
    #[track_caller]
    fn check(spec: &SessionSpec, endings: &[(usize, Ending)], expected: Then) -> Sessions {
        let mut crowd = Crowd::new(spec, 3, 2, Nanos::MAX, 1);
        crowd.arrive(0, 0, 0);
        crowd.began(0);
        let mut then = Then::Wait;
        for &(kind, ending) in endings {
            assert_eq!(then, Then::Wait);
            if kind > 0 {
                assert_eq!(crowd.next_kind(0, 0), Some(kind));
            }
            crowd.over(0, kind, ending, 10 * MS);
            then = crowd.then(0);
        }
        assert_eq!(then, expected);
        crowd.account(10 * MS)
    }

    #[test]
    fn a_page_is_there_when_all_of_it_is() {
        use Ending::{Failed, Good};
        let failed = Failed(Failure::Status);
        assert_eq!(check(&spec(), &[(0, Good)], Then::Wait).pages, 0);
        assert_eq!(check(&spec(), &[(0, Good), (1, Good)], Then::Wait).pages, 0);
        let whole = check(&spec(), &[(0, Good), (1, Good), (2, Good)], Then::Leave);
        assert_eq!(
            (whole.users, whole.pages, whole.incomplete, whole.page.percentile_us(50.0).map(|us| us / 100)),
            (1, 1, 0, Some(100))
        );
        let part = check(&spec(), &[(0, Good), (1, failed), (2, Good)], Then::Leave);
        assert_eq!((part.pages, part.incomplete, part.page_at_least.len()), (0, 1, 0));
        // What times out takes longer than it was waited for, be it the page or something on it.
        let timeout = Failed(Failure::Timeout);
        for endings in [&[(0, timeout)][..], &[(0, Good), (1, timeout), (2, Good)]] {
            let late = check(&spec(), endings, Then::Leave);
            let at_least = late.page_at_least.range_us().map(|(least, _)| least / 100);
            assert_eq!((late.incomplete, late.page.len(), at_least), (1, 0, Some(100)));
        }
        let none = check(&SessionSpec { returns: 1.0, ..spec() }, &[(0, failed)], Then::Leave);
        assert_eq!((none.pages, none.incomplete, none.returned), (0, 1, 0));
        let again = check(&SessionSpec { returns: 1.0, ..spec() }, &[(0, Good), (1, Good), (2, Good)], Then::Think);
        assert_eq!(again.returned, 1);
    }

    /// A user who gets no answer: what they do, at which millisecond, until the end of all they do.
    #[track_caller]
    fn check_waiting(spec: &SessionSpec, expected: &[(u64, Act)]) {
        let mut crowd = Crowd::new(spec, 3, 2, Nanos::MAX, 1);
        crowd.arrive(0, 0, 0);
        let mut acts = Vec::new();
        while crowd.next_act() < Nanos::MAX {
            let now = crowd.next_act();
            while let Some((seat, act, _)) = crowd.act(now) {
                acts.push((now / MS, act));
                if act == Act::Reload {
                    crowd.reload(seat, now);
                }
            }
        }
        assert_eq!(acts, expected);
    }

    #[test]
    fn whoever_waits_too_long_reloads_and_gives_up() {
        let patient = SessionSpec { patience_ns: Some(100 * MS), ..spec() };
        check_waiting(&spec(), &[]);
        check_waiting(&patient, &[(100, Act::GiveUp)]);
        let restless = SessionSpec { reload_after_ns: Some(40 * MS), reloads: 9, ..patient.clone() };
        check_waiting(&restless, &[(40, Act::Reload), (80, Act::Reload), (100, Act::GiveUp)]);
        check_waiting(&SessionSpec { reloads: 1, ..restless }, &[(40, Act::Reload), (100, Act::GiveUp)]);
    }

    #[test]
    fn from_the_end_on_nobody_asks_for_anything() {
        let behaviour = SessionSpec { reload_after_ns: Some(5 * MS), reloads: 9, patience_ns: Some(20 * MS), ..spec() };
        let mut crowd = Crowd::new(&behaviour, 3, 2, 10 * MS, 1);
        crowd.arrive(0, 0, 0);
        crowd.began(0);
        // Due in time and noticed too late; giving up asks for nothing.
        assert_eq!(crowd.act(10 * MS), None);
        crowd.over(0, 0, Ending::Good, 9 * MS);
        assert_eq!((crowd.next_kind(0, 10 * MS), crowd.next_kind(0, 9 * MS)), (None, Some(1)));
        assert_eq!(crowd.act(20 * MS), Some((0, Act::GiveUp, 20 * MS)));
    }

    #[test]
    fn whoever_has_thought_clicks_again_unless_it_is_closed() {
        for (closes_ns, expected) in [(Nanos::MAX, Some(Act::Click)), (11 * MS, None)] {
            let spec = SessionSpec { returns: 1.0, ..spec() };
            let mut crowd = Crowd::new(&spec, 1, 2, closes_ns, 1);
            crowd.arrive(0, 0, 0);
            crowd.began(0);
            // A page with nothing on it.
            crowd.over(0, 0, Ending::Good, 10 * MS);
            assert_eq!(crowd.then(0), Then::Think);
            let at = crowd.next_act();
            // Whoever notices late is told when it was meant.
            assert_eq!(crowd.act(at + MS), expected.map(|act| (0, act, at)));
        }
    }
}
