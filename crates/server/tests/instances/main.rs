//! Real servers, started as an experiment starts them: the machine's Apache with the memory CGI, its nginx, and the embedded server.
//!
//! This program is its own guardian, launcher and embedded server, so it brings its own `main`; a first argument that is none of these
//! begins what cargo's own harness would be told.

#![expect(clippy::unwrap_used, reason = "all of it is a test; clippy tells tests by #[test]")]

mod apache;
mod command;
mod derived;
mod derived_nginx;
mod embedded;
mod nginx;
mod php;
mod stage;
mod status;

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.first().and_then(|word| word.to_str()) {
        Some("@guardian") => ExitCode::from(host::guardian_main(&args[1..])),
        Some("@launch") => ExitCode::from(host::launcher_main(&args[1..])),
        Some("serve") => ExitCode::from(server::serve_main(&args[1..])),
        _ => testkit::suite::run(
            &[
                embedded::TESTS,
                apache::TESTS,
                derived::TESTS,
                derived_nginx::TESTS,
                nginx::TESTS,
                php::TESTS,
                status::TESTS,
                command::TESTS,
            ]
            .concat(),
            &args,
        ),
    }
}
