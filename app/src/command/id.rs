//! What a run is known by: its id, the moment it began, its seed.

use model::run::Anchor;

/// A seed nobody chose; 32 bits, so that it can be typed again.
pub(crate) fn fresh_seed() -> u64 {
    let mut bytes = [0; 4];
    // Kernels before 5.6 may have no random numbers for minutes after their start; a watch began to show its rows when they had (4.4).
    match rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::NONBLOCK) {
        Ok(_) => u64::from(u32::from_ne_bytes(bytes)),
        Err(_) => (u64::from(std::process::id()) << 20 ^ load::monotonic_ns()) & 0xffff_ffff,
    }
}

/// This moment, by both clocks.
pub(crate) fn now() -> Anchor {
    let wall = jiff::Timestamp::now().as_nanosecond();
    Anchor { mono_ns: load::monotonic_ns(), wall_ns: i64::try_from(wall).unwrap_or_default() }
}

/// A name that sorts by time and can be typed: `20261120-235840-7f3a`.
pub(crate) fn run_id(anchor: Anchor, random: u64) -> String {
    let time = jiff::Timestamp::from_nanosecond(i128::from(anchor.wall_ns)).unwrap_or_default();
    format!("{}-{:04x}", time.strftime("%Y%m%d-%H%M%S"), random & 0xffff)
}
