//! The study's reference mode: simulates every message of a run, with the same random number generator as CPython.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use rand_mt::Mt;

use crate::race::{Draws, HOP_DEVIATION_MS, HOP_MEAN_MS, Race, Write};
use crate::strategy::{BASE_MS, Strategy};

/// A message in transit between a client and the server; each client has at most one.
#[derive(Clone, Copy)]
enum Packet {
    Read,
    Version(u32),
    Write(u32),
    Answer { accepted: bool },
}

/// Simulates one run. Draws random numbers in the same order as the program that AWS published with its article
/// "Exponential Backoff And Jitter".
pub(crate) fn run(
    clients: u32,
    strategy: Strategy,
    draws: &mut impl Draws,
    mut on_write: impl FnMut(Write),
) -> Race {
    let mut sent = 0u64;
    // Orders messages by arrival time, and messages with equal arrival times by the order of sending. Times are not
    // negative, so their bits compare like the times themselves.
    let mut sending = |arrives: f64, client: u32| {
        sent += 1;
        Reverse((arrives.to_bits(), sent, client))
    };
    let mut messages = vec![Packet::Read; clients as usize];
    let mut memories = vec![BASE_MS; clients as usize];
    let mut next: BinaryHeap<_> = (0..clients).map(|client| sending(draws.hop(client), client)).collect();
    let (mut now, mut version, mut calls) = (0.0, 0, 0);
    while let Some(mut first) = next.peek_mut() {
        let Reverse((at, _, client)) = *first;
        now = f64::from_bits(at);
        let message = &mut messages[client as usize];
        let mut wait = None;
        *message = match *message {
            Packet::Read => Packet::Version(version),
            Packet::Version(read) => Packet::Write(read),
            Packet::Write(read) => {
                let accepted = read == version;
                version += u32::from(accepted);
                calls += 1;
                on_write(Write { at_ms: now, client, accepted });
                Packet::Answer { accepted }
            }
            Packet::Answer { accepted: true } => {
                PeekMut::pop(first);
                continue;
            }
            Packet::Answer { accepted: false } => {
                wait = Some(&mut memories[client as usize]);
                Packet::Read
            }
        };
        let mut arrives = now + draws.hop(client);
        if let Some(memory) = wait {
            arrives += strategy.wait(memory, |low, high| draws.uniform(client, low, high));
        }
        *first = sending(arrives, client);
    }
    Race { time_ms: now, calls }
}

/// 4·exp(−1/2)/√2, a constant of `normalvariate`, as in CPython's `random.NV_MAGICCONST`.
const NV_MAGICCONST: f64 = 1.715_527_769_921_413_5;

/// CPython's `random.Random`: MT19937 with CPython's seeding and its conversion of bits to numbers (Lib/random.py and
/// Modules/_randommodule.c).
#[derive(Debug)]
pub(crate) struct CPython(Mt);

impl CPython {
    /// Seeds the generator with the seed's 32-bit words, least significant first, as Python's `random.seed(seed)` does.
    pub(crate) fn new(seed: u64) -> Self {
        let (low, high) = (seed as u32, (seed >> 32) as u32);
        Self(if high == 0 { Mt::new_with_key([low]) } else { Mt::new_with_key([low, high]) })
    }

    /// Draws a number from 0 to 1 (exclusive), exactly as Python's `random.random` does: 53 random bits from two draws.
    fn random(&mut self) -> f64 {
        let (high, low) = (self.0.next_u32() >> 5, self.0.next_u32() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Draws a normally distributed number exactly as Python's `random.normalvariate` does, with Kinderman and
    /// Monahan's method (the ratio of uniform deviates).
    fn normalvariate(&mut self, mean: f64, deviation: f64) -> f64 {
        loop {
            let u1 = self.random();
            let u2 = 1.0 - self.random();
            let z = NV_MAGICCONST * (u1 - 0.5) / u2;
            if z * z / 4.0 <= -u2.ln() {
                return mean + z * deviation;
            }
        }
    }
}

impl Draws for CPython {
    fn hop(&mut self, _client: u32) -> f64 {
        self.normalvariate(HOP_MEAN_MS, HOP_DEVIATION_MS).abs()
    }

    /// Draws a number uniformly from `low` to `high`, exactly as Python's `random.uniform` does.
    fn uniform(&mut self, _client: u32, low: f64, high: f64) -> f64 {
        low + (high - low) * self.random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::{self, Stream};

    /// One random stream per client, so that the order in which clients draw does not matter.
    struct PerClient(Vec<Stream>);

    impl PerClient {
        fn new(clients: u32, seed: u64) -> Self {
            Self((0..clients).map(|client| Stream::new(seed, clients, Strategy::None, client)).collect())
        }
    }

    impl Draws for PerClient {
        fn hop(&mut self, client: u32) -> f64 {
            self.0[client as usize].hop(client)
        }

        fn uniform(&mut self, client: u32, low: f64, high: f64) -> f64 {
            self.0[client as usize].uniform(client, low, high)
        }
    }

    #[test]
    fn one_event_per_call_gives_the_same_result() {
        for strategy in Strategy::ALL {
            for (clients, seed) in [(1, 1), (2, 2), (3, 3), (10, 4), (60, 5), (150, 6)] {
                let (mut some, mut all) = (Vec::new(), Vec::new());
                let streams = || PerClient::new(clients, seed);
                let fast = race::run(clients, strategy, &mut streams(), |write| some.push(write));
                let every_message = run(clients, strategy, &mut streams(), |write| all.push(write));
                assert_eq!((fast, some), (every_message, all), "{clients} clients, {strategy}");
            }
        }
    }
}
