//! A comparison of Galley with a yardstick: one row of a table.

use std::path::Path;
use std::time::Duration;

use crate::load::{self, Measured, Requests};
use crate::server::PinnedServer;
use crate::table;

/// The requests to Galley and to a yardstick.
#[derive(Clone)]
pub(crate) struct Comparison {
    pub(crate) name: String,
    /// The lowest acceptable ratio of their rates.
    pub(crate) bar: f64,
    pub(crate) requests: Requests,
    pub(crate) yardstick: Requests,
}

/// The number of rounds, and the duration of each measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) rounds: usize,
    pub(crate) time: Duration,
}

/// The results of a row: Galley's and the yardstick's, by round.
pub(crate) type Rounds = Vec<(Measured, Measured)>;

/// Measures in turns, so that other load on the machine affects both alike.
pub(crate) fn measure(
    work: &Path,
    effort: Effort,
    row: &Comparison,
    galley: &PinnedServer,
    yardstick: &PinnedServer,
) -> anyhow::Result<Rounds> {
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds {
        let other = load::run(work, yardstick, &row.yardstick, effort.time)?;
        let own = load::run(work, galley, &row.requests, effort.time)?;
        eprintln!("{}: {:.0}/s of {:.0}/s", row.name, own.per_second, other.per_second);
        rounds.push((own, other));
    }
    Ok(rounds)
}

/// The column heads of [`line()`].
pub(crate) const HEADS: [&str; 9] = [
    "workload",
    "yardstick",
    "ratio",
    "target",
    "per second",
    "p50 ms",
    "p99 ms",
    "CPU µs",
    "yardstick CPU µs",
];

/// Returns a row's medians as table cells.
pub(crate) fn line(row: &Comparison, beside: &str, rounds: &Rounds) -> Vec<String> {
    let middle = |figure: fn(&(Measured, Measured)) -> f64| {
        table::median(rounds.iter().map(figure).collect())
    };
    vec![
        row.name.clone(),
        beside.to_owned(),
        format!("{:.2}", middle(|(own, other)| own.per_second / other.per_second)),
        format!("{:.2}", row.bar),
        format!("{:.0}", middle(|(own, _)| own.per_second)),
        format!("{:.2}", middle(|(own, _)| own.p50.as_secs_f64() * 1e3)),
        format!("{:.2}", middle(|(own, _)| own.p99.as_secs_f64() * 1e3)),
        format!("{:.1}", middle(|(own, _)| own.cpu.as_secs_f64() * 1e6)),
        format!("{:.1}", middle(|(_, other)| other.cpu.as_secs_f64() * 1e6)),
    ]
}
