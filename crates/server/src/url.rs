//! A server that is there already and not webdyno's to control: waited for, looked at, and left as it is. Nothing is started, changed or
//! ended here.

use crate::control::{Control, Hold, POLL, Place, Refusal, Running};
use crate::probe::{Ask, ProbeError, get};
use crate::running::{PROC, look, processes};
use crate::{PlanKey, ServerError};
use model::plan::{Url, Variant};
use model::trial::EffectiveSettings;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A server that nobody ever saw is waited for no longer: it may have been started a moment ago. One that was there may be on its way back.
const UNSEEN: Duration = Duration::from_secs(1);
/// One look at whether it takes connections.
const KNOCK: Duration = Duration::from_secs(3);

/// Control of a server by looking at it.
#[derive(Debug)]
pub(crate) struct UrlControl {
    spec: Url,
    plan: PathBuf,
    /// Whether it was ready once.
    seen: AtomicBool,
}

impl Control for UrlControl {
    /// Nothing is asked of it before it is measured, and nothing of it is set.
    fn check(&self, _: &Path, _: &Variant) -> Result<(), ServerError> {
        Ok(())
    }

    fn start(&self, place: &Place<'_>, _: &Variant) -> Result<Running, ServerError> {
        let address: SocketAddr = self.spec.address.parse().map_err(|_| {
            let why = format!("`{}` is no address that connections can be made to", self.spec.address);
            self.not_there("url", self.spec.url.clone(), why)
        })?;
        self.wait(address, place.ready_timeout, place.interrupted)?;
        self.seen.store(true, Ordering::Relaxed);
        let found = look(address, None);
        let root = found.root.and_then(|root| processes::read(Path::new(PROC), root));
        let (pid, pools) = (root.as_ref().map(|root| root.pid), found.pools.iter().map(|pool| pool.root).collect());
        // How TLS is spoken to it stands in the loads. Were it missing there, the load must fail: what is spoken to servers of webdyno's
        // own believes any certificate.
        let way = (address, Some(self.authority().to_owned()), false);
        let found = Hold::Found { root };
        Ok(Running::held(found, way, pid, EffectiveSettings::default(), Vec::new()).with_behind(pools))
    }
}

impl UrlControl {
    pub(crate) fn new(spec: &Url, plan: &Path) -> UrlControl {
        UrlControl { spec: spec.clone(), plan: plan.to_owned(), seen: AtomicBool::new(false) }
    }

    /// Host and port as requests name them.
    fn authority(&self) -> &str {
        let url = &self.spec.url;
        url.split_once("://").map_or(url.as_str(), |(_, rest)| rest).trim_end_matches('/')
    }

    fn wait(&self, address: SocketAddr, timeout: Duration, interrupted: &AtomicBool) -> Result<(), ServerError> {
        let since = Instant::now();
        let is_awaited = || !interrupted.load(Ordering::Relaxed);
        let mut refusal = Refusal::default();
        loop {
            // No look is cut short, so that the last one tells as much as those before.
            let missing = match self.knock(address, &mut || is_awaited()) {
                Ok(()) => return Ok(()),
                Err(missing) => missing,
            };
            if !is_awaited() {
                return Err(ServerError::Interrupted);
            }
            match missing {
                Missing::Status(status) => refusal.came(status),
                _ => refusal = Refusal::default(),
            }
            let patience = match missing {
                Missing::Refused if !self.seen.load(Ordering::Relaxed) => UNSEEN,
                _ => timeout,
            };
            if refusal.steady().is_some() || since.elapsed() >= patience {
                return Err(self.told(&missing, patience));
            }
            std::thread::sleep(POLL);
        }
    }

    /// One look: at what the plan asks for, else only at the door.
    fn knock(&self, address: SocketAddr, is_awaited: &mut dyn FnMut() -> bool) -> Result<(), Missing> {
        let Some(path) = &self.spec.ready else {
            return TcpStream::connect_timeout(&address, KNOCK).map(drop).map_err(|error| Missing::of(&error));
        };
        match get(address, Some(self.authority()), path, Ask::Once, KNOCK, is_awaited) {
            Ok(reply) if (200..300).contains(&reply.status) => Ok(()),
            Ok(reply) => Err(Missing::Status(reply.status)),
            Err(ProbeError::Connect(error)) => Err(Missing::of(&error)),
            Err(error) => Err(Missing::Silent(error.to_string())),
        }
    }

