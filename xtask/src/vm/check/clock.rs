//! Time itself goes wrong in the guest while it is watched: its clock is set by an hour and back, the whole machine is stopped from outside,
//! and it is suspended, as a laptop is.
//!
//! Something that starts many processes runs meanwhile: over all rows, rates times their times must come to the kernel's own count.

use super::{OURS, SHORT, Seen};
use crate::vm::guest::Guest;
use crate::vm::machine::Machine;
use anyhow::Context;
use serde_json::Value;
use std::thread;
use std::time::Duration;

/// Starts the work, the watches, and tells when both have rows.
const BEGIN: &str = "\
cd /root
setsid sh -c 'while [ ! -e over ]; do /bin/true; sleep 0.02; done' > /dev/null 2>&1 < /dev/null &
setsid OURS/webdyno watch --record --store clock.sqlite --json 1 > rows.json 2> json.txt < /dev/null &
echo $! > json.pid
setsid OURS/webdyno watch -cyT --output rows.csv 1 > rows.txt 2> rows.err < /dev/null &
echo $! > rows.pid
for n in $(seq 600); do
  if [ $(wc -l < rows.json) -ge 3 ] && [ $(wc -l < rows.txt) -ge 5 ]; then exit 0; fi
  sleep 0.1
done
cat json.txt rows.err
exit 1
";

/// Ends the watches.
const END: &str = "\
cd /root
kill -TERM $(cat json.pid rows.pid)
while kill -0 $(cat json.pid) 2> /dev/null || kill -0 $(cat rows.pid) 2> /dev/null; do sleep 0.1; done
touch over
";

/// Waits for so many more rows.
const MORE: &str = "\
cd /root
n=$(wc -l < rows.json)
while [ $(wc -l < rows.json) -lt $((n + 4)) ]; do sleep 0.1; done
";

/// How long the machine is stopped, or suspended.
const AWAY: Duration = Duration::from_secs(20);

/// One thing that becomes of time.
struct Turn {
    what: String,
    /// Rows before it, and rows when all was well again.
    rows: (usize, usize),
    /// What the rows must say of it; none if the guest cannot know.
    says: Option<&'static str>,
    /// Whether it said so.
    said: Vec<String>,
}

pub(super) fn run(machine: &mut Machine) -> anyhow::Result<Seen> {
    let guest = machine.guest();
    let before = forks(&guest)?;
    guest.sh(&BEGIN.replace("OURS", OURS), SHORT * 2)?;
    let mut turns = vec![
        turn(&guest, "`date -s '+1 hour'`", Some("clock set by +3"), || set(&guest, "+1 hour"))?,
        turn(&guest, "`date -s '-1 hour'`", Some("clock set by -3"), || set(&guest, "-1 hour"))?,
        turn(&guest, "QEMU's `stop`, 20 s, `cont`", None, || machine.hold(AWAY))?,
    ];
    // `freeze` is known to the kernel as well, but nothing of this machine wakes it from that.
    turns.push(turn(&guest, "suspended to memory for 20 s", Some("suspended "), || suspend(machine, &guest))?);
    guest.sh(&END.replace("OURS", OURS), SHORT * 2)?;
    let after = forks(&guest)?;
    let replay = format!("cd /root; {OURS}/webdyno watch --replay latest --store clock.sqlite --json > replay.json");
    guest.sh(&replay, SHORT)?;
    let rows = Rows::parse(&guest.sh("cat /root/rows.json", SHORT)?)?;
    let replayed = Rows::parse(&guest.sh("cat /root/replay.json", SHORT)?)?;
    let text = guest.sh("cat /root/rows.txt", SHORT)?;
    for turn in &mut turns {
        turn.said = rows.said(turn.rows);
    }
    Ok(judge(&turns, &rows, after - before, &replayed, &text))
}

