//! The study: many runs for each combination of a strategy and a number of clients, and the mean results of these runs.

use rayon::prelude::*;
use serde::Serialize;

use crate::race::{self, Race, Stream, Write};
use crate::reference::{self, CPython};
use crate::strategy::Strategy;

/// Maximum number of clients in a [`Point`].
const MAX_CLIENTS: u32 = 100_000;
/// Maximum number of clients with [`Strategy::None`]; the number of calls grows with the square of the number of
/// clients.
pub const MAX_CLIENTS_WITHOUT_BACKOFF: u32 = 10_000;

/// A number of clients and a strategy to study: one cell of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Number of clients that try to update the same database row; 1 to 100,000.
    pub clients: u32,
    /// The backoff that every client uses.
    pub strategy: Strategy,
    /// Number of runs to average; at least 1.
    pub runs: u32,
}

/// A study that is ready to run: its [`Point`]s have been checked.
#[derive(Clone, Debug)]
pub struct Study {
    points: Vec<Point>,
    seed: u64,
    reference: bool,
}

/// The results of a study; as JSON, `{"cells":[{"clients","strategy","time_ms","calls"}]}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StudyReport {
    /// The mean results of the runs at each [`Point`] of the study, in the order of the points.
    pub cells: Vec<Cell>,
}

/// The results for one [`Point`], averaged over its runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Number of clients in each run.
    pub clients: u32,
    /// Backoff strategy that every client used.
    pub strategy: Strategy,
    /// Mean time from a run's start until the last client receives the response to its accepted write, in ms.
    pub time_ms: f64,
    /// Mean number of writes that the server received in a run.
    pub calls: f64,
    /// Number of runs that were averaged.
    #[serde(skip)]
    pub runs: u32,
    /// Standard error of `time_ms`; `None` if there was only one run.
    #[serde(skip)]
    pub time_ms_error: Option<f64>,
    /// Standard error of `calls`; `None` if there was only one run.
    #[serde(skip)]
    pub calls_error: Option<f64>,
}

impl Study {
    /// Checks the points, and creates a study of them.
    ///
    /// If `reference` is true, the study uses the model from AWS's article "Exponential Backoff And Jitter". Its
    /// report is then identical, to the last digit, to the report of a Python program with the same model and seed.
    ///
    /// # Errors
    ///
    /// Fails with a message for the user if there are no points, if a point is out of range, or if two points have the
    /// same strategy and number of clients.
    pub fn new(points: Vec<Point>, seed: u64, reference: bool) -> Result<Self, String> {
        check(&points)?;
        Ok(Self { points, seed, reference })
    }

    /// Total work of the study, in the unit that [`Study::run`] passes to `progress`.
    pub fn work(&self) -> u64 {
        let work = |point: &Point| u64::from(point.clients).pow(2).saturating_mul(point.runs.into());
        self.points.iter().map(work).fold(0, u64::saturating_add)
    }

    /// Simulates every [`Point`] of the study, and calls `progress` with the amount of work done since the previous
    /// call. The report does not depend on the number of rayon's threads.
    pub fn run(&self, progress: &(dyn Fn(u64) + Sync)) -> StudyReport {
        let cells = self.points.par_iter().map(|&point| {
            let Point { clients, strategy, runs } = point;
            let races: Vec<Race> = if self.reference {
                let mut random = CPython::new(self.seed);
                let run = |_| reference::run(clients, strategy, &mut random, counting(point, progress));
                (0..runs).map(run).collect()
            } else {
                let run = |run| {
                    let mut stream = Stream::new(self.seed, clients, strategy, run);
                    race::run(clients, strategy, &mut stream, counting(point, progress))
                };
                (0..runs).into_par_iter().map(run).collect()
            };
            let (time_ms, time_ms_error) = mean(races.iter().map(|race| race.time_ms));
            let (calls, calls_error) = mean(races.iter().map(|race| race.calls as f64));
            Cell { clients, strategy, time_ms, calls, runs, time_ms_error, calls_error }
        });
        StudyReport { cells: cells.collect() }
    }
}

