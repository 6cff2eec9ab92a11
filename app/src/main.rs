//! The one binary `webdyno`: which command was asked for, and the exit code it ends with.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let rest = args.get(2..).unwrap_or_default();
    let code = match args.get(1).and_then(|command| command.to_str()) {
        // The processes webdyno starts of itself; not for users, so not in the help.
        Some("@guardian") => host::guardian_main(rest),
        Some("@launch") => host::launcher_main(rest),
        Some("@sampler") => monitor::sampler_main(rest),
        Some("serve") => server::serve_main(rest),
        _ => 2,
    };
    ExitCode::from(code)
}
