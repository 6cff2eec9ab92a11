//! The files of kernels in `fuzz/corpus/proc`, and what is read of them.

#[path = "../../../../fuzz/bodies/proc.rs"]
mod body;

pub(crate) use body::{World, check, instants};
use expect_test::Expect;
use model::reading::{Column, Look};
use std::fmt::Write;
use std::path::{Path, PathBuf};

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/proc")
}

pub(crate) fn text(kernel: &str) -> Vec<u8> {
    std::fs::read(folder().join(kernel)).expect("a file of the corpus")
}

/// The columns that are there but for those of the reader itself, five in a line.
fn shown(look: &Look) -> String {
    let columns = Column::ALL.iter().filter(|column| !column.name().starts_with("sampler."));
    let cells: Vec<_> =
        columns.filter_map(|&column| Some(format!("{}={}", column.name(), look.reading.get(column)?))).collect();
    let mut text = String::new();
    for line in cells.chunks(5) {
        let _ = writeln!(text, "{}", line.join(" "));
    }
    text
}

pub(crate) fn check_kernel(kernel: &str, expected: &Expect, missing: &[&str]) {
    let dir = tempfile::tempdir().expect("a folder");
    let text = text(kernel);
    let ([first, _], notes) = World::new(dir.path()).looks(&instants(&text));
    expected.assert_eq(&shown(&first));
    for part in missing {
        assert!(notes.iter().any(|note| note.contains(part)), "{part} in {notes:?}");
    }
}