fn check(points: &[Point]) -> Result<(), String> {
    if points.is_empty() {
        return Err("nothing to run: give at least one number of clients and one strategy".into());
    }
    for (i, &Point { clients, strategy, runs }) in points.iter().enumerate() {
        if !(1..=MAX_CLIENTS).contains(&clients) {
            return Err(format!("{clients} clients: must be 1 to {MAX_CLIENTS}"));
        }
        if runs == 0 {
            return Err("0 runs: must be at least 1".into());
        }
        if strategy == Strategy::None && clients > MAX_CLIENTS_WITHOUT_BACKOFF {
            return Err(format!(
                "{clients} clients with strategy none: must be at most {MAX_CLIENTS_WITHOUT_BACKOFF}, because without \
                 backoff the calls grow with the square of the clients"
            ));
        }
        if points[..i].iter().any(|other| (other.clients, other.strategy) == (clients, strategy)) {
            return Err(format!("{clients} clients with strategy {strategy} are named twice"));
        }
    }
    Ok(())
}

/// Simulates one run and returns its writes in the order in which they reach the server.
pub fn writes(clients: u32, strategy: Strategy, seed: u64) -> Result<Vec<Write>, String> {
    check(&[Point { clients, strategy, runs: 1 }])?;
    let mut writes = Vec::new();
    race::run(clients, strategy, &mut Stream::new(seed, clients, strategy, 0), |write| writes.push(write));
    Ok(writes)
}

/// Returns a function that counts a run's accepted writes, and reports progress from time to time.
fn counting(point: Point, progress: &dyn Fn(u64)) -> impl FnMut(Write) {
    let step = (point.clients / 100).max(100).min(point.clients);
    let mut accepted = 0;
    move |write| {
        if write.accepted {
            accepted += 1;
            if accepted % step == 0 {
                progress(u64::from(step) * u64::from(point.clients));
            } else if accepted == point.clients {
                progress(u64::from(accepted % step) * u64::from(point.clients));
            }
        }
    }
}

/// Returns the mean and its standard error, which is `None` for a single value. Sums the values from left to right, as
/// `tests/contention/reference_model.py` does.
fn mean(values: impl ExactSizeIterator<Item = f64> + Clone) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.clone().fold(0.0, |sum, value| sum + value) / n;
    let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
    (mean, (n > 1.0).then(|| (squares / (n - 1.0) / n).sqrt()))
}

/// Returns the growth exponent e of a strategy's calls (calls ∝ clientsᵉ). Returns `None` unless the strategy's cells
/// have at least two different numbers of clients.
///
/// The exponent is the least-squares slope of ln(calls) against ln(clients).
pub fn growth_exponent(cells: &[Cell], strategy: Strategy) -> Option<f64> {
    let logs: Vec<(f64, f64)> = cells
        .iter()
        .filter(|cell| cell.strategy == strategy)
        .map(|cell| (f64::from(cell.clients).ln(), cell.calls.ln()))
        .collect();
    let n = logs.len() as f64;
    let mean_x = logs.iter().map(|(x, _)| x).sum::<f64>() / n;
    let mean_y = logs.iter().map(|(_, y)| y).sum::<f64>() / n;
    let spread: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let shared: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    (spread > 0.0).then(|| shared / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(clients: u32, strategy: Strategy, calls: f64) -> Cell {
        Cell { clients, strategy, time_ms: 1.0, calls, runs: 1, time_ms_error: None, calls_error: None }
    }

    #[test]
    fn growth_is_the_least_squares_slope_of_one_strategy() {
        let e = std::f64::consts::E;
        // A point above the middle of the line raises the line without changing its slope.
        let calls = [(1, 1.0), (2, 4.0 * e), (4, 16.0)];
        let mut cells = calls.map(|(n, calls)| cell(n, Strategy::Equal, calls)).to_vec();
        cells.push(cell(9, Strategy::None, 7.0));
        assert!((growth_exponent(&cells, Strategy::Equal).unwrap() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn one_number_of_clients_shows_no_growth() {
        let cells = [cell(10, Strategy::Full, 39.0)];
        assert_eq!(growth_exponent(&cells, Strategy::Full), None);
        assert_eq!(growth_exponent(&cells, Strategy::None), None);
    }

    #[test]
    fn the_work_of_a_study_that_never_ends_is_a_number() {
        let point = |strategy| Point { clients: 100_000, strategy, runs: u32::MAX };
        let points = [Strategy::Full, Strategy::Equal].map(point).to_vec();
        assert_eq!(Study::new(points, 1, false).unwrap().work(), u64::MAX);
    }
}
