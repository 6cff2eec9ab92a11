//! What the flags of a watch mean on this machine: which modules of which devices are drawn how, and what must be read for them.

use super::about;
use super::alias;
use super::place::Terminal;
use crate::flags::watch::extras::Extras;
use crate::flags::watch::{Layout, Name, WatchFlags};
use model::device::{Device, DeviceKind, Roster};
use model::{Nanos, SECOND};
use monitor::{Known, NamedGroup, Part, ProcessFile, Table, Watch, is_refusal, present};
use report::watch::choice::{self, Wish};
use report::watch::{Compat, Module, Shown, Style, TOTAL, Top};
use std::path::Path;

/// A watch, decided.
#[derive(Debug)]
pub(super) struct Meant {
    /// Whose screen to draw.
    pub(super) layout: Layout,
    /// The modules that have something to show.
    pub(super) shown: Vec<Shown>,
    /// How.
    pub(super) style: Style,
    /// Draw a row anew each second until its delay has passed.
    pub(super) updates: bool,
    /// Repeat the headings.
    pub(super) headers: bool,
    /// The file has a last column that dstat's has not: when each row was taken.
    pub(super) csv_epoch: bool,
    /// What to read of every process, when a module asks for one of them.
    pub(super) process_files: Option<Vec<ProcessFile>>,
    /// The server of the process tree, when it was named: it may be started again, as another process.
    pub(super) server: Option<Known>,
    /// What to read.
    pub(super) watch: Watch,
    /// One sentence for each module that has nothing.
    pub(super) notes: Vec<String>,
}

/// Readings that are kept while a terminal takes none, or while this process cannot run: a quarter of an hour, or more.
const ROOM: usize = 900;

/// Between two looks at what the processes of a tree share, which cost some milliseconds for each large one.
const SHARES: Nanos = 10 * SECOND;

/// The screen when none is asked for: that of the dstat which Debian and Ubuntu have.
const USUAL: Layout = Layout::Modules(Compat::Dstat08);

/// Decides for this machine.
pub(super) fn meant(
    name: Name,
    flags: &WatchFlags,
    terminal: Terminal,
    proc_root: &Path,
    sys_root: &Path,
) -> anyhow::Result<Meant> {
    meant_of(name, flags, terminal, &There::Machine { proc_root, sys_root })
}

/// Which devices there are.
pub(super) enum There<'a> {
    /// Those of a machine.
    Machine {
        /// Its /proc.
        proc_root: &'a Path,
        /// Its /sys.
        sys_root: &'a Path,
    },
    /// Those of a recording.
    Recorded(&'a Roster),
}

impl There<'_> {
    /// Every device of a kind, and which of them are whole, if they are disks.
    fn of(&self, kind: DeviceKind) -> (Vec<String>, Vec<String>) {
        match self {
            There::Machine { proc_root, sys_root } => {
                let all = present(proc_root, kind);
                let whole = if kind == DeviceKind::Disk { whole_disks(sys_root, &all) } else { Vec::new() };
                (all, whole)
            }
            There::Recorded(roster) => {
                let of_kind = roster.devices.iter().filter(|device| device.kind == kind);
                let all: Vec<String> = of_kind.map(|device| device.name.clone()).collect();
                (all.clone(), all)
            }
        }
    }

    /// What the kernel calls a device that is named in another way.
    fn kernels_name(&self, kind: DeviceKind, typed: &str) -> String {
        match (self, kind) {
            (There::Machine { .. }, DeviceKind::Disk) => alias::disk(typed),
            (There::Machine { proc_root, .. }, DeviceKind::Interrupt) => alias::interrupt(typed, proc_root),
            _ => typed.to_owned(),
        }
    }

    fn tells_pressure(&self) -> bool {
        match self {
            There::Machine { proc_root, .. } => std::fs::read(proc_root.join("pressure/cpu")).is_ok(),
            // Those that were not told are dashes.
            There::Recorded(_) => true,
        }
    }

    fn roots(&self) -> (&Path, &Path) {
        match self {
            There::Machine { proc_root, sys_root } => (proc_root, sys_root),
            There::Recorded(_) => (Path::new("/proc"), Path::new("/sys")),
        }
    }
}

