//! What is said when a load is over: ab's report and files, our own view below them, and the exit code.

use super::kept::Kept;
use super::seen::{Fatal, Watch};
use super::{refusal, say};
use crate::command::report::{self as shown, Form, LoadForm};
use crate::exit::Exit;
use crate::flags::ab::{AbFlags, OutputFlags, SUITES, Said};
use crate::say::{print, say_part, without_numbers};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::load::{Failure, LoadResult, TlsFacts};
use model::plan::TlsVersion;
use model::run::{Run, RunEnd};
use report::ab::trouble::{self, Ending};
use report::ab::{AbCounts, AbFacts, AbTls, AbView, Arithmetic, Whom, csv, gnuplot, html, progress, text};
use report::load::LoadView;
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// A load that is over.
pub(super) struct Measured {
    pub(super) run: Run,
    pub(super) counts: AbCounts,
    pub(super) records: Kept,
    pub(super) watch: Watch,
    pub(super) began: Timestamp,
}

/// The files of `-e` and `-g`, open. What stood in them stays until there is something to write.
pub(super) struct Files {
    csv: Option<Output>,
    gnuplot: Option<Output>,
}

/// One of them; when it was made for this and nothing is written to it, it goes again.
struct Output {
    file: File,
    made: Option<PathBuf>,
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(path) = self.made.take() {
            let _ = fs::remove_file(path);
        }
    }
}

impl Files {
    pub(super) fn open(output: &OutputFlags) -> Result<Files, Said> {
        let gnuplot = opened("gnuplot", output.gnuplot.as_deref())?;
        Ok(Files { csv: opened("CSV", output.csv.as_deref())?, gnuplot })
    }
}

fn opened(what: &str, path: Option<&str>) -> Result<Option<Output>, Said> {
    let Some(path) = path else { return Ok(None) };
    let output = match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => Ok(Output { file, made: Some(PathBuf::from(path)) }),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            OpenOptions::new().write(true).open(path).map(|file| Output { file, made: None })
        }
        Err(error) => Err(error),
    };
    output.map(Some).map_err(|error| refusal(unwritable(what, &error)))
}

fn unwritable(what: &str, error: &io::Error) -> Ending {
    trouble::unwritable(what, &without_numbers(&error.to_string()))
}

pub(super) fn tell(flags: &AbFlags, measured: &Measured, files: &mut Files) -> anyhow::Result<Exit> {
    let interrupted = measured.run.head.end == RunEnd::Interrupted;
    let complete = measured.counts.complete;
    let fatal = measured.watch.fatal.get().map(|fatal| reason(*fatal, measured));
    if let (Some((call, error)), false) = (&fatal, measured.watch.answered.load(Ordering::Relaxed)) {
        // There is nothing to report.
        return Ok(say(&refusal(trouble::refused(call, (error.0, &error.1), 0))));
    }
    let view = view(flags, measured)?;
    let met = if flags.extras.json {
        Some(shown::show_load(&measured.run, LoadForm::Plain(Form::Json), &flags.extras.lang) != Exit::Worse)
    } else {
        if !interrupted {
            over(flags, measured);
        }
        report(flags, measured, &view, interrupted)
    };
    // Interrupted, ab always writes text, and with it the files.
    if flags.output.html.is_none() || interrupted {
        files.write(measured, &view);
    }
    let (code, line) = match (interrupted, fatal, met) {
        (true, ..) => (1, String::new()),
        (false, Some((call, error)), _) => {
            let Ending { err, code, .. } = trouble::refused(call, (error.0, &error.1), complete);
            (code, err)
        }
        (false, None, met) => (u8::from(met == Some(false)), String::new()),
    };
    say_part(&line);
    Ok(Exit::Code(code))
}

/// That it is over.
fn over(flags: &AbFlags, measured: &Measured) {
    match progress::heartbeat(u64::from(flags.requests), flags.output.quiet) {
        Some(_) => say_part(&progress::finished(measured.counts.complete)),
        None => print(progress::DONE),
    }
}

fn view(flags: &AbFlags, measured: &Measured) -> io::Result<AbView> {
    let arithmetic = if flags.extras.strict { Arithmetic::Strict } else { Arithmetic::Right };
    let load = measured.run.trials.first().and_then(|trial| trial.load.as_ref());
    AbView::of(&facts(flags, measured, load), &measured.records, arithmetic)
}

/// ab's report, and ours below; says whether all that was expected holds.
fn report(flags: &AbFlags, measured: &Measured, view: &AbView, interrupted: bool) -> Option<bool> {
    let html = flags.output.html.as_ref().filter(|_| !interrupted);
    print(&match html {
        Some(attributes) => html::render(view, attributes),
        None => text::render(view, flags.output.show),
    });
    let own = flags.extras.verdict || (io::stdout().is_terminal() && html.is_none());
    let lang = shown::language(&flags.extras.lang);
    let expected = &flags.extras.expect;
    let load_view = LoadView::of(&measured.run, expected, lang);
    if let (Some(load_view), true) = (&load_view, own) {
        print(&format!("\n{}", report::ab::verdict::render(load_view, view, shown::look())));
    }
    if !own {
        // Else the exit code alone would tell, and standard output is ab's.
        let missed = load_view.iter().flat_map(|view| &view.thresholds).filter(|threshold| !threshold.judged.is_met());
        missed.for_each(|threshold| say_part(&format!("webdyno ab: {}\n", threshold.sentence.text)));
    }
    load_view.filter(|_| !expected.is_empty()).map(|view| view.met())
}

