//! ssh, the bytes through it, and why there are none.

use crate::frame;
use crate::message::{Answer, Heard, Order};
use crate::shell::{Said, said};
use load::monotonic_ns;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The other end ends when it has heard nothing for longer than [`crate::agent::PATIENCE`]; it hears of us so often.
const BEAT: Duration = Duration::from_secs(2);
/// How long ssh may take to end by itself.
const GRACE: Duration = Duration::from_secs(3);
/// Last lines that ssh wrote, or a greeting.
const KEPT_LINES: usize = 8;
/// No line of a script is longer.
const LONGEST_LINE: u64 = 4096;

/// What came through the line.
#[derive(Debug)]
pub(crate) enum News {
    /// A line of the script.
    Line(String),
    /// A message, and what is behind it.
    Answer(Answer, Vec<Vec<u8>>),
    /// Nothing more comes, and why.
    End(Option<io::Error>),
}

type Out = Arc<Mutex<Option<Box<dyn Write + Send>>>>;

/// A line to another machine. Dropping it ends what is at its other end.
pub(crate) struct Line {
    child: Option<Child>,
    out: Out,
    news: Receiver<Heard<News>>,
    complaints: Arc<Mutex<VecDeque<String>>>,
    beat: Option<JoinHandle<()>>,
}

impl Line {
    /// Starts ssh. `ssh` is a command as a shell reads it, `destination` and `command` are handed to it as they are.
    pub(crate) fn ssh(ssh: &OsStr, destination: &str, command: &str) -> io::Result<Line> {
        // Ctrl-C reaches all of the terminal's programs, and this one is needed until the load's result is here.
        let script = format!("trap '' INT QUIT; exec {} \"$@\"", ssh.to_string_lossy());
        // Nobody could answer a question: Ctrl-C would not reach the ssh that asks it, and the terminal would stay without echo.
        let options = ["-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-T"];
        let mut child = Command::new("sh")
            .args(["-c", &script, "ssh"])
            .args(options)
            .args(["--", destination, command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let pipe = || io::Error::from(ErrorKind::BrokenPipe);
        let (stdin, stdout) = (child.stdin.take().ok_or_else(pipe)?, child.stdout.take().ok_or_else(pipe)?);
        let stderr = child.stderr.take().ok_or_else(pipe)?;
        let mut line = Line::over(stdout, stdin);
        line.child = Some(child);
        let complaints = Arc::clone(&line.complaints);
        thread::spawn(move || {
            let lines = BufReader::new(stderr).split(b'\n').map_while(Result::ok);
            lines.for_each(|line| keep(&complaints, String::from_utf8_lossy(&line).trim()));
        });
        Ok(line)
    }

    /// A line through any two streams.
    pub(crate) fn over(from: impl Read + Send + 'static, to: impl Write + Send + 'static) -> Line {
        let (sender, news) = mpsc::channel();
        thread::spawn(move || listen(from, &sender));
        let out: Box<dyn Write + Send> = Box::new(to);
        let out = Arc::new(Mutex::new(Some(out)));
        Line { child: None, out, news, complaints: Arc::default(), beat: None }
    }

    /// From now on the other end hears of us now and then.
    pub(crate) fn keep_alive(&mut self) {
        let out = Arc::clone(&self.out);
        self.beat = Some(thread::spawn(move || {
            loop {
                thread::park_timeout(BEAT);
                // What is lost here is noticed where somebody waits for an answer.
                match &mut *lock(&out) {
                    None => return,
                    Some(out) => drop(frame::write(out, &Order::Ping(0), &[])),
                }
            }
        }));
    }

    /// Writes bytes as they are.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        self.with_out(|out| out.write_all(bytes).and_then(|()| out.flush()))
    }

    /// Gives an order, and says when it left.
    pub(crate) fn order(&self, order: &Order, blobs: &[Vec<u8>]) -> io::Result<u64> {
        self.with_out(|out| {
            let at_ns = monotonic_ns();
            frame::write(out, order, blobs).map(|()| at_ns)
        })
    }

    fn with_out<T>(&self, write: impl FnOnce(&mut Box<dyn Write + Send>) -> io::Result<T>) -> io::Result<T> {
        lock(&self.out).as_mut().map_or_else(|| Err(ErrorKind::BrokenPipe.into()), write)
    }

    /// What came next, if it comes in time.
    pub(crate) fn next(&self, patience: Duration) -> Option<Heard<News>> {
        match self.news.recv_timeout(patience) {
            Ok(heard) => Some(heard),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Heard::now(News::End(None))),
        }
    }

    /// The last things that ssh, the other machine or its greeting said, the last one last; waits a little for ssh's last words.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        let until = Instant::now() + GRACE;
        while let Some(child) = &mut self.child
            && Instant::now() < until
            && !matches!(child.try_wait(), Ok(Some(_)))
        {
            thread::sleep(Duration::from_millis(10));
        }
        // Its end and its last words come by two ways.
        let ended = Instant::now();
        while self.child.is_some() && Arc::strong_count(&self.complaints) > 1 && ended.elapsed() < GRACE / 6 {
            thread::sleep(Duration::from_millis(10));
        }
        lock(&self.complaints).iter().cloned().collect()
    }

    /// Keeps what may explain an end.
    pub(crate) fn greeted(&self, line: &str) {
        keep(&self.complaints, line.trim());
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // The other end reads the end of its input, and ends; then ssh does.
        drop(lock(&self.out).take());
        if let Some(beat) = self.beat.take() {
            beat.thread().unpark();
            drop(beat.join());
        }
        if let Some(mut child) = self.child.take() {
            let until = Instant::now() + GRACE;
            while Instant::now() < until && !matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
                thread::sleep(Duration::from_millis(10));
            }
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Reads lines until the script says that frames follow, then frames.
fn listen(from: impl Read, to: &Sender<Heard<News>>) {
    let mut from = BufReader::with_capacity(1 << 16, from);
    let tell = |news| to.send(Heard::now(news)).is_ok();
    let ended = |why| drop(to.send(Heard::now(News::End(why))));
    loop {
        let mut bytes = Vec::new();
        match from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes) {
            Ok(0) => return ended(None),
            Ok(_) => {}
            Err(error) => return ended(Some(error)),
        }
        let line = String::from_utf8_lossy(&bytes).into_owned();
        let starts = said(&line) == Said::Start;
        if !tell(News::Line(line)) {
            return;
        }
        if starts {
            break;
        }
    }
    loop {
        let news = match frame::read(&mut from) {
            Ok(Some((answer, blobs))) => News::Answer(answer, blobs),
            Ok(None) => News::End(None),
            Err(error) => News::End(Some(error)),
        };
        let is_end = matches!(news, News::End(_));
        if !tell(news) || is_end {
            return;
        }
    }
}

fn keep(lines: &Mutex<VecDeque<String>>, line: &str) {
    if line.is_empty() {
        return;
    }
    let mut lines = lock(lines);
    if lines.len() == KEPT_LINES {
        lines.pop_front();
    }
    lines.push_back(line.to_owned());
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
