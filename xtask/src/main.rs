//! Project automation: `cargo xtask setup | test | golden | bench`.
fn main() {}