impl Files {
    fn write(&mut self, measured: &Measured, view: &AbView) {
        let Some(times) = &view.times else { return };
        write("gnuplot", &mut self.gnuplot, |out| {
            gnuplot::write(&measured.records, measured.began, &TimeZone::system(), out)
        });
        write("CSV", &mut self.csv, |out| out.write_all(csv::render(times).as_bytes()));
    }
}

/// Replaces a file's content; that it failed is said and changes nothing else, because the report is out.
fn write(what: &str, output: &mut Option<Output>, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
    let Some(Output { file, made }) = output else { return };
    *made = None;
    // A pipe or a device has nothing to be cut off.
    let is_file = file.metadata().is_ok_and(|about| about.is_file());
    let emptied = if is_file { file.set_len(0) } else { Ok(()) };
    let written = emptied.and_then(|()| {
        let mut out = BufWriter::new(file);
        content(&mut out)?;
        out.flush()
    });
    if let Err(error) = written {
        say_part(&unwritable(what, &error).err);
    }
}

fn facts(flags: &AbFlags, measured: &Measured, load: Option<&LoadResult>) -> AbFacts {
    let target = &flags.target;
    let document = measured.watch.document.get().copied().unwrap_or(0);
    let software = load.and_then(|load| load.software.as_deref()).unwrap_or_default();
    AbFacts {
        whom: Whom {
            // As ab cuts it: at the first blank.
            software: software.split(|c: char| c <= ' ').next().unwrap_or_default().to_owned(),
            host: target.host.clone(),
            port: target.port,
            tls: target.tls.then(|| tls(flags, load.and_then(|load| load.tls.as_ref()))),
            path: target.path.clone(),
        },
        document_bytes: (!flags.output.any_length).then_some(document),
        concurrency: flags.concurrency,
        took_us: load.map_or(0, |load| (load.ended_ns.saturating_sub(load.started_ns) + 500) / 1000),
        counts: measured.counts.clone(),
    }
}

fn tls(flags: &AbFlags, facts: Option<&TlsFacts>) -> AbTls {
    AbTls {
        protocol: facts.map(|facts| {
            let version = match facts.version {
                TlsVersion::Tls12 => "TLSv1.2",
                TlsVersion::Tls13 => "TLSv1.3",
            };
            let suite = SUITES.iter().find(|suite| suite.rustls == facts.suite);
            let (name, bits) = suite.map_or((facts.suite.as_str(), 0), |suite| (suite.openssl, suite.bits));
            format!("{version},{name},{},{bits}", facts.key_bits.unwrap_or(0))
        }),
        temp_key: facts.and_then(|facts| facts.group.as_deref()).map(temp_key),
        server_name: flags.tls.server_name.clone(),
    }
}

/// A group in OpenSSL's words.
fn temp_key(group: &str) -> String {
    match group {
        "X25519" => "X25519 253 bits".to_owned(),
        "secp256r1" => "ECDH prime256v1 256 bits".to_owned(),
        "secp384r1" => "ECDH secp384r1 384 bits".to_owned(),
        "secp521r1" => "ECDH secp521r1 521 bits".to_owned(),
        other => other.to_owned(),
    }
}

/// What ab would have said as it ended: the call, and the number and words.
fn reason(fatal: Fatal, measured: &Measured) -> (&'static str, (i32, String)) {
    let kernel = |errno: Errno| (errno.raw_os_error(), without_numbers(&io::Error::from(errno).to_string()));
    match fatal {
        Fatal::Refused => ("apr_socket_recv", kernel(Errno::CONNREFUSED)),
        Fatal::Reset => ("apr_socket_recv", kernel(Errno::CONNRESET)),
        Fatal::TimedOut => ("apr_pollset_poll", (trouble::TIMED_OUT.0, trouble::TIMED_OUT.1.to_owned())),
        Fatal::Local => {
            let load = measured.run.trials.first().and_then(|trial| trial.load.as_ref());
            let example = load.and_then(|load| load.examples.get(&Failure::Local));
            ("apr_socket_connect()", example.map_or_else(|| kernel(Errno::ADDRNOTAVAIL), |text| number_of(text)))
        }
    }
}

/// Words and number of what the kernel said, from the text that an example is.
fn number_of(text: &str) -> (i32, String) {
    let (before, number) = text.rsplit_once(" (os error ").unwrap_or((text, ""));
    let words = before.rsplit_once(": ").map_or(before, |(_, words)| words);
    (number.trim_end_matches(')').parse().unwrap_or(1), words.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_is_the_kernels_words_and_number() {
        let check = |text: &str, number, words: &str| assert_eq!(number_of(text), (number, words.to_owned()));
        check("while connecting to 10.0.0.1:80: Network is unreachable (os error 101)", 101, "Network is unreachable");
        check("while connecting: Too many open files (os error 24)", 24, "Too many open files");
        check("no words", 1, "no words");
    }
}
