//! Whether the configuration is still the one that the run began with: who changes it meanwhile changes what is measured.

use crate::ServerError;
use std::fmt::Debug;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Who can say which files a configuration consists of.
pub(crate) trait Reads: Debug + Send + Sync {
    /// All files that are read now, the main one first.
    fn includes(&self) -> Result<Vec<PathBuf>, ServerError>;
}

/// The configuration's files and what is in them.
#[derive(Debug)]
pub(crate) struct Watch {
    reads: Box<dyn Reads>,
    own: Option<PathBuf>,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Watch {
    /// Remembers the files as they are now, all but the one of ours.
    pub(crate) fn begin(reads: impl Reads + 'static, own: Option<&Path>) -> Result<Watch, ServerError> {
        let content = |file: PathBuf| match fs::read(&file) {
            // Since the server named it: another run's is taken away again.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(Err(ServerError::io("read", &file)(error))),
            Ok(bytes) => Some(Ok((file, bytes))),
        };
        let theirs = reads.includes()?.into_iter().filter(|file| Some(file.as_path()) != own);
        let files = theirs.filter_map(content).collect::<Result<_, _>>()?;
        Ok(Watch { reads: Box::new(reads), own: own.map(Path::to_owned), files })
    }

    /// An error when a file is another, is new or is gone.
    pub(crate) fn check(&self) -> Result<(), ServerError> {
        let changed = |file: &Path| Err(ServerError::Changed { file: file.to_owned() });
        for (file, then) in &self.files {
            if fs::read(file).ok().as_ref() != Some(then) {
                return changed(file);
            }
        }
        let now = self.reads.includes()?;
        let known = |file: &PathBuf| self.own.as_ref() == Some(file) || self.files.iter().any(|(then, _)| then == file);
        now.iter().find(|file| !known(file)).map_or(Ok(()), |file| changed(file))
    }
}
