//! One file per command.

pub(crate) mod report;
pub(crate) mod restore;
pub(crate) mod run;
pub(crate) mod runs;
