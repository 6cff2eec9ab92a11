//! When to send which request again.
//!
//! Lines stand in the order in which requests ended, and their times are often whole seconds. The timetable puts the starts
//! in order and spreads the requests of a second evenly over it, each somewhere in its own share of the second, which the
//! seed decides. A replay that sent them all at the second's beginning would be a load that never was.
//!
//! Memory: 16 bytes for each arrival, half as much again while [`TimetableBuilder::build`] sorts and up to twice while the
//! list grows; and for each distinct request about 80 bytes beside its text. Ten million lines with a hundred thousand
//! distinct requests need about 180 MB.

use crate::entry::{Entry, NoRequest, Resolution};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Requests in the order and at the distances in which they are to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Timetable {
    seats: Vec<Seat>,
    asked: Vec<Arc<str>>,
    speed: f64,
    left_out: LeftOut,
}

/// How a log shall be replayed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replay {
    /// Decides where in its second a request starts.
    pub seed: u64,
    /// 2.0 is twice as fast as it was.
    pub speed: f64,
    /// What may be sent again.
    pub methods: Methods,
}

/// Which requests may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Methods {
    /// GET, HEAD and OPTIONS, which change nothing.
    Safe,
    /// Whatever was logged, although the bodies were not.
    All,
}

/// A request and its moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival<'a> {
    /// Since the first arrival.
    pub offset_ns: u64,
    /// Which of [`Timetable::distinct`] it is.
    pub index: usize,
    /// What to send.
    pub asked: Asked<'a>,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Asked<'a> {
    /// Such as `GET`.
    pub method: &'a str,
    /// The host that was asked, when the log says.
    pub host: Option<&'a str>,
    /// Path and query, beginning with `/`.
    pub target: &'a str,
}

/// Entries that have no place in a timetable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// There is nothing to send, by reason.
    pub no_request: BTreeMap<NoRequest, u64>,
    /// There is no time to send it at.
    pub no_time: u64,
    /// A method that may change something, by its name.
    pub unsafe_method: BTreeMap<String, u64>,
    /// The target is no path: OPTIONS of `*`, or CONNECT.
    pub no_path: u64,
}

/// Why an entry has no place in a timetable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unused {
    /// There is nothing to send.
    NoRequest(NoRequest),
    /// There is no time to send it at.
    NoTime,
    /// Its method may change something.
    UnsafeMethod,
    /// Its target is no path.
    NoPath,
}

/// A speed that no replay can have.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a replay cannot run at {0} times the speed; write a number above 0, such as 2 for twice as fast")]
pub struct SpeedError(pub f64);

/// Takes the entries of one log or several, in any order.
#[derive(Debug, Clone)]
pub struct TimetableBuilder {
    replay: Replay,
    /// Those that are known to the second only.
    coarse: Vec<Seat>,
    fine: Vec<Seat>,
    asked: Vec<Arc<str>>,
    index: HashMap<Arc<str>, u32>,
    /// Room for the text of one request, so that a known one needs no memory.
    text: String,
    left_out: LeftOut,
}

/// A request and its moment in microseconds: since 1970 while building, since the first one afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seat {
    at_us: i64,
    /// How long before `at_us` the request started; nothing once that is taken off. More than 71 minutes are 71 minutes.
    since_start_us: u32,
    asked: u32,
}

impl TimetableBuilder {
    /// An empty one.
    ///
    /// # Errors
    /// When the speed is no number above zero.
    pub fn new(replay: Replay) -> Result<TimetableBuilder, SpeedError> {
        if !(replay.speed.is_finite() && replay.speed > 0.0) {
            return Err(SpeedError(replay.speed));
        }
        Ok(TimetableBuilder {
            replay,
            coarse: Vec::new(),
            fine: Vec::new(),
            asked: Vec::new(),
            index: HashMap::new(),
            text: String::new(),
            left_out: LeftOut::default(),
        })
    }

    /// Takes the next entry, or counts and says why it is left out.
    pub fn add(&mut self, entry: &Entry<'_>) -> Option<Unused> {
        let request = match &entry.request {
            Ok(request) => request,
            Err(why) => {
                *self.left_out.no_request.entry(*why).or_default() += 1;
                return Some(Unused::NoRequest(*why));
            }
        };
        let Some(time) = entry.time else {
            self.left_out.no_time += 1;
            return Some(Unused::NoTime);
        };
        if self.replay.methods == Methods::Safe && !matches!(&*request.method, "GET" | "HEAD" | "OPTIONS") {
            *self.left_out.unsafe_method.entry(request.method.to_string()).or_default() += 1;
            return Some(Unused::UnsafeMethod);
        }
        if !request.target.starts_with('/') {
            self.left_out.no_path += 1;
            return Some(Unused::NoPath);
        }
        let host = entry.host.as_deref().filter(|host| !host.contains(' ')).unwrap_or_default();
        let asked = self.intern([&request.method, host, &request.target]);
        let since_start_us = u32::try_from(entry.since_start_ns() / 1_000).unwrap_or(u32::MAX);
        let seats = if time.resolution == Resolution::Second { &mut self.coarse } else { &mut self.fine };
        seats.push(Seat { at_us: time.ns.div_euclid(1_000), since_start_us, asked });
        None
    }

