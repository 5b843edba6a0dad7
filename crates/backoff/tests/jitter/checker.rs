//! Finds the mistakes that retry libraries make, from the waits alone.
//!
//! A [`Claim`] says what range each wait is uniform over. Draws are standardised by their claimed
//! range, z = (wait − mean) / deviation, so that waits of different ranges can be judged together:
//! z has mean 0 and variance 1, and no two z have anything to do with each other.

use std::collections::BTreeSet;
use std::time::Duration;

/// Iterators judged, and waits taken of each.
const ITERATORS: usize = 2_000;
const WAITS: usize = 12;
/// Allowed deviation, in standard errors. The seeds are fixed, so what passes once passes always.
const TOLERANCE: f64 = 5.0;
/// Variance of z² for a continuous uniform, whose fourth standardised moment is 9/5.
const SQUARE_VARIANCE: f64 = 0.8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mistake {
    /// A wait over its ceiling: jitter was added to what had been capped.
    OverCeiling,
    /// A wait below its range, zero above all.
    UnderRange,
    /// The longest wait is too frequent: jitter was drawn first and capped then.
    PiledUp,
    /// Waits are multiples of something coarser than the tick, such as whole seconds.
    Truncated,
    /// Iterators wait alike, or an iterator's next wait follows from its last.
    Correlated,
    /// All waits of a retry are the same.
    Inert,
    /// A mean over 5 standard errors off.
    Mean,
    /// A variance over 5 standard errors off.
    Variance,
}

/// The range that the waits should have.
pub(crate) struct Claim<'a> {
    pub(crate) tick: Duration,
    /// The lowest and highest wait before retry n, given the wait before; in ticks.
    pub(crate) range: &'a dyn Fn(u64, Option<u64>) -> (u64, u64),
}

/// Every mistake found in the waits of freshly built iterators.
pub(crate) fn mistakes<I: Iterator<Item = Duration>>(
    claim: &Claim<'_>,
    mut build: impl FnMut() -> I,
) -> BTreeSet<Mistake> {
    let iterators: Vec<Vec<Draw>> = (0..ITERATORS).map(|_| draws(claim, build())).collect();
    let mut found = BTreeSet::new();
    for n in 0..iterators[0].len() {
        let of_retry: Vec<&Draw> = iterators.iter().map(|draws| &draws[n]).collect();
        found.extend(out_of_range(&of_retry));
        if of_retry.iter().all(|draw| draw.width() > 1.0) {
            found.extend(misplaced(&of_retry));
            found.extend(coarse(&of_retry));
        }
    }
    found.extend(correlated(&iterators).then_some(Mistake::Correlated));
    found
}

struct Draw {
    nanos: u128,
    tick: u128,
    low: u64,
    high: u64,
}

impl Draw {
    fn width(&self) -> f64 {
        (self.high - self.low + 1) as f64
    }

    fn ticks(&self) -> f64 {
        self.nanos as f64 / self.tick as f64
    }

    fn standardised(&self) -> f64 {
        let mean = (self.low as f64 + self.high as f64) / 2.0;
        (self.ticks() - mean) / ((self.width() * self.width() - 1.0) / 12.0).sqrt()
    }
}

fn draws(claim: &Claim<'_>, delays: impl Iterator<Item = Duration>) -> Vec<Draw> {
    let tick = claim.tick.as_nanos();
    let mut previous = None;
    (1..)
        .zip(delays.take(WAITS))
        .map(|(n, delay)| {
            let (low, high) = (claim.range)(n, previous);
            previous = Some((delay.as_nanos() / tick) as u64);
            Draw { nanos: delay.as_nanos(), tick, low, high }
        })
        .collect()
}

fn out_of_range(draws: &[&Draw]) -> Vec<Mistake> {
    let over = draws.iter().any(|draw| draw.ticks() > draw.high as f64);
    let under = draws.iter().any(|draw| draw.ticks() < draw.low as f64);
    [over.then_some(Mistake::OverCeiling), under.then_some(Mistake::UnderRange)]
        .into_iter()
        .flatten()
        .collect()
}

