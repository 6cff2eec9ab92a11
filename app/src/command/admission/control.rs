//! The text of a control file, changed where it has to be and nowhere else: comments, blank lines, other groups and other keys stay as
//! their author left them.
//!
//! A line is a name and its words, `php limit=4 queue=20   # for the sale`; a later line wins over an earlier one, and `*` is every
//! group. Values are judged by `words`.

use super::words::Word;

/// The text with these words in force for that name.
pub(super) fn set(text: &str, name: &str, words: &[Word]) -> String {
    let mut lines = lines(text);
    let own = lines.iter().rposition(|line| name_of(line) == Some(name));
    // What stands behind it and says the same of the same groups would win.
    let wins = |line: &String| overlaps(name, line) && words.iter().any(|word| find(line, &word.key).is_some());
    let own = own.filter(|own| !lines[own + 1..].iter().any(wins));
    for (index, line) in lines.iter_mut().enumerate() {
        if name_of(line) == Some(name) && Some(index) != own {
            words.iter().for_each(|word| take_out(line, &word.key));
        }
    }
    match own {
        Some(own) => words.iter().for_each(|word| put_in(&mut lines[own], word)),
        None => {
            let words: String = words.iter().map(|word| format!(" {}={}", word.key, word.value)).collect();
            lines.push(format!("{name}{words}"));
        }
    }
    joined(lines.into_iter().filter(says_something))
}

/// The text without a word about that name.
pub(super) fn reset(text: &str, name: &str) -> String {
    joined(lines(text).into_iter().filter(|line| name_of(line) != Some(name)))
}

/// The number of the first line that no control file has: no comment, and no name with words of keys that are known for it.
pub(super) fn foreign(text: &str, is_known: impl Fn(&str, &str) -> bool) -> Option<usize> {
    let is_ours = |line: &str| {
        let mut words = body(line).split_whitespace();
        let Some(name) = words.next() else { return true };
        let mut words = words.peekable();
        words.peek().is_some() && words.all(|word| word.split_once('=').is_some_and(|(key, _)| is_known(name, key)))
    };
    text.lines().position(|line| !is_ours(line)).map(|index| index + 1)
}

/// Which lines go and which come, as diff writes them.
pub(super) fn difference(file: &str, before: &str, after: &str) -> String {
    let (before, after) = (lines(before), lines(after));
    let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let (gone, come) = (&before[same..], &after[same..]);
    let end = gone.iter().rev().zip(come.iter().rev()).take_while(|(a, b)| a == b).count();
    let (gone, come) = (&gone[..gone.len() - end], &come[..come.len() - end]);
    let mark = |mark: char, lines: &[String]| lines.iter().map(|line| format!("{mark}{line}\n")).collect::<String>();
    format!("--- {file}\n+++ {file}\n@@ line {} @@\n{}{}", same + 1, mark('-', gone), mark('+', come))
}

/// Lines without their ends; an end of line of another system stays with its line.
fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

fn joined(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| line + "\n").collect()
}

/// What comes before a comment.
fn body(line: &str) -> &str {
    line.split('#').next().unwrap_or_default()
}

fn name_of(line: &str) -> Option<&str> {
    body(line).split_whitespace().next()
}

/// Whether a line of another name is about the same groups.
fn overlaps(name: &str, line: &str) -> bool {
    let own = |name: &str| name == "memory" || name == "queue-workers";
    match name_of(line) {
        None => false,
        Some(other) if other == name => false,
        Some("*") => !own(name),
        Some(other) => name == "*" && !own(other),
    }
}

/// Where the word of a key stands in a line.
fn find(line: &str, key: &str) -> Option<std::ops::Range<usize>> {
    let body = body(line);
    let mut words = body.split_whitespace();
    words.next();
    let word = words.find(|word| word.split_once('=').is_some_and(|(known, _)| known == key))?;
    // A part of the line, and so found where it is.
    let start = word.as_ptr() as usize - line.as_ptr() as usize;
    Some(start..start + word.len())
}

fn put_in(line: &mut String, word: &Word) {
    let text = format!("{}={}", word.key, word.value);
    if let Some(range) = find(line, &word.key) {
        line.replace_range(range, &text);
    } else {
        let end = body(line).trim_end().len();
        line.insert_str(end, &format!(" {text}"));
    }
}

fn take_out(line: &mut String, key: &str) {
    let Some(range) = find(line, key) else { return };
    let start = line[..range.start].trim_end().len();
    line.replace_range(start..range.end, "");
    // A name of which nothing is said any more is a mistake to the server; a comment behind it is not lost with it.
    if body(line).split_whitespace().count() == 1 {
        let comment = line.find('#').map_or("", |at| &line[at..]).to_owned();
        *line = if comment.is_empty() { EMPTY.to_owned() } else { comment };
    }
}

