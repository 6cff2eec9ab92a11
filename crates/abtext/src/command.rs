//! The command line of ab, where a text shows it above a report: how many requests, how many at a time, whether kept alive.
//!
//! Authors paste what they typed, and it may hold their passwords: those are in nothing that leaves this module.

use std::ops::Range;

/// An `ab ...` that stands in the text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Command {
    /// Line it stands in, from 1.
    pub line: usize,
    /// From `ab` on, as it was written but for its secrets.
    pub written: String,
    /// `-n`.
    pub requests: Option<u64>,
    /// `-c`; ab takes 1 when it is not given.
    pub concurrency: u64,
    /// Whether `-t` ends it.
    pub timed: bool,
    /// `-k`.
    pub keep_alive: bool,
    /// What is asked for, without name and password.
    pub url: Option<String>,
}

/// Letters of ab's options that take a value.
const WITH_VALUE: &str = "nctsbTpuvxyzCHPAgXeBmZfERoW";

impl Command {
    /// The command in a line, be there a prompt before it; `None` where there is none with `-n`, `-c` or `-t`.
    pub(crate) fn find(line: &str, number: usize) -> Option<Command> {
        let is_ab = |word: &str| word == "ab" || word.ends_with("/ab") || word == "apachebench";
        let mut offset = 0;
        let start = line.split(' ').find_map(|word| {
            let at = offset;
            offset += word.len() + 1;
            is_ab(word).then_some(at)
        })?;
        let text = line[start..].trim_end();
        let mut command = Command { line: number, concurrency: 1, ..Command::default() };
        let mut known = false;
        let mut hidden: Vec<(Range<usize>, String)> = Vec::new();
        let mut words = words(text).into_iter().skip(1);
        while let Some(word) = words.next() {
            let Some(options) = text[word.clone()].strip_prefix('-').filter(|rest| !rest.is_empty()) else {
                let shown = without_user(&text[word.clone()]);
                command.url.get_or_insert_with(|| shown.clone().unwrap_or_else(|| text[word.clone()].to_owned()));
                hidden.extend(shown.map(|shown| (word, shown)));
                continue;
            };
            let valued = options.char_indices().find(|(_, letter)| WITH_VALUE.contains(*letter));
            let flags = &options[..valued.map_or(options.len(), |(at, _)| at)];
            let value = valued.and_then(|(at, letter)| {
                let attached = word.start + 1 + at + letter.len_utf8()..word.end;
                Some((letter, if attached.is_empty() { words.next()? } else { attached }))
            });
            // To ab all that stands behind the URL is none of its options; to those who read it, it may be a password.
            if command.url.is_none() {
                command.keep_alive |= flags.contains('k');
                known |= value.as_ref().is_some_and(|(letter, value)| command.take(*letter, &text[value.clone()]));
            }
            hidden.extend(value.and_then(|(letter, value)| Some((value.clone(), shown(letter, &text[value])?))));
        }
        command.written = text.to_owned();
        hidden.into_iter().rev().for_each(|(place, shown)| command.written.replace_range(place, &shown));
        known.then_some(command)
    }

    /// An option with its value; whether it says how much is asked.
    fn take(&mut self, letter: char, value: &str) -> bool {
        match letter {
            'n' => {
                self.requests = value.parse().ok();
                self.requests.is_some()
            }
            'c' => {
                self.concurrency = value.parse().unwrap_or(self.concurrency);
                true
            }
            't' => {
                self.timed = true;
                true
            }
            _ => false,
        }
    }
}

/// Where words are, as a shell cuts them: a blank between quotes ends none.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let (mut begin, mut quote) = (None, None);
    for (at, letter) in text.char_indices() {
        if quote.is_none() && letter.is_whitespace() {
            words.extend(begin.take().map(|begin| begin..at));
            continue;
        }
        begin.get_or_insert(at);
        match quote {
            Some(open) if open == letter => quote = None,
            None if QUOTES.contains(&letter) => quote = Some(letter),
            _ => {}
        }
    }
    words.extend(begin.map(|begin| begin..text.len()));
    words
}

const QUOTES: [char; 2] = ['\'', '"'];

/// What stands in place of a secret.
const SECRET: &str = "***";

/// What is shown of an option's value, if it is not shown as it is.
fn shown(letter: char, value: &str) -> Option<String> {
    match letter {
        'A' | 'P' | 'C' => Some(SECRET.to_owned()),
        'H' => header(value),
        'X' => without_user(value),
        _ => None,
    }
}

