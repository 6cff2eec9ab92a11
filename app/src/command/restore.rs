//! `webdyno restore`: what a killed run left behind is put back.

use crate::exit::Exit;
use crate::flags::RestoreFlags;
use crate::say;
use host::HostError;

pub(crate) fn run(flags: &RestoreFlags) -> anyhow::Result<Exit> {
    if flags.dry_run {
        print(&host::left_behind(&super::state_dir()?)?);
        return Ok(Exit::Done);
    }
    let (restored, failed) = match host::restore(&super::state_dir()?) {
        Ok(restored) => (restored, None),
        Err(HostError::NotPutBack { put_back, failed }) => {
            (put_back, Some(HostError::NotPutBack { put_back: vec![], failed }))
        }
        Err(error) => return Err(error.into()),
    };
    if !restored.is_empty() || failed.is_none() {
        print(&restored);
    }
    failed.map_or(Ok(Exit::Done), |error| Err(error.into()))
}

fn print(sentences: &[String]) {
    let text = if sentences.is_empty() { "Nothing was left behind.".to_owned() } else { sentences.join("\n") };
    say::print(&(text + "\n"));
}
