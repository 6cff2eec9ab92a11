//! The command line of ab, where a text shows it above a report: how many requests, how many at a time, whether kept alive.

/// An `ab ...` that stands in the text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Command {
    /// Line it stands in, from 1.
    pub line: usize,
    /// From `ab` on, as it was written.
    pub written: String,
    /// `-n`.
    pub requests: Option<u64>,
    /// `-c`; ab takes 1 when it is not given.
    pub concurrency: u64,
    /// Whether `-t` ends it.
    pub timed: bool,
    /// `-k`.
    pub keep_alive: bool,
    /// What is asked for.
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
        let written = line[start..].trim_end();
        let mut command = Command { line: number, written: written.to_owned(), concurrency: 1, ..Command::default() };
        let mut words = written.split_whitespace().skip(1);
        let mut known = false;
        while let Some(word) = words.next() {
            let Some(options) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
                command.url = Some(word.to_owned());
                break;
            };
            known |= command.take(options, &mut words);
        }
        known.then_some(command)
    }

    /// One word of options, such as `kn2` or `n`; whether it says how much is asked.
    fn take<'a>(&mut self, options: &'a str, words: &mut impl Iterator<Item = &'a str>) -> bool {
        for (at, letter) in options.char_indices() {
            if letter == 'k' {
                self.keep_alive = true;
            }
            if !WITH_VALUE.contains(letter) {
                continue;
            }
            let attached = &options[at + letter.len_utf8()..];
            let value = if attached.is_empty() { words.next().unwrap_or_default() } else { attached };
            return match letter {
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
            };
        }
        false
    }
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
    }
}
