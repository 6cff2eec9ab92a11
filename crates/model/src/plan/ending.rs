//! How the server of a trial is ended once it was measured, and which of its logs are counted then.

use super::ServerSpec;
use crate::Nanos;
use serde::{Deserialize, Serialize};

/// How a server is ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// As packages stop it: at once (SIGTERM).
    #[default]
    Stop,
    /// It finishes what it has begun first.
    GracefulStop,
    /// It reads its configuration again, and workers of before finish what they have; then it is stopped gracefully.
    Graceful,
    /// It reads its configuration again, and workers of before end at once; then it is stopped gracefully.
    Restart,
    /// All of its processes are killed, as by a crash of the machine that spares its disk.
    Kill,
}

impl Ending {
    /// All of them.
    pub const ALL: [Ending; 5] = [Ending::Stop, Ending::GracefulStop, Ending::Graceful, Ending::Restart, Ending::Kill];

    /// As plans write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Ending::Stop => "stop",
            Ending::GracefulStop => "graceful-stop",
            Ending::Graceful => "graceful",
            Ending::Restart => "restart",
            Ending::Kill => "kill",
        }
    }

    /// Whether the server goes on answering, with other processes.
    #[must_use]
    pub fn goes_on(self) -> bool {
        matches!(self, Ending::Graceful | Ending::Restart)
    }
}

/// An ending and its time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// How.
    pub how: Ending,
    /// So long after the measured window began; after the load when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ns: Option<Nanos>,
}

/// An access log that is counted when the server has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessLog {
    /// The file, in the instance's folder; `*` in its name stands for anything, as the programs that change files name them.
    pub file: String,
    /// What stands in a line, as `webdyno load --replay` takes it.
    pub format: String,
    /// Line of the format in the plan, for messages.
    pub line: usize,
}

impl ServerSpec {
    /// The ways in which webdyno can end it.
    #[must_use]
    pub fn endings(&self) -> &'static [Ending] {
        let in_place = |existing: &Option<super::Existing>| existing.as_ref().is_some_and(|it| it.in_place);
        match self {
            ServerSpec::Apache(apache) if in_place(&apache.existing) => &[],
            ServerSpec::Nginx(nginx) if in_place(&nginx.existing) => &[],
            ServerSpec::Apache(_) => &Ending::ALL,
            ServerSpec::Nginx(_) => &[Ending::Stop, Ending::GracefulStop, Ending::Graceful, Ending::Kill],
            ServerSpec::Command(_) | ServerSpec::Embedded(_) => &[Ending::Stop, Ending::Kill],
            ServerSpec::Url(_) => &[],
        }
    }

    /// The path that it is asked for to see whether it is ready, where it is a server whose access log can be counted: an Apache or
    /// nginx that the run starts itself.
    #[must_use]
    pub fn ready_where_logged(&self) -> Option<&str> {
        match self {
            _ if self.endings().is_empty() => None,
            ServerSpec::Apache(apache) => Some(&apache.ready),
            ServerSpec::Nginx(nginx) => Some(&nginx.ready),
            ServerSpec::Command(_) | ServerSpec::Embedded(_) | ServerSpec::Url(_) => None,
        }
    }
}
