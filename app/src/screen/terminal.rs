//! The user's terminal while a screen is on it: taken, written to, listened to, and given back.
//!
//! It is opened anew, so that not waiting for it is a matter of this opening alone and not of the shell's. Nothing here waits for
//! longer than it is told to: a terminal that takes nothing, or that is gone, holds up nobody.

use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::layout::Rect;
use ratatui::widgets::Widget;
use ratatui::{TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// To the alternate screen, without a cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
/// Plain letters, a cursor, and back to what was there before.
pub(crate) const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";
/// How long giving back waits for a terminal that takes nothing.
const PATIENCE: Duration = Duration::from_millis(300);
/// Disables a key that would send a signal.
const NO_KEY: u8 = 0;

/// What was taken, for whoever gives it back: the drawing thread, the end of the process, or a panic.
static TAKEN: Mutex<Option<Taken>> = Mutex::new(None);

struct Taken {
    tty: Arc<OwnedFd>,
    before: Termios,
}

fn taken() -> MutexGuard<'static, Option<Taken>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives the terminal back as it was, if it was taken; nothing of the screen is written any more. Whether all of that is done:
/// a terminal that takes nothing now may still have to be told [`LEAVE`].
pub(crate) fn give_back() -> bool {
    let mut taken = taken();
    let Some(Taken { tty, before }) = taken.take() else { return true };
    // From the background its modes are the shell's affair, and changing them would stop this process.
    if !in_front(tty.as_fd()) {
        return true;
    }
    let deadline = Instant::now() + PATIENCE;
    let mut left = LEAVE;
    while !left.is_empty() {
        match rustix::io::write(&tty, left) {
            Ok(count) => left = &left[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if Instant::now() < deadline => {
                let _ = poll(&mut [PollFd::new(&tty, PollFlags::OUT)], Some(&timespec(PATIENCE)));
            }
            Err(Errno::AGAIN) => break,
            // Nobody is there any more.
            Err(_) => left = &[],
        }
    }
    let _ = tcsetattr(&tty, OptionalActions::Now, &before);
    left.is_empty()
}

/// Whether keys and screen of that terminal are for this process now: it is in the foreground of its own terminal.
pub(super) fn in_front(tty: BorrowedFd<'_>) -> bool {
    tcgetpgrp(tty).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Waits for so long, or until `wake` ends it.
pub(super) fn pause(wake: &OwnedFd, longest: Duration) -> io::Result<()> {
    wait(&mut [PollFd::new(wake, PollFlags::IN)], Some(longest))
}

/// What came from the terminal, or did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Keys, if any.
    Keys(Vec<Key>),
    /// Nobody is there any more.
    Gone,
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// The user wants to end.
    Quit,
    /// The user wants everything drawn anew.
    Redraw,
    /// A letter, digit or sign.
    Letter(u8),
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
}

/// A terminal that was taken.
pub(crate) struct Terminal {
    tty: Arc<OwnedFd>,
    grid: ratatui::Terminal<CrosstermBackend<Sheet>>,
    sheet: Sheet,
    size: Rect,
}

impl Terminal {
    /// Takes the terminal that this process was started on.
    pub(crate) fn take() -> io::Result<Terminal> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let tty = Arc::new(rustix::fs::open("/dev/tty", flags, Mode::empty())?);
        let before = tcgetattr(&tty)?;
        let (sheet, size) = (Sheet::default(), size(&tty)?);
        let options = TerminalOptions { viewport: Viewport::Fixed(size) };
        let grid = ratatui::Terminal::with_options(CrosstermBackend::new(sheet.clone()), options)?;
        let mut terminal = Terminal { tty, grid, sheet, size };
        *taken() = Some(Taken { tty: Arc::clone(&terminal.tty), before: before.clone() });
        terminal.enter(before)?;
        Ok(terminal)
    }

    /// Whether it may be drawn on and listened to; what somebody else did to it meanwhile is put right.
    pub(crate) fn is_in_front(&mut self) -> io::Result<bool> {
        if !in_front(self.tty.as_fd()) {
            return Ok(false);
        }
        let modes = tcgetattr(&self.tty)?;
        // A shell has had it since: this process was stopped and goes on.
        if modes.local_modes.contains(LocalModes::ICANON) {
            self.enter(modes)?;
            self.redraw()?;
        }
        Ok(true)
    }

    /// Everything is sent again with the next drawing.
    pub(crate) fn redraw(&mut self) -> io::Result<()> {
        self.grid.backend_mut().clear()?;
        self.grid.resize(self.size)
    }

    /// Whether its size is another one than when it was last drawn on.
    pub(crate) fn is_resized(&self) -> bool {
        size(&self.tty).is_ok_and(|size| size != self.size)
    }

    /// Draws. Waits for the terminal to take it, unless `wake` tells not to.
    pub(crate) fn paint<V>(&mut self, view: &V, wake: &OwnedFd) -> io::Result<()>
    where
        for<'v> &'v V: Widget,
    {
        let size = size(&self.tty)?;
        if size != self.size {
            self.size = size;
            self.redraw()?;
        }
        self.grid.draw(|frame| frame.render_widget(view, frame.area()))?;
        let bytes = self.sheet.take();
        let mut left = bytes.as_slice();
        while !left.is_empty() {
            let Some(count) = self.write(left)? else {
                let mut ready = [PollFd::new(&*self.tty, PollFlags::OUT), PollFd::new(wake, PollFlags::IN)];
                wait(&mut ready, None)?;
                if !ready[1].revents().is_empty() {
                    return Ok(());
                }
                continue;
            };
            left = &left[count..];
        }
        Ok(())
    }

    /// Waits for keys, for so long at most; `wake` ends it, too. Without `keys` they are left for others.
    pub(crate) fn listen(&self, wake: &OwnedFd, longest: Duration, keys: bool) -> Heard {
        let wanted = if keys { PollFlags::IN } else { PollFlags::empty() };
        let mut ready = [PollFd::new(&*self.tty, wanted), PollFd::new(wake, PollFlags::IN)];
        if wait(&mut ready, Some(longest)).is_err() {
            return Heard::Gone;
        }
        let came = ready[0].revents();
        if came.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Heard::Gone;
        }
        if came.contains(PollFlags::IN) { self.keys() } else { Heard::Keys(Vec::new()) }
    }

    fn keys(&self) -> Heard {
        let mut typed = [0; 64];
        match rustix::io::read(&*self.tty, &mut typed) {
            Ok(0) => Heard::Gone,
            Ok(count) => Heard::Keys(meaning(&typed[..count])),
            Err(Errno::AGAIN | Errno::INTR) => Heard::Keys(Vec::new()),
            Err(_) => Heard::Gone,
        }
    }

    /// Keys come one by one and unseen, and none of them stops the process or the output. Ctrl-C remains what it is.
    fn enter(&mut self, modes: Termios) -> io::Result<()> {
        let mut modes = modes;
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
        modes.input_modes.remove(InputModes::IXON);
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        modes.special_codes[SpecialCodeIndex::VSUSP] = NO_KEY;
        modes.special_codes[SpecialCodeIndex::VQUIT] = NO_KEY;
        tcsetattr(&self.tty, OptionalActions::Now, &modes)?;
        self.sheet.0.borrow_mut().extend_from_slice(ENTER);
        Ok(())
    }

    /// Writes what the terminal takes at once; `None` when that is nothing.
    fn write(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        // Whoever gives it back must have the last word.
        let taken = taken();
        if taken.is_none() {
            return Err(Errno::IO.into());
        }
        match rustix::io::write(&*self.tty, bytes) {
            Ok(count) => Ok(Some(count)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// What is to be sent to the terminal.
#[derive(Debug, Clone, Default)]
struct Sheet(Rc<RefCell<Vec<u8>>>);

impl Sheet {
    fn take(&self) -> Vec<u8> {
        self.0.take()
    }
}

impl io::Write for Sheet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What keys mean. Those that send more than one letter begin with an escape; what else begins so is skipped.
fn meaning(typed: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = typed;
    while let [first, after @ ..] = rest {
        rest = after;
        keys.extend(match first {
            // Ctrl-C is a signal, unless somebody made it a letter.
            b'q' | b'Q' | 0x03 => Some(Key::Quit),
            0x0c => Some(Key::Redraw),
            0x1b => {
                let (key, left) = escaped(after);
                rest = left;
                key
            }
            letter => letter
                .is_ascii_graphic()
                .then_some(Key::Letter(*letter))
                .or((*letter == b' ').then_some(Key::Letter(b' '))),
        });
    }
    keys
}

/// The key behind an escape, and what follows it.
fn escaped(after: &[u8]) -> (Option<Key>, &[u8]) {
    let [b'[' | b'O', sequence @ ..] = after else {
        // What a terminal says of itself has no end that is known here.
        return (None, &[]);
    };
    let Some(end) = sequence.iter().position(|byte| (0x40..=0x7e).contains(byte)) else { return (None, &[]) };
    let key = match &sequence[..=end] {
        b"C" => Some(Key::Right),
        b"D" => Some(Key::Left),
        b"H" | b"1~" | b"7~" => Some(Key::Home),
        b"F" | b"4~" | b"8~" => Some(Key::End),
        b"5~" => Some(Key::PageUp),
        b"6~" => Some(Key::PageDown),
        _ => None,
    };
    (key, &sequence[end + 1..])
}

/// One row and column where the terminal does not say how large it is.
fn size(tty: &OwnedFd) -> io::Result<Rect> {
    let size = tcgetwinsize(tty)?;
    Ok(Rect::new(0, 0, size.ws_col.max(1), size.ws_row.max(1)))
}

/// Waits until one of them is ready, or for so long.
fn wait(fds: &mut [PollFd<'_>], longest: Option<Duration>) -> io::Result<()> {
    match poll(fds, longest.map(timespec).as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn timespec(length: Duration) -> Timespec {
    Timespec { tv_sec: length.as_secs() as i64, tv_nsec: length.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_a_meaning() {
        let check = |typed: &[u8], expected: &[Key]| assert_eq!(meaning(typed), expected, "{typed:?}");
        check(b"q", &[Key::Quit]);
        check(b"Q\x03", &[Key::Quit, Key::Quit]);
        check(b"x\x0c", &[Key::Letter(b'x'), Key::Redraw]);
        check(b"p \r", &[Key::Letter(b'p'), Key::Letter(b' ')]);
        check(b"\x1b[A", &[]);
        check(b"\x1b[D\x1bOC\x1b[5~\x1b[6~+", &[Key::Left, Key::Right, Key::PageUp, Key::PageDown, Key::Letter(b'+')]);
        check(b"\x1b[1;5C\x1b[H\x1b[4~", &[Key::Home, Key::End]);
        check(b"\x1b]11;q", &[]);
        check(b"\x1b", &[]);
        check(b"\x1b[", &[]);
    }
}
