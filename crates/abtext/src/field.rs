//! The figures that ab prints: which there are, how they are labelled, and what their names are here.

use std::fmt;

/// One figure of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// Version of ab.
    Version,
    /// What the server calls itself.
    Software,
    /// Whom ab asked.
    Host,
    /// At which port.
    Port,
    /// Version, cipher and key lengths of TLS.
    Tls,
    /// The key that TLS exchanged.
    TempKey,
    /// The name that was sent in the TLS handshake.
    TlsName,
    /// What was asked for.
    Path,
    /// Bytes of the first answer's body, or `Variable`.
    DocumentLength,
    /// Threads of ab.
    Workers,
    /// Connections asked for.
    Concurrency,
    /// Connections that ab found open.
    ConcurrencyAchieved,
    /// Milliseconds between new connections.
    RampUp,
    /// Requests asked for.
    Asked,
    /// Length of the test.
    Seconds,
    /// Requests that ended.
    Complete,
    /// Requests that failed in ab's sense.
    Failed,
    /// Of these, connections that failed.
    FailedConnect,
    /// Of these, answers that could not be received.
    FailedReceive,
    /// Of these, answers of another length than the first.
    FailedLength,
    /// Of these, errors of the socket.
    FailedExceptions,
    /// Requests that could not be sent.
    WriteErrors,
    /// The same, as ab 1.3 said it.
    BrokenPipes,
    /// Answers with a status that is not 2xx.
    NonSuccess,
    /// Answers on connections that stayed open.
    KeepAlive,
    /// Connections that did not stay open although they should have.
    KeepAliveAborts,
    /// Bytes received.
    Transferred,
    /// Bytes sent, heads included.
    Sent,
    /// Bytes of bodies received.
    Html,
    /// Complete requests per second.
    Rate,
    /// Connections times seconds over requests, in milliseconds.
    Mean,
    /// Seconds over requests, in milliseconds.
    Across,
    /// KiB received per second.
    TransferRate,
    /// KiB sent per second.
    SentRate,
    /// KiB in both directions per second.
    TotalRate,
    /// A figure of the table of times, in milliseconds.
    Times(Row, Stat),
    /// Milliseconds within which so many percent of the requests were served.
    Percentile(u8),
}

/// A row of the table of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Row {
    /// To connect, TLS included.
    Connect,
    /// From then to the end.
    Processing,
    /// From the request's end to the first byte.
    Waiting,
    /// From the beginning to the end.
    Total,
}

/// A column of the table of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stat {
    /// Smallest.
    Min,
    /// Arithmetic mean.
    Mean,
    /// Standard deviation.
    Sd,
    /// Middle one.
    Median,
    /// Largest.
    Max,
}

/// What follows a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything, even nothing.
    Text,
    /// A number, then perhaps its unit.
    Number,
}

/// Every label with a figure behind it. `Time per request:` stands here once; what follows the number tells which it is.
pub(crate) const LABELS: &[(&str, Field, Kind)] = &[
    ("Server Software:", Field::Software, Kind::Text),
    ("Server Hostname:", Field::Host, Kind::Text),
    ("Server Port:", Field::Port, Kind::Number),
    ("SSL/TLS Protocol:", Field::Tls, Kind::Text),
    ("Server Temp Key:", Field::TempKey, Kind::Text),
    ("TLS Server Name:", Field::TlsName, Kind::Text),
    ("Document Path:", Field::Path, Kind::Text),
    ("Document Length:", Field::DocumentLength, Kind::Number),
    ("Number of workers:", Field::Workers, Kind::Number),
    ("Concurrency Level:", Field::Concurrency, Kind::Number),
    ("Concurrency achieved:", Field::ConcurrencyAchieved, Kind::Number),
    ("Rampup delay:", Field::RampUp, Kind::Number),
    ("Number of requests:", Field::Asked, Kind::Number),
    ("Time taken for tests:", Field::Seconds, Kind::Number),
    ("Complete requests:", Field::Complete, Kind::Number),
    ("Failed requests:", Field::Failed, Kind::Number),
    ("Write errors:", Field::WriteErrors, Kind::Number),
    ("Broken pipe errors:", Field::BrokenPipes, Kind::Number),
    ("Non-2xx responses:", Field::NonSuccess, Kind::Number),
    ("Keep-Alive requests:", Field::KeepAlive, Kind::Number),
    ("Keep-Alive aborts:", Field::KeepAliveAborts, Kind::Number),
    ("Total transferred:", Field::Transferred, Kind::Number),
    ("Total body sent:", Field::Sent, Kind::Number),
    ("Total POSTed:", Field::Sent, Kind::Number),
    ("Total PUT:", Field::Sent, Kind::Number),
    ("HTML transferred:", Field::Html, Kind::Number),
    ("Requests per second:", Field::Rate, Kind::Number),
    ("Time per request:", Field::Mean, Kind::Number),
    ("Transfer rate:", Field::TransferRate, Kind::Number),
];

