//! Directives of a plan that the virtual host which answers has for itself: outside of it they change nothing for the load.

use super::check::canonical;
use super::machine::tree::VirtualHost;
use model::plan::Directive;

/// Directives of which a virtual host's own is the only one in force in it.
const SINGLE: [&str; 21] = [
    "CustomLog",
    "DocumentRoot",
    "EnableMMAP",
    "EnableSendfile",
    "ErrorLog",
    "HostnameLookups",
    "KeepAlive",
    "KeepAliveTimeout",
    "LimitRequestFields",
    "LimitRequestFieldSize",
    "LimitRequestLine",
    "LogLevel",
    "MaxKeepAliveRequests",
    "Protocols",
    "RequestReadTimeout",
    "SSLCipherSuite",
    "SSLCompression",
    "SSLProtocol",
    "SSLSessionTickets",
    "Timeout",
    "TransferLog",
];

/// The plan's directives that do not reach the host, each with a sentence.
pub(crate) fn overridden<'a>(
    planned: &'a [Directive],
    host: Option<&'a VirtualHost<'_>>,
) -> impl Iterator<Item = (&'a Directive, String)> {
    planned.iter().filter_map(move |directive| {
        let name = canonical(directive.text.split_whitespace().next()?);
        if !SINGLE.iter().any(|single| single.eq_ignore_ascii_case(name)) {
            return None;
        }
        let own = host?.lines.iter().rfind(|line| canonical(line.name()).eq_ignore_ascii_case(name))?;
        Some((directive, format!("the virtual host that answers has its own at {}: {}; change it there", own.place, own.text)))
    })
}
