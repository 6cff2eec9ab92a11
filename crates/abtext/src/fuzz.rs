//! What must hold for any text; the body of a fuzz target and of the tests on its corpus.

use crate::{Report, headers, read};

/// Reads a text, whatever it is.
///
/// # Panics
/// When what was read cannot be: that is what is looked for.
pub fn fuzz_one(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().count();
    let Ok(document) = read(&text) else { return };
    let mut last = 0;
    for report in &document.reports {
        assert!(report.first_line() > last && report.last_line() <= lines, "reports follow each other");
        last = report.last_line();
        assert!(report.figures.is_sorted_by_key(|figure| figure.line));
        let mut fields: Vec<_> = report.figures.iter().map(|figure| figure.field).collect();
        fields.sort_unstable();
        assert!(fields.windows(2).all(|pair| pair[0] != pair[1]), "a figure stands twice in {report:?}");
        for slip in report.slips() {
            assert!((1..=lines).contains(&slip.line), "{slip:?}");
        }
        let _ = report.family();
        let rate = report.good_per_second();
        assert!(rate.is_none_or(|rate| rate >= 0.0 && !rate.is_nan()), "{rate:?}");
    }
    let reports: Vec<&Report> = document.reports.iter().collect();
    let _ = headers(&reports);
    assert!(document.claims.iter().all(|slip| (1..=lines).contains(&slip.line)));
}
