//! Access logs of Apache and nginx: text in, entries out, and a timetable for replaying them.
//!
//! A [`Format`] is what the server was told to write. A [`Reader`] turns lines of it into [`Entry`] values and counts what it
//! could not use. A [`TimetableBuilder`] takes entries and gives a [`Timetable`]: which request to send at which moment.
//!
//! Nothing here opens a file, knows the time, or sends anything: the owner of the log gives its lines.
//!
//! ```
//! use accesslog::{Format, Methods, Reader, Replay, Timetable, TimetableBuilder};
//!
//! let log = r#"::1 - - [21/Nov/2026:03:20:40 +0000] "GET /a?b HTTP/1.1" 200 6 "-" "curl/8"
//! ::1 - - [21/Nov/2026:03:20:42 +0000] "-" 408 -"#;
//! let mut reader = Reader::new(Format::parse("common").unwrap());
//! let mut builder = TimetableBuilder::new(Replay { seed: 1, speed: 1.0, methods: Methods::Safe }).unwrap();
//! for entry in log.lines().filter_map(|line| reader.read(line.as_bytes())) {
//!     builder.add(&entry);
//! }
//! let timetable: Timetable = builder.build();
//! let arrival = timetable.arrivals().next().unwrap();
//! assert_eq!((timetable.len(), arrival.offset_ns, arrival.asked.target), (1, 0, "/a?b"));
//! assert_eq!(reader.tally().troubles()[0].to_string(), "1 line without a request, first in line 2");
//! ```

mod entry;
mod escape;
mod format;
#[doc(hidden)]
pub mod fuzz;
mod line;
mod reader;
mod request;
mod time;
mod timetable;

pub use entry::{Entry, Moment, NoRequest, Request, Resolution, Timestamp, Version};
pub use format::{Format, FormatError};
pub use reader::{Reader, Tally, Trouble, Troubles};
pub use timetable::{Arrival, Asked, LeftOut, Methods, Replay, SpeedError, Timetable, TimetableBuilder, Unused};
