//! The modules of dstat: their names on the command line, their headings and how their columns are written, per version.
//!
//! What the numbers are is told by `figures`.

use super::cell::{Format, Kind};
use super::top::{self, Top};
use super::{Compat, own};

/// A module: a group of columns under one heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Module {
    /// `-c`: where the CPU time went.
    Cpu,
    /// `-d`: bytes of disks.
    Disk,
    /// `-T`: seconds since 1970.
    Epoch,
    /// `--fs`: open files and inodes.
    Fs,
    /// `-i`: single interrupts.
    Int,
    /// `-r`: operations of disks.
    Io,
    /// `--ipc`: System V queues, semaphores, segments.
    Ipc,
    /// `-l`: load averages.
    Load,
    /// `--lock`: file locks.
    Lock,
    /// `-m`: memory.
    Mem,
    /// `-n`: bytes of interfaces.
    Net,
    /// `-g`: bytes swapped.
    Page,
    /// `-p`: processes.
    Proc,
    /// `--raw`: raw sockets.
    Raw,
    /// `--socket`: sockets in use.
    Socket,
    /// `-s`: swap.
    Swap,
    /// `-y`: interrupts and context switches.
    Sys,
    /// `--tcp`: TCP sockets by state.
    Tcp,
    /// `-t`: the time of day.
    Time,
    /// `--udp`: UDP sockets by state.
    Udp,
    /// `--unix`: unix sockets.
    Unix,
    /// `--vm`: page faults and allocations.
    Vm,
    /// `--cgroup`: a control group.
    Cgroup,
    /// `--disk-queue`: how long operations of disks take, and how many wait.
    DiskQueue,
    /// `--listen`: accept queues.
    Listen,
    /// `--psi`: time lost for want of CPU, memory, disks.
    Psi,
    /// `--run-queue`: processes that could run, and CPU time that the hypervisor took.
    RunQueue,
    /// `--tcp-trouble`: connections refused, segments sent again, ports that rest.
    TcpTrouble,
    /// `--tree`: the processes of a server.
    Tree,
    /// `--top-*`: the process that has the most of something.
    Top(Top),
}

/// Every module with its name, which is a long option.
const NAMES: [(Module, &str); 29] = [
    (Module::Cpu, "cpu"),
    (Module::Disk, "disk"),
    (Module::Epoch, "epoch"),
    (Module::Fs, "fs"),
    (Module::Int, "int"),
    (Module::Io, "io"),
    (Module::Ipc, "ipc"),
    (Module::Load, "load"),
    (Module::Lock, "lock"),
    (Module::Mem, "mem"),
    (Module::Net, "net"),
    (Module::Page, "page"),
    (Module::Proc, "proc"),
    (Module::Raw, "raw"),
    (Module::Socket, "socket"),
    (Module::Swap, "swap"),
    (Module::Sys, "sys"),
    (Module::Tcp, "tcp"),
    (Module::Time, "time"),
    (Module::Udp, "udp"),
    (Module::Unix, "unix"),
    (Module::Vm, "vm"),
    (Module::Cgroup, "cgroup"),
    (Module::DiskQueue, "disk-queue"),
    (Module::Listen, "listen"),
    (Module::Psi, "psi"),
    (Module::RunQueue, "run-queue"),
    (Module::TcpTrouble, "tcp-trouble"),
    (Module::Tree, "tree"),
];

/// What is shown of which devices; `total` is all of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The module.
    pub module: Module,
    /// Its devices, for the modules that have some: CPUs, disks, interfaces, swaps, interrupts, ports. Names as the kernel has them.
    /// For a control group or a process tree, what it is called.
    pub devices: Vec<String>,
}

/// All devices of a kind.
pub const TOTAL: &str = "total";

/// How a module looks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    pub(super) title: Title,
    pub(super) nicks: Vec<String>,
    /// Of each column.
    pub(super) formats: Vec<Format>,
}

/// What stands over the columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Title {
    /// One heading.
    One(String),
    /// One for each device.
    Each(Vec<String>),
}

impl Module {
    /// Every module, in the order of their names.
    pub fn all() -> impl Iterator<Item = Module> {
        Module::named_all().map(|(module, _)| module)
    }