    /// The timetable of all entries so far.
    #[must_use]
    pub fn build(self) -> Timetable {
        let TimetableBuilder { replay, coarse: mut seats, fine, asked, left_out, .. } = self;
        // Stable: of one second, the line order is the best that is known.
        seats.sort_by_key(|seat| seat.at_us);
        for second in seats.chunk_by_mut(|a, b| a.at_us == b.at_us) {
            spread(second, replay.seed);
        }
        seats.extend(fine);
        for seat in &mut seats {
            seat.at_us = seat.at_us.saturating_sub(i64::from(seat.since_start_us));
            seat.since_start_us = 0;
        }
        seats.sort_by_key(|seat| seat.at_us);
        let first = seats.first().map_or(0, |seat| seat.at_us);
        for seat in &mut seats {
            seat.at_us = seat.at_us.saturating_sub(first);
        }
        seats.shrink_to_fit();
        Timetable { seats, asked, speed: replay.speed, left_out }
    }

    /// The number of a request; its parts hold no spaces.
    fn intern(&mut self, parts: [&str; 3]) -> u32 {
        self.text.clear();
        for (part, end) in parts.into_iter().zip([" ", " ", ""]) {
            self.text.push_str(part);
            self.text.push_str(end);
        }
        if let Some(known) = self.index.get(self.text.as_str()) {
            return *known;
        }
        // Four billion distinct requests do not fit into memory either.
        let number = u32::try_from(self.asked.len()).unwrap_or(u32::MAX);
        let text: Arc<str> = self.text.as_str().into();
        self.asked.push(Arc::clone(&text));
        self.index.insert(text, number);
        number
    }
}

impl Timetable {
    /// All arrivals, the earliest first.
    pub fn arrivals(&self) -> impl ExactSizeIterator<Item = Arrival<'_>> {
        self.seats.iter().map(|seat| {
            let index = seat.asked as usize;
            Arrival { offset_ns: self.offset_ns(seat), index, asked: Asked::of(&self.asked[index]) }
        })
    }

    /// Every different request once, in the order in which they were first logged.
    pub fn distinct(&self) -> impl ExactSizeIterator<Item = Asked<'_>> {
        self.asked.iter().map(|text| Asked::of(text))
    }

    /// How many arrivals there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.seats.len()
    }

    /// Whether there is nothing to replay.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    /// From the first arrival to the last, in nanoseconds.
    #[must_use]
    pub fn span_ns(&self) -> u64 {
        self.seats.last().map_or(0, |seat| self.offset_ns(seat))
    }

    /// What is missing in it.
    #[must_use]
    pub fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    fn offset_ns(&self, seat: &Seat) -> u64 {
        (seat.at_us as f64 * 1_000.0 / self.speed) as u64
    }
}

impl LeftOut {
    /// How many entries that are.
    #[must_use]
    pub fn total(&self) -> u64 {
        let counted = self.no_request.values().chain(self.unsafe_method.values()).sum::<u64>();
        counted + self.no_time + self.no_path
    }
}

impl Asked<'_> {
    fn of(text: &str) -> Asked<'_> {
        let (method, rest) = text.split_once(' ').unwrap_or_default();
        let (host, target) = rest.split_once(' ').unwrap_or_default();
        Asked { method, host: Some(host).filter(|host| !host.is_empty()), target }
    }
}

/// Gives each request of one second its own share of it, and in that a place that the seed draws.
fn spread(second: &mut [Seat], seed: u64) {
    const SECOND_US: u128 = 1_000_000;
    let count = second.len() as u128;
    let mut state = mixed(seed ^ second.first().map_or(0, |seat| seat.at_us as u64));
    for (place, seat) in second.iter_mut().enumerate() {
        state = mixed(state);
        let within = ((place as u128) << 64) + u128::from(state);
        seat.at_us += ((within * SECOND_US / count) >> 64) as i64;
    }
}

/// SplitMix64: enough for a place within a second, and the same for ever.
fn mixed(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;
