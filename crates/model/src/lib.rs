//! The nouns of webdyno as plain checked data, and readings turned into rates.
//!
//! Everything that is measured, stored or judged passes through these types. Raw facts are fields; whatever can be derived
//! from them is a method, so that a better derivation applies to old runs. Nothing here touches a file, a socket or a clock:
//! a plan is parsed from text, a reading is a row of numbers somebody else read.
//!
//! # What is stored must be readable by later versions
//! Types that are `Serialize` lie in stores as JSON, some for years. A field that is added later gets `#[serde(default)]`, with
//! a default that is true of the old runs; a whole type gets it only where each of its fields has such a default. Fields that
//! a reader does not know are skipped, so no stored type denies them. A field is never given another meaning under its name.

pub mod accounts;
pub mod admission;
pub mod check;
pub mod clocks;
pub mod device;
pub mod foreign;
pub mod import;
pub mod latency;
pub mod load;
pub mod mistyped;
pub mod others;
pub mod plan;
pub mod process;
pub mod reading;
pub mod recording;
pub mod run;
pub mod search;
pub mod statistic;
pub mod status;
pub mod threshold;
pub mod trial;
pub mod workers;

/// A point on, or a length of, the machine's monotonic clock (`CLOCK_MONOTONIC`), in nanoseconds.
pub type Nanos = u64;

/// Nanoseconds in a second.
pub const SECOND: Nanos = 1_000_000_000;