fn turn(
    guest: &Guest,
    what: &str,
    says: Option<&'static str>,
    happen: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<Turn> {
    guest.sh(MORE, SHORT)?;
    let before = count(guest)?;
    happen().with_context(|| what.to_owned())?;
    guest.sh(MORE, SHORT)?;
    Ok(Turn { what: what.to_owned(), rows: (before, count(guest)?), says, said: Vec::new() })
}

fn count(guest: &Guest) -> anyhow::Result<usize> {
    guest.sh("wc -l < /root/rows.json", SHORT)?.trim().parse().context("wc tells a number")
}

/// Processes that were started since the guest's boot.
fn forks(guest: &Guest) -> anyhow::Result<f64> {
    guest.sh("awk '/^processes/ { print $2 }' /proc/stat", SHORT)?.trim().parse().context("/proc/stat tells a number")
}

fn set(guest: &Guest, by: &str) -> anyhow::Result<()> {
    guest.sh(&format!("date -s '{by}'"), SHORT).map(|_| ())
}

/// Sends it to sleep, and presses the button that wakes it. Its hardware clock tells it how long it slept.
fn suspend(machine: &mut Machine, guest: &Guest) -> anyhow::Result<()> {
    // By a process of its own: ssh would sleep along.
    let sleep = "setsid sh -c 'sleep 1; rtcwake -m mem -s 600' > /root/rtcwake.txt 2>&1 < /dev/null &";
    guest.sh(sleep, SHORT)?;
    thread::sleep(AWAY + Duration::from_secs(1));
    machine.wake()
}

/// The rows of a watch as JSON.
struct Rows(Vec<Value>);

impl Rows {
    fn parse(text: &str) -> anyhow::Result<Rows> {
        let rows: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
        Ok(Rows(rows.context("a row is no JSON")?))
    }

    fn numbers(&self, path: &str) -> Vec<f64> {
        self.0.iter().filter_map(|row| row.pointer(path)?.as_f64()).collect()
    }

    fn said(&self, (from, to): (usize, usize)) -> Vec<String> {
        let rows = self.0.get(from..to.min(self.0.len())).unwrap_or_default();
        let notes = rows.iter().filter_map(|row| row["notes"].as_array()).flatten();
        notes.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// What a rate comes to over all rows.
    fn grown(&self, path: &str) -> f64 {
        let of = |row: &Value| Some(row.pointer(path)?.as_f64()? * row.pointer("/elapsed_s")?.as_f64()?);
        self.0.iter().filter_map(of).sum()
    }

    /// Whether the time that a row is over is that since the row before.
    fn times_agree(&self) -> bool {
        let (at, elapsed) = (self.numbers("/monotonic_s"), self.numbers("/elapsed_s"));
        // The first row has no time.
        at.len() == elapsed.len() + 1
            && at.windows(2).zip(&elapsed).all(|(pair, elapsed)| (pair[1] - pair[0] - elapsed).abs() < 1e-3)
    }

    /// Seconds of the watch that have no row, and how many rows came sooner than half a second after the one before.
    fn lost_and_doubled(&self) -> (u64, u64) {
        let times = self.numbers("/monotonic_s");
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        gaps.fold((0, 0), |(lost, doubled), gap| (lost + (gap - 0.5).max(0.0) as u64, doubled + u64::from(gap < 0.5)))
    }
}

fn judge(turns: &[Turn], rows: &Rows, forks: f64, replayed: &Rows, text: &str) -> Seen {
    let mut seen = Seen::titled("Clock steps, a stopped machine, suspension");
    let (lost, doubled) = rows.lost_and_doubled();
    seen.say(format!(
        "\n{} rows a second apart by the clock that is never set; {lost} missing, {doubled} too many.\n",
        rows.0.len()
    ));
    seen.expect(lost == 0 && doubled == 0, || format!("{lost} rows are missing and {doubled} too many"));
    seen.say("| what happened | rows meanwhile | what they said |\n|---|---|---|");
    for turn in turns {
        let said = if turn.said.is_empty() { "nothing".to_owned() } else { turn.said.join("; ") };
        seen.say(format!("| {} | {} | {said} |", turn.what, turn.rows.1 - turn.rows.0));
        let as_it_should = match turn.says {
            Some(words) => turn.said.len() == 1 && turn.said[0].starts_with(words),
            None => turn.said.is_empty(),
        };
        seen.expect(as_it_should, || format!("{}: it says {said}", turn.what));
    }
    let (told, really) = (rows.grown("/system/forks_per_s"), forks);
    let share = told / really;
    seen.say(format!(
        "\nProcesses started: {really:.0} by the kernel's own count, {told:.0} by the rows' rates over their times ({share:.3})."
    ));
    // Those that were started before the first row and after the last are in no rate.
    seen.expect((0.85..1.001).contains(&share), || format!("the rates tell {told:.0} processes of {really:.0}"));
    seen.expect(rows.times_agree(), || "a row's time is not that since the row before".to_owned());
    let times = |rows: &Rows| ["/monotonic_s", "/elapsed_s", "/epoch_s"].map(|path| rows.numbers(path));
    // A last reading, taken when the watch was ended, is recorded and was no row.
    let same = times(rows).iter().zip(times(replayed)).all(|(own, again)| again.starts_with(own));
    seen.say(format!(
        "The recording shows {} rows again, {}.",
        replayed.0.len(),
        if same { "each with its own times" } else { "with other times" }
    ));
    seen.expect(same, || "the recording does not show the times of the rows".to_owned());
    let marked: Vec<&str> =
        text.lines().filter(|line| line.contains("suspended") || line.contains("clock set")).collect();
    seen.say("\nOn the screen:\n\n```");
    text.lines().take(2).chain(marked.iter().copied()).for_each(|line| seen.say(line));
    seen.say("```");
    let expected = turns.iter().filter(|turn| turn.says.is_some()).count();
    seen.expect(marked.len() == expected, || {
        format!("{} rows of the screen are marked, and {expected} should be", marked.len())
    });
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_missing_or_too_many() {
        let check = |times: &[f64], expected| {
            let text: Vec<String> = times.iter().map(|at| format!("{{\"monotonic_s\":{at}}}")).collect();
            assert_eq!(Rows::parse(&text.join("\n")).unwrap().lost_and_doubled(), expected, "{times:?}");
        };
        check(&[5.0, 6.001, 7.3, 8.0], (0, 0));
        check(&[5.0, 7.9, 8.0, 9.0], (2, 1));
        check(&[5.0, 6.0, 26.0], (19, 0));
    }

    #[test]
    fn what_rates_come_to() {
        let check = |text: &str, grown, agree| {
            let rows = Rows::parse(text).unwrap();
            assert_eq!((rows.grown("/x"), rows.times_agree()), (grown, agree), "{text}");
        };
        let first = "{\"monotonic_s\":5,\"elapsed_s\":null,\"x\":null}\n";
        check(&format!("{first}{{\"monotonic_s\":7,\"elapsed_s\":2,\"x\":3}}"), 6.0, true);
        check(&format!("{first}{{\"monotonic_s\":6,\"elapsed_s\":21,\"x\":3}}"), 63.0, false);
    }

    #[test]
    fn what_was_said_in_some_rows() {
        let rows = Rows::parse("{\"notes\":[\"a\"]}\n{\"notes\":[]}\n{\"notes\":[\"b\",\"c\"]}").unwrap();
        assert_eq!(
            (rows.said((0, 2)), rows.said((2, 9)), rows.said((7, 9))),
            (vec!["a".into()], vec!["b".into(), "c".into()], vec![])
        );
    }
}
