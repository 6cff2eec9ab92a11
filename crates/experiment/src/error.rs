//! Why a run could not be made, by whose turn it is to act; the caller turns the kind into an exit code.

use std::path::PathBuf;

/// Why a run ended without its result.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The plan asks for something that does not work: a build step that fails.
    #[error("{}:{line}: build: {what}", file.display())]
    Plan {
        /// The plan.
        file: PathBuf,
        /// Line of the build step.
        line: usize,
        /// One sentence.
        what: String,
    },
    /// The server could not be run.
    #[error(transparent)]
    Server(#[from] server::ServerError),
    /// The environment refuses: cgroups, swap, disk.
    #[error(transparent)]
    Host(#[from] host::HostError),
    /// The environment lacks something the plan needs.
    #[error("{0}")]
    Missing(String),
    /// The host could not be watched.
    #[error(transparent)]
    Monitor(#[from] monitor::MonitorError),
    /// The load could not be started: no CPU to pin to, no thread, no epoll instance.
    #[error(transparent)]
    Load(#[from] load::LoadError),
    /// The store refuses.
    #[error(transparent)]
    Store(#[from] store::StoreError),
}
