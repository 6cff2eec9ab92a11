//! What webdyno changes on the machine and gives back: processes, groups, swap, folders.
//!
//! Every change is written to a journal before it is made. Three can undo it, each after the other has failed: the run itself when
//! it ends, the guardian (a process of its own) when the run is killed, and [`restore()`] when the guardian was killed too.
//! Nothing here measures, and nothing outside a run's own names (`webdyno-<run>-...`) is ever deleted, but for what the run put into a
//! place of others.
//!
//! Layout: `journal` is what was changed, `undo` is how it is put back and `preview` says what that would be, `guardian` and `restore` are when;
//! `launch` starts a server so that it can be ended, `stop` asks it to end by itself first, `confine`, `swap`, `files` and `sysctl` are the changes themselves, `service` is a server of the machine's own
//! that reads its configuration again, `call` runs the programs that this needs, `kernel` reads what the kernel tells, and `claim` keeps two runs from one server, file or setting.

mod call;
mod claim;
mod confine;
mod error;
mod facts;
mod files;
mod folder;
mod guardian;
mod handle;
mod journal;
mod kernel;
mod launch;
mod mounts;
mod owner;
pub mod page_cache;
mod pipe;
mod preview;
mod process;
mod restore;
mod service;
mod stop;
mod swap;
mod sysctl;
mod undo;

pub use call::{Said, ask, call};
pub use claim::{door_not_taken, not_taken};
pub use confine::{Group, GroupPaths, Hierarchies, Reach, Scope, Version, hierarchies, reach};
pub use error::{HostError, want_of_room};
pub use facts::facts;
pub use files::Borrowed;
pub use folder::has_room;
pub use folder::secret;
pub use guardian::guardian_main;
pub use handle::{Due, Host};
pub use launch::{Child, Launch, launcher_main};
pub use mounts::may_mount;
pub use owner::may_change;
pub use preview::left_behind;
pub use restore::{restore, state_dir};
pub use service::{Restart, Service, Style, variables, words_of_nginx};
pub use stop::{Stop, StopBy};
pub use swap::{may_make_swap, may_reset_swap, room_for_swap, swap_free, swap_total};
pub use sysctl::BorrowedSysctl;