/// Header fields of which everybody knows what stands in them. Others may prove who somebody is.
const HARMLESS: [&str; 5] = ["host", "user-agent", "connection", "cache-control", "content-type"];

/// A header field without its value, unless that is no secret.
fn header(value: &str) -> Option<String> {
    let name = value.split_once(':').map_or("", |(name, _)| name);
    let bare = name.trim_start_matches(QUOTES).trim().to_ascii_lowercase();
    if bare.starts_with("accept") || HARMLESS.contains(&bare.as_str()) {
        return None;
    }
    let quote = value.chars().next().filter(|first| QUOTES.contains(first)).map_or(String::new(), String::from);
    Some(if name.is_empty() { SECRET.to_owned() } else { format!("{name}: {SECRET}{quote}") })
}

/// A URL without name and password; `None` when it has none.
fn without_user(url: &str) -> Option<String> {
    let scheme = url.find("://").filter(|&at| !url[..at].contains(['/', '?', '#', '@'])).map_or(0, |at| at + 3);
    let begin = scheme + url[scheme..].find(|letter| letter != '/').unwrap_or(0);
    let end = url[begin..].find(['/', '?', '#']).map_or(url.len(), |at| begin + at);
    let at = begin + url[begin..end].rfind('@')?;
    Some(format!("{}{SECRET}{}", &url[..begin], &url[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<(Option<u64>, u64, bool, Option<&str>)>) {
        let found = Command::find(line, 1);
        let seen = found.as_ref().map(|c| (c.requests, c.concurrency, c.keep_alive, c.url.as_deref()));
        assert_eq!(seen, expected, "{line}");
    }

    #[test]
    fn commands_are_found_behind_prompts() {
        let php = "http://192.168.100.51/test.php";
        check(
            &format!("root@client vagrant]# ab -c 100 -n 100000 -k {php}"),
            Some((Some(100_000), 100, true, Some(php))),
        );
        check(
            "1. /usr/local/apache2/bin/ab -n 10000 -c 100 http://stockholm/",
            Some((Some(10_000), 100, false, Some("http://stockholm/"))),
        );
        check("# ab -n 1000 http://localhost/", Some((Some(1000), 1, false, Some("http://localhost/"))));
        check("ab -kn2 -c1 h/", Some((Some(2), 1, true, Some("h/"))));
        check("ab -t 10 -H k http://h/", Some((None, 1, false, Some("http://h/"))));
        check("ab [options] URL", None);
        check("abコマンドに -n 1000 というオプション", None);
        check("ab -V", None);
        check("", None);
        check("ab -H 'Accept: a b' -n 3 http://h/", Some((Some(3), 1, false, Some("http://h/"))));
    }

    #[test]
    fn secrets_are_not_repeated() {
        let check = |line: &str, expected: &str| {
            let found = Command::find(line, 1).unwrap();
            assert_eq!(found.written, expected, "{line}");
            assert!(!found.url.unwrap_or_default().contains("s3cret"), "{line}");
        };
        check(
            "$ ab -n 300 -c 4 -A me:s3cret -C sid=s3cret http://u:s3cret@localhost/",
            "ab -n 300 -c 4 -A *** -C *** http://***@localhost/",
        );
        check("ab -n 3 -kAme:s3cret -P 'me:a s3cret' h/", "ab -n 3 -kA*** -P *** h/");
        check("ab -n 3 -H 'Authorization: Bearer s3cret' h/", "ab -n 3 -H 'Authorization: ***' h/");
        check("ab -n 3 -H\"X-Api-Key:s3cret\" -H s3cret h/", "ab -n 3 -H\"X-Api-Key: ***\" -H *** h/");
        check("ab -n 3 -H 'Accept-Encoding: gzip, br' h/", "ab -n 3 -H 'Accept-Encoding: gzip, br' h/");
        check("ab -n 3 -X u:s3cret@proxy:8080 http:///u:s3cret@h/", "ab -n 3 -X ***@proxy:8080 http:///***@h/");
        check("ab -n 3 http://h/?next=http://x@y -C s3cret", "ab -n 3 http://h/?next=http://x@y -C ***");
        check("ab -n 3 -A 'me:s3cret h/", "ab -n 3 -A ***");
        check("ab -n 3 -A", "ab -n 3 -A");
    }
}
