//! A terminal for a process of our own: what is shown on it, keys, its size, and its end.
#![allow(dead_code, reason = "every test file uses a part of it")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// What a full screen begins with.
pub(crate) const ENTERED: &str = "\x1b[?1049h";
/// What it ends with.
pub(crate) const LEFT: &str = "\x1b[?1049l";

/// A terminal with a process on it.
pub(crate) struct Terminal {
    pub(crate) master: OwnedFd,
    pub(crate) slave: OwnedFd,
    pub(crate) child: Child,
    pub(crate) shown: String,
    before: Termios,
}

impl Terminal {
    /// A terminal of which that command is the first process.
    pub(crate) fn of(mut command: Command) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).expect("our own terminal");
        unlockpt(&master).expect("our own terminal");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let slave = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty());
        let slave = slave.expect("our own terminal");
        resize(&master, 80, 24);
        let end = || Stdio::from(slave.try_clone().expect("a descriptor"));
        command.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: between fork and exec only system calls are made, and nothing is allocated.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
                Ok(())
            });
        }
        let before = tcgetattr(&slave).expect("a terminal");
        Terminal { master, slave, child: command.spawn().expect("webdyno starts"), shown: String::new(), before }
    }

    /// Reads what is shown until that is among it; what was shown before counts only once.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) -> &mut Terminal {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.shown.find(text) {
                self.shown.drain(..at + text.len());
                return self;
            }
            assert!(Instant::now() < deadline && self.read(100), "no {text:?} in {:?}", self.shown);
        }
    }

    /// Has everything drawn anew until that is among it: a word of which some letters stood there before comes in pieces.
    #[track_caller]
    pub(crate) fn shows(&mut self, text: &str) -> &mut Terminal {
        let deadline = Instant::now() + PATIENCE;
        while !self.shown.contains(text) {
            assert!(Instant::now() < deadline, "no {text:?} in {:?}", self.shown);
            self.shown.clear();
            self.press(b"\x0c");
            let round = Instant::now() + Duration::from_secs(1);
            while Instant::now() < round && !self.shown.contains(text) {
                self.read(100);
            }
        }
        self.until(text)
    }

    /// Reads what is shown until that is among it, and returns what stands before it.
    #[track_caller]
    pub(crate) fn word_before(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        while !self.shown.contains(text) {
            assert!(Instant::now() < deadline && self.read(100), "no {text:?} in {:?}", self.shown);
        }
        let at = self.shown.find(text).unwrap_or(0);
        self.shown.drain(..at).collect()
    }

    /// Reads what there is; whether there may be more.
    fn read(&mut self, longest_ms: i64) -> bool {
        let length = Timespec { tv_sec: 0, tv_nsec: longest_ms * 1_000_000 };
        let ready = poll(&mut [PollFd::new(&self.master, PollFlags::IN)], Some(&length)).expect("a terminal");
        let mut piece = vec![0; 4096];
        if ready > 0 {
            let count = rustix::io::read(&self.master, piece.as_mut_slice()).expect("our end of it is open");
            self.shown.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
        ready > 0 || longest_ms > 0
    }

    pub(crate) fn press(&self, keys: &[u8]) {
        assert_eq!(rustix::io::write(&self.master, keys).expect("a terminal"), keys.len());
    }

    /// Goes away, and waits for how the process ends.
    pub(crate) fn hang_up(&mut self) -> Option<i32> {
        let (nowhere, _) = rustix::pipe::pipe().expect("a pipe");
        drop(std::mem::replace(&mut self.master, nowhere));
        self.child.wait().expect("our own child").code()
    }

    /// Reads to the end, which comes with this code; the terminal is then as it was.
    #[track_caller]
    pub(crate) fn ends(&mut self, code: i32) {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            self.read(20);
            if let Some(status) = self.child.try_wait().expect("our own child") {
                break status;
            }
            assert!(Instant::now() < deadline, "still running: {:?}", self.shown);
        };
        while self.read(0) {}
        assert_eq!(status.code(), Some(code), "{:?}", self.shown);
        let after = tcgetattr(&self.slave).expect("a terminal");
        assert_eq!(
            (after.local_modes, after.input_modes, after.output_modes),
            (self.before.local_modes, self.before.input_modes, self.before.output_modes)
        );
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes it so large.
pub(crate) fn resize(terminal: &OwnedFd, columns: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("a terminal");
}