/// Decides.
pub(super) fn meant_of(name: Name, flags: &WatchFlags, terminal: Terminal, there: &There<'_>) -> anyhow::Result<Meant> {
    let layout = flags.layout.unwrap_or(USUAL);
    let compat = match layout {
        Layout::Modules(compat) => compat,
        Layout::Vmstat => Compat::Dstat08,
    };
    let mut shown = Vec::new();
    let mut notes = Vec::new();
    for &module in &flags.modules {
        match show(module, flags, compat, there) {
            Some(module) => shown.push(module),
            None if flags.unasked => {}
            None => notes.push(format!("no {} is there to be shown", module.name())),
        }
    }
    notes.extend(silent_ports(&shown, there));
    let style = Style {
        bits: flags.bits.unwrap_or(compat == Compat::Dool),
        force: flags.force,
        colour: flags.colour.unwrap_or(terminal.colour),
        few_colours: flags.few_colours,
        white_background: flags.white_background,
        ascii: flags.ascii || compat != Compat::Dool,
        ..Style::of(compat)
    };
    let (proc_root, sys_root) = there.roots();
    // What was recorded need not be there any more.
    let is_here = matches!(there, There::Machine { .. });
    let tree = flags.tree.as_deref().filter(|_| is_here);
    let tree = tree.map(|tree| about::tree(tree, proc_root)).transpose()?.unwrap_or_default();
    if let (None, Some(name)) = (tree.root, tree.server.map(Known::name)) {
        let hidden = about::unseen(proc_root);
        notes.push(format!("--tree {name}: no {name} runs here yet{hidden}; dashes until one does"));
    }
    let named = |name: &String| Ok(NamedGroup { name: name.clone(), dirs: about::group(name, proc_root)? });
    let groups: Vec<_> = flags.groups.iter().filter(|_| is_here).map(named).collect::<anyhow::Result<_>>()?;
    notes.extend(groups.iter().filter_map(|group| about::lacks(&group.name, &group.dirs)));
    let updates = layout != Layout::Vmstat && flags.updates.unwrap_or(terminal.updates);
    let watch = Watch {
        period_ns: if updates { SECOND } else { SECOND * Nanos::from(flags.delay) },
        capacity: ROOM,
        parts: parts(layout, &shown),
        group: groups.first().map(|named| named.dirs.clone()).unwrap_or_default(),
        groups: groups.into_iter().skip(1).collect(),
        root_pid: tree.root,
        root_may_change: tree.server.is_some(),
        shares_period_ns: flags.tree.is_some().then_some(SHARES),
        // No module shows them.
        lock_waiters: false,
        listeners: shown.iter().any(|shown| shown.module == Module::Listen),
        tables: tables(&shown),
        devices: roster(&shown),
        proc_root: proc_root.to_owned(),
        sys_root: sys_root.to_owned(),
        ..Watch::default()
    };
    let csv_epoch = name == Name::Webdyno;
    let process_files = process_files(&shown);
    let (headers, server) = (flags.headers, tree.server);
    Ok(Meant { layout, shown, style, updates, headers, csv_epoch, process_files, server, watch, notes })
}

impl Meant {
    /// Those of the sampler's notes that concern what is shown, and those that will once something has come of it: what the sampler was
    /// refused for itself makes no number wrong, and whoever looks at a few rows shall not read it each time. Whoever has it watched
    /// for a long time shall know.
    pub(super) fn concerning<'n>(&self, notes: &'n [String], extras: &Extras) -> (Vec<&'n String>, Vec<String>) {
        let stays = extras.record || extras.screen || extras.metrics.is_some();
        let (refused, others): (Vec<_>, Vec<_>) = notes.iter().partition(|note| is_refusal(note) && !stays);
        (self.about_what_is_shown(others), refused.into_iter().cloned().collect())
    }

    fn about_what_is_shown<'n>(&self, notes: Vec<&'n String>) -> Vec<&'n String> {
        let files: Vec<&str> = match self.layout {
            Layout::Vmstat => vec!["stat", "meminfo", "vmstat"],
            Layout::Modules(_) => self.shown.iter().flat_map(|shown| files(shown.module)).copied().collect(),
        };
        let proc_root = self.watch.proc_root.display().to_string();
        let concerns = |note: &&String| {
            let file = note.strip_prefix(&proc_root).and_then(|rest| rest.trim_start_matches('/').split(' ').next());
            file.is_none_or(|file| files.contains(&file))
        };
        notes.into_iter().filter(concerns).collect()
    }
}