    /// The module of a name such as `cpu`.
    #[must_use]
    pub fn named(name: &str) -> Option<Module> {
        Module::named_all().find(|(_, known)| *known == name).map(|(module, _)| module)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Module::named_all().find(|(module, _)| *module == self).map_or("", |(_, name)| name)
    }

    fn named_all() -> impl Iterator<Item = (Module, &'static str)> {
        NAMES.into_iter().chain(top::NAMES.into_iter().map(|(top, name)| (Module::Top(top), name)))
    }

    /// Whether it has devices of its own.
    #[must_use]
    pub fn has_devices(self) -> bool {
        use Module::{Cgroup, Cpu, Disk, DiskQueue, Int, Io, Listen, Net, Swap};
        matches!(self, Cgroup | Cpu | Disk | DiskQueue | Int | Io | Listen | Net | Swap)
    }

    /// Whether it is about one thing that must be named: its option takes a value.
    #[must_use]
    pub fn is_named(self) -> bool {
        matches!(self, Module::Cgroup | Module::Tree)
    }

    fn nicks(self, compat: Compat) -> Vec<&'static str> {
        let nicks: &[&str] = match (self, compat) {
            (Module::Cpu, Compat::Dstat07) => &["usr", "sys", "idl", "wai", "hiq", "siq"],
            (Module::Cpu, _) => &["usr", "sys", "idl", "wai", "stl"],
            (Module::Mem, Compat::Dstat07) => &["used", "buff", "cach", "free"],
            (Module::Mem, Compat::Dstat08) => &["used", "free", "buff", "cach"],
            (Module::Mem, Compat::Dool) => &["used", "free", "cach", "avai"],
            (Module::Disk | Module::Io, _) => &["read", "writ"],
            (Module::Epoch, _) => &["epoch"],
            (Module::Fs, _) => &["files", "inodes"],
            // Named after the interrupts themselves.
            (Module::Int, _) => &[],
            (Module::Ipc, _) => &["msg", "sem", "shm"],
            (Module::Load, _) => &["1m", "5m", "15m"],
            (Module::Lock, _) => &["pos", "lck", "rea", "wri"],
            (Module::Net, _) => &["recv", "send"],
            (Module::Page, _) => &["in", "out"],
            (Module::Proc, _) => &["run", "blk", "new"],
            (Module::Raw, _) => &["raw"],
            (Module::Socket, _) => &["tot", "tcp", "udp", "raw", "frg"],
            (Module::Swap, _) => &["used", "free"],
            (Module::Sys, _) => &["int", "csw"],
            (Module::Tcp, _) => &["lis", "act", "syn", "tim", "clo"],
            (Module::Time, _) => &["time"],
            (Module::Udp, _) => &["lis", "act"],
            (Module::Unix, _) => &["dgm", "str", "lis", "act"],
            (Module::Vm, _) => &["majpf", "minpf", "alloc", "free"],
            (Module::Top(top), _) => return vec![top.layout().1],
            (own, _) => return own::nicks(own),
        };
        nicks.to_vec()
    }

    fn format(self, compat: Compat, column: usize) -> Format {
        let bytes = if compat == Compat::Dstat07 { Kind::Whole } else { Kind::Bytes };
        match self {
            Module::Cpu => Format::new(Kind::Percent, 3, 34.0),
            Module::Disk | Module::Net => Format::new(bytes, 5, 1024.0),
            Module::Epoch => Format::new(Kind::Decimal, 10, 0.0),
            Module::Fs => Format::new(Kind::Whole, 6, 1000.0),
            Module::Int | Module::Sys | Module::Vm => Format::new(Kind::Whole, 5, 1000.0),
            Module::Io => Format::new(Kind::Decimal, 5, 1000.0),
            Module::Ipc => Format::new(Kind::Whole, 3, 10.0),
            Module::Load => Format::new(Kind::Decimal, 4, 0.5),
            Module::Lock | Module::Proc => Format::new(Kind::Decimal, 3, 10.0),
            Module::Mem => Format::new(Kind::Decimal, 5, 1024.0),
            Module::Page | Module::Swap => Format::new(Kind::Whole, 5, 1024.0),
            Module::Raw | Module::Socket | Module::Tcp | Module::Udp | Module::Unix => match compat {
                Compat::Dstat07 => Format::new(Kind::Whole, 3, 100.0),
                Compat::Dstat08 | Compat::Dool => Format::new(Kind::Whole, 4, 1000.0),
            },
            // As wide as the text is; no colours by size.
            Module::Time => Format::new(Kind::Whole, 0, 0.0),
            Module::Top(top) => Format::new(Kind::Whole, top.layout().2, 0.0),
            own => own::format(own, column),
        }
    }

    fn title(self) -> &'static str {
        match self {
            Module::Epoch => "epoch",
            Module::Fs => "filesystem",
            Module::Int => "interrupts",
            Module::Ipc => "sysv ipc",
            Module::Load => "load avg",
            Module::Lock => "file locks",
            Module::Mem => "memory usage",
            Module::Page => "paging",
            Module::Proc => "procs",
            Module::Raw => "raw",
            Module::Socket => "sockets",
            Module::Swap => "swap",
            Module::Sys | Module::Time => "system",
            Module::Tcp => "tcp sockets",
            Module::Udp => "udp",
            Module::Unix => "unix sockets",
            Module::Vm => "virtual memory",
            // These have one title for each device.
            Module::Cpu | Module::Disk | Module::Io | Module::Net => "",
            Module::Top(top) => top.layout().0,
            own => own::title(own),
        }
    }

    /// The title over one device.
    fn device_title(self, device: &str, compat: Compat) -> String {
        match self {
            Module::Cpu if device == TOTAL => "total cpu usage".to_owned(),
            Module::Cpu => format!("cpu{device} usage"),
            Module::Disk if compat == Compat::Dool => format!("dsk/{}", short(device, 5)),
            Module::Disk => format!("dsk/{}", device.strip_prefix("cciss/").unwrap_or(device)),
            Module::Io => format!("io/{device}"),
            Module::Swap => format!("swap/{}", short(device.rsplit('/').next().unwrap_or(device), 4)),
            Module::Net => format!("net/{device}"),
            own => own::device_title(own, device),
        }
    }
}

