//! The head that a server sent last, because most of its answers begin with the very same bytes.
//!
//! Equal bytes parse to an equal result, so a head that is there again is compared and not parsed. A server changes its
//! `Date` once a second; then one parse takes the place of what was kept.

use crate::head::Head;

/// The bytes of a complete head and what they mean. One is shared by all connections of a thread, never by two threads.
#[derive(Debug, Default)]
pub struct Memo {
    bytes: Vec<u8>,
    head: Option<Head>,
}

impl Memo {
    /// What the kept head means and how long it is, if `piece` begins with it.
    #[inline]
    pub(crate) fn recall(&self, piece: &[u8]) -> Option<(Head, usize)> {
        // The kept bytes end in an empty line, so what begins with them has no longer head.
        self.head.filter(|_| piece.starts_with(&self.bytes)).map(|head| (head, self.bytes.len()))
    }

    /// Keeps a complete head in place of the last one.
    pub(crate) fn keep(&mut self, bytes: &[u8], head: Head) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.head = Some(head);
    }
}
