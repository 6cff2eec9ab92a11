//! The server of one variant, started as for a trial and kept until the user ends it: for other programs to look at.
//!
//! Nothing is sent to it and nothing is stored.

use crate::ExperimentError;
use crate::build::check_packages;
use crate::changes::Changer;
use crate::event::Event;
use crate::run::{Built, Ended, Orders, World, or_stopped, provide_swap, refused_later, with_host};
use crate::services::Services;
use model::run::RunEnd;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long it may take until somebody sees that the user wants to end, or that the server died.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The name of its folder and its group.
const NAME: &str = "up";

/// A server that is up.
#[derive(Debug)]
pub struct Up<'a> {
    /// Where it listens.
    pub address: SocketAddr,
    /// Whether it speaks TLS there.
    pub tls: bool,
    /// The host to ask for, when it is not the address.
    pub host: Option<&'a str>,
    /// Its first process, where it is known.
    pub pid: Option<u32>,
    /// The folder of its memory group, when it is confined.
    pub group: Option<PathBuf>,
    /// Its own folder, with its configuration and logs.
    pub folder: PathBuf,
    /// What there is to know about it, a sentence each.
    pub notes: &'a [String],
}

/// Starts the server of the cell of that name, tells where it is, and keeps it until the user ends it. Everything is put back then.
/// Ended before it was up, it was interrupted.
pub fn up(
    orders: &Orders,
    cell: &str,
    world: &World<'_>,
    on_event: &mut dyn FnMut(Event<'_>),
    tell: &mut dyn FnMut(&Up<'_>),
) -> Ended<RunEnd> {
    let mut was_up = false;
    let ended = with_host(orders, world, |host| {
        if let Some(reason) = refused_later(orders)? {
            return Err(reason.into());
        }
        check_packages(&orders.plan, orders.plan.cell(cell).into_iter())?;
        provide_swap(orders, host)?;
        let stage = Built::new(orders, world, host, on_event)?;
        let mut bench = stage.bench(world, host);
        bench.changer = Some(Changer::take(&stage.plan, host)?);
        bench.kept = Services::keep(&bench)?.into();
        let no_cell = || ExperimentError::Missing(format!("the plan has no cell `{cell}`"));
        let mut staged = bench.start(NAME, stage.plan.cell(cell).ok_or_else(no_cell)?)??;
        let running = &staged.running;
        tell(&Up {
            address: running.address,
            tls: running.tls,
            host: running.host.as_deref(),
            pid: running.pid,
            group: staged.group.as_ref().and_then(|group| group.paths().memory.clone()),
            folder: stage.folder.join(NAME),
            notes: &running.notes,
        });
        was_up = true;
        let mut dead = None;
        while dead.is_none() && !world.interrupted.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK_AGAIN);
            dead = bench.dead(&mut staged, "while it was kept");
        }
        let forced = staged.stop()?.into_iter().chain(bench.kept.take().stop()?);
        forced.for_each(|forced| on_event(Event::Remark(&forced.note())));
        dead.map_or(Ok(RunEnd::Complete), |dead| Err(ExperimentError::Died(dead)))
    });
    let result = ended.result.or_else(|error| if was_up { Err(error) } else { or_stopped(error, world.interrupted) });
    Ended { result, ..ended }
}
