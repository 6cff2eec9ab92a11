//! Any bytes as a text with reports of ab; the body and what it asserts stand in `crates/abtext/src/fuzz.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| abtext::fuzz::fuzz_one(bytes));
