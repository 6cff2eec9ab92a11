//! Servers that stand behind the server: how far the requests in flight have come.

use super::shows_unread;
use super::window::Window;
use crate::number::{Numbers, Quantity};
use model::load::LoadResult;
use model::plan::{Cell, LoadSpec, Plan};
use model::reading::Column::{AcceptQueue, BehindAccepted, BehindQueue, TcpSending, TcpUnread};
use model::reading::Reading;

/// Medians over the readings. Connections of others, and idle ones that are kept for later, make less of what is held, never more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Behind {
    /// Connections that they have accepted.
    pub accepted: f64,
    /// Connections that wait at their doors, all together.
    pub queue: f64,
    /// Requests of the cell's own load that wait neither at a door nor to be read or sent, and that none of them has accepted; taken of each
    /// reading, since who is not in one place is in another.
    pub held: f64,
}

impl Behind {
    /// Its numbers, for a finding.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        Numbers::default().with(Quantity::QueueBehind, self.queue).with(Quantity::AcceptedBehind, self.accepted)
    }

    /// `None` unless all of the numbers are known, and whoever may stand behind speaks HTTP, so that a request there is a connection.
    pub(super) fn of(
        (plan, cell): (&Plan, &Cell),
        window: &Window<'_>,
        (spec, load): (&LoadSpec, &LoadResult),
    ) -> Option<Behind> {
        let variant = plan.variant(cell);
        let all_speak_http = plan.services_of(variant).all(|service| service.server.speaks_http());
        let passes_on = all_speak_http && plan.server_of(variant).php().is_none();
        let seen = |row: &Reading| {
            let columns = [AcceptQueue, TcpUnread, TcpSending, BehindAccepted, BehindQueue];
            columns.iter().map(|&column| row.get(column)).sum::<Option<u64>>()
        };
        let seen = window.median_of(seen).filter(|_| passes_on && shows_unread(spec))?;
        Some(Behind {
            accepted: window.median(BehindAccepted)?,
            queue: window.median(BehindQueue)?,
            held: load.concurrency() - seen,
        })
    }
}
