//! Model values in one SQLite file, with a versioned schema.