impl Shown {
    /// A module, of all devices together if it has any.
    #[must_use]
    pub fn total(module: Module) -> Shown {
        Shown { module, devices: if module.has_devices() { vec![TOTAL.to_owned()] } else { Vec::new() } }
    }

    /// How it looks; `clock` is a text as wide as the times of day will be.
    pub(super) fn layout(&self, compat: Compat, clock: &str) -> Layout {
        let Shown { module, devices } = self;
        let nicks = match module {
            Module::Int => devices.clone(),
            _ => module.nicks(compat).into_iter().map(str::to_owned).collect(),
        };
        let one_swap = *module == Module::Swap && (compat != Compat::Dool || devices.len() < 2);
        let title = if module.title().is_empty() || *module == Module::Swap && !one_swap {
            Title::Each(devices.iter().map(|device| module.device_title(device, compat)).collect())
        } else {
            Title::One(module.title().to_owned())
        };
        let format = |column| match module {
            Module::Time => Format { width: clock.chars().count(), ..module.format(compat, column) },
            _ => module.format(compat, column),
        };
        let formats = (0..nicks.len()).map(format).collect();
        Layout { title, nicks, formats }
    }
}

/// A device's name in so many characters, as dool shortens it: all its digits, and as many first letters as there is room for.
fn short(name: &str, room: usize) -> String {
    let letters: String = name.chars().take_while(char::is_ascii_alphabetic).collect();
    let groups: Vec<&str> = name.split(|c: char| !c.is_ascii_digit()).filter(|group| !group.is_empty()).collect();
    let (Some(first), false) = (groups.first(), letters.is_empty() || name.len() <= room) else {
        return name.to_owned();
    };
    let digits = format!("{first}{}", groups[1..].last().unwrap_or(&""));
    let kept = room.saturating_sub(digits.len());
    format!("{}{digits}", letters.chars().take(kept).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_modules_and_back() {
        for module in Module::all() {
            assert_eq!(Module::named(module.name()), Some(module));
        }
        assert_eq!(Module::named("cpu24"), None);
    }

    #[test]
    fn devices_are_shortened_as_dool_does() {
        let check = |name, expected| assert_eq!(short(name, 4), expected, "{name}");
        check("sda1", "sda1");
        check("hda14", "hd14");
        check("nvme0n1", "nv01");
        check("md123", "m123");
        check("mmcblk7p50", "m750");
        check("dm-5", "dm-5");
        check("zram", "zram");
        check("äöüß0x", "äöüß0x");
    }
}
