//! Any bytes as the files of /proc and of a control group; the body and what it asserts stand in `bodies/proc.rs`.

#![no_main]

#[path = "../bodies/proc.rs"]
mod body;

use std::sync::LazyLock;

static WORLD: LazyLock<body::World> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("webdyno-fuzz-proc-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    body::World::new(&folder)
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // The tests print what is read; here only the promises count.
    let _ = body::World::looks;
    body::check(&WORLD, bytes);
});
