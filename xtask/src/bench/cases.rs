//! What is compared, and how good webdyno must be at it: data only.

use super::report::Heading;
use super::tools::{Page, Tool, Until, Work};

/// Something to measure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) kind: Kind,
    pub(super) goals: &'static [Goal],
}

impl Case {
    pub(super) fn heading(&self) -> Heading {
        Heading { name: self.name, about: self.about }
    }
}

/// How it is measured.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// CPU per request of the load generators, interleaved.
    Cpu(Shape),
    /// The same of those that take ab's options.
    DropIn(Shape),
    /// The same at half of the rate that the bare loop reaches unhindered.
    HalfRate(Shape),
    /// System calls per request.
    Syscalls,
    /// Resident memory.
    Memory,
    /// Instructions per request, by number of threads.
    Instructions,
}

/// The work, but for how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    connections: u32,
    page: Page,
    tls: bool,
    close: bool,
}

impl Shape {
    pub(super) const fn keep_alive(connections: u32) -> Shape {
        Shape { connections, page: Page::Small, tls: false, close: false }
    }

    pub(super) fn work(self, until: Until) -> Work {
        let Shape { connections, page, tls, close } = self;
        Work { connections, page, tls, close, rate: None, until, threads: 1 }
    }
}

/// How the CPU per request of webdyno, or of `webdyno ab`, must relate to that of another tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Goal {
    pub(super) against: Tool,
    pub(super) figure: Figure,
    pub(super) limit: Limit,
}

/// Which figure of the ratio is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    Median,
    /// The upper end of its interval.
    Upper,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Limit {
    AtMost(f64),
    Below(f64),
    AtLeast(f64),
}

const fn median(against: Tool, limit: f64) -> Goal {
    Goal { against, figure: Figure::Median, limit: Limit::AtMost(limit) }
}

const fn upper(against: Tool, limit: f64) -> Goal {
    Goal { against, figure: Figure::Upper, limit: Limit::AtMost(limit) }
}

const fn wholly_below(against: Tool, limit: f64) -> Goal {
    Goal { against, figure: Figure::Upper, limit: Limit::Below(limit) }
}

const DROP_IN: [Goal; 1] = [median(Tool::Ab, 1.0)];
const MANY: [Goal; 3] = [median(Tool::Bare, 1.06), wholly_below(Tool::Wrk, 1.0), wholly_below(Tool::Ab, 1.0)];
const FEW: [Goal; 3] = [median(Tool::Bare, 1.10), upper(Tool::Wrk, 1.03), upper(Tool::Ab, 1.03)];
const CLOSE: [Goal; 3] = [median(Tool::Bare, 1.10), median(Tool::Wrk, 1.0), median(Tool::Ab, 1.0)];
const BODY: [Goal; 1] = [median(Tool::Bare, 1.10)];
const TLS: [Goal; 2] = [upper(Tool::Wrk, 1.05), upper(Tool::Ab, 1.05)];
const RATE: [Goal; 3] = [median(Tool::Bare, 1.10), median(Tool::Oha, 0.75), median(Tool::Hey, 0.4)];

/// Most system calls of webdyno per request, at 100 connections.
pub(super) const SYSCALLS: f64 = 2.1;

/// Most memory of webdyno in KiB, at 100 connections.
pub(super) const MEMORY: f64 = 20.0 * 1024.0;

/// Most memory of webdyno in KiB per connection.
pub(super) const MEMORY_PER_CONNECTION: f64 = 4.0;

/// The same with TLS.
pub(super) const MEMORY_PER_TLS_CONNECTION: f64 = 48.0;

