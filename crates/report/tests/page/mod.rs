//! The HTML page: its outline, that it is well formed and self-contained, and that nothing written in a plan can act in it.

use super::fixture::{PLAN, head, run};
use expect_test::expect_file;
use model::run::Run;
use report::{Language, View, html, markdown};
use std::path::Path;

const VOID: [&str; 2] = ["meta", "br"];

/// The tags of a page in order, as (name, attributes); fails on a tag that is not closed or closed out of order.
pub(crate) fn well_formed(page: &str) -> Vec<(String, String)> {
    let (mut tags, mut open): (Vec<(String, String)>, Vec<String>) = (Vec::new(), Vec::new());
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a doctype");
    while let Some((_, after)) = rest.split_once('<') {
        let (tag, after) = after.split_once('>').expect("a tag ends");
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closed out of order");
            continue;
        }
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        tags.push((name.to_owned(), attributes.to_owned()));
        if name == "style" || name == "script" {
            rest = rest.split_once(&format!("</{name}>")).expect("closed").1;
        } else if !VOID.contains(&name) && !tag.ends_with('/') {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
    tags
}

/// Headings, sections and a dot for each picture: enough to see that something went missing.
fn outline(page: &str) -> String {
    const SHOWN: [&str; 7] = ["<h1", "<h2", "<h3", "<section", "<aside", "<article", "<svg"];
    let mut out = String::new();
    let mut rest = page;
    while let Some(at) = SHOWN.iter().filter_map(|tag| rest.find(tag)).min() {
        rest = &rest[at + 1..];
        let name: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
        let text = rest.split_once('>').map_or("", |(_, text)| text.split('<').next().unwrap_or(""));
        match name.as_str() {
            "svg" => out.push('.'),
            "section" | "aside" | "article" => out.push_str(&format!("\n{name} ")),
            _ => out.push_str(&format!("\n{name} {text} ")),
        }
    }
    out.lines().map(|line| format!("{}\n", line.trim_end())).collect::<String>().trim_start().to_owned()
}

#[test]
fn the_page_is_whole_and_alone() {
    let run = run();
    for language in Language::ALL {
        let page = html::render(&View::of(&run, language));
        let tags = well_formed(&page);
        // For people: the page as a browser shows it.
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{}.html", language.tag()));
        std::fs::write(file, &page).unwrap();
        assert!(tags.iter().all(|(name, _)| !["link", "img", "iframe", "object"].contains(&name.as_str())));
        assert!(tags.iter().all(|(_, attributes)| !attributes.contains("src=")));
        assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("url("), "nothing is fetched");
        for (name, attributes) in &tags {
            assert!(name != "svg" || attributes.contains("aria-hidden"), "a picture is described beside it");
            assert!(!attributes.contains("role=\"img\"") || attributes.contains("aria-label=\""));
        }
    }
    let page = |language| outline(&html::render(&View::of(&run, language)));
    expect_file!["../golden/en-page.txt"].assert_eq(&page(Language::English));
    expect_file!["../golden/ja-page.txt"].assert_eq(&page(Language::Japanese));
}

/// What a reader needs to read the pictures stands beside them: units, and a name for every mark.
#[test]
fn the_pictures_say_what_they_show() {
    let page = html::render(&View::of(&run(), Language::English));
    assert!(page.contains("<i class=\"band\"></i></span>equivalent: within the plan&#39;s margin of ±2 %</li>"));
    assert!(page.contains("<i class=\"interval\"></i></span>95 % interval</li>"));
    let axes: Vec<&str> =
        page.split("class=\"panels\"").skip(1).filter_map(|panels| panels.split("class=\"x\"").nth(1)).collect();
    assert!(!axes.is_empty() && axes.iter().all(|axis| axis.contains(">0 s</span>")), "time has a unit");
}

const EVIL: &str = "</script><script>alert(1)</script><img src=x onerror='alert(2)'>\"";

/// The run with [`EVIL`] wherever a plan, a server or a host can put text.
fn evil_run() -> Run {
    let plan = PLAN
        .replace("10, limit 4", "<script>alert(1)</script>")
        .replace("MaxRequestWorkers 4", "<b>&amp;</b> `|x|` ```");
    let mut run = Run { head: head(&plan), ..run() };
    run.head.plan.name = EVIL.to_owned();
    run.head.plan.about = EVIL.to_owned();
    run.head.version = EVIL.to_owned();
    run.head.host.name = EVIL.to_owned();
    run.head.host.cpu_model = EVIL.to_owned();
    for trial in &mut run.trials {
        if trial.cell == "10, limit 4" {
            trial.cell = "<script>alert(1)</script>".to_owned();
        }
        trial.notes.push(EVIL.to_owned());
        trial.log_tail = format!("\x1b[31m{EVIL}");
        trial.settings.server = EVIL.to_owned();
        trial.settings.values.insert(EVIL.to_owned(), format!("{EVIL}{}", trial.cell));
        if let Some(load) = &mut trial.load {
            load.examples.values_mut().for_each(|example| EVIL.clone_into(example));
        }
    }
    run
}

#[test]
fn what_a_plan_or_a_server_says_is_only_text() {
    let view = View::of(&evil_run(), Language::English);
    let page = html::render(&view);
    let tags = well_formed(&page);
    let count = |wanted: &str| tags.iter().filter(|(name, _)| name == wanted).count();
    assert_eq!((count("script"), count("img")), (1, 0));
    assert!(tags.iter().all(|(_, attributes)| !attributes.contains("onerror=")));
    assert!(!page.contains('\x1b'));
    let text = markdown::render(&view);
    let (prose, code) = text.split_once("````toml\n").expect("a fence longer than any in the plan");
    assert!(!prose.replace("\\<", "").contains('<'), "{prose}");
    assert!(code.ends_with("````\n"));
    let look = report::text::Look { width: 80, colour: report::text::Colour::None };
    assert!(!report::text::render(&view, look).contains('\x1b'));
}