/// A line that has lost all it said; no line of a text can be it.
const EMPTY: &str = "\n";

fn says_something(line: &String) -> bool {
    line != EMPTY
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, name: &str, typed: &str, expected: &str) {
        let word = |word: &str| {
            let (key, value) = word.split_once('=').unwrap();
            Word { key: key.to_owned(), value: value.to_owned() }
        };
        let words: Vec<Word> = typed.split_whitespace().map(word).collect();
        let found = set(text, name, &words);
        assert_eq!(found, expected, "{typed}");
        assert_eq!(set(&found, name, &words), expected, "the second time nothing changes");
    }

    const FILE: &str = "# limits of the shop\n\nphp  limit=4\tqueue=20   # for the sale\nuploads mode=observe\n";

    #[test]
    fn one_line_changes_and_the_others_stay() {
        check(
            FILE,
            "php",
            "limit=8",
            "# limits of the shop\n\nphp  limit=8\tqueue=20   # for the sale\nuploads mode=observe\n",
        );
        check(
            FILE,
            "php",
            "timeout=2s queue=5",
            "# limits of the shop\n\nphp  limit=4\tqueue=5 timeout=2s   # for the sale\nuploads mode=observe\n",
        );
        check(FILE, "memory", "limit=800M", &format!("{FILE}memory limit=800M\n"));
        check("", "php", "limit=1", "php limit=1\n");
        check("php limit=1", "php", "limit=2", "php limit=2\n");
        check("# php limit=1\n", "php", "limit=2", "# php limit=1\nphp limit=2\n");
        check("php limit=1 # queue=3\n", "php", "queue=4", "php limit=1 queue=4 # queue=3\n");
        check("php limit=1\r\n", "php", "queue=4", "php limit=1 queue=4\r\n");
    }

    #[test]
    fn the_last_word_is_the_one_that_counts() {
        check("php limit=1 queue=2\nphp limit=3\n", "php", "limit=4", "php queue=2\nphp limit=4\n");
        check("php limit=1 # why\nphp queue=3\n", "php", "limit=4", "# why\nphp queue=3 limit=4\n");
        check("php limit=1\nphp queue=3\n", "php", "limit=4", "php queue=3 limit=4\n");
        // What is said of all groups further down would win.
        check("php mode=off\n* mode=observe\n", "php", "mode=enforce", "* mode=observe\nphp mode=enforce\n");
        check(
            "php mode=off limit=2\n* mode=observe\n",
            "php",
            "mode=enforce",
            "php limit=2\n* mode=observe\nphp mode=enforce\n",
        );
        check("php limit=2\n* mode=observe\n", "php", "limit=3", "php limit=3\n* mode=observe\n");
        check("* mode=observe\nphp mode=off\n", "*", "mode=enforce", "php mode=off\n* mode=enforce\n");
        check("memory limit=1G\n* mode=observe\n", "memory", "limit=2G", "memory limit=2G\n* mode=observe\n");
    }

    #[test]
    fn a_reset_removes_every_line_of_the_name() {
        let expected = "# limits of the shop\n\nuploads mode=observe\n";
        assert_eq!(reset(FILE, "php"), expected);
        assert_eq!(reset(&format!("{FILE}php queue=1\n"), "php"), expected);
        assert_eq!(reset(FILE, "none"), FILE);
    }

    #[test]
    fn what_is_no_control_file_is_seen() {
        let foreign = |text: &str| foreign(text, |name, key| ["php", "root"].contains(&name) && key == "limit");
        assert_eq!(foreign("# ours\n\n  \nphp limit=4 # queue\nphp limit=\n"), None);
        assert_eq!(foreign(""), None);
        assert_eq!(foreign("root ALL=(ALL:ALL) ALL\n"), Some(1));
        assert_eq!(foreign("# x\nroot:x:0:0:root:/root:/bin/sh\n"), Some(2));
        assert_eq!(foreign("php limit=4\nphp\n"), Some(2));
        assert_eq!(foreign("php limit=4 queue\n"), Some(1));
        assert_eq!(foreign("shop limit=4\n"), Some(1));
    }

    #[test]
    fn the_difference_shows_what_changes() {
        let after = FILE.replace("limit=4", "limit=8");
        let expected = "--- /etc/c\n+++ /etc/c\n@@ line 3 @@\n-php  limit=4\tqueue=20   # for the sale\n+php  limit=8\tqueue=20   # for the sale\n";
        assert_eq!(difference("/etc/c", FILE, &after), expected);
        assert_eq!(difference("/c", "", "php limit=1\n"), "--- /c\n+++ /c\n@@ line 1 @@\n+php limit=1\n");
    }
}