    fn told(&self, missing: &Missing, patience: Duration) -> ServerError {
        let url = &self.spec.url;
        let seen = self.seen.load(Ordering::Relaxed);
        let why = match missing {
            Missing::Status(status) => {
                let why = match status {
                    500.. => {
                        format!("still status {status} after {} s; look into the server's log", patience.as_secs_f64())
                    }
                    _ => format!("status {status}; name a path that the server answers with 2xx"),
                };
                let path = self.spec.ready.as_deref().unwrap_or_default();
                return self.not_there("ready", format!("GET {path} from {url}"), why);
            }
            Missing::Refused if seen => {
                "nobody listens there any more; when the server is back, go on with --resume".to_owned()
            }
            Missing::Refused => "nobody listens there; start the server, or correct the address".to_owned(),
            Missing::Silent(why) if seen => {
                format!("no answer any more ({why}); when the server is back, go on with --resume")
            }
            Missing::Silent(why) => {
                format!("no answer ({why}); is a firewall in between, or is the server stuck?")
            }
        };
        self.not_there("url", url.clone(), why)
    }

    fn not_there(&self, key: &'static str, asked: String, why: String) -> ServerError {
        let at = PlanKey { plan: self.plan.clone().into(), service: None, line: self.spec.line(key), key };
        ServerError::NotThere { at, asked, why }
    }
}

/// Why it is not ready.
#[derive(Debug)]
enum Missing {
    /// Nobody listens.
    Refused,
    /// Somebody may, and nothing that can be used comes.
    Silent(String),
    /// It answers otherwise than with 2xx.
    Status(u16),
}

impl Missing {
    fn of(error: &io::Error) -> Missing {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Missing::Refused,
            _ => Missing::Silent(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    fn control(address: &str, ready: Option<&str>) -> UrlControl {
        let lines = [("url".to_owned(), 3), ("ready".to_owned(), 4)].into();
        let url = Url {
            url: format!("http://{address}/"),
            address: address.to_owned(),
            ready: ready.map(str::to_owned),
            lines,
            ..Url::default()
        };
        UrlControl::new(&url, Path::new("p.toml"))
    }

    #[test]
    fn a_door_is_enough_where_no_page_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let there = control(&address.to_string(), None);
        there.knock(address, &mut || true).unwrap();
        drop(listener);
        let missing = there.knock(address, &mut || true).unwrap_err();
        let told = |control: &UrlControl| control.told(&missing, UNSEEN).to_string();
        let nobody = format!("p.toml:3: server.url: http://{address}/: nobody listens there");
        assert_eq!(told(&there), format!("{nobody}; start the server, or correct the address"));
        there.seen.store(true, Ordering::Relaxed);
        assert_eq!(told(&there), format!("{nobody} any more; when the server is back, go on with --resume"));
    }

    #[test]
    fn a_server_that_is_busy_all_the_time_is_told_by_its_status() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                // Who has asked and is gone again is none of ours.
                let _ = stream.read(&mut [0; 500]);
                let _ = stream.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
            }
        });
        let there = control(&address.to_string(), Some("/up"));
        let busy = there.wait(address, Duration::from_millis(300), &AtomicBool::new(false)).unwrap_err();
        let wanted = format!(
            "p.toml:4: server.ready: GET /up from http://{address}/: still status 503 after 0.3 s; look into the server's log"
        );
        assert_eq!(busy.to_string(), wanted);
    }

    #[test]
    fn a_page_that_is_named_must_be_good() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = std::thread::spawn(move || {
            ["404 Not Found", "200 OK"].map(|status| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 500];
                let length = stream.read(&mut request).unwrap();
                write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").unwrap();
                String::from_utf8_lossy(&request[..length]).into_owned()
            })
        });
        let there = control(&address.to_string(), Some("/up"));
        let missing = there.knock(address, &mut || true).unwrap_err();
        there.knock(address, &mut || true).unwrap();
        let wanted = format!(
            "p.toml:4: server.ready: GET /up from http://{address}/: status 404; name a path that the server answers with 2xx"
        );
        assert_eq!(there.told(&missing, UNSEEN).to_string(), wanted);
        for request in asked.join().unwrap() {
            assert!(
                request.starts_with("GET /up HTTP/1.0\r\n") && request.contains(&format!("Host: {address}\r\n")),
                "{request}"
            );
        }
    }
}
