//! How dstat reads its command line: Python's getopt, rule for rule. Short options, bundled or not; long ones by any unique
//! beginning; values attached or not; nothing after the first word that is no option.

/// An option with its value, by its full name: one letter, or more for a long one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Opt<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a str,
}

/// Splits words into options and the words left. `shorts` are letters, a colon behind those that take a value; `longs` are names,
/// an equals sign behind those that do. An error is in Python's words.
pub(super) fn getopt<'a>(
    words: &'a [String],
    shorts: &str,
    longs: &[&'a str],
) -> Result<(Vec<Opt<'a>>, &'a [String]), String> {
    let mut left = words;
    let mut found = Vec::new();
    while let [word, rest @ ..] = left {
        // A dash alone is a word.
        let Some(option) = word.strip_prefix('-').filter(|option| !option.is_empty()) else { break };
        left = rest;
        match option.strip_prefix('-') {
            Some("") => break,
            Some(long) => found.push(long_option(long, longs, &mut left)?),
            None => short_options(option, shorts, &mut left, &mut found)?,
        }
    }
    Ok((found, left))
}

fn long_option<'a>(typed: &'a str, longs: &[&'a str], left: &mut &'a [String]) -> Result<Opt<'a>, String> {
    let (typed, attached) = match typed.split_once('=') {
        Some((typed, value)) => (typed, Some(value)),
        None => (typed, None),
    };
    let known = |name: &&&'a str| name.strip_suffix('=').unwrap_or(name) == typed;
    let name = match longs.iter().find(known) {
        Some(name) => name,
        None => {
            let mut possible = longs.iter().filter(|name| name.starts_with(typed));
            match (possible.next(), possible.next()) {
                (None, _) => return Err(format!("option --{typed} not recognized")),
                (Some(name), None) => name,
                (Some(_), Some(_)) => return Err(format!("option --{typed} not a unique prefix")),
            }
        }
    };
    match (name.strip_suffix('='), attached) {
        (Some(name), Some(value)) => Ok(Opt { name, value }),
        (Some(name), None) => match next(left) {
            Some(value) => Ok(Opt { name, value }),
            None => Err(format!("option --{name} requires argument")),
        },
        (None, Some(_)) => Err(format!("option --{name} must not have an argument")),
        (None, None) => Ok(Opt { name, value: "" }),
    }
}

fn short_options<'a>(
    bundle: &'a str,
    shorts: &str,
    left: &mut &'a [String],
    found: &mut Vec<Opt<'a>>,
) -> Result<(), String> {
    for (at, letter) in bundle.char_indices() {
        let (name, rest) = bundle[at..].split_at(letter.len_utf8());
        let known = shorts.find(letter).filter(|_| letter != ':');
        let known = known.ok_or_else(|| format!("option -{letter} not recognized"))?;
        if !shorts[known + 1..].starts_with(':') {
            found.push(Opt { name, value: "" });
            continue;
        }
        let value = if rest.is_empty() { next(left) } else { Some(rest) };
        found.push(Opt { name, value: value.ok_or_else(|| format!("option -{letter} requires argument"))? });
        break;
    }
    Ok(())
}

fn next<'a>(left: &mut &'a [String]) -> Option<&'a str> {
    let (word, rest) = left.split_first()?;
    *left = rest;
    Some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(typed: &str, expected: &str) {
        let words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
        let longs = ["all", "allow", "net", "nocolor", "noheaders", "output="];
        let said = match getopt(&words, "cdD:o:", &longs) {
            Ok((options, left)) => {
                let options = options.iter().map(|Opt { name, value }| format!("{name}({value})"));
                format!("{} | {}", options.collect::<Vec<_>>().join(" "), left.join(" "))
            }
            Err(error) => error,
        };
        assert_eq!(said, expected, "{typed}");
    }

    #[test]
    fn options_are_read_as_python_reads_them() {
        check("-cd 1 2", "c() d() | 1 2");
        check("-cDsda,sdb -D x 5", "c() D(sda,sdb) D(x) | 5");
        check("1 -c", " | 1 -c");
        check("-c -- -d", "c() | -d");
        check("-c - -d", "c() | - -d");
        check("--output=a --out b -o c", "output(a) output(b) o(c) | ");
        check("--noc --noh", "nocolor() noheaders() | ");
        check("--all", "all() | ");
        check("--no", "option --no not a unique prefix");
        check("--al", "option --al not a unique prefix");
        check("--top-cpu", "option --top-cpu not recognized");
        check("--all=1", "option --all must not have an argument");
        check("--outp", "option --output requires argument");
        check("-cD", "option -D requires argument");
        check("-cx", "option -x not recognized");
        check("-:", "option -: not recognized");
        check("-cé", "option -é not recognized");
    }
}
