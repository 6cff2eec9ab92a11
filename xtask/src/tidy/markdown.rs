//! The little of Markdown that the rules read: tables, and the heading each stands under.

/// A row of a table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row<'a> {
    /// From 1.
    pub(super) line: usize,
    /// The nearest heading above, without its marks.
    pub(super) heading: &'a str,
    pub(super) cells: Vec<&'a str>,
}

/// The rows of every table whose first column is titled `first`, without titles and rules.
pub(super) fn rows<'a>(text: &'a str, first: &str) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let mut heading = "";
    let mut wanted = None;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim();
        }
        let Some(inner) = line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
            wanted = None;
            continue;
        };
        let cells: Vec<&str> = inner.split('|').map(str::trim).collect();
        match wanted {
            None => wanted = Some(cells[0] == first),
            Some(true) if !cells[0].starts_with("--") => rows.push(Row { line: index + 1, heading, cells }),
            Some(_) => {}
        }
    }
    rows
}

/// The words between backticks of a cell.
pub(super) fn code_words(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_by_their_first_title() {
        let text = "# A\n| x | y |\n|---|---|\n| 1 | 2 |\n\n## B\n| crate | why |\n| --- | --- |\n| `a` | `b`, `c` |\n";
        let found = rows(text, "crate");
        assert_eq!(found, [Row { line: 9, heading: "B", cells: vec!["`a`", "`b`, `c`"] }]);
        assert_eq!(code_words(found[0].cells[1]).collect::<Vec<_>>(), ["b", "c"]);
    }
}
