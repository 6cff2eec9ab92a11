//! Groups: a server confined to an amount of memory, of CPU time and of disk traffic, so that a big machine can stand in for a small one.
//!
//! This file makes and removes directories, where [`mod@hierarchies`] finds room for them; [`v1`] and [`v2`] know the files in them. Groups are made at
//! the top of each hierarchy, for v2 allows no controller below a directory that holds processes; an ordinary user's are made in a
//! [`scope`] that systemd delegates to him. Only the memory
//! controller is used unless more is asked for: a v1 `cpu` group gives the server one share against each process outside, which is a
//! change of its own.

mod disks;
mod hierarchies;
mod limit;
mod scope;
mod v1;
mod v2;

use self::disks::disks;
use self::limit::Of;
use crate::HostError;
use crate::handle::Host;
use crate::journal::Undo;
use crate::process::Members;
use crate::undo::marker;
use model::plan::Confinement;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use hierarchies::{Hierarchies, Reach, Version, hierarchies, reach};
pub use scope::Scope;
pub(crate) use v2::{is_lent, take_back};

/// The time that a quota of CPU time is a part of: the kernel's own default.
const PERIOD_US: u64 = 100_000;
/// A directory is busy for a moment after its last process has ended.
const BUSY: Duration = Duration::from_secs(5);

/// The directories of one group, to read its counters from. With v2 all are the same one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupPaths {
    /// Holds `memory.*`.
    pub memory: Option<PathBuf>,
    /// Holds `cpuacct.*` (v1) or `cpu.stat` (v2).
    pub cpuacct: Option<PathBuf>,
    /// Holds `cpu.stat`; with v1 only where CPU time is limited.
    pub cpu: Option<PathBuf>,
    /// Holds `blkio.*` (v1) or `io.*` (v2); only where disk traffic is limited.
    pub io: Option<PathBuf>,
    /// Holds `*.pressure`.
    pub unified: Option<PathBuf>,
}

/// A group. Dropping it ends what lives in it and removes it.
#[derive(Debug)]
pub struct Group {
    /// Its name within the run.
    pub name: String,
    paths: GroupPaths,
    limits: Vec<(String, String)>,
    entry: u64,
    host: Host,
}

impl Group {
    /// Its directories.
    #[must_use]
    pub fn paths(&self) -> &GroupPaths {
        &self.paths
    }

    /// Its limits as the kernel holds them: file and content.
    #[must_use]
    pub fn limits(&self) -> &[(String, String)] {
        &self.limits
    }

    /// Ends what lives in it and removes it.
    ///
    /// # Errors
    /// When a process would not end or the kernel keeps a directory busy.
    pub fn remove(self) -> Result<(), HostError> {
        self.host.put_back(self.entry)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What fails stays in the journal, and is reported when the host is closed.
        let _ = self.host.put_back(self.entry);
    }
}

impl GroupPaths {
    /// Each directory once.
    pub(crate) fn all(&self) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = vec![];
        for path in [&self.memory, &self.cpuacct, &self.cpu, &self.io, &self.unified].into_iter().flatten() {
            if !all.contains(path) {
                all.push(path.clone());
            }
        }
        all
    }
}

/// Makes a group.
pub(crate) fn create(host: &Host, name: &str, confine: &Confinement) -> Result<Group, HostError> {
    let found = hierarchies()?;
    found.allow(confine)?;
    let devices = disks(Path::new("/sys/block"));
    if !confine.io.is_empty() && devices.is_empty() {
        return Err(HostError::NoConfinement(
            "a server's disk traffic cannot be limited: the kernel shows no disk".to_owned(),
        ));
    }
    if found.version == Version::V2 {
        for controller in wanted(confine) {
            v2::lend(host, &found.memory, controller)?;
        }
    }
    let paths = found.paths(&format!("{}{name}", marker(host.run())), confine);
    let all = paths.all();
    if let Some(taken) = all.iter().find(|path| path.exists()) {
        return Err(HostError::io("create", taken)(io::ErrorKind::AlreadyExists.into()));
    }
    let entry = host.record(Undo::RemoveGroup { paths: all.clone() })?;
    // From here on an early return removes it again.
    let mut group = Group { name: name.to_owned(), paths, limits: Vec::new(), entry, host: host.clone() };
    for path in &all {
        fs::create_dir(path).map_err(HostError::io("create", path))?;
    }
    let memory = group.paths.memory.as_deref().unwrap_or(&found.memory);
    let exists = |file: &str| memory.join(file).exists();
    let limits = match found.version {
        Version::V1 => v1::limits(confine, &devices, exists),
        Version::V2 => v2::limits(confine, &devices, exists),
    };
    for limit in limits {
        let dir = match limit.of {
            Of::Memory => memory,
            Of::Cpu => group.paths.cpu.as_deref().unwrap_or(memory),
            Of::Io => group.paths.io.as_deref().unwrap_or(memory),
        };
        let (file, held) = limit.apply(dir)?;
        // Of a file with a line for each disk the last look has all of them.
        group.limits.retain(|(known, _)| *known != file);
        group.limits.push((file, held));
    }
    Ok(group)
}

/// Microseconds of CPU time in each period.
fn quota_us(thousandths: u64) -> u64 {
    (thousandths * PERIOD_US / 1000).max(1000)
}

/// The controllers that a confinement needs, memory's always: what a group holds is measured by it.
fn wanted(confine: &Confinement) -> impl Iterator<Item = &'static str> {
    let cpu = confine.cpu_thousandths.map(|_| "cpu");
    let io = (!confine.io.is_empty()).then_some("io");
    [Some("memory"), cpu, io].into_iter().flatten()
}

/// Ends what lives in the directories of a group and removes them. `Ok(None)` when there are none.
pub(crate) fn remove(paths: &[&Path], patience: Duration) -> Result<Option<String>, String> {
    let mut removed = None;
    for path in paths {
        Members::Group(path).end(patience)?;
        if remove_dir(path).map_err(|error| format!("cannot remove the group {}: {error}", path.display()))? {
            removed = path.file_name();
        }
    }
    Ok(removed.map(|name| format!("removed the group {}", name.to_string_lossy())))
}

/// Whether there was a directory to remove.
fn remove_dir(path: &Path) -> io::Result<bool> {
    let deadline = Instant::now() + BUSY;
    loop {
        match fs::remove_dir(path) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error),
        }
    }
}
