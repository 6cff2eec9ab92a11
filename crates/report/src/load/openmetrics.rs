//! A load as OpenMetrics text, for whatever collects metrics: counters by cause and status, and the times as histograms.
//!
//! Units are base units, seconds and bytes. The bounds of the histograms are fixed, so that loads can be added up and compared;
//! a value is told apart from its bound only as far as three digits do. What is known only to be more than something has no place
//! in a histogram: it is counted in `webdyno_unanswered`, and pages in `webdyno_pages_unanswered`.

use super::{LoadView, ProbeView, TimesView};
use crate::openmetrics::{Kind, Page, number};
use model::load::{Counts, Failure};
use model::statistic::Part;

/// Upper bounds as the format writes such numbers, and in microseconds.
const BOUNDS: [(&str, u64); 26] = [
    ("1e-05", 10),
    ("2e-05", 20),
    ("5e-05", 50),
    ("0.0001", 100),
    ("0.0002", 200),
    ("0.0005", 500),
    ("0.001", 1_000),
    ("0.002", 2_000),
    ("0.005", 5_000),
    ("0.01", 10_000),
    ("0.02", 20_000),
    ("0.05", 50_000),
    ("0.1", 100_000),
    ("0.2", 200_000),
    ("0.5", 500_000),
    ("1.0", 1_000_000),
    ("2.0", 2_000_000),
    ("5.0", 5_000_000),
    ("10.0", 10_000_000),
    ("20.0", 20_000_000),
    ("50.0", 50_000_000),
    ("100.0", 100_000_000),
    ("200.0", 200_000_000),
    ("500.0", 500_000_000),
    ("1000.0", 1_000_000_000),
    ("2000.0", 2_000_000_000),
];

/// Draws a view as OpenMetrics text, its end mark included.
#[must_use]
pub fn render(view: &LoadView) -> String {
    let mut page = Page::default();
    page.family("webdyno_load", Kind::Info, "", "Which load this is.");
    let labels = [("id", view.id.as_str()), ("target", &view.target), ("version", &view.version)];
    page.sample("webdyno_load_info", &labels, "1");
    page.requests(view);
    page.users(view);
    page.traffic(view);
    page.window(view);
    view.times.iter().for_each(|times| page.histogram("webdyno", times, help(times.part)));
    view.probe.iter().for_each(|probe| page.visitor(probe));
    page.thresholds(view);
    page.end()
}

/// The families of a load.
impl Page {
    fn requests(&mut self, view: &LoadView) {
        self.ended("webdyno_requests", "Requests that ended, by how.", &view.counts);
        self.answered("webdyno_responses", "Complete answers by status.", &view.counts);
        let counted = [
            ("webdyno_retries", "Requests sent a second time.", Some(view.counts.retries)),
            ("webdyno_connections", "Connections opened.", Some(view.counts.connects)),
            ("webdyno_arrivals", "Requests that became due.", view.open.map(|open| open.arrived)),
            ("webdyno_unsent", "Requests due that no connection was free for.", view.open.map(|open| open.unsent)),
            (
                "webdyno_late",
                "Good answers after the window, which are in no rate.",
                view.spec.is_open().then_some(view.late.good),
            ),
            (
                "webdyno_unanswered",
                "Requests without an answer, of which only a lower bound of the latency is known.",
                cut_off(view, Part::Latency),
            ),
        ];
        counted.into_iter().for_each(|(name, help, count)| self.counter(name, help, count));
        let in_flight = view.in_flight.to_string();
        self.lone("webdyno_in_flight", Kind::Gauge, "", "Requests in flight at the end.", &in_flight);
    }

    /// What became of users and of the pages they asked for.
    fn users(&mut self, view: &LoadView) {
        let Some(of) = &view.sessions else { return };
        let counted = [
            ("webdyno_users", "Users who came.", of.users),
            ("webdyno_users_turned_away", "Users who found no connections free until the end.", of.turned_away),
            ("webdyno_users_gave_up", "Users who gave up on a page and left.", of.gave_up),
            ("webdyno_users_returned", "Times that a user came back for another page.", of.returned),
            ("webdyno_pages", "Pages that arrived with all that belongs to them.", of.pages),
            ("webdyno_pages_incomplete", "Pages of which something failed.", of.incomplete),
            ("webdyno_reloads", "Times that a page was asked for again before it was there.", of.reloads),
            ("webdyno_abandoned", "Requests abandoned by users who gave up or reloaded.", of.abandoned),
        ];
        counted.into_iter().for_each(|(name, help, count)| self.counter(name, help, Some(count)));
        let help = "Pages without an end, of which only a lower bound of the time is known.";
        self.counter("webdyno_pages_unanswered", help, Some(cut_off(view, Part::Page).unwrap_or(0)));
    }

    /// A counter without labels, where the load has it.
    fn counter(&mut self, name: &str, help: &str, count: Option<u64>) {
        if let Some(count) = count {
            self.lone(name, Kind::Counter, "", help, &count.to_string());
        }
    }

    /// Requests by how they ended.
    fn ended(&mut self, name: &str, help: &str, counts: &Counts) {
        self.family(name, Kind::Counter, "", help);
        let total = format!("{name}_total");
        self.sample(&total, &[("outcome", "good"), ("cause", "")], &counts.good.to_string());
        for (cause, count) in &counts.failed {
            let labels = [("outcome", "failed"), ("cause", cause_name(*cause))];
            self.sample(&total, &labels, &count.to_string());
        }
    }

