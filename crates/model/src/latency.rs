//! A latency histogram that merges exactly and stores as HDR V2.
//!
//! Values are microseconds with three significant digits up to [`HIGHEST_US`]; anything longer is counted at the top, never
//! dropped. Percentiles are read from merged histograms and are never averaged.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

/// The longest latency told apart, one hour.
pub const HIGHEST_US: u64 = 3_600_000_000;

/// Latencies in microseconds, three significant digits.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency {
    histogram: Histogram<u64>,
}

/// A histogram as it is kept when there are many: HDR V2 bytes, of which there are only as many as there are different latencies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed(Vec<u8>);

impl Default for Packed {
    fn default() -> Self {
        Latency::new().pack()
    }
}

impl Packed {
    /// What was packed.
    ///
    /// # Panics
    /// Never: only what can be read back is ever packed.
    #[must_use]
    pub fn unpack(&self) -> Latency {
        Latency::decode(&self.0).expect("packed by `Latency::pack`")
    }

    /// The bytes, which [`Latency::decode`] reads.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Default for Latency {
    fn default() -> Self {
        Latency::new()
    }
}

/// A stored histogram that cannot be read back.
#[derive(Debug, thiserror::Error)]
#[error("not a latency histogram: {0}")]
pub struct DecodeError(String);

impl Latency {
    /// An empty histogram; the memory for its counts grows with the largest value recorded.
    ///
    /// # Panics
    /// Never: the bounds are constants that HDR accepts.
    #[must_use]
    pub fn new() -> Self {
        let mut histogram = Histogram::new(3).expect("three digits are allowed");
        histogram.auto(true);
        Latency { histogram }
    }

    /// An empty histogram with room for every value, so that recording never allocates.
    ///
    /// # Panics
    /// Never: the bounds are constants that HDR accepts.
    #[must_use]
    pub fn preallocated() -> Self {
        Latency { histogram: Histogram::new_with_max(HIGHEST_US, 3).expect("constant bounds") }
    }

    /// Counts one latency, in microseconds.
    pub fn record(&mut self, micros: u64) {
        // Not `saturating_record`: that clamps to the current size instead of growing. What `record` would refuse is cut off here.
        let _ = self.histogram.record(micros.min(HIGHEST_US));
    }

    /// Adds every count of `other`.
    pub fn merge(&mut self, other: &Latency) {
        // Both sides resize up to HIGHEST_US, so an addition cannot be out of range.
        let _ = self.histogram.add(&other.histogram);
    }

    /// How many latencies were counted.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.histogram.len()
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    /// The smallest value at or below which `percent` of the counts lie, in microseconds; `None` when empty.
    #[must_use]
    pub fn percentile_us(&self, percent: f64) -> Option<u64> {
        (!self.is_empty()).then(|| self.histogram.value_at_percentile(percent))
    }

    /// Arithmetic mean in microseconds; `None` when empty.
    #[must_use]
    pub fn mean_us(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.histogram.mean())
    }

    /// Smallest and largest value in microseconds; `None` when empty.
    #[must_use]
    pub fn range_us(&self) -> Option<(u64, u64)> {
        (!self.is_empty()).then(|| (self.histogram.min(), self.histogram.max()))
    }

    /// The non-empty buckets as (highest value in microseconds, count), ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// The histogram as HDR V2 bytes.
    ///
    /// # Panics
    /// Never: writing to memory does not fail.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.histogram, &mut bytes).expect("memory takes all bytes");
        bytes
    }

    /// The same in little space.
    #[must_use]
    pub fn pack(&self) -> Packed {
        Packed(self.encode())
    }

    /// Reads what [`Latency::encode`] wrote.
    ///
    /// # Errors
    /// When the bytes are not an HDR V2 histogram.
    pub fn decode(mut bytes: &[u8]) -> Result<Latency, DecodeError> {
        let mut histogram: Histogram<u64> =
            Deserializer::new().deserialize(&mut bytes).map_err(|e| DecodeError(format!("{e:?}")))?;
        histogram.auto(true);
        Ok(Latency { histogram })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_is_exact_and_survives_storage() {
        let (mut a, mut b) = (Latency::new(), Latency::preallocated());
        (1..=1000).for_each(|us| a.record(us));
        b.record(u64::MAX);
        a.merge(&b);
        let a = Latency::decode(&a.encode()).unwrap();
        assert!(a.pack().unpack() == a, "packing loses nothing");
        assert_eq!(Packed::default().unpack().len(), 0);
        assert_eq!(a.len(), 1001);
        assert_eq!(a.percentile_us(50.0), Some(501));
        let top = a.range_us().unwrap().1;
        assert!((HIGHEST_US..HIGHEST_US + HIGHEST_US / 500).contains(&top), "{top}");
        assert_eq!(Latency::new().percentile_us(50.0), None);
        let mut slow = Latency::new();
        slow.record(6_721_000);
        assert!((6_721_000..6_728_000).contains(&slow.percentile_us(50.0).unwrap()), "grows with what is recorded");
        assert!(Latency::decode(b"nonsense").is_err());
    }
}
