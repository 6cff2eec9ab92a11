//! What the sampler sees, as it comes; and a look back at what it saw.

use super::super::feed::{Feed, Following, Heard};
use super::super::place;
use super::{Film, Still, with_news};
use model::Nanos;
use model::reading::Look;
use model::run::HostFacts;
use report::watch::full::State;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Looks that can be gone back to: two hours, at one a second.
const KEPT: usize = 7200;

/// The looks of a sampler.
pub(super) struct Live {
    following: Following,
    looks: VecDeque<Look>,
    /// What is shown instead of the newest.
    at_ns: Option<Nanos>,
    host: HostFacts,
    page_bytes: u64,
    period_ns: Nanos,
    notes: Vec<String>,
    /// Looks that are still to come; without end if `None`.
    left: Option<u64>,
}

impl Live {
    pub(super) fn new(feed: &Arc<Feed>, period_ns: Nanos, count: Option<u32>) -> Live {
        Live {
            following: feed.follow(),
            looks: VecDeque::new(),
            at_ns: None,
            host: host::facts(),
            page_bytes: rustix::param::page_size() as u64,
            period_ns,
            notes: feed.notes(),
            left: count.map(u64::from),
        }
    }

    fn newest_ns(&self) -> Nanos {
        self.looks.back().map_or(0, Look::at_ns)
    }
}

impl Film for Live {
    fn go_on(&mut self) -> anyhow::Result<bool> {
        let mut fresh = false;
        while let Heard::Looks { looks, .. } = self.following.hear(Duration::ZERO)? {
            self.left = self.left.map(|left| left.saturating_sub(looks.len() as u64));
            self.looks.extend(looks);
            fresh = true;
        }
        let too_many = self.looks.len().saturating_sub(KEPT);
        self.looks.drain(..too_many);
        Ok(fresh)
    }

    fn is_over(&self) -> bool {
        self.left == Some(0)
    }

    fn pause(&mut self) {
        self.at_ns = if self.at_ns.is_some() { None } else { Some(self.newest_ns()) };
    }

    fn step(&mut self, by_ns: i64) {
        let newest = self.newest_ns();
        let oldest = self.looks.front().map_or(0, Look::at_ns);
        let at = self.at_ns.unwrap_or(newest).saturating_add_signed(by_ns).max(oldest);
        self.at_ns = (at < newest).then_some(at);
    }

    fn leap(&mut self, last: bool) {
        self.at_ns = if last { None } else { self.looks.front().map(Look::at_ns) };
    }

    fn speed(&mut self, _: bool) {}

    fn still(&mut self, _: Nanos) -> anyhow::Result<Still<'_>> {
        let newest = self.newest_ns();
        let notes = with_news(&self.notes);
        let looks = &*self.looks.make_contiguous();
        let shown = self.at_ns.map_or(looks, |at| &looks[..looks.partition_point(|look| look.at_ns() <= at)]);
        let when = shown.last().map_or(String::new(), |look| place::time_of(place::epoch_of(look)));
        let state = self.at_ns.map_or(State::Live, |at| State::Back(newest.saturating_sub(at)));
        Ok(Still {
            looks: shown,
            state,
            when,
            host: &self.host,
            page_bytes: self.page_bytes,
            period_ns: self.period_ns,
            notes,
        })
    }
}
