//! Which servers this machine has for private instances, and what can be said of each without starting it.

use crate::ServerError;
use crate::apache::Install;
use crate::nginx;
use crate::program::{ask, asking};
use model::plan::{Plan, ServerSpec};
use std::path::PathBuf;

/// A server that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Its own name and version, as it says them.
    pub version: String,
    /// The program.
    pub program: PathBuf,
    /// What it can be told to use: Apache's processing modules, by their name in a plan.
    pub mpms: Vec<&'static str>,
}

/// The machine's Apache.
///
/// # Errors
/// When there is none, and what to install.
pub fn installed_apache() -> Result<Installed, ServerError> {
    let install = Install::find(None, &std::env::var_os("PATH").unwrap_or_default())?;
    let said = ask(asking(&install.program).arg("-v"))?;
    let said = String::from_utf8_lossy(&said.stdout);
    let version = said.lines().find_map(|line| line.strip_prefix("Server version: ")).unwrap_or("unknown version");
    Ok(Installed { version: version.trim().to_owned(), mpms: install.mpms(), program: install.program })
}

/// A configuration of the machine's Apache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnApache {
    /// Its main file.
    pub main: PathBuf,
    /// Ports that it listens on.
    pub ports: Vec<u16>,
    /// Whether a server runs with it.
    pub is_running: bool,
    /// Why that one cannot be measured in place, if so.
    pub held: Option<String>,
}

/// The machine's Apache as it is configured; `None` where it has no configuration.
///
/// # Errors
/// When there is no Apache, or when it refuses the configuration.
pub fn own_apache() -> Result<Option<OwnApache>, ServerError> {
    crate::apache::own()
}

/// A configuration of the machine's nginx.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnNginx {
    /// Its main file.
    pub main: PathBuf,
    /// Ports that it listens on.
    pub ports: Vec<u16>,
    /// Whether a server runs with it.
    pub is_running: bool,
}

/// The machine's nginx as it is configured; `None` where it has no configuration.
///
/// # Errors
/// When there is no nginx, or when it refuses the configuration.
pub fn own_nginx() -> Result<Option<OwnNginx>, ServerError> {
    nginx::own()
}

/// The machine's nginx.
///
/// # Errors
/// When there is none, and what to install.
pub fn installed_nginx() -> Result<Installed, ServerError> {
    let program = nginx::find(None, &std::env::var_os("PATH").unwrap_or_default())?;
    Ok(Installed { version: nginx::Built::of(&program)?.version, program, mpms: Vec::new() })
}

/// What a private copy of the machine's configuration would be without, one sentence each; of Apache's that is known when it runs.
///
/// # Errors
/// When the configuration cannot be read.
pub fn left_out(plan: &Plan) -> Result<Vec<String>, ServerError> {
    match &plan.server {
        ServerSpec::Nginx(nginx) => {
            let left_out = |existing| crate::nginx::left_out(nginx, existing, &plan.file);
            nginx.existing.as_ref().map_or(Ok(Vec::new()), left_out)
        }
        _ => Ok(Vec::new()),
    }
}

/// The main file of the machine's own configuration that a plan is about, canonical; `None` when it is about none.
///
/// # Errors
/// When it is not there.
pub fn main_file(spec: &ServerSpec) -> Result<Option<PathBuf>, ServerError> {
    match spec {
        ServerSpec::Apache(apache) => {
            let program = apache.program.as_deref();
            apache.existing.as_ref().map(|existing| crate::apache::main_file(program, existing)).transpose()
        }
        ServerSpec::Nginx(nginx) => nginx.existing.as_ref().map(nginx::main_file).transpose(),
        ServerSpec::Command(_) | ServerSpec::Embedded(_) | ServerSpec::Url(_) => Ok(None),
    }
}
