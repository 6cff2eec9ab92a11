//! The embedded server as a child process: the plan's directives become its flags, and it is asked what came of them.

use super::count::Count;
use super::options::Options;
use crate::control::{Logs, POLL, Starting, blame};
use crate::probe::{Ask, Reply, get};
use crate::status::WebSource;
use crate::{Control, Place, Running, ServerError};
use host::Launch;
use model::plan::{Embedded, Variant};
use model::trial::EffectiveSettings;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

const SERVER: &str = "webdyno serve";
const SETTINGS: &str = "/@settings";

/// Controls webdyno's own small server.
#[derive(Debug, Clone)]
pub(crate) struct EmbeddedControl {
    pub(crate) spec: Embedded,
    pub(crate) plan: PathBuf,
}

impl Control for EmbeddedControl {
    fn check(&self, _dir: &Path, variant: &Variant) -> Result<(), ServerError> {
        self.options(variant).map(|_| ())
    }

    fn start(&self, place: &Place<'_>, variant: &Variant) -> Result<Running, ServerError> {
        let mut options = self.options(variant)?;
        options.listen.set_ip(place.listen);
        let count = Count::in_folder(place.dir);
        options.count = count.as_ref().map(|count| count.socket().to_owned());
        let (stdout, stderr) = (place.dir.join("stdout"), place.dir.join("stderr"));
        let launch = Launch {
            program: place.exe.to_owned(),
            args: options.to_flags(),
            env: Vec::new(),
            dir: place.dir.to_owned(),
            cpus: place.cpus.to_vec(),
            stdout: stdout.clone(),
            stderr: stderr.clone(),
        };
        let since = Instant::now();
        let child = place.host.spawn(&launch, place.group)?;
        let (address, logs) = (options.listen, Logs(vec![stderr]));
        let (timeout, interrupted) = (place.ready_timeout, place.interrupted);
        let mut starting = Starting { child, address, host: None, logs, server: SERVER, since, timeout, interrupted };
        starting.address = address_told(&mut starting, &stdout)?;
        starting.wait_until_ready(SETTINGS, None)?;
        let settings = settings(&mut starting)?;
        let asked = [("Workers", options.workers.to_string()), ("KeepAlive", options.keep_alive.name().to_owned())];
        for (name, value) in asked {
            if settings.values.get(name) != Some(&value) {
                return Err(no_settings(format!(
                    "{name} {value} was asked for, and it says {:?}",
                    settings.values.get(name)
                )));
            }
        }
        Ok(starting.running(settings, Vec::new()).with_status(count.map(WebSource::Embedded)))
    }
}

impl EmbeddedControl {
    fn options(&self, variant: &Variant) -> Result<Options, ServerError> {
        let mut options = Options::default();
        for directive in self.spec.directives.iter().chain(&variant.directives) {
            options.apply(&directive.text).map_err(|why| blame(&self.plan, directive, why, SERVER))?;
        }
        Ok(options)
    }
}

/// Waits for the line that tells the port.
fn address_told(starting: &mut Starting<'_>, stdout: &Path) -> Result<SocketAddr, ServerError> {
    loop {
        let text = fs::read_to_string(stdout).map_err(ServerError::io("read", stdout))?;
        let told = text.split_inclusive('\n').next().filter(|line| line.ends_with('\n'));
        if let Some(address) = told.and_then(|line| line.trim().strip_prefix("listening on ")?.parse().ok()) {
            return Ok(address);
        }
        starting.still_awaited()?;
        if starting.left().is_zero() {
            let why = format!("no port after {:.1} s", starting.timeout.as_secs_f64());
            return Err(starting.or_ended(no_settings(why)));
        }
        std::thread::sleep(POLL);
    }
}

/// What it says is in force.
fn settings(starting: &mut Starting<'_>) -> Result<EffectiveSettings, ServerError> {
    let (address, timeout) = (starting.address, starting.timeout);
    let told = get(address, None, SETTINGS, Ask::Once, timeout, &mut || starting.still_awaited().is_ok())
        .and_then(Reply::text)
        .map_err(|error| starting.or_ended(no_settings(error.to_string())))?;
    let mut settings = EffectiveSettings::default();
    for (name, value) in told.lines().filter_map(|line| line.split_once(": ")) {
        if name == "Server" {
            value.clone_into(&mut settings.server);
        } else {
            settings.values.insert(name.to_owned(), value.to_owned());
        }
    }
    settings.worker_limit = settings.values.get("Workers").and_then(|workers| workers.parse().ok());
    Ok(settings)
}

fn no_settings(why: String) -> ServerError {
    ServerError::NoSettings { server: SERVER, why }
}
