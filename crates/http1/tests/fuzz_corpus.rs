//! What is fuzzed, on the committed corpus: whatever the bytes and however they are cut, the parser gives one result and does
//! not panic.
//!
//! A file's name begins with what comes of it as the answer to a GET: `good` is one complete answer or several, `short` lacks
//! something at its end, `bad` is not HTTP/1. What fuzzing finds becomes a file here; see `docs/fuzzing.md`.

#[path = "../../../fuzz/bodies/response.rs"]
mod response;

use http1::{Asked, Memo, Nobody};
use proptest::prelude::*;
use response::{Content, Outcome, parse};
use std::path::Path;

fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/response");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the corpus is committed")
        .map(|entry| entry.expect("a readable folder"))
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).expect("a file")))
        .collect();
    files.sort();
    files
}

#[test]
fn each_file_comes_out_as_its_name_says() {
    let files = corpus();
    assert!(files.len() >= 60, "{} files", files.len());
    // One memo for all: what it keeps of one file must not change another.
    let mut memo = Memo::default();
    for (name, bytes) in files {
        let whole = parse(&bytes, Asked::Content, bytes.len(), Content::Fed, &mut Memo::default(), &mut Nobody);
        let kind = match whole {
            Outcome { error: Some(_), .. } => "bad-",
            Outcome { complete: false, .. } => "short-",
            Outcome { .. } => "good-",
        };
        assert!(name.starts_with(kind), "{name} is {kind}: {whole:?}");
        for size in 1..=bytes.len().min(1000) {
            for content in [Content::Fed, Content::Discarded] {
                let cut = parse(&bytes, Asked::Content, size, content, &mut memo, &mut Nobody);
                assert_eq!(cut, whole, "{name} in pieces of {size}, content {content:?}");
            }
        }
        response::check(&bytes);
    }
}

proptest! {
    #[test]
    fn damaged_files_are_errors_and_not_panics(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let files = corpus();
        let mut bytes = files[which.index(files.len())].1.clone();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        response::check(&bytes);
    }

    #[test]
    fn answers_of_several_files_follow_one_another(
        which in prop::collection::vec(any::<prop::sample::Index>(), 2..5),
    ) {
        let files = corpus();
        let bytes: Vec<u8> = which.iter().flat_map(|index| files[index.index(files.len())].1.clone()).collect();
        response::check(&bytes);
    }
}
