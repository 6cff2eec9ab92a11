//! HTTP/1.x as bytes: write a request, parse a response in pieces. No sockets.
//!
//! The owner of a socket writes what [`Request::to_bytes`] made, as often as it likes, and gives [`Parser`] whatever it
//! reads, in any pieces. The parser says when an answer is complete, how long its body was and whether the connection may
//! carry another request. It keeps no body and, between answers of the usual kind, allocates nothing.
//!
//! It deliberately does not know the content of bodies, redirects, cookies, compression or request bodies.
//!
//! ```
//! use http1::{After, Method, Parser, Request, Version};
//!
//! let request = Request {
//!     method: Method::Get,
//!     path: "/",
//!     version: Version::Http11,
//!     after: After::Close,
//!     host: "localhost",
//!     headers: &[],
//! };
//! assert_eq!(request.to_bytes().unwrap(), b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
//!
//! let mut parser = Parser::new(Method::Get);
//! assert!(parser.feed(b"HTTP/1.1 200 OK\r\nContent-Le").unwrap().answer.is_none());
//! let answer = parser.feed(b"ngth: 2\r\n\r\nok").unwrap().answer.unwrap();
//! assert_eq!((answer.status, answer.body_bytes, answer.reusable), (200, 2, true));
//! ```

mod head;
mod request;
mod response;

pub use request::{After, Method, Request, RequestError, Version};
pub use response::{Answer, Fed, MAX_HEAD, Parser, ResponseError};
