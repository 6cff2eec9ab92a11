//! Every plan that comes with webdyno is taken by it: the parser, and the real server that it is about, asked by `--dry-run`.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml excepts only test functions")]

mod tool;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use testkit::skip::{not_here, skipped};
use tool::{Finished, Tool, open_plans, remains};

/// Plan files below a folder, sorted.
fn plans_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(plans_in(&path));
        } else if path.extension().is_some_and(|ending| ending == "toml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// No scale, and those that a plan names.
fn scales(text: &str) -> Vec<Option<&str>> {
    let named = text.lines().filter_map(|line| line.strip_prefix("[scale.")?.strip_suffix(']'));
    std::iter::once(None).chain(named.map(Some)).collect()
}

/// Why a plan cannot be looked at whole on this machine, if that is all that the tool complained about.
fn absent(text: &str, complaint: &str) -> Option<fn(&str)> {
    if complaint.contains("install the package") {
        return Some(skipped);
    }
    // No distribution has it.
    if complaint.contains("no mod_mruby here") {
        return Some(not_here);
    }
    // The machine's own server does not run while tests do.
    let in_place = text.contains("\nin_place = true") && complaint.contains("no server runs with");
    let small = text.contains("\n[confine]") && complaint.contains("cgroup");
    (in_place || small).then_some(not_here)
}

/// The load that shows what a plan does not see which looks at statuses only.
const UNCHECKED: (&str, &str) = ("memory-limit", "unchecked");

/// A page that answers 200 with an error inside is found by a check: every load for pages that are made has one.
#[test]
fn pages_that_are_made_are_looked_at() {
    let mut found = 0;
    for file in plans_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../plans")) {
        let name = file.file_stem().and_then(|name| name.to_str()).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let options = model::plan::Options {
            read: |path| std::fs::read(path).map_err(|error| error.to_string()),
            ..Default::default()
        };
        let plan = model::plan::parse(&text, &file, &options).unwrap().0;
        for load in plan.loads.iter().chain(&plan.beside).filter(|load| (name, load.name.as_str()) != UNCHECKED) {
            let is_made = |path: &str| {
                let page = path.split('?').next().unwrap_or_default();
                page.contains(".php") || page.contains("/cgi-bin/")
            };
            let made = load.mix.iter().any(|request| is_made(&request.path));
            found += usize::from(made);
            // A status alone is what such a page has right.
            let looks = load.checks.iter().any(|check| !check.to_string().starts_with("status"));
            assert!(!made || looks, "{}: load.{}: nothing looks into its answers", file.display(), load.name);
        }
    }
    assert!(found > 40, "{found}");
}

/// Of every scale.
fn check_is_taken(tool: &Tool, folder: &Path, plan: &Path) {
    let text = std::fs::read_to_string(plan).unwrap();
    for scale in scales(&text) {
        let mut args = vec!["run", plan.to_str().unwrap(), "--dry-run", "--seed", "1"];
        args.extend(scale.into_iter().flat_map(|scale| ["--scale", scale]));
        if text.contains("\nswap = ") {
            args.extend(["--make-swap", "4G"]);
        }
        let ran = tool.run(&args);
        let name = plan.strip_prefix(folder).unwrap().display();
        if ran.code == 0 {
            assert!(ran.out.contains("block 1: "), "{name} {scale:?}: {ran:?}");
            continue;
        }
        assert_eq!(ran.err.lines().count(), 1, "{name} {scale:?}: {ran:?}");
        match absent(&text, &ran.err) {
            Some(say) => say(&format!("{name}: {}", ran.err.trim_end())),
            None => panic!("{name} {scale:?}: {ran:?}"),
        }
    }
}

#[test]
fn every_shipped_plan_is_taken() {
    let tool = Tool::new();
    let folder = open_plans(&tool);
    let plans = plans_in(&folder);
    assert!(plans.len() >= 10, "{plans:?}");
    // Each server says what it thinks of a plan, and none of them minds another: they are asked side by side.
    let next = AtomicUsize::new(0);
    let ask = || {
        while let Some(plan) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
            check_is_taken(&tool, &folder, plan);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().unwrap().get() {
            // Who skips tells the name of its thread.
            thread::Builder::new().name("every_shipped_plan_is_taken".to_owned()).spawn_scoped(scope, ask).unwrap();
        }
    });
    assert_eq!(remains(&tool), Vec::<String>::new());
}

