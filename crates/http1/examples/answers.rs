//! Parses the same answer as often as the first argument says, for an instruction counter to watch: with the memo
//! of the answer before, or with a second argument `parse` without one. Prints nothing.

use http1::{Asked, Memo, Parser};

const ANSWER: &str = "HTTP/1.1 200 OK\r\nServer: nginx/1.24.0\r\nDate: Sat, 21 Nov 2026 03:14:47 GMT\r\n\
    Content-Type: text/html\r\nContent-Length: 44\r\nLast-Modified: Tue, 14 Jul 2026 09:12:01 GMT\r\n\
    Connection: keep-alive\r\nETag: \"66ac9aef-2c\"\r\nAccept-Ranges: bytes\r\n\r\n\
    <html><body><h1>It works!</h1></body></html>";

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count: u32 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(1000);
    let forgets = arguments.next().is_some_and(|word| word == "parse");
    let (mut parser, mut memo) = (Parser::new(Asked::Content), Memo::default());
    // Another head in between, so that none is there again.
    let other = ANSWER.replace("12:01", "12:02");
    let mut good = 0;
    for i in 0..count {
        let answer = if forgets && i % 2 == 0 { &other } else { ANSWER };
        if let Ok(fed) = parser.feed(std::hint::black_box(answer.as_bytes()), &mut memo) {
            good += u32::from(fed.answer.is_some_and(|answer| answer.body_bytes == 44));
        }
    }
    assert_eq!(good, count);
}
