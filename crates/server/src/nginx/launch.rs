//! Starting an nginx with a main file of ours, and what its log says of that.

use super::SERVER;
use crate::control::{Logs, Starting};
use crate::{Place, ServerError};
use host::Launch;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

/// Starts `program` with the main file, which stands in `dir` and listens at `address`; relative names of documents and modules are below
/// `prefix`.
pub(super) fn launch<'a>(
    place: &Place<'a>,
    (program, prefix, file): (&Path, &Path, &Path),
    dir: &Path,
    address: SocketAddr,
) -> Result<Starting<'a>, ServerError> {
    let (stderr, log) = (dir.join("logs/stderr"), dir.join("logs/error.log"));
    for old in [&stderr, &log] {
        // Left by a test, or by a try with another port.
        let _ = fs::remove_file(old);
    }
    let launch = Launch {
        program: program.to_owned(),
        args: vec!["-p".into(), prefix.into(), "-c".into(), file.into(), "-e".into(), log.clone().into()],
        env: vec![("LC_ALL".into(), "C".into())],
        dir: dir.to_owned(),
        cpus: place.cpus.to_vec(),
        stdout: dir.join("logs/stdout"),
        stderr: stderr.clone(),
    };
    let since = Instant::now();
    let child = place.host.spawn(&launch, place.group)?;
    let (logs, timeout, interrupted) = (Logs(vec![stderr, log]), place.ready_timeout, place.interrupted);
    Ok(Starting { child, address, host: None, logs, server: SERVER, since, timeout, interrupted })
}

/// Whether it could not listen. nginx tries for two and a half seconds before it gives up.
pub(super) fn in_use(said: &str) -> bool {
    said.contains("(98: Address already in use)")
}

/// What a server that answers nevertheless complains about in its log.
pub(super) fn complaints(log: &str) -> Vec<String> {
    let bad =
        |line: &&str| ["[warn]", "[error]", "[crit]", "[alert]", "[emerg]"].iter().any(|level| line.contains(level));
    log.lines().filter(bad).map(|line| format!("nginx's log: {line}")).collect()
}
