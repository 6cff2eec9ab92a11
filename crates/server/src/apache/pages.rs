//! A place of its own where a server with the machine's configuration tells what is in force: on loopback, on a port that nobody else
//! has, so that no virtual host, proxy or rewriting of the configuration's can be in the way.

use super::install::Install;
use super::machine::Machine;
use super::render::quoted;
use super::settings::Pages;
use crate::ServerError;
use std::net::{Ipv4Addr, SocketAddr};

/// The directives, and where to ask then. `token` is part of the paths: it tells one
/// version of the configuration from another, and nobody must be able to guess it, for the pages show all of the configuration.
pub(crate) fn telling(machine: &Machine, port: u16, token: &str) -> Result<(String, Pages), ServerError> {
    let pages = Pages {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        status: format!("/webdyno-{token}/status"),
        info: format!("/webdyno-{token}/info"),
    };
    let mut text = module(machine, &machine.install, "info")?;
    let status = module(machine, &machine.install, "status")?;
    if !status.is_empty() {
        // Loading the module alone would begin to take times of every request.
        text += &format!("{status}ExtendedStatus Off\n");
    }
    text += &format!("Listen 127.0.0.1:{port} http\n<VirtualHost 127.0.0.1:{port}>\nServerName webdyno.invalid\n");
    let switched_off = [
        ("log_config_module", "CustomLog /dev/null \"%h\""),
        ("ssl_module", "SSLEngine Off"),
        ("rewrite_module", "RewriteEngine Off"),
    ];
    for (_, directive) in switched_off.iter().filter(|(module, _)| machine.has.contains(*module)) {
        text += &format!("{directive}\n");
    }
    for (path, handler) in [(&pages.status, "server-status"), (&pages.info, "server-info")] {
        text += &format!("<Location {path}>\nSetHandler {handler}\n");
        if machine.has.contains("authz_core_module") {
            text += "Require all granted\n";
        }
        text += "</Location>\n";
    }
    text += "</VirtualHost>\n";
    Ok((text, pages))
}

/// What loads a module that the configuration does not; nothing when it does.
fn module(machine: &Machine, install: &Install, name: &str) -> Result<String, ServerError> {
    if machine.has.contains(&format!("{name}_module")) {
        return Ok(String::new());
    }
    let module = install.module(name)?;
    Ok(format!("LoadModule {} {}\n", module.symbol, quoted(&module.file)))
}