fn misplaced(draws: &[&Draw]) -> Vec<Mistake> {
    let count = draws.len() as f64;
    let z: Vec<f64> = draws.iter().map(|draw| draw.standardised()).collect();
    let mean = z.iter().sum::<f64>() / count;
    let variance = z.iter().map(|z| z * z).sum::<f64>() / count;
    let highest = draws.iter().filter(|draw| draw.ticks() == draw.high as f64).count() as f64;
    let expected = draws.iter().map(|draw| 1.0 / draw.width()).sum::<f64>();
    let inert = draws.iter().all(|draw| draw.nanos == draws[0].nanos);
    [
        (inert, Mistake::Inert),
        (mean.abs() > TOLERANCE / count.sqrt(), Mistake::Mean),
        ((variance - 1.0).abs() > TOLERANCE * (SQUARE_VARIANCE / count).sqrt(), Mistake::Variance),
        (!inert && highest > expected + TOLERANCE * expected.sqrt() + 3.0, Mistake::PiledUp),
    ]
    .into_iter()
    .filter_map(|(is, mistake)| is.then_some(mistake))
    .collect()
}

/// The waits' greatest common divisor is a tick, unless something was cut off; it is 0 if all are.
fn coarse(draws: &[&Draw]) -> Option<Mistake> {
    let divisor = draws.iter().fold(0, |divisor, draw| gcd(divisor, draw.nanos));
    let inert = divisor == draws[0].nanos && divisor != 0;
    (divisor != draws[0].tick && !inert).then_some(Mistake::Truncated)
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Whether two iterators built one after the other are the same, or whether waits correlate: each
/// with the one after it, and with those of the iterator built next: the same retry's, the one
/// after's and the one before's.
fn correlated(iterators: &[Vec<Draw>]) -> bool {
    let z = centred(iterators);
    let within = z.iter().flat_map(|z| z.iter().zip(z.iter().skip(1)));
    let same = z.windows(2).flat_map(|pair| pair[0].iter().zip(&pair[1]));
    let later = z.windows(2).flat_map(|pair| pair[0].iter().zip(pair[1].iter().skip(1)));
    let earlier = z.windows(2).flat_map(|pair| pair[0].iter().skip(1).zip(&pair[1]));
    let product = |(a, b): (&f64, &f64)| a * b;
    let sums = [
        within.map(product).sum::<f64>(),
        same.map(product).sum(),
        later.map(product).sum(),
        earlier.map(product).sum(),
    ];
    let judged = |draws: &[Draw]| draws.iter().any(|draw| draw.width() > 1.0);
    let nanos = |draws: &[Draw]| draws.iter().map(|draw| draw.nanos).collect::<Vec<_>>();
    let identical = |pair: &[Vec<Draw>]| judged(&pair[0]) && nanos(&pair[0]) == nanos(&pair[1]);
    let count = (z.len() * z[0].len()) as f64;
    sums.iter().any(|sum| sum.abs() > TOLERANCE * count.sqrt()) || iterators.windows(2).all(identical)
}

/// Standardised by what they are rather than by what was claimed: a wrong mean is no correlation.
fn centred(iterators: &[Vec<Draw>]) -> Vec<Vec<f64>> {
    let count = iterators.len() as f64;
    let mut z: Vec<Vec<f64>> = iterators
        .iter()
        .map(|draws| {
            draws.iter().map(|draw| if draw.width() > 1.0 { draw.standardised() } else { 0.0 }).collect()
        })
        .collect();
    for n in 0..z[0].len() {
        let mean = z.iter().map(|z| z[n]).sum::<f64>() / count;
        let variance = z.iter().map(|z| (z[n] - mean).powi(2)).sum::<f64>() / count;
        let deviation = if variance > 0.0 { variance.sqrt() } else { 1.0 };
        z.iter_mut().for_each(|z| z[n] = (z[n] - mean) / deviation);
    }
    z
}
