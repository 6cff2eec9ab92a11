//! The committed corpus: whatever the bytes and however they are cut, the parser gives one result and does not panic.
//!
//! A file's name begins with what comes of it: `good` is one complete answer or several, `short` lacks something at its end,
//! `bad` is not HTTP/1. What fuzzing finds becomes a file here.

use http1::{Answer, Method, Parser, ResponseError};
use proptest::prelude::*;
use std::path::Path;

#[derive(Debug, PartialEq)]
struct Outcome {
    answers: Vec<Answer>,
    error: Option<ResponseError>,
    complete: bool,
}

/// Parses `bytes` in pieces of `size`, then closes.
fn parse(bytes: &[u8], size: usize) -> Outcome {
    let mut parser = Parser::new(Method::Get);
    let mut outcome = Outcome { answers: Vec::new(), error: None, complete: true };
    for piece in bytes.chunks(size) {
        let mut rest = piece;
        while !rest.is_empty() {
            match parser.feed(rest) {
                Ok(fed) => {
                    rest = &rest[fed.used..];
                    outcome.complete = fed.answer.is_some();
                    outcome.answers.extend(fed.answer);
                }
                Err(error) => return Outcome { error: Some(error), complete: false, ..outcome },
            }
        }
    }
    if let Some(last) = parser.close() {
        outcome.answers.push(last);
        outcome.complete = true;
    }
    outcome
}

fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
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
    assert!(files.len() >= 20, "{} files", files.len());
    for (name, bytes) in files {
        let whole = parse(&bytes, bytes.len());
        let kind = match whole {
            Outcome { error: Some(_), .. } => "bad",
            Outcome { complete: false, .. } => "short",
            Outcome { .. } => "good",
        };
        assert!(name.starts_with(kind), "{name} is {kind}: {whole:?}");
        for size in 1..bytes.len() {
            assert_eq!(parse(&bytes, size), whole, "{name} in pieces of {size}");
        }
    }
}

proptest! {
    #[test]
    fn damaged_files_are_errors_and_not_panics(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        size in 1_usize..64,
    ) {
        let files = corpus();
        let mut bytes = files[which.index(files.len())].1.clone();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        prop_assert_eq!(parse(&bytes, size), parse(&bytes, bytes.len()));
    }
}
