//! The access log of a trial, counted line by line, against what its clients were answered.

use crate::ExperimentError;
use accesslog::{Format, Reader};
use model::load::LoadResult;
use model::plan::{AccessLog, Plan, ServerSpec};
use model::trial::Logged;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// The log of one trial's server.
pub(crate) struct Log<'a> {
    log: &'a AccessLog,
    server: &'a ServerSpec,
    format: Format,
    /// The folder of the server's instance.
    folder: PathBuf,
}

impl<'a> Log<'a> {
    /// The log that the plan has counted, of that server with its instance in that folder; `None` when it has none counted, or this is no
    /// server whose log is.
    pub(crate) fn of(
        plan: &'a Plan,
        server: &'a ServerSpec,
        folder: &Path,
    ) -> Result<Option<Log<'a>>, ExperimentError> {
        let Some(log) = plan.access_log.as_ref().filter(|_| server.ready_where_logged().is_some()) else {
            return Ok(None);
        };
        let wrong =
            |what| ExperimentError::Plan { file: plan.file.clone(), line: log.line, key: "access_log.format", what };
        let format = Format::parse(&log.format).map_err(|error| wrong(error.to_string()))?;
        Ok(Some(Log { log, server, format, folder: folder.to_owned() }))
    }

    /// What stands in it now, added to `logged`.
    pub(crate) fn count(&self, logged: &mut Logged) -> Result<(), ExperimentError> {
        let files = self.files();
        for file in &files {
            self.count_file(file, logged)
                .map_err(|error| ExperimentError::Missing(format!("cannot read {}: {error}", file.display())))?;
        }
        logged.files = files.len() as u64;
        Ok(())
    }

    /// The files of its name.
    fn files(&self) -> Vec<PathBuf> {
        let pattern = self.folder.join(&self.log.file);
        let name = pattern.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let entries = pattern.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
        let of_name = entries.filter(|entry| fits(&name, &entry.file_name().to_string_lossy()));
        of_name.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
    }

    fn count_file(&self, file: &Path, logged: &mut Logged) -> io::Result<()> {
        let mut file = BufReader::new(File::open(file)?);
        let (mut reader, mut line) = (Reader::new(self.format.clone()), Vec::new());
        while file.read_until(b'\n', &mut line)? > 0 {
            let whole = line.ends_with(b"\n");
            match reader.read(&line).and_then(|entry| entry.request.ok()).filter(|_| whole) {
                Some(request) if server::asks_for(self.server, &request.target) => logged.others += 1,
                Some(_) => logged.lines += 1,
                None => logged.unread += 1,
            }
            line.clear();
        }
        Ok(())
    }
}

/// What the clients of a load know: answers, and requests that the server may have logged beside them.
pub(crate) fn answered(load: &LoadResult) -> (u64, u64) {
    let answered: u64 = load.counts.statuses.values().sum();
    (answered, load.sent().saturating_sub(answered) + load.counts.retries)
}

/// Whether a name is as the pattern says, in which `*` stands for anything.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|left| {
            left.char_indices().map(|(at, _)| at).chain([left.len()]).any(|at| fits(rest, &left[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{Options, parse};

    fn check(files: &[(&str, &str)], pattern: &str, expected: (u64, u64, u64, u64)) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("logs")).unwrap();
        for (name, text) in files {
            fs::write(folder.path().join("logs").join(name), text).unwrap();
        }
        let text = format!(
            "[server]\nkind = \"nginx\"\n[access_log]\nfile = \"{pattern}\"\nformat = \"common\"\n[load.a]\npath = \"/a\"\nconnections = 1\n\
             requests = 1\n"
        );
        let (plan, _) = parse(&text, Path::new("p.toml"), &Options::default()).unwrap();
        let mut logged = Logged::default();
        Log::of(&plan, &plan.server, folder.path()).unwrap().unwrap().count(&mut logged).unwrap();
        assert_eq!((logged.files, logged.lines, logged.others, logged.unread), expected, "{pattern}");
    }

    #[test]
    fn lines_are_counted_by_what_was_asked_for() {
        let line = |target: &str| format!("::1 - - [22/Nov/2026:03:20:40 +0000] \"GET {target} HTTP/1.1\" 200 6\n");
        let cut = line("/a").replace(" 200 6\n", "");
        let torn = line("/a").trim_end().to_owned();
        let first = line("/") + &line("/a") + &line("/a?b") + "\n" + &cut;
        check(&[("access.log", &first)], "logs/access.log", (1, 2, 1, 2));
        check(&[("access.log", &torn)], "logs/access.log", (1, 0, 0, 1));
        let several = [("access.1", line("/a")), ("access.2", line("/a")), ("error.log", line("/a"))];
        let several = several.each_ref().map(|(name, text)| (*name, text.as_str()));
        check(&several, "logs/access.*", (2, 2, 0, 0));
        check(&several, "logs/other", (0, 0, 0, 0));
    }

    #[test]
    fn stars_stand_for_anything() {
        let check =
            |pattern: &str, name: &str, expected: bool| assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        check("access.log", "access.log", true);
        check("access.log", "access.log.1", false);
        check("access*", "access", true);
        check("a*.l*g", "access.log", true);
        check("a*.l*g", "access.logs", false);
        check("*", "", true);
    }
}
