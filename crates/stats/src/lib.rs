//! Numbers in, judgement out: samples, intervals, verdicts. No clock, no files.
