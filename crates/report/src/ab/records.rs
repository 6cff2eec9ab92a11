//! Single requests, sixteen bytes each, from memory or from wherever they were put when there were too many.

use std::io;

/// One request, in the order in which requests ended. Lengths of time that do not fit are as long as they can be: 71 minutes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// When its connection was begun, or its request on a connection that was open already; in milliseconds from the load's start.
    pub start_ms: u32,
    /// Until the connection stood, TLS included; 0 on a connection that was open already. Microseconds.
    pub connect_us: u32,
    /// From start to the end of the answer. Microseconds.
    pub total_us: u32,
    /// From the end of the request to the first byte of its answer. Microseconds.
    pub wait_us: u32,
}

/// What of a request is looked at: the four rows of ab's table, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Connecting.
    Connect,
    /// Everything after that.
    Processing,
    /// Of that, until the first byte.
    Waiting,
    /// All of it.
    Total,
}

/// Where records are. They are visited several times, so ten millions of them need not be in memory.
pub trait Records {
    /// How many there are.
    fn count(&self) -> u64;

    /// Shows all of them, in order, in pieces of any size.
    ///
    /// # Errors
    /// When they cannot be read.
    fn visit(&self, show: &mut dyn FnMut(&[Record])) -> io::Result<()>;
}

/// In memory.
impl<T: AsRef<[Record]>> Records for T {
    fn count(&self) -> u64 {
        self.as_ref().len() as u64
    }

    fn visit(&self, show: &mut dyn FnMut(&[Record])) -> io::Result<()> {
        show(self.as_ref());
        Ok(())
    }
}

impl Part {
    /// All of them, in the order of the table.
    pub const ALL: [Part; 4] = [Part::Connect, Part::Processing, Part::Waiting, Part::Total];

    /// This part of a record, in microseconds.
    #[must_use]
    pub fn of(self, record: &Record) -> u32 {
        match self {
            Part::Connect => record.connect_us,
            Part::Processing => record.processing_us(),
            Part::Waiting => record.wait_us,
            Part::Total => record.total_us,
        }
    }
}

impl Record {
    /// What is left of the whole without connecting.
    #[must_use]
    pub fn processing_us(&self) -> u32 {
        self.total_us.saturating_sub(self.connect_us)
    }
}
