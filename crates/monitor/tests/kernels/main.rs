//! What is read of the files of several kernels. `fuzz/corpus/proc` has the files; each begins with where it is from.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml excepts only test functions")]

mod corpus;
mod real;
mod written;
