//! HTTP/1.x as bytes: write a request, parse a response in pieces. No sockets.
//!
//! The owner of a socket writes what [`Request::to_bytes`] made, as often as it likes, and gives [`Parser`] whatever it
//! reads, in any pieces. The parser says when an answer is complete, how long its body was and whether the connection may
//! carry another request. It keeps no body and, between answers of the usual kind, allocates nothing. A [`Memo`] spares it
//! heads it has seen; whoever wants to see fields or bodies says so by [`Observe`].
//!
//! It deliberately does not know the content of bodies, redirects, cookies or compression.
//!
//! ```
//! use http1::{After, Asked, Memo, Method, Parser, Request, Version};
//!
//! let request = Request {
//!     method: Method::GET,
//!     target: "/",
//!     version: Version::Http11,
//!     after: After::Close,
//!     host: "localhost",
//!     headers: &[],
//!     body: None,
//! };
//! assert_eq!(request.to_bytes().unwrap(), b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
//!
//! let (mut parser, mut memo) = (Parser::new(Method::GET.asked()), Memo::default());
//! assert!(parser.feed(b"HTTP/1.1 200 OK\r\nContent-Le", &mut memo).unwrap().answer.is_none());
//! let answer = parser.feed(b"ngth: 2\r\n\r\nok", &mut memo).unwrap().answer.unwrap();
//! assert_eq!((answer.status, answer.body_bytes, answer.reusable), (200, 2, true));
//!
//! // Somebody else may carry a body away.
//! parser.expect(Asked::Content);
//! parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", &mut memo).unwrap();
//! assert_eq!(parser.discardable(), 1_000_000);
//! assert_eq!(parser.discarded(1_000_000).unwrap().body_bytes, 1_000_000);
//! ```

mod field;
mod head;
mod memo;
mod observe;
mod request;
mod response;

pub use field::field;
pub use memo::Memo;
pub use observe::{Nobody, Observe};
pub use request::{After, Asked, Method, Request, RequestError, Version};
pub use response::{Answer, Fed, MAX_HEAD, Parser, ResponseError};
