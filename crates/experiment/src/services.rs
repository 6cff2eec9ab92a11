//! Servers beside the one under test: started before it and stopped after it, told to all that mention them, and killed in the middle of a
//! window where the plan says so.

use crate::ExperimentError;
use crate::single::local_port;
use crate::trial::{Bench, PATIENT_TIMEOUT};
use load::Address;
use model::Nanos;
use model::plan::{Mention, Plan, Service, ServiceChange, Variant, fill_in};
use server::{Control, Forced, Place, Running, ServerError};
use std::cmp::Reverse;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A service that is ready.
#[derive(Debug)]
pub(crate) struct Started {
    name: String,
    /// How many were started before it.
    place: usize,
    folder: PathBuf,
    running: Running,
    kill_after_ns: Option<Nanos>,
}

/// Services that are ready, in the order in which they were started. Dropping them ends them.
#[derive(Debug, Default)]
pub(crate) struct Services(Vec<Started>);

impl Services {
    /// Starts those that a variant has and that are not kept for the whole run. The outer error is the environment's, the inner one a
    /// server's.
    pub(crate) fn start(
        bench: &Bench<'_>,
        trial: &str,
        variant: &Variant,
    ) -> Result<Result<Services, ServerError>, ExperimentError> {
        let mut started = Services::default();
        for service in bench.plan.services_of(variant).filter(|service| !service.keep) {
            let change = variant.servers.changes.get(&service.name);
            if let Err(error) = started.add(bench, trial, service, &of_service(variant, change))? {
                return Ok(Err(error));
            }
            started.0.last_mut().expect("it was added").kill_after_ns = change.and_then(|change| change.kill_after_ns);
        }
        Ok(Ok(started))
    }

    /// Starts those that are kept for the whole run.
    pub(crate) fn keep(bench: &Bench<'_>) -> Result<Services, ExperimentError> {
        let mut started = Services::default();
        for service in bench.plan.services.iter().filter(|service| service.keep) {
            let variant = Variant { name: service.name.clone(), ..Variant::default() };
            started.add(bench, "kept", service, &variant)??;
        }
        Ok(started)
    }

    fn add(
        &mut self,
        bench: &Bench<'_>,
        trial: &str,
        service: &Service,
        variant: &Variant,
    ) -> Result<Result<(), ServerError>, ExperimentError> {
        let folder = bench.folder(&format!("{trial}-{}", service.name))?;
        let place = Place { dir: &folder, group: None, ..bench.place(PATIENT_TIMEOUT) };
        let (control, variant) = told(bench, &service.server, variant, &|mention| {
            self.tell(mention).or_else(|| bench.kept.borrow().tell(mention))
        });
        Ok(control.start(&place, &variant).map_err(|error| error.of_service(&service.name)).map(|running| {
            let (name, place) = (service.name.clone(), self.0.len());
            self.0.push(Started { name, place, folder, running, kill_after_ns: None });
        }))
    }

    /// What a mention stands for, if it is of one of them.
    pub(crate) fn tell(&self, mention: Mention<'_>) -> Option<String> {
        let service = self.0.iter().find(|started| started.name == mention.service)?;
        let address = service.running.address;
        match mention.word {
            "address" => Some(address.ip().to_string()),
            "port" => Some(address.port().to_string()),
            "folder" => Some(service.folder.to_string_lossy().into_owned()),
            _ => None,
        }
    }

    /// The ports of those that a variant has and that speak HTTP, where who waits and who is let in is to be watched.
    pub(crate) fn ports_of(&self, plan: &Plan, variant: &Variant) -> Vec<u16> {
        let has =
            |name: &str| plan.services_of(variant).any(|service| service.name == name && service.server.speaks_http());
        let speaking = self.0.iter().filter(|started| has(&started.name));
        speaking.filter_map(|started| local_port(&Address::Tcp(started.running.address))).collect()
    }

