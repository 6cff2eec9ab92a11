//! Somebody who looks at an answer while it is parsed: for checks of its content and for cookies.
//!
//! Nothing is gathered here; what is seen is gone when the call returns.

/// Looks at the parts of a final answer as they come. What a method does not care about costs nothing.
pub trait Observe {
    /// Whether [`Observe::field`] shall be called. When so, every head is parsed: one taken from the [`Memo`](crate::Memo)
    /// would hide its fields.
    const FIELDS: bool;

    /// A field of the final head, in order, without blanks around its value; an obsolete folded line comes as a field without
    /// a name. Fields of interim heads and trailers are not shown.
    fn field(&mut self, name: &[u8], value: &[u8]) {
        let _ = (name, value);
    }

    /// The next bytes of content, without the chunks' own framing, in any pieces. Those that
    /// [`Parser::discarded`](crate::Parser::discarded) counted were never here.
    fn body(&mut self, bytes: &[u8]) {
        let _ = bytes;
    }
}

/// Nobody looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Observe for Nobody {
    const FIELDS: bool = false;
}
