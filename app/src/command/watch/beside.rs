//! What goes on beside the rows of a watch: a recording, and a port for metrics.

use super::Asked;
use super::feed::Feed;
use super::metrics::{self, Port, Served, Source};
use super::record::{self, Keeping, Recording};
use crate::command::id::{fresh_seed, now, run_id};
use crate::command::report::store_path;
use crate::exit::Exit;
use crate::flags::StoreFlag;
use crate::flags::watch::extras::Extras;
use crate::flags::watch::split;
use crate::say::tell;
use model::device::{Device, DeviceKind};
use model::process::Processes;
use model::recording::RecordingHead;
use model::{Nanos, SECOND};
use monitor::{Part, Watch, present};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use store::Store;

/// CPUs of larger machines are recorded as their sum: each has eight numbers in every look.
const CPUS: usize = 64;

/// Time between two readings while memory is short.
const STORM: Nanos = SECOND / 10;
/// Readings that are kept while this process cannot run: five minutes of a storm.
const ROOM: usize = 3000;

/// What can be refused, had before anything is started: a watch that cannot be kept is not begun.
pub(super) struct Prepared {
    port: Option<Port>,
    store: Option<Store>,
}

impl Prepared {
    /// Opens the port and the store that are asked for.
    pub(super) fn of(extras: &Extras) -> anyhow::Result<Prepared> {
        let port = extras.metrics.map(metrics::listen).transpose()?;
        let open = || anyhow::Ok(Store::open(&store_path(&StoreFlag { path: extras.store.clone() })?)?);
        Ok(Prepared { port, store: extras.record.then(open).transpose()? })
    }
}

/// What goes on until it is dropped.
pub(super) struct Beside {
    _served: Option<Served>,
    recording: Option<Recording>,
}

/// Whoever records, collects or looks at everything is to find everything, whatever the rows show.
pub(super) fn widen(watch: &mut Watch, extras: &Extras) {
    if extras.explain {
        // Processes that wait for a lock are shown by no module.
        watch.lock_waiters = watch.root_pid.is_some() || watch.root_may_change;
    }
    if extras.record || extras.json || extras.screen || extras.explain || extras.metrics.is_some() {
        watch.parts = Part::ALL.to_vec();
        watch.listeners = true;
    }
    if extras.record || extras.screen {
        // What a storm is like shows between the seconds.
        watch.storm_period_ns = Some(STORM);
        watch.capacity = watch.capacity.max(ROOM);
    }
    if !(extras.record || extras.metrics.is_some()) {
        return;
    }
    for kind in [DeviceKind::Cpu, DeviceKind::Disk, DeviceKind::Interface, DeviceKind::Listener] {
        let names = present(&watch.proc_root, kind);
        let block = watch.sys_root.join("block");
        let wanted = |name: &String| {
            kind != DeviceKind::Disk || is_worth_it(name) && block.join(name.replace('/', "!")).exists()
        };
        if kind == DeviceKind::Cpu && names.len() > CPUS {
            continue;
        }
        for name in names.into_iter().filter(wanted) {
            let device = Device { kind, name };
            if !watch.devices.devices.contains(&device) {
                watch.devices.devices.push(device);
            }
        }
    }
}

/// Most machines have many of these and use none.
fn is_worth_it(disk: &str) -> bool {
    !["loop", "ram", "zram", "fd", "sr"].iter().any(|kind| disk.starts_with(kind))
}

impl Beside {
    /// Starts what is asked for, and says where it can be found.
    pub(super) fn start(feed: &Arc<Feed>, asked: &Asked, watch: &Watch, prepared: Prepared) -> anyhow::Result<Beside> {
        let Prepared { port, store } = prepared;
        let served = port.map(|port| serve(feed, watch, port)).transpose()?;
        let recording = store.map(|store| start_recording(feed, asked, watch, store)).transpose()?;
        Ok(Beside { _served: served, recording })
    }

    /// Where every process at a look goes that was shown, if it is recorded.
    pub(super) fn seen(&self) -> Option<Sender<(Nanos, Processes)>> {
        self.recording.as_ref().map(Recording::seen)
    }

    /// Ends it. Returns how the watch ends, which came to `done` by itself: a recording without its end is a failure of the store.
    pub(super) fn finish(mut self, done: Exit) -> Exit {
        let whole = self.recording.as_mut().is_none_or(Recording::finish);
        if whole { done } else { Exit::Store }
    }
}

fn serve(feed: &Arc<Feed>, watch: &Watch, port: Port) -> anyhow::Result<Served> {
    let source = Source::new(Arc::clone(feed), watch.devices.clone());
    let served = metrics::serve(port, move || source.text())?;
    tell(format!("metrics are served on http://{}/metrics", served.address()));
    Ok(served)
}

fn start_recording(feed: &Arc<Feed>, asked: &Asked, watch: &Watch, store: Store) -> anyhow::Result<Recording> {
    let Asked { extras, words, flags, .. } = asked;
    let path = store.path().to_owned();
    let anchor = now();
    let head = RecordingHead {
        id: run_id(anchor, fresh_seed()),
        anchor,
        host: host::facts(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        words: split(words).0.iter().cloned().chain([flags.delay.to_string()]).collect(),
        period_ns: watch.period_ns,
        page_bytes: rustix::param::page_size() as u64,
        roster: watch.devices.clone(),
        notes: feed.notes(),
        continues: None,
    };
    let keeping = Keeping { retention: extras.retention, name: |anchor| run_id(anchor, fresh_seed()) };
    let recording = record::start(feed.follow(), store, head, keeping)?;
    tell(format!("recording {} into {}; `webdyno watch --replay {0}` shows it", recording.id(), path.display()));
    Ok(recording)
}
