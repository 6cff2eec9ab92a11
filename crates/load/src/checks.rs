//! Looking at answers: what is asked of them beyond their status, and the cookies they set.
//!
//! Only a load with checks or cookies looks. All others have their bodies thrown away by the kernel, unseen.

use crate::jar::Jar;
use http1::{Answer, Observe};
use model::plan::{Check, CheckError, Comparison, LoadSpec, Test};
use regex::bytes::Regex;
use std::fmt;

/// The most bytes of a body that are kept for checks.
const KEPT: usize = 256 * 1024;

/// All checks of a load. Each worker has its own, because a regular expression keeps its notes beside itself.
#[derive(Clone)]
pub(crate) struct Checks {
    rules: Vec<Rule>,
    // How many of them are about header fields.
    fields: usize,
    about_status: bool,
    // The most bytes of a body that are kept.
    kept: usize,
    // Whether the address a redirect points to is kept, in place of a body.
    points: bool,
    cookies: bool,
}

#[derive(Clone)]
struct Rule {
    check: Check,
    look: Look,
}

#[derive(Clone)]
enum Look {
    Status(Comparison, u64),
    Length(Comparison, u64),
    /// The place of the result among those of fields.
    Header(usize, Finder),
    Body(Finder),
}

#[derive(Clone)]
enum Finder {
    Is(Vec<u8>),
    Finds(Regex),
}

/// What was seen of the answer that is being received. One for each connection.
pub(crate) struct Seen {
    fields: Vec<bool>,
    body: Vec<u8>,
}

/// Somebody who looks on behalf of one connection.
pub(crate) struct Watching<'a> {
    pub(crate) checks: &'a Checks,
    pub(crate) seen: &'a mut Seen,
    /// Where its cookies go, if they are kept.
    pub(crate) jar: Option<&'a mut Jar>,
}

/// What did not hold; its text is an example for a human.
pub(crate) struct Missed<'a> {
    check: &'a Check,
    answer: Answer,
    seen: &'a Seen,
    undecided: bool,
}

impl Checks {
    /// The checks of a load; `None` when nobody needs to look at its answers.
    ///
    /// # Errors
    /// When a regular expression is none.
    pub(crate) fn of(spec: &LoadSpec) -> Result<Option<Checks>, CheckError> {
        if spec.checks.is_empty() && !spec.cookies {
            return Ok(None);
        }
        let mut fields = 0;
        let mut rules = Vec::with_capacity(spec.checks.len());
        for check in &spec.checks {
            let look = match check {
                Check::Status(comparison, number) => Look::Status(*comparison, *number),
                Check::Length(comparison, number) => Look::Length(*comparison, *number),
                Check::Header { test, .. } => {
                    fields += 1;
                    Look::Header(fields - 1, Finder::of(test)?)
                }
                Check::Body(test) => Look::Body(Finder::of(test)?),
            };
            rules.push(Rule { check: check.clone(), look });
        }
        let any = |about: fn(&Look) -> bool| rules.iter().any(|rule| about(&rule.look));
        let about_body = any(|look| matches!(look, Look::Body(_)));
        Ok(Some(Checks {
            about_status: any(|look| matches!(look, Look::Status(..))),
            kept: if about_body { KEPT } else { 0 },
            points: false,
            cookies: spec.cookies,
            fields,
            rules,
        }))
    }

    /// No checks: any answer is good, and so much of its body is kept.
    pub(crate) fn keeping(kept: usize) -> Checks {
        Checks { rules: Vec::new(), fields: 0, about_status: true, kept, points: false, cookies: false }
    }

    /// No checks, and of an answer the address that it points to is kept.
    pub(crate) fn pointing() -> Checks {
        Checks { points: true, ..Checks::keeping(0) }
    }

    /// For a connection that has received nothing.
    pub(crate) fn nothing_seen(&self) -> Seen {
        Seen { fields: vec![false; self.fields], body: Vec::new() }
    }

    /// Whether cookies are kept.
    pub(crate) fn keep_cookies(&self) -> bool {
        self.cookies
    }

    /// Whether a status other than 2xx may be good.
    pub(crate) fn decide_status(&self) -> bool {
        self.about_status
    }

