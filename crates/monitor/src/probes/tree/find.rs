//! How new processes are found and opened: by a listing of the host's, or by the numbers that were given out.

use super::files::{open_file, parse_stat};
use super::{Process, Side, Tree, find};
use crate::text::number;
use rustix::fs::{RawDir, SeekFrom};
use rustix::io::Errno;

impl Tree {
    /// Lists the processes of the host, and forgets those that have gone.
    pub(super) fn list(&mut self) -> Result<(), Errno> {
        self.listed.clear();
        rustix::fs::seek(&self.proc, SeekFrom::Start(0))?;
        let mut entries = RawDir::new(&self.proc, &mut self.listing);
        while let Some(entry) = entries.next() {
            let pid = number(entry?.file_name().to_bytes()).and_then(|pid| u32::try_from(pid).ok());
            self.listed.extend(pid);
        }
        self.listed.sort_unstable();
        let Tree { listed, foreign, followed, .. } = self;
        // Numbers are given out in turn, so one that is free now cannot be back before the next scan.
        foreign.retain(|pid| listed.binary_search(pid).is_ok());
        followed.retain(|process| listed.binary_search(&process.pid).is_ok());
        Ok(())
    }

    /// Looks at the processes that were listed and are not known.
    pub(super) fn follow_listed(&mut self) -> Result<(), Errno> {
        let known = self.followed.len();
        for index in 0..self.listed.len() {
            let pid = self.listed[index];
            if self.foreign.binary_search(&pid).is_err() && find(&self.followed[..known], pid).is_none() {
                self.follow(pid, false)?;
            }
        }
        Ok(())
    }

    /// Looks at the numbers that were given out since the last scan. Whoever had one before has gone, unless the numbers began anew and
    /// his was passed over.
    pub(super) fn follow_numbers(&mut self) -> Result<(), Errno> {
        for index in 0..self.newcomers.numbers().len() {
            let pid = self.newcomers.numbers()[index];
            if let Ok(index) = self.foreign.binary_search(&pid) {
                self.foreign.remove(index);
            }
            if let Some(known) = self.followed.iter().position(|process| process.pid == pid) {
                if self.buffer.fill(&self.followed[known].file).ok().and_then(parse_stat).is_some() {
                    continue;
                }
                self.followed.remove(known);
                self.root_has_gone |= self.root == Some(pid);
            }
            self.follow(pid, true)?;
        }
        Ok(())
    }

    /// Opens the stat file of a process and follows it at the end of the list.
    fn follow(&mut self, pid: u32, is_guess: bool) -> Result<(), Errno> {
        match open_file(&self.proc, pid, "stat") {
            Ok(file) => self.followed.push(Process {
                pid,
                file,
                stat: super::Stat::default(),
                side: Side::Unknown,
                has_child: false,
                waits_for_lock: false,
                is_guess,
            }),
            // We are short of something, and could not open those of the server either.
            Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => return Err(error),
            // It has gone, or is not ours to be seen (/proc with `hidepid`).
            Err(_) => {}
        }
        Ok(())
    }
}
