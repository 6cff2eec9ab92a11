//! The way there: requests gathered, written as far as the server takes them, and bodies that wait to be asked for.

use super::{Connection, Line, Progress};
use crate::exchange::Exchange;
use crate::machine::monotonic_ns;
use crate::requests::Rest;
use crate::transport::StreamError;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

impl Connection {
    /// Gathers a request that is like no other.
    pub(super) fn put_together(&mut self, line: &Line<'_>, place: usize) {
        let Exchange { kind, serial, .. } = self.exchanges[place];
        let (before, jars) = (self.out.len(), line.jars.borrow());
        let jar = jars.get(self.jar(line));
        self.body_waits = line.requests.write(kind, serial, jar, &mut self.out) == Rest::Body;
        self.exchanges[place].bytes_out = (self.out.len() - before) as u64;
    }

    /// The number of the request whose body waits, if one does.
    pub(crate) fn body_waits(&self) -> Option<u64> {
        self.body_waits.then(|| self.oldest().serial)
    }

    /// Sends the body that waited: the server asked for it, or took too long to.
    pub(crate) fn send_body(&mut self, line: &Line<'_>) -> Progress {
        self.body_waits = false;
        let Exchange { kind, serial, .. } = *self.oldest();
        let before = self.out.len();
        line.requests.write_body(kind, serial, &mut self.out);
        self.exchanges[self.oldest].bytes_out += (self.out.len() - before) as u64;
        if self.connecting.is_some() { Progress::Pending } else { self.write(line) }
    }

    /// Writes what is left of the requests. On a connection that is being opened, the first write tells whether it is open: one
    /// call less than asking.
    pub(super) fn write(&mut self, line: &Line<'_>) -> Progress {
        let Some(stream) = &mut self.stream else { return self.failed(StreamError::Kernel(Errno::NOTCONN)) };
        let mut end = stream.flush();
        while end.is_ok() && self.sent < self.out.len() {
            match stream.send(&self.out[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(StreamError::Kernel(Errno::INTR)) => {}
                Err(error) => end = Err(error),
            }
        }
        // Without a way to the server nothing that is left can ever be sent. With one, reading tells more than an error of writing.
        let not_now = end.as_ref().is_err_and(StreamError::is_not_now);
        let is_lost = self.connecting.is_some() && end.is_err() && !not_now;
        // What waits for a handshake waits for the server to speak.
        let blocked = !is_lost && (stream.is_blocked() || (not_now && !stream.is_handshaking()));
        if let (Some(since), true) = (self.connecting, stream.is_connected()) {
            line.dialer.reached.set(true);
            self.connected_ns = monotonic_ns();
            self.exchanges[self.oldest].connect_ns = Some(self.connected_ns.saturating_sub(since));
            self.connecting = None;
        }
        self.let_go_of_sent(line);
        match end {
            // Until it is connected there is nothing to read.
            _ if blocked && self.connecting.is_some() => self.wait_for(line, EventFlags::OUT),
            _ if blocked => self.wait_for(line, EventFlags::IN | EventFlags::OUT),
            Err(error) if !not_now => self.not_taken(line, error),
            _ => self.wait_for(line, EventFlags::IN),
        }
    }

    /// Frees what is sent, at the latest when it is half of all.
    fn let_go_of_sent(&mut self, line: &Line<'_>) {
        let left = self.out.len() - self.sent;
        if left == 0 {
            if line.times_writes && !self.out.is_empty() {
                self.note_written();
            }
            self.out.clear();
            self.sent = 0;
        } else if self.sent >= left {
            // Requests in flight behind one another may never be through with it.
            self.out.drain(..self.sent);
            self.sent = 0;
        }
    }

    fn note_written(&mut self) {
        let now = monotonic_ns();
        for n in 0..self.waiting {
            let place = (self.oldest + n) % self.exchanges.len();
            self.exchanges[place].written_ns.get_or_insert(now);
        }
    }

    /// The server takes no more of a request. It may have answered before it closed, as to a body that it finds too large, and
    /// what it said is still to be read.
    pub(super) fn not_taken(&mut self, line: &Line<'_>, error: StreamError) -> Progress {
        match error {
            StreamError::Kernel(errno @ (Errno::PIPE | Errno::CONNRESET)) if self.connecting.is_none() => {
                self.refusal = Some(errno);
                self.wait_for(line, EventFlags::IN)
            }
            error => self.failed(error),
        }
    }
}
