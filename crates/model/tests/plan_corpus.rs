//! The committed corpus of the fuzz target `plan`, and damaged copies of it. A name begins with what comes of the file: `good` is
//! a plan, `bad` is none. What fuzzing finds becomes a file there.

#[path = "../../../fuzz/bodies/plan.rs"]
mod body;

use std::path::Path;

fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/plan");
    let entries = std::fs::read_dir(folder).expect("the corpus is committed");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("a readable folder"))
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).expect("a file")))
        .collect();
    files.sort();
    files
}

#[test]
fn every_file_is_what_its_name_says() {
    let files = corpus();
    assert!(files.len() >= 5, "{} files", files.len());
    files.iter().for_each(|(name, bytes)| assert_eq!(body::check(bytes), name.starts_with("good"), "{name}"));
}

#[test]
fn damaged_files_hold() {
    for (_, bytes) in corpus() {
        for at in (0..bytes.len()).step_by(bytes.len() / 37 + 1) {
            body::check(&bytes[..at]);
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x15;
            body::check(&damaged);
            damaged.remove(at);
            body::check(&damaged);
        }
    }
}
