//! The server of the openssl program, for TLS as others speak it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A running `openssl s_server` on a free port of 127.0.0.1, which is ended when this is dropped.
pub struct OpensslServer {
    child: Child,
    address: SocketAddr,
}

impl OpensslServer {
    /// Starts one in `folder`, with `server.pem` and `server.key` from the folder `certificates`. With `-WWW` among the options it
    /// sends files from its folder, with `-www` a page about the session. `None` where openssl is not installed.
    #[must_use]
    pub fn start(certificates: &Path, folder: &Path, options: &[&str]) -> Option<OpensslServer> {
        let mut command = Command::new("openssl");
        command.args(["s_server", "-accept", "127.0.0.1:0", "-cert"]).arg(certificates.join("server.pem"));
        command.arg("-key").arg(certificates.join("server.key")).args(options).current_dir(folder);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let mut said = BufReader::new(child.stdout.take()?);
        let mut line = String::new();
        let address = loop {
            line.clear();
            if said.read_line(&mut line).unwrap_or(0) == 0 {
                break None;
            }
            if let Some(address) = line.trim_end().strip_prefix("ACCEPT ") {
                break address.parse().ok();
            }
        };
        // What it goes on saying is read away, or it would wait for that.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Some(OpensslServer { child, address: address? })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for OpensslServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
