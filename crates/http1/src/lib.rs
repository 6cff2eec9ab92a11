//! HTTP/1.x as bytes: write a request, parse a response in pieces. No sockets.
