//! The numbers of a row: what two looks at the machine say, per module and version of dstat.
//!
//! Rates divide by the time that really passed, which dstat does not: see `docs/compatibility/dstat.md`.

use super::cell::Cell;
use super::{Compat, Module, ProcessSpan, Shown, TOTAL, own};
use model::device::{DeviceKind, Roster};
use model::reading::{ABSENT, Column, Reading};

/// The machine at one instant.
#[derive(Debug, Clone, Copy)]
pub struct Sight<'a> {
    /// The counters of the whole machine.
    pub reading: &'a Reading,
    /// Those of single devices.
    pub devices: &'a [u64],
}

/// What one row is about.
#[derive(Debug, Clone, Copy)]
pub struct Tick<'a> {
    /// Where the rates begin; `None` for averages since the machine started.
    pub from: Option<Sight<'a>>,
    /// Where they end.
    pub to: Sight<'a>,
    /// Which devices the numbers are of.
    pub roster: &'a Roster,
    /// Bytes of a page of memory.
    pub page_bytes: u64,
    /// Seconds since 1970 when the row began.
    pub epoch: f64,
    /// The same as text, as `-t` shows it.
    pub clock: &'a str,
    /// All processes, when a module asks for one of them.
    pub processes: Option<ProcessSpan<'a>>,
}

/// Bytes of a sector in the kernel's statistics, whatever the disk calls one.
const SECTOR: f64 = 512.0;
const KIB: f64 = 1024.0;

pub(super) type Numbers = Vec<Option<f64>>;

