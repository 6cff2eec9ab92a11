//! Any bytes as what a server sends.
#![no_main]

#[path = "../bodies/response.rs"]
mod response;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| response::check(bytes));