/// The files below /proc without which a module has nothing to show.
fn files(module: Module) -> &'static [&'static str] {
    match module {
        Module::Cpu | Module::Int | Module::Proc | Module::Sys => &["stat"],
        Module::Disk | Module::Io => &["diskstats"],
        Module::Load => &["loadavg"],
        Module::Mem => &["meminfo"],
        Module::Swap => &["meminfo", "swaps"],
        Module::Net => &["net/dev"],
        Module::Page | Module::Vm => &["vmstat"],
        Module::Fs => &["sys/fs/file-nr", "sys/fs/inode-nr"],
        Module::Ipc => &["sysvipc/msg", "sysvipc/sem", "sysvipc/shm"],
        Module::Lock => &["locks"],
        Module::Raw => &["net/raw"],
        Module::Socket => &["net/sockstat"],
        Module::Tcp => &["net/tcp", "net/tcp6"],
        Module::Udp => &["net/udp", "net/udp6"],
        Module::Unix => &["net/unix"],
        Module::DiskQueue => &["diskstats"],
        Module::Psi => &["pressure/cpu", "pressure/memory", "pressure/io"],
        Module::RunQueue => &["stat"],
        Module::TcpTrouble => &["net/netstat", "net/snmp", "net/sockstat"],
        // What these lack is told by notes that name no file below /proc.
        Module::Cgroup | Module::Epoch | Module::Listen | Module::Time | Module::Top(_) | Module::Tree => &[],
    }
}

fn show(module: Module, flags: &WatchFlags, compat: Compat, there: &There<'_>) -> Option<Shown> {
    let about = |what: &[String]| Some(Shown { module, devices: what.to_vec() });
    let Some(kind) = kind(module) else {
        return match module {
            Module::Cgroup => about(&flags.groups),
            Module::Tree => about(flags.tree.as_slice()),
            // Compiled in and switched off, as distributions have it, is not there.
            Module::Psi if flags.unasked && !there.tells_pressure() => None,
            _ => Some(Shown::total(module)),
        };
    };
    let lists = &flags.devices;
    let named = match kind {
        DeviceKind::Cpu => &lists.cpus,
        DeviceKind::Disk => &lists.disks,
        DeviceKind::Interface => &lists.interfaces,
        DeviceKind::Interrupt => &lists.interrupts,
        DeviceKind::Swap => &lists.swaps,
        DeviceKind::Listener => &lists.ports,
        // Told above.
        DeviceKind::Group => return about(&flags.groups),
    };
    let (mut present, whole) = there.of(kind);
    if matches!((module, there), (Module::Listen, There::Machine { .. })) {
        present.extend(ports_to_come(lists.ports.as_deref().unwrap_or_default(), &present));
    }
    let named: Option<Vec<String>> =
        named.as_ref().map(|names| names.iter().map(|name| there.kernels_name(kind, name)).collect());
    let wish = Wish { named: named.as_deref(), full: flags.full };
    let devices = choice::devices(module, compat, wish, &present, &whole);
    (!devices.is_empty()).then_some(Shown { module, devices })
}

/// What is said about ports that are shown although nobody listens there.
fn silent_ports(shown: &[Shown], there: &There<'_>) -> Vec<String> {
    let Some(listen) = shown.iter().find(|shown| shown.module == Module::Listen) else { return Vec::new() };
    let (present, _) = there.of(DeviceKind::Listener);
    let silent = listen.devices.iter().filter(|port| *port != TOTAL && !present.contains(port));
    silent.map(|port| format!("nobody listens on port {port} yet: dashes until then")).collect()
}

/// Ports that were named and on which nobody listens yet: a server may be started, or started again, while it is watched.
fn ports_to_come(named: &[String], present: &[String]) -> Vec<String> {
    named.iter().filter(|name| name.parse::<u16>().is_ok() && !present.contains(name)).cloned().collect()
}

