//! What must hold for any bytes; the body of a fuzz target and of the tests on its corpus.

use crate::{Format, Methods, Reader, Replay, TimetableBuilder};

/// Reads the first line as a format and the others as a log in it, or all of them as a log whose format is guessed.
///
/// # Panics
/// When a count does not add up or an arrival is out of order: that is what is looked for.
pub fn fuzz_one(bytes: &[u8]) {
    let lines = || bytes.split(|byte| *byte == b'\n');
    let text = lines().next().and_then(|first| std::str::from_utf8(first).ok()).unwrap_or_default();
    let formats = [Format::parse(text).ok(), Format::guess(lines()), Format::parse("combined").ok()];
    for format in formats.into_iter().flatten() {
        let mut reader = Reader::new(format);
        let replay = Replay { seed: bytes.len() as u64, speed: 1.5, methods: Methods::Safe };
        let Ok(mut builder) = TimetableBuilder::new(replay) else { return };
        for entry in lines().filter_map(|line| reader.read(line)) {
            if let Ok(request) = &entry.request {
                assert!(!request.method.contains(' ') && !request.target.contains(' '), "{request:?}");
            }
            builder.add(&entry);
        }
        let (tally, timetable) = (reader.tally(), builder.build());
        assert_eq!(tally.lines(), lines().count() as u64);
        assert_eq!(tally.entries(), timetable.len() as u64 + timetable.left_out().total());
        assert!(timetable.arrivals().all(|arrival| arrival.asked.target.starts_with('/')));
        assert!(timetable.arrivals().is_sorted_by_key(|arrival| arrival.offset_ns));
    }
}
