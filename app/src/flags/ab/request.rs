//! The request as ab writes it: HTTP/1.0, its fields in its order, every text as it was typed.

use super::{AbFlags, Method};

impl AbFlags {
    /// The head, with its empty line.
    pub(crate) fn head(&self) -> String {
        let asked = if self.proxy.is_some() { &self.target.url } else { &self.target.path };
        let kept = if self.keep_alive { "Connection: Keep-Alive\r\n" } else { "" };
        let cookie = self.cookie.as_ref().map(|cookie| format!("Cookie: {cookie}\r\n")).unwrap_or_default();
        let body = self.body.as_ref().map(|body| {
            let kind = self.content_type.as_deref().unwrap_or("text/plain");
            format!("Content-length: {}\r\nContent-type: {kind}\r\n", body.len())
        });
        [
            &format!("{} {asked} HTTP/1.0\r\n", self.method.name()),
            kept,
            &cookie,
            &self.credentials,
            &body.unwrap_or_default(),
            &self.fields,
            &self.own_fields(),
            "\r\n",
        ]
        .concat()
    }

    /// Those of its three own fields that were not typed.
    fn own_fields(&self) -> String {
        let host = format!("Host: {}\r\n", self.target.host_field);
        [
            (self.typed.host.is_none(), host.as_str()),
            (!self.typed.user_agent, "User-Agent: ApacheBench/2.3\r\n"),
            (!self.typed.accept, "Accept: */*\r\n"),
        ]
        .into_iter()
        .filter_map(|(wanted, field)| wanted.then_some(field))
        .collect()
    }
}

impl Method {
    /// Its name on the wire.
    pub(crate) fn name(&self) -> &str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Put => "PUT",
            Method::Post => "POST",
            Method::Custom(name) => name,
        }
    }
}
