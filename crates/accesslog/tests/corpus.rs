//! The committed corpus of the fuzz target `access_log`, and damaged copies of it: counts add up and nothing panics.
//!
//! The first line of a file is a format, the others are a log. What fuzzing finds becomes a file there.

use accesslog::fuzz::fuzz_one;
use proptest::prelude::*;
use std::path::Path;

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/access_log");
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
}
