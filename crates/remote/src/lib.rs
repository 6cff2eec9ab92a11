//! Loads sent by another machine: the generator is brought there by ssh, told what to send, and asked what came of it.
//!
//! The other machine needs an account that ssh lets in, a POSIX shell and the same kind of processor; nothing is installed. The
//! program itself is copied into a cache of that account, once per version, and started with ssh's pipes as its only way to the
//! world. When they end, so does it, and nothing but the cached file is left.
//!
//! # Layout
//! - `frame`: messages in a stream of bytes; `message`: what they say, with the same types as the store's.
//! - `sent`: a load as it travels, with all that no store keeps of it; `result`: what came of it, exactly.
//! - `clock`: how far apart two clocks are, and how well that is known.
//! - `program`: this program as it is copied; `shell`: the script that takes it in over there; `arrival`: the talk with it.
//! - `line`: ssh, the bytes through it, and why there are none; `remote`: the near end, which gives orders.
//! - `agent`: the far end, which carries them out.
//!
//! It does not know what is done with results, nor who the server is.

mod agent;
mod arrival;
mod clock;
mod error;
mod frame;
mod line;
mod message;
mod program;
mod remote;
mod result;
mod sent;
mod shell;

pub use agent::{Place, Prepare, serve};
pub use error::RemoteError;
pub use remote::Remote;
