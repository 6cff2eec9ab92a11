//! `webdyno report`: a stored run as text, JSON, Markdown and an HTML page. `run` ends with the same.

use super::load::search;
use crate::exit::{self, Exit};
use crate::flags::{Lang, LangFlag, ReportFlags, ShowFlags, StoreFlag};
use crate::say::{print, say};
use anyhow::{Context, bail, ensure};
use model::import::Import;
use model::plan::Role;
use model::run::Run;
use model::trial::{Outcome, Stop};
use report::CheckView;
use report::ImportView;
use report::load::LoadView;
use report::search::SearchView;
use report::text::{Colour, Look};
use report::view::CellView;
use report::{Language, Verdict, View};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use store::{Kept, Store};

/// What a store without runs amounts to.
pub(crate) const NO_RUNS: &str = "there are no runs yet; make one with `webdyno run PLAN`";
/// Width of a report that does not go to a terminal.
const PLAIN_WIDTH: usize = 100;

pub(crate) fn run(flags: &ReportFlags) -> anyhow::Result<Exit> {
    let store = Store::open_existing(&store_path(&flags.store)?)?;
    exactly_one(&store, &flags.id)?;
    show(&store, &flags.id, &flags.store, &flags.show)
}

/// An id that fits no run, or several, is a mistake in what was typed; what fails after this is the store's.
pub(crate) fn exactly_one(store: &Store, id: &str) -> anyhow::Result<()> {
    let runs = store.runs()?;
    let fit: Vec<&str> = runs.iter().map(|run| run.id.as_str()).filter(|run| run.starts_with(id)).collect();
    match fit.as_slice() {
        _ if runs.is_empty() => bail!("{NO_RUNS}"),
        _ if id == store::LATEST || fit.contains(&id) => Ok(()),
        [] => bail!("no run `{id}`; `webdyno runs` lists them"),
        [_] => Ok(()),
        several => bail!("more than one run begins with `{id}`: {}; give more of the id", several.join(", ")),
    }
}

/// The store to use: `--store`, else the default.
pub(crate) fn store_path(flag: &StoreFlag) -> anyhow::Result<PathBuf> {
    Ok(match &flag.path {
        Some(path) => path.clone(),
        None => store::default_path()?,
    })
}

/// Shows a stored run and says how the process should end by it. The result comes first; a page that cannot be written is a
/// complaint after it.
pub(crate) fn show(store: &Store, id: &str, at: &StoreFlag, flags: &ShowFlags) -> anyhow::Result<Exit> {
    let run = match store.kept(id)? {
        Kept::Run(run) => *run,
        Kept::Import(import) => {
            show_import(&import, plain_form(flags, "an import")?, &flags.lang);
            return Ok(Exit::Done);
        }
    };
    if run.head.plan.search.is_some() {
        return Ok(show_search(&run, plain_form(flags, "a search for a rate")?, &flags.lang));
    }
    if run.head.check.is_some() {
        return Ok(show_check(&run, plain_form(flags, "a check")?, &flags.lang));
    }
    // One load that was typed has a report of its own; as Markdown or a page it looks like any run.
    if !run.head.plan.is_written() && !flags.markdown && flags.html.is_none() {
        return Ok(show_load(&run, LoadForm::Plain(Form::of(flags.json)), &flags.lang));
    }
    let view = View::of(&run, language(&flags.lang));
    let text = if flags.json {
        report::json::render(&view)
    } else if flags.markdown {
        report::markdown::render(&view)
    } else {
        report::text::render(&view, look())
    };
    print(&text);
    let page = match &flags.html {
        Some(path) => Some(path.clone()),
        // Whoever asks for another form is a program or knows what they want.
        None if flags.json || flags.markdown => None,
        None => Some(beside(&store_path(at)?, &run.head.id)),
    };
    if let Some(page) = page {
        write_page(&page, &report::html::render(&view))?;
        say(&format!("\nThe report as a page: {}", page.display()));
    }
    Ok(exit_of(&view))
}

/// How a search, a check or an import is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json,
}

/// How a load is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadForm {
    Plain(Form),
    Csv,
    OpenMetrics,
}

impl Form {
    /// By whether `--json` was typed.
    pub(super) fn of(json: bool) -> Form {
        if json { Form::Json } else { Form::Text }
    }
}

/// The form for what has neither Markdown nor a page.
fn plain_form(flags: &ShowFlags, what: &str) -> anyhow::Result<Form> {
    ensure!(!flags.markdown && flags.html.is_none(), "{what} is shown as text or --json only");
    Ok(Form::of(flags.json))
}