/// The causes in the line below `Failed requests:`.
pub(crate) const CAUSES: &[(&str, Field)] = &[
    ("Connect", Field::FailedConnect),
    ("Receive", Field::FailedReceive),
    ("Length", Field::FailedLength),
    ("Exceptions", Field::FailedExceptions),
];

/// The rows of the table of times.
pub(crate) const ROWS: &[(&str, Row)] =
    &[("Connect:", Row::Connect), ("Processing:", Row::Processing), ("Waiting:", Row::Waiting), ("Total:", Row::Total)];

/// What every ab prints, in its order, whatever it is asked.
pub(crate) const ALWAYS: &[Field] = &[
    Field::Software,
    Field::Host,
    Field::Port,
    Field::Path,
    Field::DocumentLength,
    Field::Concurrency,
    Field::Seconds,
    Field::Complete,
    Field::Failed,
    Field::Transferred,
    Field::Html,
    Field::Rate,
    Field::Mean,
    Field::Across,
    Field::TransferRate,
];

impl Field {
    /// Its name for programs; one that a reader recognises.
    #[must_use]
    pub fn name(self) -> String {
        self.to_string()
    }

    /// The line of ab that it stands in, by its label.
    #[must_use]
    pub fn label(self) -> String {
        let label = |field: Field| LABELS.iter().find(|(_, of, _)| *of == field).map(|(label, ..)| *label);
        match self {
            Field::Across => "Time per request: (mean, across all concurrent requests)".to_owned(),
            Field::Mean => "Time per request: (mean)".to_owned(),
            Field::Times(row, _) => {
                ROWS.iter().find(|(_, of)| *of == row).map_or_else(String::new, |(label, _)| (*label).to_owned())
            }
            Field::Percentile(percent) => format!("{percent}%"),
            field => label(field).map_or_else(|| field.name(), str::to_owned),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Field::Version => "version",
            Field::Software => "software",
            Field::Host => "host",
            Field::Port => "port",
            Field::Tls => "tls",
            Field::TempKey => "temp_key",
            Field::TlsName => "tls_name",
            Field::Path => "path",
            Field::DocumentLength => "document_length",
            Field::Workers => "workers",
            Field::Concurrency => "concurrency",
            Field::ConcurrencyAchieved => "concurrency_achieved",
            Field::RampUp => "ramp_up",
            Field::Asked => "asked",
            Field::Seconds => "seconds",
            Field::Complete => "complete",
            Field::Failed => "failed",
            Field::FailedConnect => "failed.connect",
            Field::FailedReceive => "failed.receive",
            Field::FailedLength => "failed.length",
            Field::FailedExceptions => "failed.exceptions",
            Field::WriteErrors => "write_errors",
            Field::BrokenPipes => "broken_pipes",
            Field::NonSuccess => "non_2xx",
            Field::KeepAlive => "keep_alive",
            Field::KeepAliveAborts => "keep_alive_aborts",
            Field::Transferred => "transferred",
            Field::Sent => "sent",
            Field::Html => "html",
            Field::Rate => "rate",
            Field::Mean => "time_per_request.mean",
            Field::Across => "time_per_request.across",
            Field::TransferRate => "transfer_rate",
            Field::SentRate => "sent_rate",
            Field::TotalRate => "total_rate",
            Field::Times(row, stat) => return write!(f, "{}.{}", row.name(), stat.name()),
            Field::Percentile(percent) => return write!(f, "p{percent}"),
        };
        f.write_str(name)
    }
}

impl Row {
    /// Every row.
    pub const ALL: [Row; 4] = [Row::Connect, Row::Processing, Row::Waiting, Row::Total];

    /// Its name, as ab labels it, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Row::Connect => "connect",
            Row::Processing => "processing",
            Row::Waiting => "waiting",
            Row::Total => "total",
        }
    }
}

impl Stat {
    fn name(self) -> &'static str {
        match self {
            Stat::Min => "min",
            Stat::Mean => "mean",
            Stat::Sd => "sd",
            Stat::Median => "median",
            Stat::Max => "max",
        }
    }
}
