//! ab's words and exit codes when a load cannot go on. When that is the case, others decide.

/// How ab ends without a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// For standard output.
    pub out: String,
    /// For standard error.
    pub err: String,
    /// Exit code.
    pub code: u8,
}

/// A number of APR's own, and its words: the time of `-s` has passed.
pub const TIMED_OUT: (i32, &str) = (70_007, "The timeout specified has expired");

/// APR's number for a name that has no address, by the resolver's number (`getaddrinfo(3)`; -2 is "not known").
#[must_use]
pub fn unresolved(resolver: i32) -> i32 {
    // apr_errno.h: APR_OS_START_EAIERR; glibc's numbers are negative.
    670_000 + resolver.abs()
}

/// What the kernel, the resolver or APR refused. `call` is what ab calls it: `apr_socket_recv`, `apr_pollset_poll`,
/// `apr_socket_connect()`, `apr_sockaddr_info_get() for HOST`.
#[must_use]
pub fn refused(call: &str, (number, words): (i32, &str), complete: u64) -> Ending {
    // The code of a process has eight bits.
    Ending { out: total(complete), err: format!("{call}: {words} ({number})\n"), code: (number & 0xff) as u8 }
}

fn total(complete: u64) -> String {
    if complete > 0 { format!("Total of {complete} requests completed\n") } else { String::new() }
}

/// A file that cannot be written: `Cannot open CSV output file`, `Cannot open gnuplot output file`.
#[must_use]
pub fn unwritable(what: &str, words: &str) -> Ending {
    Ending { out: String::new(), err: format!("Cannot open {what} output file: {words}\n"), code: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings() {
        let check = |ending: Ending, out: &str, err: &str, code: u8| {
            assert_eq!((ending.out.as_str(), ending.err.as_str(), ending.code), (out, err, code));
        };
        let refusal = (111, "Connection refused");
        check(refused("apr_socket_recv", refusal, 0), "", "apr_socket_recv: Connection refused (111)\n", 111);
        let poll = "apr_pollset_poll: The timeout specified has expired (70007)\n";
        check(refused("apr_pollset_poll", TIMED_OUT, 7), "Total of 7 requests completed\n", poll, 119);
        let unknown = (unresolved(-2), "Name or service not known");
        let text = "apr_sockaddr_info_get() for x: Name or service not known (670002)\n";
        check(refused("apr_sockaddr_info_get() for x", unknown, 0), "", text, 50);
        let text = "Cannot open CSV output file: No such file or directory\n";
        check(unwritable("CSV", "No such file or directory"), "", text, 1);
    }
}
