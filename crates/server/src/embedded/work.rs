//! The workloads of the embedded server: what a path asks for, and doing it honestly.
//!
//! A cost that is named is really paid: CPU time is burnt, memory is touched, and nothing is computed ahead. Knows no
//! connections and no HTTP.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::param::page_size;
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::ptr;
use std::time::Duration;

/// The most bytes of a `/static` body.
const MAX_BODY: u64 = 64 << 20;
/// The most memory that `/memory` takes.
const MAX_MEMORY: u64 = 16 << 30;
/// The longest `/cpu` and `/sleep`.
const MAX_TIME: Duration = Duration::from_secs(60);
/// Steps between two looks at the clock while burning: about 10 us, far below any duration worth asking for.
const STEPS: u32 = 4096;

/// What one request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// The small page.
    Page,
    /// The settings in force.
    Settings,
    /// A body of so many bytes.
    Static(usize),
    /// So much CPU time of this worker.
    Cpu(Duration),
    /// Waiting for so long, as for a database.
    Sleep(Duration),
    /// So many bytes of memory, touched and given back.
    Memory(usize),
}

/// Why a path asks for nothing that can be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoWork {
    /// No such path.
    Unknown,
    /// A quantity that cannot be read or is beyond the limits; one sentence.
    Quantity(String),
}

impl Work {
    /// Reads a path without its query.
    pub(crate) fn parse(path: &str) -> Result<Work, NoWork> {
        match path {
            "/" => return Ok(Work::Page),
            "/@settings" => return Ok(Work::Settings),
            _ => {}
        }
        let (kind, quantity) = path.strip_prefix('/').and_then(|p| p.split_once('/')).ok_or(NoWork::Unknown)?;
        match kind {
            "static" => Ok(Work::Static(bytes(quantity, MAX_BODY)?)),
            "memory" => Ok(Work::Memory(bytes(quantity, MAX_MEMORY)?)),
            "cpu" => Ok(Work::Cpu(duration(quantity)?)),
            "sleep" => Ok(Work::Sleep(duration(quantity)?)),
            _ => Err(NoWork::Unknown),
        }
    }
}

/// Burns CPU until this thread has used `time` of it: waiting for a CPU does not count.
pub(crate) fn burn(time: Duration) {
    let end = thread_cpu() + time;
    let mut state = 1_u64;
    while thread_cpu() < end {
        for _ in 0..STEPS {
            state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
}

/// Takes memory from the kernel, writes to every page of it and gives it back. An allocator would keep some of it for the next
/// request, which would then cost less than it says.
pub(crate) fn touch(bytes: usize) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: a new private mapping at an address of the kernel's choice concerns no other memory.
    let memory =
        unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)? };
    for offset in (0..bytes).step_by(page_size()) {
        // SAFETY: `offset` is below `bytes`, so it lies in the mapping, which is writable and known to nobody else.
        unsafe { memory.cast::<u8>().add(offset).write_volatile(1) };
    }
    // SAFETY: exactly the mapping made above, and no pointer into it is used after this.
    unsafe { munmap(memory, bytes)? };
    Ok(())
}

fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

fn bytes(text: &str, most: u64) -> Result<usize, NoWork> {
    let (number, unit) = split(text);
    let shift = match unit {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(NoWork::Quantity(format!("`{text}` is not a size: write a whole number and K, M or G"))),
    };
    let value = number.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift)).filter(|&n| n <= most);
    value
        .and_then(|n| usize::try_from(n).ok())
        .ok_or_else(|| NoWork::Quantity(format!("`{text}` is not a whole number of bytes up to {}M", most >> 20)))
}

fn duration(text: &str) -> Result<Duration, NoWork> {
    let (number, unit) = split(text);
    let nanos = match unit {
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(NoWork::Quantity(format!("`{text}` is not a duration: write a whole number and us, ms or s"))),
    };
    let value = number.parse::<u64>().ok().and_then(|n| n.checked_mul(nanos)).map(Duration::from_nanos);
    value
        .filter(|&time| time <= MAX_TIME)
        .ok_or_else(|| NoWork::Quantity(format!("`{text}` is not a duration up to {}s", MAX_TIME.as_secs())))
}

fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: Result<Work, &str>) {
        let got = Work::parse(path).map_err(|error| match error {
            NoWork::Unknown => "unknown".to_owned(),
            NoWork::Quantity(why) => why,
        });
        assert_eq!(got, expected.map_err(str::to_owned), "{path}");
    }

    #[test]
    fn paths() {
        check("/", Ok(Work::Page));
        check("/static/0", Ok(Work::Static(0)));
        check("/static/10K", Ok(Work::Static(10 << 10)));
        check("/memory/2M", Ok(Work::Memory(2 << 20)));
        check("/cpu/250us", Ok(Work::Cpu(Duration::from_micros(250))));
        check("/sleep/4ms", Ok(Work::Sleep(Duration::from_millis(4))));
        check("/static", Err("unknown"));
        check("/static/1/2", Err("`1/2` is not a size: write a whole number and K, M or G"));
        check("/disk/1", Err("unknown"));
        check("", Err("unknown"));
        check("/static/ten", Err("`ten` is not a size: write a whole number and K, M or G"));
        check("/static/65M", Err("`65M` is not a whole number of bytes up to 64M"));
        check("/static/99999999999999999999", Err("`99999999999999999999` is not a whole number of bytes up to 64M"));
        check("/cpu/5", Err("`5` is not a duration: write a whole number and us, ms or s"));
        check("/sleep/61s", Err("`61s` is not a duration up to 60s"));
        check("/sleep/ms", Err("`ms` is not a duration up to 60s"));
    }

    #[test]
    fn burning_uses_the_cpu_time_asked_for() {
        let before = thread_cpu();
        burn(Duration::from_millis(20));
        let used = thread_cpu() - before;
        assert!(used >= Duration::from_millis(20) && used < Duration::from_millis(40), "{used:?}");
    }

    #[test]
    fn memory_that_cannot_be_had_is_an_error() {
        for bytes in [0, 1, 4097, 1 << 20] {
            assert!(touch(bytes).is_ok(), "{bytes}");
        }
        assert_eq!(touch(usize::MAX / 2).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
    }
}
