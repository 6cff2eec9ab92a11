//! A private instance from a plan and a folder: prepared, tested by nginx itself, started, and read back.

use super::SERVER;
use super::check::check;
use super::launch::{complaints, in_use, launch};
use super::program::{Built, find};
use super::render::{Parts, Rendered, render};
use super::status::StubStatus;
use crate::account::{Account, OF_NGINX};
use crate::control::blame;
use crate::php;
use crate::port::with_free_port;
use crate::site::Grounds;
use crate::status::WebSource;
use crate::{Control, Place, PlanKey, Running, ServerError};
use model::plan::{Nginx, Variant};
use model::trial::EffectiveSettings;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// A socket's path may have 107 bytes.
const SOCKET_MOST: usize = 107;
/// Types of files, where packages put them.
const TYPES: [&str; 2] = ["/etc/nginx/mime.types", "/usr/local/nginx/conf/mime.types"];
/// For systems without them.
const FEW_TYPES: &str = "types {\ntext/html html htm;\ntext/css css;\ntext/javascript js;\ntext/plain txt;\nimage/png png;\nimage/jpeg jpg jpeg;\nimage/svg+xml svg;\napplication/json json;\n}\n";

/// Controls a private instance of the system's nginx.
#[derive(Debug, Clone)]
pub(crate) struct NginxControl {
    pub(crate) spec: Nginx,
    pub(crate) plan: PathBuf,
}

/// Everything that does not change with the port.
struct Prepared<'a> {
    control: &'a NginxControl,
    variant: &'a Variant,
    listen: IpAddr,
    program: PathBuf,
    built: Built,
    account: Option<Account>,
    dir: PathBuf,
    types: PathBuf,
    document_root: PathBuf,
    php: Option<php::Prepared>,
    /// The socket to tell counters on, where nginx can.
    status: Option<PathBuf>,
}

impl Control for NginxControl {
    fn check(&self, dir: &Path, variant: &Variant) -> Result<(), ServerError> {
        let prepared = self.prepare(dir, variant)?;
        with_free_port(|port| prepared.configure(port)).map(|_| ())
    }

    fn start(&self, place: &Place<'_>, variant: &Variant) -> Result<Running, ServerError> {
        let prepared = self.prepare(place.dir, variant)?;
        let prepared = Prepared { listen: place.listen, ..prepared };
        let master = prepared.php.as_ref().map_or(Ok(None), |php| php.start(place))?;
        Ok(with_free_port(|port| prepared.start(place, port))?.with_php(master))
    }
}

impl NginxControl {
    /// Looks at the machine and makes the folders; everything that can be wrong before nginx is asked.
    fn prepare<'a>(&'a self, dir: &Path, variant: &'a Variant) -> Result<Prepared<'a>, ServerError> {
        let program = find(self.spec.program.as_deref(), &std::env::var_os("PATH").unwrap_or_default())?;
        let grounds = Grounds::prepare(dir, &["run", "logs"], SERVER, &OF_NGINX)?;
        let document_root = grounds.document_root(self.key("document_root"), self.spec.document_root.as_deref())?;
        grounds.check()?;
        let Grounds { dir, account, .. } = grounds;
        let types = TYPES.iter().map(PathBuf::from).find(|types| types.exists());
        let types = types.map_or_else(|| few_types(&dir), Ok)?;
        let php = self.spec.php.as_ref();
        let php =
            php.map(|php| php::Prepared::new(php, &dir, account.as_ref(), variant, self.key("php"))).transpose()?;
        let status = Some(dir.join("run/status.sock")).filter(|socket| socket.as_os_str().len() <= SOCKET_MOST);
        let built = Built::of(&program)?;
        let status = status.filter(|_| built.has_status);
        Ok(Prepared {
            control: self,
            variant,
            program,
            built,
            account,
            dir,
            types,
            document_root,
            php,
            status,
            listen: Ipv4Addr::LOCALHOST.into(),
        })
    }

    fn key(&self, key: &'static str) -> PlanKey {
        PlanKey { plan: self.plan.clone().into(), service: None, line: self.spec.line(key), key }
    }
}

impl Prepared<'_> {
    /// Writes the configuration for a port and lets nginx test it.
    fn configure(&self, port: u16) -> Result<(PathBuf, Rendered), ServerError> {
        let plan = &self.control.plan;
        let rendered = render(&Parts {
            root: &self.dir,
            address: SocketAddr::new(self.listen, port),
            account: self.account.as_ref(),
            types: &self.types,
            document_root: &self.document_root,
            php: self.php.as_ref(),
            status: self.status.as_deref(),
            common: &self.control.spec.directives,
            variant: &self.variant.directives,
        })
        .map_err(|(directive, why)| blame(plan, &directive, why, SERVER))?;
        // Left by a try with another port that was ended by force.
        self.status.iter().for_each(|socket| drop(fs::remove_file(socket)));
        let file = self.dir.join("nginx.conf");
        fs::write(&file, &rendered.text).map_err(ServerError::io("write", &file))?;
        check(&self.program, (&file, port), &rendered, self.variant, plan)?;
        Ok((file, rendered))
    }

    fn start(&self, place: &Place<'_>, port: u16) -> Result<Running, ServerError> {
        let (file, rendered) = self.configure(port)?;
        let address = SocketAddr::new(self.listen, port);
        let mut starting = launch(place, (&self.program, &self.dir, &file), &self.dir, address)?;
        starting.wait_until_ready(&self.control.spec.ready, Some(&self.control.key("ready"))).map_err(|error| {
            if in_use(&starting.logs.tail()) { ServerError::PortInUse(starting.address) } else { error }
        })?;
        if in_use(&starting.logs.tail()) {
            // Somebody else answered.
            return Err(ServerError::PortInUse(starting.address));
        }
        let notes = complaints(&starting.logs.tail());
        let mut settings = self.settings(&rendered);
        if let Some(php) = &self.php {
            let (address, timeout) = (starting.address, starting.timeout);
            settings.values.extend(php.in_force(address, timeout, &mut || starting.still_awaited().is_ok())?);
        }
        let status = self.status.clone().map(|socket| WebSource::Nginx(StubStatus::Socket(socket)));
        Ok(starting.running(settings, notes).with_status(status))
    }

    /// What the plan set, as nginx read it. It has no limit of requests that it works on at once: a worker never waits for one.
    fn settings(&self, rendered: &Rendered) -> EffectiveSettings {
        let value = |text: &str| {
            let (name, value) = text.trim().trim_end_matches(';').split_once(char::is_whitespace)?;
            (!text.contains(['{', '}'])).then(|| (name.to_owned(), value.trim().to_owned()))
        };
        let values = rendered.planned().filter_map(|directive| value(&directive.text)).collect();
        EffectiveSettings { server: self.built.version.clone(), values, worker_limit: None }
    }
}

fn few_types(dir: &Path) -> Result<PathBuf, ServerError> {
    let types = dir.join("mime.types");
    fs::write(&types, FEW_TYPES).map_err(ServerError::io("write", &types))?;
    Ok(types)
}