    fn answered(&mut self, name: &str, help: &str, counts: &Counts) {
        self.family(name, Kind::Counter, "", help);
        for (status, count) in &counts.statuses {
            self.sample(&format!("{name}_total"), &[("status", &status.to_string())], &count.to_string());
        }
    }

    /// What an independent visitor saw: families of its own, because none of it is in the load's.
    fn visitor(&mut self, probe: &ProbeView) {
        let help = "Visits of an independent visitor beside the load, each on a new connection.";
        self.lone("webdyno_probe_visits", Kind::Counter, "", help, &probe.visits.to_string());
        self.ended("webdyno_probe_requests", "Visits that ended, by how.", &probe.counts);
        self.answered("webdyno_probe_responses", "Complete answers to visits by status.", &probe.counts);
        let help = "Visits without an answer when the load ended.";
        self.lone("webdyno_probe_unanswered", Kind::Counter, "", help, &probe.unanswered.to_string());
        let help = "Latency of visits answered well, from when they were due; it contains connecting.";
        self.histogram("webdyno_probe", &probe.latency, help);
        if let Some(connect) = &probe.connect {
            self.histogram("webdyno_probe", connect, "Time that visits took to connect.");
        }
    }

    fn traffic(&mut self, view: &LoadView) {
        for (name, help, bytes) in [
            ("webdyno_received_bytes", "Bytes received, heads and bodies.", view.counts.bytes_in),
            ("webdyno_sent_bytes", "Bytes sent.", view.counts.bytes_out),
        ] {
            self.lone(name, Kind::Counter, "bytes", help, &bytes.to_string());
        }
    }

    fn window(&mut self, view: &LoadView) {
        let cpu = view.generator.account.cpu_ns as f64 / 1e9;
        let help = "CPU time of the load generator.";
        self.lone("webdyno_generator_cpu_seconds", Kind::Counter, "seconds", help, &number(cpu));
        let help = "Length of the measured window.";
        self.lone("webdyno_window_seconds", Kind::Gauge, "seconds", help, &number(view.window_s));
        let help = "Good answers per second of the window.";
        self.lone("webdyno_good_rate", Kind::Gauge, "", help, &number(view.rate.good));
        if let Some(asked) = view.rate.asked {
            let help = "Requests due per second.";
            self.lone("webdyno_asked_rate", Kind::Gauge, "", help, &number(asked));
        }
    }

    fn histogram(&mut self, of: &str, times: &TimesView, help: &str) {
        let name = format!("{of}_{}_seconds", times.part.name());
        self.family(&name, Kind::Histogram, "seconds", help);
        let mut buckets = times.buckets.iter().peekable();
        let mut count = 0;
        for (le, bound) in BOUNDS {
            while let Some((_, n)) = buckets.next_if(|(us, _)| *us <= bound) {
                count += n;
            }
            self.sample(&format!("{name}_bucket"), &[("le", le)], &count.to_string());
        }
        self.sample(&format!("{name}_bucket"), &[("le", "+Inf")], &times.count.to_string());
        self.sample(&format!("{name}_sum"), &[], &number(times.sum_us / 1e6));
        self.sample(&format!("{name}_count"), &[], &times.count.to_string());
    }

    fn thresholds(&mut self, view: &LoadView) {
        if view.thresholds.is_empty() {
            return;
        }
        let help = "Whether an expectation was met (1); what is not known counts as missed (0).";
        self.family("webdyno_threshold_met", Kind::Gauge, "", help);
        for (index, threshold) in view.thresholds.iter().enumerate() {
            let same = |other: &super::ThresholdView| other.judged.threshold.text == threshold.judged.threshold.text;
            // The same expectation written twice is one series.
            if view.thresholds.iter().take(index).any(same) {
                continue;
            }
            let labels = [("threshold", threshold.judged.threshold.text.as_str())];
            let met = if threshold.judged.is_met() { "1" } else { "0" };
            self.sample("webdyno_threshold_met", &labels, met);
        }
    }
}

/// Values of a part that are known only to be more than something.
fn cut_off(view: &LoadView, part: Part) -> Option<u64> {
    view.times.iter().find(|times| times.part == part).map(|times| times.cut_off)
}

fn help(part: Part) -> &'static str {
    match part {
        Part::Latency => "Latency of good answers; in an open loop from when they were due.",
        Part::Service => "Latency of good answers from when they were sent.",
        Part::FirstByte => "Time of good answers to their first byte.",
        Part::Connect => "Time to connect.",
        Part::Handshake => "Time for the TLS handshake.",
        Part::Page => "Time from a click to the last byte of the page and all that belongs to it.",
    }
}

fn cause_name(cause: Failure) -> &'static str {
    match cause {
        Failure::Refused => "refused",
        Failure::Reset => "reset",
        Failure::Timeout => "timeout",
        Failure::ClosedEarly => "closed_early",
        Failure::BadResponse => "bad_response",
        Failure::LengthDiffers => "length_differs",
        Failure::Status => "status",
        Failure::Proxy => "proxy",
        Failure::Tls => "tls",
        Failure::Check => "check",
        Failure::Local => "local",
    }
}