    /// Whether the next bytes of the body have to be looked at.
    pub(crate) fn want_body(&self, seen: &Seen) -> bool {
        seen.body.len() < self.kept
    }

    /// The first check that does not hold of a complete answer.
    pub(crate) fn missed<'a>(&'a self, answer: Answer, seen: &'a Seen) -> Option<Missed<'a>> {
        self.rules.iter().find_map(|Rule { check, look }| {
            let missed = |undecided| Some(Missed { check, answer, seen, undecided });
            let cut = answer.body_bytes > seen.body.len() as u64;
            let holds = match look {
                Look::Status(comparison, number) => comparison.holds(answer.status.into(), *number),
                Look::Length(comparison, number) => comparison.holds(answer.body_bytes, *number),
                Look::Header(place, _) => seen.fields[*place],
                // What was found in the part that was kept stands; a pattern may say how the whole ends.
                Look::Body(_) if cut && !matches!(check, Check::Body(Test::Contains(_))) => return missed(true),
                Look::Body(finder) if finder.finds(&seen.body) => true,
                Look::Body(_) => return missed(cut),
            };
            if holds { None } else { missed(false) }
        })
    }
}

impl Finder {
    fn of(test: &Test) -> Result<Finder, CheckError> {
        let pattern = match test {
            Test::Is(text) => return Ok(Finder::Is(text.clone().into_bytes())),
            Test::Contains(text) => regex::escape(text),
            Test::Matches(pattern) => pattern.clone(),
        };
        let error = |error: regex::Error| CheckError::Regex(pattern.clone(), error.to_string());
        Regex::new(&pattern).map(Finder::Finds).map_err(error)
    }

    fn finds(&self, bytes: &[u8]) -> bool {
        match self {
            Finder::Is(whole) => whole == bytes,
            Finder::Finds(pattern) => pattern.is_match(bytes),
        }
    }
}

impl Seen {
    /// What was kept of the last body.
    pub(crate) fn into_body(self) -> Vec<u8> {
        self.body
    }

    /// Another answer begins.
    pub(crate) fn begin(&mut self) {
        self.fields.fill(false);
        self.body.clear();
    }
}

impl Observe for Watching<'_> {
    const FIELDS: bool = true;

    fn field(&mut self, name: &[u8], value: &[u8]) {
        for rule in &self.checks.rules {
            if let (Look::Header(place, finder), Check::Header { name: wanted, .. }) = (&rule.look, &rule.check)
                && name.eq_ignore_ascii_case(wanted.as_bytes())
            {
                self.seen.fields[*place] |= finder.finds(value);
            }
        }
        if self.checks.points && name.eq_ignore_ascii_case(b"location") {
            self.seen.body = value.to_vec();
        }
        if let Some(jar) = &mut self.jar
            && name.eq_ignore_ascii_case(b"set-cookie")
        {
            jar.set(value);
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        let room = self.checks.kept.saturating_sub(self.seen.body.len()).min(bytes.len());
        self.seen.body.extend_from_slice(&bytes[..room]);
    }
}

impl fmt::Display for Missed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Missed { check, answer, .. } = self;
        match check {
            _ if self.undecided => {
                let length = answer.body_bytes;
                write!(
                    f,
                    "`{check}` is undecided: the body has {length} bytes, of which the first {KEPT} are looked at"
                )
            }
            Check::Status(..) => write!(f, "`{check}` does not hold: it was {}", answer.status),
            Check::Length(..) => write!(f, "`{check}` does not hold: it was {}", answer.body_bytes),
            Check::Header { .. } => {
                write!(f, "`{check}` holds of no field of the answer, whose status was {}", answer.status)
            }
            Check::Body(_) if answer.body_bytes == 0 => write!(f, "`{check}` does not hold: there was no body"),
            Check::Body(_) => {
                let shown = self.seen.body.len().min(SHOWN);
                write!(f, "`{check}` does not hold of \"{}\"", self.seen.body[..shown].escape_ascii())?;
                if shown < self.seen.body.len() { f.write_str(" and so on") } else { Ok(()) }
            }
        }
    }
}

/// How much of a body is shown.
const SHOWN: usize = 80;
