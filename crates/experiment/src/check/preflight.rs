//! A few requests one after the other, and what they tell of the page.

use load::{Answered, Ending, Record, Witness};
use model::Nanos;
use model::check::Page;
use model::load::Failure;
use model::trial::Preflight;

/// Keeps what came back.
#[derive(Debug, Default)]
pub(super) struct Looked {
    records: Vec<Record>,
    heads: Vec<String>,
    enough_ns: Nanos,
}

impl Looked {
    /// One that has seen enough when the answers have taken so long.
    pub(super) fn until(enough_ns: Nanos) -> Looked {
        Looked { enough_ns, ..Looked::default() }
    }
}

impl Witness for Looked {
    fn wants_heads(&self) -> bool {
        true
    }

    fn head(&mut self, head: &[u8]) {
        self.heads.push(String::from_utf8_lossy(head).into_owned());
    }

    fn saw(&mut self, record: &Record) {
        self.records.push(*record);
    }

    fn is_enough(&self) -> bool {
        let timed_out = |record: &Record| record.ending == Ending::Failed(Failure::Timeout);
        let taken: Nanos = self.records.iter().map(|record| record.end_ns - record.start_ns).sum();
        taken >= self.enough_ns || self.records.last().is_some_and(timed_out)
    }
}

/// What several looks saw together.
pub(super) fn together(looks: Vec<Looked>) -> Looked {
    let mut all = Looked::default();
    for look in looks {
        all.records.extend(look.records);
        all.heads.extend(look.heads);
    }
    all
}

impl Looked {
    /// The page, if there was an answer.
    pub(super) fn page(&self) -> Option<Page> {
        let answered = |record: &&Record| record.answer.is_some();
        let last = self.records.iter().rfind(answered)?;
        let Answered { status, reusable, .. } = last.answer?;
        let time = |record: &Record| (record.end_ns - record.start_ns) / 1000;
        let head = self.heads.last().map_or("", String::as_str);
        let field = |name: &str| field(head, name);
        Some(Page {
            status,
            bytes: last.bytes_in,
            time_us: self.records.iter().filter(answered).map(time).min()?,
            content_type: field("Content-Type"),
            encoding: field("Content-Encoding"),
            location: field("Location"),
            is_static: field("Last-Modified").is_some()
                && field("Set-Cookie").is_none()
                && field("X-Powered-By").is_none(),
            stays_open: reusable,
            sets_cookie: field("Set-Cookie").is_some(),
        })
    }

    /// What the server calls itself.
    pub(super) fn software(&self) -> Option<String> {
        field(self.heads.last()?, "Server")
    }

    /// The same as a load's preflight tells it.
    pub(super) fn summary(&self) -> Preflight {
        load::summary(&self.records)
    }
}

fn field(head: &str, name: &str) -> Option<String> {
    let fields = head.split("\r\n").skip(1).take_while(|line| !line.is_empty());
    let of_name = |line: &str| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
    };
    fields.filter_map(of_name).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_head() {
        let head = "HTTP/1.1 200 OK\r\nserver: Apache/2.4\r\nContent-Type: text/html\r\n\r\nServer: no";
        assert_eq!(field(head, "Server").as_deref(), Some("Apache/2.4"));
        assert_eq!(field(head, "Location"), None);
        let body = "HTTP/1.1 200 OK\r\n\r\nServer: no";
        assert_eq!(field(body, "Server"), None);
    }
}
