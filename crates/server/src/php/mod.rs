//! PHP behind or inside a server: settings on top of the distribution's own php.ini, a private FPM master, and what is in force.
//!
//! `ini` writes settings where PHP reads them last and asks PHP what it made of them, `fpm` has the pool and its master, `find` the
//! programs; `fastcgi` asks the pool how it fares and `queue` asks the kernel who waits for it. `behind` is a pool of the machine's own.

mod behind;
mod fastcgi;
mod find;
mod fpm;
mod ini;
mod queue;

pub(crate) use behind::Behind;
pub(crate) use find::module;
pub(crate) use fpm::{FpmStatusSource, Master, complaints};
pub(crate) use ini::{PAGE, asked_page};

use crate::account::Account;
use crate::probe::{Ask, get};
use crate::{Place, PlanKey, ServerError};
use fpm::Pool;
use model::plan::{Php, PhpSettings, PhpWay, Variant};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// PHP in messages.
pub(crate) const PHP: &str = "PHP";
/// FPM in messages.
pub(crate) const FPM: &str = "PHP-FPM";

/// PHP of one instance, prepared and tested.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Where it runs.
    pub(crate) way: PhpWay,
    /// What is asked of it.
    settings: PhpSettings,
    /// The instance's own folder for it.
    pub(crate) folder: PathBuf,
    plan: PathBuf,
    allowed: Vec<String>,
    pool: Option<Pool>,
}

impl Prepared {
    /// Writes the settings of a variant for an instance in `dir`, whose folders `run` and `logs` exist, and lets FPM test its own.
    pub(crate) fn new(
        php: &Php,
        dir: &Path,
        account: Option<&Account>,
        variant: &Variant,
        at: PlanKey,
    ) -> Result<Prepared, ServerError> {
        let settings = php.settings.and(&variant.php);
        let folder = ini::write(dir, &settings)?;
        let (plan, allowed) = (at.plan.to_path_buf(), variant.allow_warnings.clone());
        let mut prepared = Prepared { way: php.way, settings, folder, plan, allowed, pool: None };
        if php.way == PhpWay::Fpm {
            let program = find::program(php.program.as_deref(), at)?;
            let pool = Pool::write(program, dir, account, &prepared.settings, prepared.env())?;
            pool.test(&prepared)?;
            prepared.pool = Some(pool);
        }
        Ok(prepared)
    }

    /// What a process needs in its environment to read the settings.
    pub(crate) fn env(&self) -> Vec<(OsString, OsString)> {
        // What stands before the colon is nothing: the folder that this PHP was built with.
        let mut folders = OsString::from(":");
        folders.push(&self.folder);
        vec![("PHP_INI_SCAN_DIR".into(), folders)]
    }

    /// The socket that FPM listens on.
    pub(crate) fn socket(&self) -> Option<&Path> {
        self.pool.as_ref().map(|pool| pool.socket.as_path())
    }

    /// Starts what must run before the server does.
    pub(crate) fn start(&self, place: &Place<'_>) -> Result<Option<Master>, ServerError> {
        self.pool.as_ref().map(|pool| pool.start(place)).transpose()
    }

    /// What is in force, by the names of PHP and its pool: asked of PHP at `address`, and of the pool what FPM accepted.
    pub(crate) fn in_force(
        &self,
        address: SocketAddr,
        patience: Duration,
        is_awaited: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<(String, String)>, ServerError> {
        let no_settings = |why: String| ServerError::NoSettings { server: PHP, why: format!("GET {PAGE}: {why}") };
        let reply = get(address, None, PAGE, Ask::Once, patience, is_awaited)
            .map_err(|error| no_settings(error.to_string()))?;
        if reply.status != 200 {
            return Err(no_settings(format!("status {}", reply.status)));
        }
        let told = reply.text().map_err(|error| no_settings(error.to_string()))?;
        let mut values = ini::in_force(self, &told)?;
        let of_pool = self.pool.iter().flat_map(|pool| &pool.values);
        values
            .extend(of_pool.filter(|(name, _)| !name.contains('[')).map(|(name, value)| (name.clone(), value.clone())));
        Ok(values)
    }
}
