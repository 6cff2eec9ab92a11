//! Why another machine sends nothing.

use load::LoadError;

/// Why a load could not be sent from another machine.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// There is no way there.
    #[error("{from}: {why}")]
    NoWay {
        /// Where to, as the user wrote it.
        from: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The generator cannot be brought or run there.
    #[error("{from}: {why}")]
    NoPlace {
        /// Where, as the user wrote it.
        from: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// It was there, and is no more.
    #[error("{from}: lost while it was at work: {why}; what was measured before is kept")]
    Lost {
        /// Where, as the user wrote it.
        from: String,
        /// What was seen of it.
        why: String,
    },
    /// It cannot carry out the load.
    #[error("{from}: {why}")]
    Refused {
        /// Where, as the user wrote it.
        from: String,
        /// Its own words.
        why: String,
    },
    /// The load cannot travel.
    #[error("a load from another machine cannot have {0}")]
    Unsent(&'static str),
    /// The user ended it before it began.
    #[error("{0}: interrupted before the generator was there")]
    Interrupted(String),
    /// This program's own file cannot be read.
    #[error("cannot read this program's own file to copy it: {0}")]
    Program(std::io::Error),
    /// What the load itself lacks.
    #[error(transparent)]
    Load(#[from] LoadError),
}
