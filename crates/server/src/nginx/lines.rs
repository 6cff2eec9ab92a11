//! Directives of a plan: which of its lines belong together, and in which of nginx's blocks they stand.

use model::plan::Directive;

/// Where a directive belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Context {
    Main,
    Events,
    Http,
    Server,
}

/// What stands outside every block.
const MAIN: [&str; 17] = [
    "debug_points",
    "env",
    "load_module",
    "lock_file",
    "pcre_jit",
    "ssl_engine",
    "stream",
    "thread_pool",
    "timer_resolution",
    "user",
    "worker_cpu_affinity",
    "worker_priority",
    "worker_processes",
    "worker_rlimit_core",
    "worker_rlimit_nofile",
    "worker_shutdown_timeout",
    "working_directory",
];
const EVENTS: [&str; 7] = [
    "accept_mutex",
    "accept_mutex_delay",
    "debug_connection",
    "multi_accept",
    "use",
    "worker_aio_requests",
    "worker_connections",
];
/// What only a server or a location has; all else may stand in `http`.
const SERVER: [&str; 8] = ["if", "location", "return", "rewrite", "server_name", "set", "stub_status", "try_files"];
/// What may stand several times in one block, each adding to the others.
pub(super) const SEVERAL: [&str; 24] = [
    "access_log",
    "add_header",
    "allow",
    "debug_connection",
    "deny",
    "env",
    "error_log",
    "error_page",
    "geo",
    "if",
    "include",
    "limit_conn",
    "limit_conn_zone",
    "limit_req",
    "limit_req_zone",
    "load_module",
    "location",
    "log_format",
    "map",
    "proxy_set_header",
    "rewrite",
    "set",
    "split_clients",
    "upstream",
];
/// Directives whose first argument is a file or folder to write to.
pub(super) const FILES: [&str; 10] = [
    "access_log",
    "client_body_temp_path",
    "error_log",
    "fastcgi_cache_path",
    "fastcgi_temp_path",
    "lock_file",
    "proxy_cache_path",
    "proxy_temp_path",
    "scgi_temp_path",
    "uwsgi_temp_path",
];

/// A directive with its block, if it has one: lines of the plan that belong together.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    pub(super) context: Context,
    pub(super) name: String,
    pub(super) lines: Vec<Directive>,
}

/// Why a line must not be, if so.
pub(super) type Objection<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// What a variant says, with what all say: of what nginx takes only once, the variant's replaces the common one. Or which line of the plan
/// cannot be, and why.
pub(super) fn planned(
    common: &[Directive],
    variant: &[Directive],
    objection: &Objection<'_>,
) -> Result<Vec<Planned>, (Directive, String)> {
    let (common, variant) = (statements(common, objection)?, statements(variant, objection)?);
    let replaced = |statement: &Planned| {
        let once = !SEVERAL.contains(&statement.name.as_str());
        once && variant.iter().any(|by| by.context == statement.context && by.name == statement.name)
    };
    Ok(common.into_iter().filter(|statement| !replaced(statement)).chain(variant.iter().cloned()).collect())
}

/// Takes the plan's lines apart: which belong together, and where.
fn statements(lines: &[Directive], objection: &Objection<'_>) -> Result<Vec<Planned>, (Directive, String)> {
    let mut found: Vec<Planned> = Vec::new();
    // Blocks of the plan that are part of ours, and the depth within the current statement.
    let (mut around, mut depth) = (vec![None], 0_usize);
    for directive in lines {
        let text = without_comment(&directive.text);
        let name = text.split([' ', '\t', ';', '{']).find(|word| !word.is_empty()).unwrap_or_default();
        let (opened, closed) = braces(text);
        if depth == 0 && matches!((text, closed), ("}", 1)) {
            if around.len() == 1 {
                return Err((directive.clone(), "there is no block to end here".to_owned()));
            }
            around.pop();
            continue;
        }
        if let Some(why) = objection(text) {
            return Err((directive.clone(), why));
        }
        if depth == 0 && text.is_empty() {
            continue;
        }
        if depth == 0 {
            if let Some(block) = block(name).filter(|_| opened > closed) {
                around.push(Some(block));
                continue;
            }
            let context = around.last().copied().flatten().unwrap_or_else(|| belongs(name));
            found.push(Planned { context, name: name.to_owned(), lines: Vec::new() });
        }
        depth = (depth + opened)
            .checked_sub(closed)
            .ok_or_else(|| (directive.clone(), "there is no block to end here".to_owned()))?;
        let ended = depth > 0 || text.is_empty() || text.ends_with([';', '{', '}']);
        // As in a list of settings, where nobody misses it.
        let text = if ended { directive.text.clone() } else { format!("{text};") };
        if let Some(statement) = found.last_mut() {
            statement.lines.push(Directive { text, line: directive.line });
        }
    }
    match (depth, around.len(), lines.last()) {
        (0, 1, _) | (_, _, None) => Ok(found),
        (_, _, Some(last)) => Err((last.clone(), "a block that began before does not end".to_owned())),
    }
}

/// Blocks of a plan that are part of ours.
fn block(name: &str) -> Option<Context> {
    match name {
        "events" => Some(Context::Events),
        "http" => Some(Context::Http),
        "server" => Some(Context::Server),
        _ => None,
    }
}

fn belongs(name: &str) -> Context {
    if MAIN.contains(&name) {
        Context::Main
    } else if EVENTS.contains(&name) {
        Context::Events
    } else if SERVER.contains(&name) {
        Context::Server
    } else {
        Context::Http
    }
}

fn without_comment(text: &str) -> &str {
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (None, '#') => return text[..at].trim(),
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
    }
    text.trim()
}

/// Braces that open and close blocks: those outside quotes that are no `${name}`.
fn braces(text: &str) -> (usize, usize) {
    let (mut quote, mut before, mut variable) = (None, ' ', false);
    let (mut opened, mut closed) = (0, 0);
    for letter in text.chars() {
        match (quote, letter) {
            (None, '"' | '\'') => quote = Some(letter),
            (None, '{') if before == '$' => variable = true,
            (None, '}') if variable => variable = false,
            (None, '{') => opened += 1,
            (None, '}') => closed += 1,
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
        before = letter;
    }
    (opened, closed)
}
