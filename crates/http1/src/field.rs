//! A field of a head that was kept as it came.

/// The value of the first field of that name in an answer's head, interim heads (1xx) passed over; `None` when it has none, or when
/// the bytes end before it.
#[must_use]
pub fn field<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end);
    let mut interim = is_interim(lines.next()?);
    while let Some(line) = lines.next() {
        if line.is_empty() {
            if !interim {
                return None;
            }
            interim = is_interim(lines.next()?);
            continue;
        }
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        if !interim && line[..colon].eq_ignore_ascii_case(name.as_bytes()) {
            return Some(line[colon + 1..].trim_ascii());
        }
    }
    None
}

fn is_interim(status_line: &[u8]) -> bool {
    status_line.split(|&byte| byte == b' ').nth(1).is_some_and(|status| status.starts_with(b"1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_the_final_head() {
        let check = |head: &str, expected: Option<&str>| {
            assert_eq!(field(head.as_bytes(), "server"), expected.map(str::as_bytes), "{head:?}");
        };
        check("HTTP/1.1 200 OK\r\nA: b\r\nSERVER:  x/1 (y) \r\nServer: z\r\n\r\n", Some("x/1 (y)"));
        check("HTTP/1.0 200 OK\nServer:x\n\n", Some("x"));
        check("HTTP/1.1 200 OK\r\nA: b\r\n\r\nServer: in the body\r\n", None);
        check("HTTP/1.1 100 Continue\r\nServer: a\r\n\r\nHTTP/1.1 200 OK\r\nServer: b\r\n\r\n", Some("b"));
        check("HTTP/1.1 200 OK\r\nno field\r\nServer:\r\n\r\n", Some(""));
        for nothing in ["", "\r\n", "HTTP/1.1 200 OK", "HTTP/1.1 100 Continue\r\n\r\n", "x\r\nServer"] {
            check(nothing, None);
        }
    }
}
