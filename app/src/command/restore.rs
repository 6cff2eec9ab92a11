//! `webdyno restore`: what a killed run left behind is put back.

use crate::exit::Exit;
use host::HostError;
use std::io::Write;

pub(crate) fn run() -> anyhow::Result<Exit> {
    let (restored, failed) = match host::restore(&super::state_dir()?) {
        Ok(restored) => (restored, None),
        Err(HostError::NotPutBack { put_back, failed }) => {
            (put_back, Some(HostError::NotPutBack { put_back: vec![], failed }))
        }
        Err(error) => return Err(error.into()),
    };
    let nothing = restored.is_empty() && failed.is_none();
    let text = if nothing { "Nothing was left behind.".to_owned() } else { restored.join("\n") };
    if !text.is_empty() {
        // Whoever closed the pipe has seen enough.
        let _ = writeln!(std::io::stdout(), "{text}");
    }
    failed.map_or(Ok(Exit::Done), |error| Err(error.into()))
}
