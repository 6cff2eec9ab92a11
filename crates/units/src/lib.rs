//! Parse what people write for durations and byte counts, and print numbers the way a column needs them.
//!
//! One scale per column: [`Scale`] is chosen once from the largest value and then applied to every row, so that two
//! figures under each other can be compared without reading their units. Nothing here knows what is measured.

mod parse;
mod print;

pub use parse::{ParseError, bytes, duration_ns, rate};
pub use print::{Scale, bytes_scale, duration_scale, short_bytes, short_duration, si};
