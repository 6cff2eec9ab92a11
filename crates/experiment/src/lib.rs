//! Decide the next trial and carry it out: blocks, gates, guards, early stop.
