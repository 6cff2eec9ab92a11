//! Trees of files that look like /proc or /sys, made by hand in a directory of the test's own.
//!
//! It knows how a stat file of a process is written; any other text is the test's business.

use std::path::{Path, PathBuf};

/// A directory that stands for /proc, /sys or a control group.
#[derive(Debug)]
pub struct FakeTree {
    root: PathBuf,
}

/// A process in a fake /proc.
#[derive(Debug, Clone, Copy)]
pub struct FakeProcess<'a> {
    /// Its number.
    pub pid: u32,
    /// The number of its parent.
    pub parent: u32,
    /// Its name, without the parentheses.
    pub name: &'a str,
    /// Its state: `R`, `S`, `D`, `Z` and so on.
    pub state: char,
    /// Clock ticks in user mode and in the kernel, its own and those of children it waited for.
    pub ticks: [u64; 4],
    /// Threads.
    pub threads: u64,
    /// Resident pages.
    pub resident_pages: u64,
}

impl FakeTree {
    /// A tree in an existing directory.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        FakeTree { root: root.to_owned() }
    }

    /// Writes a file, making its directories.
    ///
    /// # Panics
    /// When it cannot.
    pub fn file(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        let parent = path.parent().expect("a file is in a directory");
        std::fs::create_dir_all(parent).expect("a temporary directory can be written");
        std::fs::write(path, text).expect("a temporary directory can be written");
    }

    /// Writes the stat file of a process.
    ///
    /// # Panics
    /// When it cannot.
    pub fn process(&self, process: FakeProcess<'_>) {
        let FakeProcess { pid, parent, name, state, ticks, threads, resident_pages } = process;
        let [user, system, waited_user, waited_system] = ticks;
        let text = format!(
            "{pid} ({name}) {state} {parent} {pid} {pid} 0 -1 4194560 21 22 23 24 {user} {system} {waited_user} {waited_system} \
             20 0 {threads} 0 4242 1000000 {resident_pages} 18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        );
        self.file(&format!("{pid}/stat"), &text);
    }

    /// Takes a process away.
    ///
    /// # Panics
    /// When it was not there.
    pub fn remove(&self, pid: u32) {
        std::fs::remove_dir_all(self.root.join(pid.to_string())).expect("the process was written before");
    }
}
