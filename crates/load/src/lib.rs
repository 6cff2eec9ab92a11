//! Drive a load against an address and hand records to sinks.
//!
//! What is sent, when, and when it ends come from [`model::plan::LoadSpec`]; what happened comes back as
//! [`model::load::LoadResult`], or request by request from [`records`]. A closed loop sends a connection's next request as soon
//! as the answer to the last one is complete; an open one sends by a timetable, and its latencies count from there.
//!
//! # Layout
//! - `engine`: threads, from a specification to a result.
//! - `worker`: one thread's loop, the only request loop there is. Per request it takes no lock, touches nothing that is
//!   shared and allocates nothing.
//! - `pacer`: when a request may begin; `requests`: what it asks for; `stop`: when a load is over, and how requests are shared
//!   out so that their number comes out exactly.
//! - `checks`: what is asked of answers, by those loads that look at them; `jar`: the cookies they set.
//! - `crowd`: users, in loads that consist of them.
//! - `connection`: one connection and the requests on it; `transport`: the socket below it, TLS, and the way through a proxy.
//! - `in_flight`: who has waited longest, for timeouts that are each request's own.
//! - `fetch`: one request whose answer is kept; `look`: a few of them, and what came back.
//! - `sink`: what becomes of a finished request; `collect`: the seconds of all workers put together.
//! - `machine`: clocks, CPUs and the limit on open files.
//!
//! It does not know who answers: no server, no readings, no verdicts.

mod checks;
mod collect;
mod connection;
mod crowd;
mod engine;
mod exchange;
mod fetch;
mod in_flight;
mod jar;
mod look;
mod machine;
mod pacer;
mod requests;
mod sink;
mod stop;
mod transport;
mod why;
mod worker;

pub use engine::{Control, LoadError, Target, check, records, run, run_until, run_until_closed, run_witnessed};
pub use fetch::{FetchError, Fetched, fetch, location};
pub use look::{look, summary};
pub use machine::{is_ours, monotonic_ns, thread_cpu};
pub use sink::{Answered, Ending, KEPT_OF_HEADS, Record, Witness};
pub use transport::{Address, Tunnel, check_authorities};