pub(super) const CASES: [Case; 19] = [
    Case {
        name: "keep-alive-100",
        about: "100 connections kept open, a body of 44 bytes",
        kind: Kind::Cpu(Shape::keep_alive(100)),
        goals: &MANY,
    },
    Case {
        name: "keep-alive-1000",
        about: "1000 connections kept open, a body of 44 bytes",
        kind: Kind::Cpu(Shape::keep_alive(1000)),
        goals: &MANY,
    },
    Case {
        name: "keep-alive-1",
        about: "one connection kept open, a body of 44 bytes",
        kind: Kind::Cpu(Shape::keep_alive(1)),
        goals: &FEW,
    },
    Case {
        name: "keep-alive-10",
        about: "10 connections kept open, a body of 44 bytes",
        kind: Kind::Cpu(Shape::keep_alive(10)),
        goals: &FEW,
    },
    Case {
        name: "close-100",
        about: "a connection per request, 100 at a time, a body of 44 bytes",
        kind: Kind::Cpu(Shape { close: true, ..Shape::keep_alive(100) }),
        goals: &CLOSE,
    },
    Case {
        name: "body-64k",
        about: "100 connections kept open, a body of 64 KiB",
        kind: Kind::Cpu(Shape { page: Page::Large, ..Shape::keep_alive(100) }),
        goals: &BODY,
    },
    Case {
        name: "tls-100",
        about: "100 connections kept open with TLS 1.3, a body of 44 bytes",
        kind: Kind::Cpu(Shape { tls: true, ..Shape::keep_alive(100) }),
        goals: &TLS,
    },
    Case {
        name: "rate-half",
        about: "half as many requests per second as the bare loop gets through, 100 connections, a body of 44 bytes",
        kind: Kind::HalfRate(Shape::keep_alive(100)),
        goals: &RATE,
    },
    Case {
        name: "syscalls",
        about: "system calls per request by `strace -f -c`, 100 connections kept open",
        kind: Kind::Syscalls,
        goals: &[],
    },
    Case {
        name: "ab-keep-alive-1",
        about: "`webdyno ab` in the place of ab, one connection kept open",
        kind: Kind::DropIn(Shape::keep_alive(1)),
        goals: &DROP_IN,
    },
    Case {
        name: "ab-keep-alive-10",
        about: "`webdyno ab` in the place of ab, 10 connections kept open",
        kind: Kind::DropIn(Shape::keep_alive(10)),
        goals: &DROP_IN,
    },
    Case {
        name: "ab-keep-alive-100",
        about: "`webdyno ab` in the place of ab, 100 connections kept open",
        kind: Kind::DropIn(Shape::keep_alive(100)),
        goals: &DROP_IN,
    },
    Case {
        name: "ab-keep-alive-1000",
        about: "`webdyno ab` in the place of ab, 1000 connections kept open",
        kind: Kind::DropIn(Shape::keep_alive(1000)),
        goals: &DROP_IN,
    },
    Case {
        name: "ab-close-1",
        about: "`webdyno ab` in the place of ab, a connection per request, 1 at a time",
        kind: Kind::DropIn(Shape { close: true, ..Shape::keep_alive(1) }),
        goals: &DROP_IN,
    },
    Case {
        name: "ab-close-10",
        about: "`webdyno ab` in the place of ab, a connection per request, 10 at a time",
        kind: Kind::DropIn(Shape { close: true, ..Shape::keep_alive(10) }),
        goals: &DROP_IN,
    },
    Case {
        name: "ab-close-100",
        about: "`webdyno ab` in the place of ab, a connection per request, 100 at a time",
        kind: Kind::DropIn(Shape { close: true, ..Shape::keep_alive(100) }),
        goals: &DROP_IN,
    },
    Case {
        name: "ab-close-1000",
        about: "`webdyno ab` in the place of ab, a connection per request, 1000 at a time",
        kind: Kind::DropIn(Shape { close: true, ..Shape::keep_alive(1000) }),
        goals: &DROP_IN,
    },
    Case { name: "memory", about: "largest resident memory", kind: Kind::Memory, goals: &[] },
    Case {
        name: "instructions",
        about: "user instructions per request by `valgrind --tool=callgrind`, 100 connections kept open",
        kind: Kind::Instructions,
        goals: &[],
    },
];

/// The case of that name, or which names there are.
pub(super) fn by_name(name: &str) -> Result<Case, String> {
    let names = || CASES.map(|case| case.name).join(", ");
    CASES.into_iter().find(|case| case.name == name).ok_or_else(|| format!("the cases are {}", names()))
}
