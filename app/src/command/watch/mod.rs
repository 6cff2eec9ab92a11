//! The monitor as a command: from what was typed to a screen and to what must be read for it.

mod meant;
mod metrics;
mod record;

#[cfg(test)]
mod tests;
