//! Decide the next trial and carry it out: schedule, gate, guards, early stop.
//!
//! [`run()`] is the whole experiment: it measures and stores, and judges only whether to go on. Whoever wants a verdict reads the store.
//! Progress leaves as [`Event`] values; what to show of them is the caller's affair.

mod accounts;
mod beside;
mod build;
mod changes;
mod check;
mod door;
mod ending;
mod error;
mod event;
mod find;
mod gate;
mod guard;
mod logged;
mod memory;
mod others;
mod page;
mod placement;
mod post;
mod probe;
mod rehearsal;
mod resources;
mod run;
mod schedule;
mod search;
mod sender;
mod services;
mod single;
mod status;
mod taken;
mod trial;
mod up;
mod workers;

pub use check::{CheckEvent, CheckOrders, HOLD, TOP, check as check_running};
pub use error::{ExperimentError, Refusal};
pub use event::{Event, Phase};
pub use page::{PageError, page_assets};
pub use placement::Placement;
pub use resources::prepare_away;
pub use run::{Ended, Orders, World, check, is_unfinished, refused_later, run};
pub use schedule::{Outline, Slot, outline, schedule};
pub use single::{LoadOrders, Loaded, keep, load, load_witnessed};
pub use up::{Up, up};
