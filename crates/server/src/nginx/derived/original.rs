//! The machine's configuration as its files say, read without nginx: a mere test of it would open its logs, make its folders and listen
//! where the machine's own server does.

use crate::nginx::machine::{Configuration, Master, Unread, found, prefix_of, said};
use crate::nginx::program::{Built, find};
use crate::own::Reads;
use crate::{PlanKey, ServerError};
use model::plan::Existing;
use std::path::{Path, PathBuf};

/// A configuration to be copied.
#[derive(Debug, Clone)]
pub(super) struct Original {
    pub(super) program: PathBuf,
    pub(super) built: Built,
    /// The main file.
    pub(super) main: PathBuf,
    /// What names of documents and modules are relative to.
    pub(super) prefix: PathBuf,
    pub(super) own: Configuration,
    /// Whether a server of it runs.
    pub(super) is_running: bool,
}

impl Original {
    /// Reads it, with what a running server of it was started with.
    pub(super) fn read(program: Option<&Path>, existing: &Existing, at: &PlanKey) -> Result<Original, ServerError> {
        let program = find(program, &std::env::var_os("PATH").unwrap_or_default())?;
        let main = found(existing).map_err(|why| ServerError::Machine { at: at.clone(), why })?;
        let built = Built::of(&program)?;
        let read = |before: &str| Configuration::read(&main, before).map_err(|error| error.of_machine(at));
        let own = read("")?;
        let pid_file = said(&own.tree, "pid").map_or(built.pid_file.clone(), |file| built.prefix.join(file));
        let running = of_running(&main, &pid_file);
        let is_running = running.is_some();
        let further = running.map(|master| master.further).unwrap_or_default();
        let prefix = prefix_of(&further).unwrap_or(&built.prefix).to_owned();
        // Such as `daemon on;`: nginx reads it before the main file.
        let before = further.iter().skip_while(|word| *word != "-g").nth(1).map(|word| word.to_string_lossy());
        let own = match before {
            Some(before) => read(&format!("{} ", before.replace('\n', " ")))?,
            None => own,
        };
        Ok(Original { program, built, main, prefix, own, is_running })
    }
}

/// The running server, if it is one of this main file.
fn of_running(main: &Path, pid_file: &Path) -> Option<Master> {
    let is_main = |file: &PathBuf| file.canonicalize().ok() == main.canonicalize().ok();
    let of_it = |master: &Master| master.main.as_ref().is_none_or(is_main);
    Master::of(pid_file).filter(of_it)
}

impl Reads for Original {
    fn includes(&self) -> Result<Vec<PathBuf>, ServerError> {
        let now = Configuration::read(&self.main, "").map_err(Unread::of_running)?;
        Ok(now.texts.into_keys().collect())
    }
}
