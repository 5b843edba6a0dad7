use rayon::prelude::*;
use serde::Serialize;

use crate::cpython::CPython;
use crate::draws::Stream;
use crate::error::StudyError;
use crate::point::Point;
use crate::race::{self, Race, Write};
use crate::reference;
use crate::strategy::Strategy;

/// Points that can be run.
#[derive(Clone, Debug)]
pub struct Study {
    points: Vec<Point>,
    seed: u64,
    reference: bool,
}

/// The means, in the order of the points. As JSON: `{"cells":[{"clients","strategy","time_ms","calls"}]}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// One for each point.
    pub cells: Vec<Cell>,
}

/// The means over a point's runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// The point's clients.
    pub clients: u32,
    /// The point's strategy.
    pub strategy: Strategy,
    /// When the last client had its answer, in ms.
    pub time_ms: f64,
    /// How many writes the server saw.
    pub calls: f64,
    /// How many runs.
    #[serde(skip)]
    pub runs: u32,
    /// Standard error of `time_ms`, if there was more than one run.
    #[serde(skip)]
    pub time_ms_error: Option<f64>,
    /// Standard error of `calls`.
    #[serde(skip)]
    pub calls_error: Option<f64>,
}

impl Study {
    /// Each point once. `reference` gives the numbers of a Python program of the published model
    /// with the same seed, to the last digit: a point's runs then share one stream, in order. Else
    /// each run has its own.
    pub fn new(points: Vec<Point>, seed: u64, reference: bool) -> Result<Self, StudyError> {
        StudyError::check(&points)?;
        Ok(Self { points, seed, reference })
    }

    /// How much [`Study::run`] will report in all: the square of the clients for each run, since
    /// that is about how long one takes.
    pub fn work(&self) -> u64 {
        self.points.iter().map(|point| u64::from(point.clients).pow(2) * u64::from(point.runs)).sum()
    }

    /// Runs every point, on rayon's threads; how many there are does not change a digit.
    /// `progress` is called now and then with the work done since its last call.
    pub fn run(&self, progress: &(impl Fn(u64) + Sync)) -> Report {
        let cells = self.points.par_iter().map(|&point| {
            let races = if self.reference {
                self.races_in_order(point, progress)
            } else {
                self.races_in_parallel(point, progress)
            };
            Cell::of(point, &races)
        });
        Report { cells: cells.collect() }
    }

    fn races_in_order(&self, point: Point, progress: &impl Fn(u64)) -> Vec<Race> {
        let mut random = CPython::new(self.seed);
        let run = |_| reference::run(point.clients, point.strategy, &mut random, counting(point, progress));
        (0..point.runs).map(run).collect()
    }

    fn races_in_parallel(&self, point: Point, progress: &(impl Fn(u64) + Sync)) -> Vec<Race> {
        let run = |run| {
            let mut stream = Stream::new(self.seed, point.clients, point.strategy, run);
            race::run(point.clients, point.strategy, &mut stream, counting(point, progress))
        };
        (0..point.runs).into_par_iter().map(run).collect()
    }
}

/// The writes of one run, in order: what the server sees of a strategy.
pub fn writes(clients: u32, strategy: Strategy, seed: u64) -> Result<Vec<Write>, StudyError> {
    StudyError::check(&[Point { clients, strategy, runs: 1 }])?;
    let mut writes = Vec::new();
    race::run(clients, strategy, &mut Stream::new(seed, clients, strategy, 0), |write| writes.push(write));
    Ok(writes)
}

/// Reports a run's progress by its accepted writes, at most about a hundred times.
fn counting(point: Point, progress: &impl Fn(u64)) -> impl FnMut(Write) {
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

impl Cell {
    fn of(point: Point, races: &[Race]) -> Self {
        let (time_ms, time_ms_error) = mean(races.iter().map(|race| race.time_ms));
        let (calls, calls_error) = mean(races.iter().map(|race| race.calls as f64));
        let Point { clients, strategy, runs } = point;
        Self { clients, strategy, time_ms, calls, runs, time_ms_error, calls_error }
    }
}

/// The mean (a plain sum from left to right, divided) and its standard error.
fn mean(values: impl ExactSizeIterator<Item = f64> + Clone) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.clone().fold(0.0, |sum, value| sum + value) / n;
    let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
    (mean, (n > 1.0).then(|| (squares / (n - 1.0) / n).sqrt()))
}
