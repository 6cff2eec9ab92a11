//! The committed corpus of the fuzz target `ab_text`, and damaged copies of it: what is read stays possible and nothing panics.
//!
//! What fuzzing finds becomes a file there.

use abtext::fuzz::fuzz_one;
use abtext::read;
use proptest::prelude::*;
use std::path::Path;

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/ab_text");
    let entries = std::fs::read_dir(folder).expect("the corpus is committed");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("a file")).collect()
}

#[test]
fn every_file_holds() {
    let files = corpus();
    assert!(files.len() >= 10, "{} files", files.len());
    files.iter().for_each(|bytes| fuzz_one(bytes));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn damaged_files_hold(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let files = corpus();
        let mut bytes = files[which.index(files.len())].clone();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        fuzz_one(&bytes);
    }

    /// Lines lost, doubled and moved, as in careless copies.
    #[test]
    fn careless_copies_hold(
        which in any::<prop::sample::Index>(),
        moves in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..8),
    ) {
        let files = corpus();
        let text = String::from_utf8_lossy(&files[which.index(files.len())]).into_owned();
        let mut lines: Vec<&str> = text.lines().collect();
        for (from, to) in moves {
            let line = lines.remove(from.index(lines.len()));
            lines.insert(to.index(lines.len() + 1), line);
            lines.insert(from.index(lines.len()), line);
        }
        fuzz_one(lines.join("\n").as_bytes());
    }

    /// Whatever a text lacks at its end, the reports before the cut stay what they were.
    #[test]
    fn cutting_the_end_leaves_the_beginning(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>()) {
        let files = corpus();
        let text = String::from_utf8_lossy(&files[which.index(files.len())]).into_owned();
        let cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let cut = &text[..cuts[at.index(cuts.len())]];
        let (Ok(whole), Ok(part)) = (read(&text), read(cut)) else { return Ok(()) };
        let kept = part.reports.len() - 1;
        prop_assert!(part.reports.len() <= whole.reports.len());
        prop_assert_eq!(&part.reports[..kept], &whole.reports[..kept]);
    }

    #[test]
    fn any_text_holds(text in "\\PC{0,200}") {
        fuzz_one(text.as_bytes());
    }
}
