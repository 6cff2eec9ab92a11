//! Whether the configuration is still the one that the run began with: who changes it meanwhile changes what is measured.

use crate::ServerError;
use crate::apache::machine::Machine;
use std::fs;
use std::path::{Path, PathBuf};

/// The configuration's files and what is in them.
#[derive(Debug)]
pub(crate) struct Watch {
    machine: Machine,
    own: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Watch {
    /// Remembers the files as they are now, all but the one of ours.
    pub(crate) fn begin(machine: &Machine, own: &Path) -> Result<Watch, ServerError> {
        let content =
            |file: PathBuf| fs::read(&file).map(|bytes| (file.clone(), bytes)).map_err(ServerError::io("read", &file));
        let files =
            machine.includes()?.into_iter().filter(|file| file != own).map(content).collect::<Result<_, _>>()?;
        Ok(Watch { machine: machine.clone(), own: own.to_owned(), files })
    }

    /// An error when a file is another, is new or is gone.
    pub(crate) fn check(&self) -> Result<(), ServerError> {
        let changed = |file: &Path| Err(ServerError::Changed { file: file.to_owned() });
        for (file, then) in &self.files {
            if fs::read(file).ok().as_ref() != Some(then) {
                return changed(file);
            }
        }
        let now = self.machine.includes()?;
        let new = now.iter().find(|file| **file != self.own && !self.files.iter().any(|(known, _)| known == *file));
        new.map_or(Ok(()), |file| changed(file))
    }
}
