//! Any bytes as a log format and a log in it; the body and what it asserts stand in `crates/accesslog/src/fuzz.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| accesslog::fuzz::fuzz_one(bytes));
