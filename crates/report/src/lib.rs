//! Stored facts become a view; text, JSON, Markdown and HTML draw that view and compute nothing.