impl Tick<'_> {
    /// The cells of a module: one list for each device, or one list.
    pub(super) fn cells(&self, shown: &Shown, compat: Compat) -> Vec<Vec<Cell>> {
        let Shown { module, devices } = shown;
        match module {
            Module::Time => vec![vec![Cell::Text(self.clock.to_owned())]],
            Module::Top(top) => {
                let shown = self.processes.map(|span| top.shown(span, self.page_bytes));
                vec![vec![Cell::Top(shown.unwrap_or_default())]]
            }
            // One column for each: they are one list.
            Module::Int => {
                vec![devices.iter().map(|device| Cell::Number(self.interrupts(device))).collect()]
            }
            _ if module.has_devices() => {
                devices.iter().map(|device| numbers(self.of_device(*module, device, compat))).collect()
            }
            _ => vec![numbers(self.of_machine(*module, compat))],
        }
    }

    /// A number of a device as it stands.
    pub(super) fn device_gauge(&self, kind: DeviceKind, name: &str, number: usize) -> Option<f64> {
        let value = *self.roster.of(kind, name, self.to.devices)?.get(number)?;
        (value != ABSENT).then_some(value as f64)
    }

    /// Seconds that rates are divided by.
    pub(super) fn seconds(&self) -> Option<f64> {
        let seconds = match self.from {
            Some(from) => self.to.reading.at_ns.saturating_sub(from.reading.at_ns) as f64 / 1e9,
            None => self.to.reading.get(Column::Uptime)? as f64 / 100.0,
        };
        (seconds > 0.0).then_some(seconds)
    }

    pub(super) fn gauge(&self, column: Column) -> Option<f64> {
        self.to.reading.get(column).map(|value| value as f64)
    }

    /// How much a counter of the machine grew; negative when it went backwards.
    pub(super) fn growth(&self, column: Column) -> Option<f64> {
        let before = self.from.map_or(Some(0), |from| from.reading.get(column))?;
        grown(before, self.to.reading.get(column)?)
    }

    pub(super) fn rate(&self, column: Column) -> Option<f64> {
        Some(self.growth(column)? / self.seconds()?)
    }

    /// How much a number of a device grew.
    pub(super) fn device_growth(&self, kind: DeviceKind, name: &str, number: usize) -> Option<f64> {
        let of = |sight: Sight<'_>| {
            let value = *self.roster.of(kind, name, sight.devices)?.get(number)?;
            (value != ABSENT).then_some(value)
        };
        let before = self.from.map_or(Some(0), of)?;
        grown(before, of(self.to)?)
    }

    /// A number of a device as it is.
    pub(super) fn device_level(&self, kind: DeviceKind, name: &str, number: usize) -> Option<f64> {
        let value = *self.roster.of(kind, name, self.to.devices)?.get(number)?;
        (value != ABSENT).then_some(value as f64)
    }

    pub(super) fn device_rate(&self, kind: DeviceKind, name: &str, number: usize) -> Option<f64> {
        Some(self.device_growth(kind, name, number)? / self.seconds()?)
    }

    fn interrupts(&self, name: &str) -> Option<f64> {
        match name {
            TOTAL => self.rate(Column::Interrupts),
            _ => self.device_rate(DeviceKind::Interrupt, name, 0),
        }
    }

    fn of_device(&self, module: Module, device: &str, compat: Compat) -> Numbers {
        let total = device == TOTAL;
        let pair = |kind, columns: [Column; 2], positions: [usize; 2], times: f64| -> Numbers {
            let rate = |at: usize| match total {
                true => self.rate(columns[at]),
                false => self.device_rate(kind, device, positions[at]),
            };
            [0, 1].map(|at| rate(at).map(|rate| rate * times)).to_vec()
        };
        match module {
            Module::Cpu => self.cpu(device, compat),
            Module::Disk => pair(DeviceKind::Disk, [Column::DiskReadSectors, Column::DiskWriteSectors], [1, 3], SECTOR),
            Module::Io => pair(DeviceKind::Disk, [Column::DiskReads, Column::DiskWrites], [0, 2], 1.0),
            // dstat knows no traffic before it started.
            Module::Net if self.from.is_none() => vec![Some(0.0); 2],
            Module::Net => pair(DeviceKind::Interface, [Column::NetRxBytes, Column::NetTxBytes], [0, 1], 1.0),
            Module::Swap => self.swap(device),
            own => own::of_device(self, own, device),
        }
    }

    fn cpu(&self, device: &str, compat: Compat) -> Numbers {
        let ticks: [Option<f64>; 8] = std::array::from_fn(|at| match device {
            TOTAL => self.growth(Column::CPU_TIME[at]),
            _ => self.device_growth(DeviceKind::Cpu, device, at),
        });
        // Kernels before 2.6.11 have no steal; what is absent took no time, unless everything is absent.
        if ticks.iter().all(Option::is_none) {
            return vec![None; if compat == Compat::Dstat07 { 6 } else { 5 }];
        }
        let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks.map(Option::unwrap_or_default);
        // The kernel sometimes takes back time that it had counted as waiting: that makes no other share larger.
        let sum = |times: &[f64]| times.iter().map(|time| time.max(0.0)).sum::<f64>();
        let times = match compat {
            Compat::Dstat07 => vec![sum(&[user, nice]), system, idle, iowait, irq, softirq],
            Compat::Dstat08 | Compat::Dool => vec![sum(&[user, nice, irq, softirq]), system, idle, iowait, steal],
        };
        let sum = sum(&times);
        times.into_iter().map(|time| Some(if sum > 0.0 { 100.0 * time / sum } else { 0.0 })).collect()
    }

    fn swap(&self, device: &str) -> Numbers {
        let (size, used) = if device == TOTAL {
            let size = self.gauge(Column::SwapTotal);
            (size, size.zip(self.gauge(Column::SwapFree)).map(|(size, free)| size - free))
        } else {
            let row = self.roster.of(DeviceKind::Swap, device, self.to.devices).unwrap_or(&[ABSENT, ABSENT]);
            let known = |at: usize| Some(row[at]).filter(|&value| value != ABSENT).map(|value| value as f64);
            (known(0), known(1))
        };
        vec![used.map(|used| used * KIB), size.zip(used).map(|(size, used)| (size - used) * KIB)]
    }

    fn memory(&self, compat: Compat) -> Numbers {
        let bytes = |column| self.gauge(column).map(|kib| kib * KIB);
        // Kernels that do not tell one of these have none of it.
        let or_none = |column| bytes(column).unwrap_or(0.0);
        let (free, cached) = (bytes(Column::MemFree), bytes(Column::MemCached));
        let buffers = bytes(Column::MemBuffers);
        let plain = bytes(Column::MemTotal).zip(free).zip(cached).map(|((total, free), cached)| total - free - cached);
        let used = match compat {
            Compat::Dstat07 => plain.zip(buffers).map(|(used, buffers)| used - buffers),
            Compat::Dstat08 => plain
                .zip(buffers)
                .map(|(used, buffers)| used - buffers - or_none(Column::MemReclaimable) + or_none(Column::MemShmem)),
            Compat::Dool => plain.map(|used| used - or_none(Column::MemReclaimable)),
        };
        match compat {
            Compat::Dstat07 => vec![used, buffers, cached, free],
            Compat::Dstat08 => vec![used, free, buffers, cached],
            Compat::Dool => vec![used, free, cached, bytes(Column::MemAvailable)],
        }
    }

    fn of_machine(&self, module: Module, compat: Compat) -> Numbers {
        let gauges = |columns: &[Column]| columns.iter().map(|&column| self.gauge(column)).collect();
        let rates = |columns: &[Column]| columns.iter().map(|&column| self.rate(column)).collect();
        use Column as C;
        match module {
            Module::Mem => self.memory(compat),
            Module::Epoch => vec![Some(self.epoch)],
            Module::Fs => {
                let used = self.gauge(C::Inodes).zip(self.gauge(C::InodesFree)).map(|(all, free)| all - free);
                vec![self.gauge(C::FilesOpen), used]
            }
            Module::Ipc => gauges(&[C::IpcQueues, C::IpcSemaphores, C::IpcSegments]),
            Module::Load => {
                let loads = [C::Load1, C::Load5, C::Load15];
                loads.map(|column| self.gauge(column).map(|hundredths| hundredths / 100.0)).to_vec()
            }
            Module::Lock => gauges(&[C::LocksPosix, C::LocksFlock, C::LocksRead, C::LocksWrite]),
            Module::Page => {
                let bytes = |column| self.rate(column).map(|pages| pages * self.page_bytes as f64);
                vec![bytes(C::SwapIn), bytes(C::SwapOut)]
            }
            // The reader itself is running, and not of interest.
            Module::Proc => {
                vec![self.gauge(C::Runnable).map(|all| all - 1.0), self.gauge(C::Blocked), self.rate(C::Forks)]
            }
            Module::Raw => gauges(&[C::RawSockets]),
            Module::Socket => gauges(&[C::SocketsUsed, C::SocketsTcp, C::SocketsUdp, C::SocketsRaw, C::SocketsFrag]),
            Module::Sys => rates(&[C::Interrupts, C::ContextSwitches]),
            Module::Tcp => {
                gauges(&[C::TcpListening, C::TcpEstablished, C::TcpHandshakes, C::TcpWaiting, C::TcpClosing])
            }
            Module::Udp => gauges(&[C::UdpListening, C::UdpConnected]),
            Module::Unix => gauges(&[C::UnixDatagram, C::UnixStream, C::UnixListening, C::UnixConnected]),
            Module::Vm => rates(&[C::MajorFaults, C::MinorFaults, C::PageAllocations, C::PageFrees]),
            // Those with devices, and the time of day, are not asked for here.
            own => own::of_machine(self, own),
        }
    }
}

fn numbers(numbers: Numbers) -> Vec<Cell> {
    numbers.into_iter().map(Cell::Number).collect()
}

/// The difference of two counters. One that went backwards gives a negative number, which is drawn as a dash.
fn grown(before: u64, after: u64) -> Option<f64> {
    Some(if after >= before { (after - before) as f64 } else { -((before - after) as f64) })
}
