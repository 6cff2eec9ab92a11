//! Any bytes as a plan; the body and what it asserts stand in `bodies/plan.rs`.

#![no_main]

#[path = "../bodies/plan.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // The tests hold files to their names; here only the promises count.
    let _ = body::check(bytes);
});