/// Shows a run that is one load, and says how the process should end by it.
pub(super) fn show_load(run: &Run, form: LoadForm, lang: &LangFlag) -> Exit {
    let expected: Vec<_> = run.head.plan.loads.iter().flat_map(|load| load.expect.iter().cloned()).collect();
    let Some(view) = LoadView::of(run, &expected, language(lang)) else {
        say(&report::load::nothing_measured(language(lang)));
        return Exit::Inconclusive;
    };
    let text = match form {
        LoadForm::Plain(Form::Text) => report::load::text::render(&view, look()),
        LoadForm::Plain(Form::Json) => report::load::json::render(&view),
        LoadForm::Csv => report::load::csv::render(&view),
        LoadForm::OpenMetrics => report::load::openmetrics::render(&view),
    };
    print(&text);
    let guarded =
        run.trials.iter().any(|trial| matches!(trial.outcome, Outcome::EndedEarly(stop) if stop != Stop::Interrupted));
    // Without a good answer nothing is known of the server but that, unless it is what was expected.
    let says_nothing = view.thresholds.is_empty() && view.counts.good == 0;
    match view.met() {
        false => Exit::Worse,
        true if guarded || says_nothing => Exit::Inconclusive,
        true => Exit::Done,
    }
}

/// Shows a run that is a search for a rate, and says how the process should end by it.
pub(super) fn show_search(run: &Run, form: Form, lang: &LangFlag) -> Exit {
    let Some(view) = SearchView::of(run, language(lang)) else { return Exit::Inconclusive };
    let text = match form {
        Form::Json => report::search::json::render(&view),
        Form::Text => report::search::text::render(&view, look()),
    };
    print(&text);
    search::exit(view.answer)
}

/// Shows a run that is a check, and says how the process should end by it.
pub(super) fn show_check(run: &Run, form: Form, lang: &LangFlag) -> Exit {
    let Some(view) = CheckView::of(run, language(lang)) else { return Exit::Inconclusive };
    let text = match form {
        Form::Json => report::check::json::render(&view),
        Form::Text => report::check::text::render(&view, look()),
    };
    print(&text);
    match () {
        () if view.has_fault() => Exit::Worse,
        () if view.is_open() => Exit::Inconclusive,
        () => Exit::Done,
    }
}

/// Shows what was imported. There is nothing to judge: nobody knows in which order it was measured.
pub(super) fn show_import(import: &Import, form: Form, lang: &LangFlag) {
    let view = ImportView::of(import, language(lang));
    let text = match form {
        Form::Json => report::import::json::render(&view),
        Form::Text => report::import::text::render(&view, look()),
    };
    print(&text);
}

fn beside(store: &Path, id: &str) -> PathBuf {
    store.parent().unwrap_or(Path::new(".")).join("reports").join(format!("{id}.html"))
}

fn write_page(path: &Path, page: &str) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    std::fs::write(path, page).with_context(|| format!("cannot write the page {}", path.display()))
}

pub(crate) fn look() -> Look {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let colour = if wanted && std::io::stdout().is_terminal() { Colour::Ansi } else { Colour::None };
    let columns = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_col));
    Look { width: if columns == 0 { PLAIN_WIDTH } else { columns }, colour }
}

pub(crate) fn language(flag: &LangFlag) -> Language {
    match flag.lang {
        Some(Lang::En) => Language::English,
        Some(Lang::Ja) => Language::Japanese,
        None => ["LC_ALL", "LC_MESSAGES", "LANG"]
            .iter()
            .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
            .and_then(|value| Language::parse(&value))
            .unwrap_or(Language::English),
    }
}

/// How a process ends by what the candidates came to.
fn exit_of(view: &View) -> Exit {
    let nothing = view.cells.iter().any(|cell| cell.role == Role::Baseline && cell.good == 0);
    if nothing {
        return Exit::Inconclusive;
    }
    let of_cells = view.cells.iter().filter(|cell| cell.role == Role::Candidate).map(|cell| cell.comparison.as_ref());
    // Some settings may miss what is expected, of their own load or of one beside it: they are tried to find some that do not.
    let mut of_expectations = view.cells.iter().filter(|cell| view.expected(cell).next().is_some()).peekable();
    let missed = |cell: &CellView| view.expected(cell).any(|expected| !expected.is_met);
    if of_expectations.peek().is_some() && of_expectations.all(missed) {
        return Exit::Worse;
    }
    // What factors do together is neither better nor worse.
    let sides = view.contrasts.iter().filter(|contrast| !contrast.is_interaction);
    let of_contrasts = sides.map(|contrast| contrast.comparison.as_ref());
    let asked: Vec<_> = if view.contrasts.is_empty() { of_cells.collect() } else { of_contrasts.collect() };
    let unknown = Verdict::Inconclusive { more_blocks: None };
    exit::of_verdicts(asked.into_iter().map(|it| it.and_then(|it| it.judged).unwrap_or(unknown)))
}