fn kind(module: Module) -> Option<DeviceKind> {
    Some(match module {
        Module::Cpu => DeviceKind::Cpu,
        Module::Disk | Module::DiskQueue | Module::Io => DeviceKind::Disk,
        Module::Listen => DeviceKind::Listener,
        Module::Net => DeviceKind::Interface,
        Module::Int => DeviceKind::Interrupt,
        Module::Swap => DeviceKind::Swap,
        _ => return None,
    })
}

/// Those that are no parts of a disk, which /sys/block does not list.
fn whole_disks(sys_root: &Path, present: &[String]) -> Vec<String> {
    let block = sys_root.join("block");
    present.iter().filter(|name| block.join(name.replace('/', "!")).exists()).cloned().collect()
}

/// Every single device that is shown, once.
fn roster(shown: &[Shown]) -> Roster {
    let mut devices: Vec<Device> = Vec::new();
    for Shown { module, devices: names } in shown {
        let (kind, names) = match (kind(*module), names.as_slice()) {
            (Some(kind), names) => (kind, names),
            // The first one is the server's, which has columns.
            (None, [_, others @ ..]) if *module == Module::Cgroup => (DeviceKind::Group, others),
            _ => continue,
        };
        for name in names.iter().filter(|name| *name != TOTAL) {
            let device = Device { kind, name: name.clone() };
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
    }
    Roster { devices }
}

/// What the modules about one process go by, besides its `stat`; `None` without such a module.
fn process_files(shown: &[Shown]) -> Option<Vec<ProcessFile>> {
    let mut files = Vec::new();
    let mut any = false;
    for shown in shown {
        let Module::Top(top) = shown.module else { continue };
        any = true;
        let file = match top {
            Top::Bio | Top::BioAdv | Top::CpuAdv | Top::Io | Top::IoAdv => ProcessFile::Io,
            Top::Cputime | Top::CputimeAvg | Top::Latency | Top::LatencyAvg => ProcessFile::Sched,
            Top::Oom => ProcessFile::OomScore,
            Top::Childwait | Top::Cpu | Top::Mem => continue,
        };
        if !files.contains(&file) {
            files.push(file);
        }
    }
    any.then_some(files)
}

/// What must be read for what is shown. The uptime is what the first row divides by.
fn parts(layout: Layout, shown: &[Shown]) -> Vec<Part> {
    let of = |module: Module| -> &[Part] {
        match module {
            Module::Cpu | Module::Int | Module::Proc | Module::RunQueue | Module::Sys => &[Part::Cpu],
            Module::Disk | Module::DiskQueue | Module::Io => &[Part::Disks],
            Module::Fs => &[Part::Files],
            Module::Load => &[Part::Load],
            Module::Mem | Module::Swap => &[Part::Memory],
            Module::Net => &[Part::Interfaces],
            Module::Page | Module::Vm => &[Part::Paging],
            Module::Psi => &[Part::Pressure],
            Module::Socket => &[Part::Sockets],
            Module::TcpTrouble => &[Part::Tcp, Part::Sockets],
            Module::Cgroup
            | Module::Epoch
            | Module::Ipc
            | Module::Listen
            | Module::Lock
            | Module::Raw
            | Module::Tcp
            | Module::Time
            | Module::Top(_)
            | Module::Tree
            | Module::Udp
            | Module::Unix => &[],
        }
    };
    let mut parts: Vec<Part> = match layout {
        Layout::Vmstat => vec![Part::Uptime, Part::Cpu, Part::Memory, Part::Paging],
        Layout::Modules(_) => vec![Part::Uptime],
    };
    for part in shown.iter().flat_map(|shown| of(shown.module)) {
        if !parts.contains(part) {
            parts.push(*part);
        }
    }
    parts
}

fn tables(shown: &[Shown]) -> Vec<Table> {
    let table = |shown: &Shown| match shown.module {
        Module::Ipc => Some(Table::Ipc),
        Module::Lock => Some(Table::Locks),
        Module::Raw => Some(Table::Raw),
        Module::Tcp => Some(Table::Tcp),
        Module::Udp => Some(Table::Udp),
        Module::Unix => Some(Table::Unix),
        _ => None,
    };
    let mut tables: Vec<Table> = Vec::new();
    for table in shown.iter().filter_map(table) {
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    tables
}
