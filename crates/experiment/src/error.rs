//! Why a run could not be made, by whose turn it is to act; the caller turns the kind into an exit code.

use model::load::Failure;
use std::path::PathBuf;

/// Why a run ended without its result.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The plan asks for something that does not work: a build step that fails, a file that cannot be changed so.
    #[error("{}:{line}: {key}: {what}", file.display())]
    Plan {
        /// The plan.
        file: PathBuf,
        /// Line in it.
        line: usize,
        /// The key that stands there.
        key: &'static str,
        /// One sentence.
        what: String,
    },
    /// The server could not be run.
    #[error(transparent)]
    Server(#[from] server::ServerError),
    /// The server died: a sentence.
    #[error("{0}")]
    Died(String),
    /// Not one of the first requests got an answer.
    #[error("no answer from {address} to {requests} request{}: {}", plural(*requests), no_answer(*cause, why.as_deref()))]
    NoAnswer {
        /// Who was asked.
        address: String,
        /// How often.
        requests: u64,
        /// Why most of them failed.
        cause: Option<Failure>,
        /// What was said instead, where the cause alone does not tell what to do.
        why: Option<String>,
    },
    /// A variant refuses a first request of a load steadily: nothing but refusals would be measured.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// The environment refuses: cgroups, swap, disk.
    #[error(transparent)]
    Host(#[from] host::HostError),
    /// The environment lacks something the plan needs.
    #[error("{0}")]
    Missing(String),
    /// The disk of the run's folder is full: what a server did then is nothing that it would do elsewhere.
    #[error("the disk of the run's folder {} is full: make room there, or set TMPDIR to a folder on another disk", .0.display())]
    NoRoom(PathBuf),
    /// The host could not be watched.
    #[error(transparent)]
    Monitor(#[from] monitor::MonitorError),
    /// The load could not be started: no CPU to pin to, no thread, no epoll instance.
    #[error(transparent)]
    Load(#[from] load::LoadError),
    /// The machine that was to send the load does not.
    #[error(transparent)]
    Remote(#[from] remote::RemoteError),
    /// The store refuses.
    #[error(transparent)]
    Store(#[from] store::StoreError),
}

/// What a variant refuses.
#[derive(Debug, thiserror::Error)]
#[error("{}: variant `{variant}` answers `{request}` of load `{load}` with status {status}: {to_do}", file.display())]
pub struct Refusal {
    /// The plan.
    pub file: PathBuf,
    /// The variant.
    pub variant: String,
    /// The load.
    pub load: String,
    /// Method and path.
    pub request: String,
    /// The status.
    pub status: u16,
    /// What to do about it.
    pub to_do: String,
}

fn plural(requests: u64) -> &'static str {
    if requests == 1 { "" } else { "s" }
}

fn no_answer(cause: Option<Failure>, why: Option<&str>) -> String {
    let told = match cause {
        Some(Failure::Refused) => "nobody listens there; start the server or correct the port",
        Some(Failure::Reset | Failure::ClosedEarly) => {
            "the connection was closed without an answer; is it HTTP or HTTPS?"
        }
        Some(Failure::Timeout) => "the time was over; is a firewall in between, or is the server stuck?",
        Some(Failure::BadResponse) => "what answers there does not speak HTTP/1; is it HTTPS or HTTP/2 only?",
        Some(Failure::Proxy) => "the proxy opened no tunnel; may we go there, and by which name and password?",
        Some(Failure::Tls) => "TLS failed; is the certificate trusted (--cacert, --insecure), is it HTTPS at all?",
        Some(Failure::Local) => "this machine could not send; it has no route, port or file descriptor left",
        Some(Failure::Status | Failure::LengthDiffers | Failure::Check) | None => "they were not answered in time",
    };
    why.unwrap_or(told).to_owned()
}
