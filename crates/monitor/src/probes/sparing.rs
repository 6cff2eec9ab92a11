//! Looks that cost more, the more connections the host has.

use super::Probe;
use crate::appointments::now;
use crate::source::Buffer;
use model::Nanos;
use model::reading::Reading;

/// How many times as long as a look the rest after it is, so that such looks take at most a two-hundredth of the time. The kernel walks the
/// table of all its connections for one, those that ended within the last minute among them: a few milliseconds at 5000 new connections a
/// second, for which whoever shares the CPU with the sampler, such as a load, has to wait.
const REST: Nanos = 199;

/// A probe that reads as often as its own cost allows. Readings between have none of its columns.
pub(super) struct Sparing<P> {
    probe: P,
    rests_until: Nanos,
}

impl<P: Probe> Sparing<P> {
    pub(super) fn new(probe: P) -> Sparing<P> {
        Sparing { probe, rests_until: 0 }
    }
}

impl<P: Probe> Probe for Sparing<P> {
    fn read(&mut self, row: &mut Reading, buffer: &mut Buffer) {
        let began = now();
        if began >= self.rests_until {
            self.probe.read(row, buffer);
            let ended = now();
            self.rests_until = ended + (ended - began) * REST;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SECOND;

    /// Takes so long, by the clock.
    struct Slow(Nanos, u32);

    impl Probe for Slow {
        fn read(&mut self, _: &mut Reading, _: &mut Buffer) {
            self.1 += 1;
            let until = now() + self.0;
            while now() < until {}
        }
    }

    #[test]
    fn whoever_looked_long_rests_long() {
        let mut sparing = Sparing::new(Slow(5 * SECOND / 1000, 0));
        let mut read = |sparing: &mut Sparing<Slow>| {
            sparing.read(&mut Reading::empty(0), &mut Buffer::new());
            sparing.probe.1
        };
        let began = now();
        assert_eq!(read(&mut sparing), 1);
        assert!(sparing.rests_until >= began + SECOND, "{} after {began}", sparing.rests_until);
        sparing.rests_until = Nanos::MAX;
        assert_eq!(read(&mut sparing), 1);
        sparing.rests_until = now();
        assert_eq!(read(&mut sparing), 2);
    }
}