    /// What is in force, by the service's name and the setting's.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        let of = |started: &Started| {
            let values = started.running.settings.values.clone();
            let name = started.name.clone();
            values.into_iter().map(move |(key, value)| (format!("{name}: {key}"), value))
        };
        self.0.iter().flat_map(of).collect()
    }

    /// What is worth knowing about how they run.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let of = |started: &Started| {
            started.running.notes.iter().map(|note| format!("service `{}`: {note}", started.name)).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of)
    }

    /// One that has died by itself, in a sentence.
    pub(crate) fn dead(&mut self, when: &str) -> Option<String> {
        let started = self.0.iter_mut().find_map(|it| (!it.running.is_alive()).then_some(it))?;
        Some(died(&format!("the service `{}`", started.name), when, &started.running.log_tail()))
    }

    /// Takes those out that are to be killed.
    pub(crate) fn take_doomed(&mut self) -> Vec<Started> {
        let (doomed, others) = self.0.drain(..).partition(|started| started.kill_after_ns.is_some());
        self.0 = others;
        doomed
    }

    /// Takes those back that were not killed after all: they are stopped with the others, when nothing is measured any more.
    pub(crate) fn take_back(&mut self, spared: Vec<Started>) {
        self.0.extend(spared);
        self.0.sort_by_key(|started| started.place);
    }

    /// Stops them, the last one first, and removes their folders; tells of those that had to be ended by force.
    pub(crate) fn stop(mut self) -> Result<Vec<Forced>, ServerError> {
        let mut forced = Vec::new();
        while let Some(Started { name, folder, running, .. }) = self.0.pop() {
            let ended = running.stop().map_err(|error| error.of_service(&name))?;
            forced.extend(ended.map(|it| it.of_service(&name)));
            // What cannot be removed now is removed with the run's folder.
            let _ = std::fs::remove_dir_all(folder);
        }
        Ok(forced)
    }
}

/// A variant as one of its services sees it.
pub(crate) fn of_service(variant: &Variant, change: Option<&ServiceChange>) -> Variant {
    Variant {
        name: variant.name.clone(),
        directives: change.map(|change| change.directives.clone()).unwrap_or_default(),
        allow_warnings: variant.allow_warnings.clone(),
        ..Variant::default()
    }
}

/// The control of a server and its variant, both told where services are.
pub(crate) fn told(
    bench: &Bench<'_>,
    server: &model::plan::ServerSpec,
    variant: &Variant,
    of: &dyn Fn(Mention<'_>) -> Option<String>,
) -> (Box<dyn Control>, Variant) {
    let (mut server, mut variant) = (server.clone(), variant.clone());
    let text = |text: &str| fill_in(text, of);
    server.fill(&text);
    variant.fill(&text);
    (server::control(&server, &bench.plan.file), variant)
}

/// Where services would be, for who only asks what a server thinks of its configuration.
pub(crate) fn pretended<'a>(folder: &'a Path) -> impl Fn(Mention<'_>) -> Option<String> + 'a {
    move |mention| match mention.word {
        "address" => Some("127.0.0.1".to_owned()),
        "port" => Some("1".to_owned()),
        "folder" => Some(folder.to_string_lossy().into_owned()),
        _ => None,
    }
}

/// Does `work`, and kills each of the doomed when its time has come; says what became of them. Those whose time has not come are left.
pub(crate) fn killing<T>(doomed: &mut Vec<Started>, work: impl FnOnce() -> T) -> (T, Vec<String>) {
    if doomed.is_empty() {
        return (work(), Vec::new());
    }
    doomed.sort_by_key(|started| Reverse(started.kill_after_ns));
    let left = &mut *doomed;
    let (result, killed) = thread::scope(|scope| {
        let (done, is_done) = channel::<()>();
        let began = Instant::now();
        let kill = move || {
            let mut killed = Vec::new();
            while let Some(next) = left.last() {
                let after = Duration::from_nanos(next.kill_after_ns.unwrap_or_default());
                // The sender is dropped when the work is done, also by its panic.
                if is_done.recv_timeout(after.saturating_sub(began.elapsed())) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
                let Started { name, folder, running, .. } = left.pop().expect("it was looked at");
                running.kill();
                let into = began.elapsed().as_secs_f64();
                killed.push((format!("the service `{name}` was killed {into:.1} s into the window"), folder));
            }
            killed
        };
        let reaper = thread::Builder::new().name("reaper".to_owned()).spawn_scoped(scope, kill);
        let result = work();
        drop(done);
        (result, reaper.map(|reaper| reaper.join().unwrap_or_else(|panic| resume_unwind(panic))))
    });
    let killed = match killed {
        Ok(killed) => killed,
        Err(error) => return (result, vec![format!("no service was killed: {error}")]),
    };
    // Not within the window: that is work for the disk. What cannot be removed now is removed with the run's folder.
    let told = killed.into_iter().map(|(note, folder)| {
        let _ = std::fs::remove_dir_all(folder);
        note
    });
    let spared = doomed.iter().rev();
    let spared =
        spared.map(|Started { name, .. }| format!("the window was over before the service `{name}` was to be killed"));
    (result, told.chain(spared).collect())
}

/// That a server died at some time, and what its log says of it.
pub(crate) fn died(who: &str, when: &str, log: &str) -> String {
    match log.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("{who} died {when}; its log ends with: {}", line.trim()),
        None => format!("{who} died {when} and logged nothing"),
    }
}