/// Files that are hidden, a plan that needs them, and what its user is told to do.
const HIDDEN: [(&str, &str, &str); 19] = [
    ("/usr/sbin/apache2", "keepalive.toml", "install the package apache2"),
    ("/usr/sbin/php-fpm*", "php/pool.toml", "install the package php-fpm"),
    ("/usr/sbin/nginx", "nginx/keepalive.toml", "install the package nginx"),
    ("/usr/sbin/nginx", "front.toml", "install the package nginx"),
    ("/usr/sbin/mariadbd", "backend-limit.toml", "install the package mariadb-server"),
    ("/usr/sbin/mariadbd", "php/wordpress.toml", "install the package mariadb-server"),
    ("/usr/sbin/haproxy", "php/f5.toml", "install the package haproxy"),
    ("/usr/bin/cronolog", "access-log.toml", "install the package cronolog"),
    ("/usr/bin/rotatelogs", "access-log-lost.toml", "install the package apache2-utils"),
    ("/usr/share/wordpress", "php/wordpress-memory.toml", "install the package wordpress"),
    (
        "/usr/share/wordpress/wp-content/themes/twentytwentythree",
        "php/wordpress.toml",
        "install the package wordpress-theme-twentytwentythree",
    ),
    ("/usr/lib/apache2/modules/libphp*.so", "php/opcache.toml", "install the package libapache2-mod-php"),
    ("/usr/bin/php*", "php/wordpress.toml", "install the package php-cli"),
    ("/usr/lib/php/*/mysqli.so", "backend-limit.toml", "install the package php-mysql"),
    ("/usr/lib/php/*/gd.so", "php/wordpress.toml", "install the package php-gd"),
    ("/usr/bin/apxs*", "admission/walk.toml", "install the package apache2-dev"),
    ("/usr/lib/apache2/modules/mod_qos.so", "php/limiter-overhead.toml", "install the package libapache2-mod-qos"),
    ("/usr/bin/make", "memory-cliff.toml", "install the package that has make"),
    ("/usr/bin/gcc", "memory-cliff.toml", "install the package gcc"),
];

/// Hides what a pattern fits, for itself alone, and becomes another program. What is not there need not be hidden.
const HIDE: &str = r#"mkdir "$2" || exit 99
case $1 in
*/make)
    # What is not in PATH, and not only no program.
    for folder in $(echo "$PATH" | tr : ' '); do ln -s "$folder"/* "$2" 2>/dev/null; done
    rm -f "$2/make"; PATH=$2 ;;
*)
for file in $1; do
    if [ -d "$file" ]; then mount -t tmpfs none "$file" || exit 99
    elif [ -e "$file" ]; then mount --bind /dev/null "$file" || exit 99; fi
done ;;
esac
shift 2; exec "$@""#;

#[test]
fn a_plan_whose_package_is_absent_names_it() {
    let hides = |script: &[&str]| Command::new("unshare").args(["--mount", "sh", "-c"]).args(script).output();
    if !hides(&["mount -t tmpfs none /mnt"]).is_ok_and(|output| output.status.success()) {
        return not_here("nothing can be mounted");
    }
    let tool = Tool::new();
    let folder = open_plans(&tool);
    for (number, (file, plan, says)) in HIDDEN.into_iter().enumerate() {
        let path = tool.path(&format!("path{number}"));
        let plan = folder.join(plan);
        let run = tool.command(&["run", plan.to_str().unwrap(), "--dry-run", "--make-swap", "1G"]);
        let mut hidden = Command::new("unshare");
        hidden.args(["--mount", "sh", "-c", HIDE, "sh", file]).arg(&path).arg(run.get_program()).args(run.get_args());
        hidden.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ran = Finished::of(&hidden.output().unwrap());
        if ran.err.contains("cgroup") {
            not_here(&format!("{}: {}", plan.display(), ran.err.trim_end()));
            continue;
        }
        if !ran.err.contains(says) {
            // Another package may be absent here, too, and is named first.
            let whole = tool.run(&["run", plan.to_str().unwrap(), "--dry-run", "--make-swap", "1G"]);
            if whole.err.contains("install the package") {
                skipped(&format!("{}: {}", plan.display(), whole.err.trim_end()));
                continue;
            }
        }
        assert!(matches!(ran.code, 2 | 4), "{file}, {}: {ran:?}", plan.display());
        assert!(ran.err.contains(says) && ran.err.lines().count() == 1, "{file}, {}: {ran:?}", plan.display());
    }
    assert_eq!(remains(&tool), Vec::<String>::new());
}
