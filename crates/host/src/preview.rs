//! What [`restore()`](crate::restore()) would put back, without putting anything back: one sentence each, in its order and words.

use crate::HostError;
use crate::confine::is_lent;
use crate::files;
use crate::journal::{Head, Journal, Undo};
use crate::process::Members;
use crate::restore::journals;
use crate::swap::is_swapped_to;
use crate::sysctl;
use crate::undo::{in_order, ours};
use std::path::Path;

/// What dead runs have left behind, by the journals in `state_dir`. Changes nothing.
///
/// # Errors
/// When the folder is not fit to be obeyed, or one of its journals cannot be read.
pub fn left_behind(state_dir: &Path) -> Result<Vec<String>, HostError> {
    let mut sentences = vec![];
    for path in journals(state_dir)? {
        let Some(replay) = Journal::look(&path)? else { continue };
        let path = path.display();
        sentences.extend(
            replay
                .unknown
                .iter()
                .map(|line| format!("cannot read line {line} of {path}: use the webdyno that wrote it")),
        );
        // Without a head nothing can have been changed.
        let Some(head) = &replay.head else { continue };
        for (_, undo) in in_order(&replay.pending) {
            match foresee(&undo, head) {
                Ok(sentence) => sentences.extend(sentence),
                Err(why) => sentences.push(format!("cannot put back: {why}")),
            }
        }
    }
    Ok(sentences)
}

/// What undoing one change would do. `Ok(None)` when there is nothing left to undo.
fn foresee(undo: &Undo, head: &Head) -> Result<Option<String>, String> {
    let exists = |path: &Path| path.symlink_metadata().is_ok();
    Ok(match undo {
        Undo::RemoveFile { path } => {
            exists(ours(path, head)?).then(|| format!("would delete the file {}", path.display()))
        }
        Undo::RemoveTree { path } => {
            exists(ours(path, head)?).then(|| format!("would delete the folder {}", path.display()))
        }
        Undo::GiveBack(lent) => files::foresee(lent),
        Undo::Tell { command, .. } => Some(format!("would run `{}`", command.join(" "))),
        Undo::Restart { service, .. } => {
            let was_here = !head.is_of_another_boot()? && !head.is_of_another_namespace()?;
            (was_here || service.pid().is_some())
                .then(|| format!("would have the server of {} run with its own configuration", service.name))
        }
        Undo::Unclaim { .. } => None,
        // Everything below went with the boot it was made in.
        _ if head.is_of_another_boot()? => None,
        Undo::AskToEnd { .. } if head.is_of_another_namespace()? => None,
        Undo::AskToEnd { session, stop } => stop
            .by
            .reaches(|| session.leader.lives())
            .then(|| format!("would ask a server (session {}) to end, by {}", session.leader.pid, stop.by.words())),
        Undo::KillSession(session) if head.is_of_another_namespace()? => Some(format!(
            "would look for no process of session {}, which belongs to another pid namespace, as a container has",
            session.leader.pid
        )),
        Undo::KillSession(session) => match Members::Session(*session).count()? {
            0 => None,
            n => Some(format!("would end {n} of a server's processes (session {})", session.leader.pid)),
        },
        Undo::RemoveGroup { paths } => {
            let paths = paths.iter().map(|path| ours(path, head)).collect::<Result<Vec<_>, _>>()?;
            let name = paths.iter().find(|path| exists(path)).and_then(|path| path.file_name());
            name.map(|name| format!("would end what lives in the group {0} and remove it", name.to_string_lossy()))
        }
        Undo::DisableMemory { parent } => is_lent(parent, "memory")
            .then(|| format!("would take the memory controller back from the groups in {}", parent.display())),
        Undo::DisableController { parent, controller } => is_lent(parent, controller)
            .then(|| format!("would take the {controller} controller back from the groups in {}", parent.display())),
        Undo::SwapOff { file } => {
            is_swapped_to(ours(file, head)?)?.then(|| format!("would take the swap file {} out of use", file.display()))
        }
        Undo::SwapOn { file, .. } => (exists(file) && !is_swapped_to(file)?)
            .then(|| format!("would take the swap area {} into use again", file.display())),
        Undo::Sysctl { name, value, ours } => sysctl::foresee(name, value, ours),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_would_be_put_back_is_told_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("webdyno-dead-1"), "").unwrap();
        fs::create_dir(at("webdyno-dead-2")).unwrap();
        let mut journal = Journal::create(dir.path(), "dead").unwrap();
        for undo in [
            Undo::RemoveFile { path: at("webdyno-dead-1") },
            Undo::RemoveTree { path: at("webdyno-dead-2") },
            Undo::RemoveFile { path: at("webdyno-dead-gone") },
            Undo::RemoveFile { path: at("precious") },
        ] {
            journal.record(undo).unwrap();
        }
        assert_eq!(left_behind(dir.path()).unwrap(), [""; 0], "its owner lives");
        journal.abandon();
        let before = fs::read(at("dead.journal")).unwrap();
        let expected = [
            format!(
                "cannot put back: {} does not bear the name of the run dead and was left alone",
                at("precious").display()
            ),
            format!("would delete the folder {}", at("webdyno-dead-2").display()),
            format!("would delete the file {}", at("webdyno-dead-1").display()),
        ];
        assert_eq!(left_behind(dir.path()).unwrap(), expected);
        assert!(at("webdyno-dead-1").exists() && at("webdyno-dead-2").exists());
        assert_eq!(fs::read(at("dead.journal")).unwrap(), before);
        assert_eq!(left_behind(&at("nowhere")).unwrap(), [""; 0]);
    }
}
