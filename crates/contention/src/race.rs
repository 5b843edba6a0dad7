//! One run of the contention study: clients race to update one row.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::hash::Hasher;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use siphasher::sip::SipHasher13;

use crate::strategy::{BASE_MS, Strategy};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Race {
    /// Milliseconds from the run's start until the last client has received the response to its accepted write.
    pub(crate) time_ms: f64,
    /// Number of writes that the server received, including refused writes.
    pub(crate) calls: u64,
}

/// A client's write, as it arrives at the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Write {
    /// Arrival time of the write at the server, in ms from the run's start.
    pub at_ms: f64,
    /// The client that sent the write, numbered from 0.
    pub client: u32,
    /// True if the server accepted this write.
    pub accepted: bool,
}

/// Mean duration of a hop (one message's transmission), in ms; a hop takes |Normal(mean, deviation)|.
pub(crate) const HOP_MEAN_MS: f64 = 10.0;
pub(crate) const HOP_DEVIATION_MS: f64 = 2.0;

/// Source of random numbers for a run; a test can give each client its own stream.
pub(crate) trait Draws {
    /// Draws the travel time of one message, in ms.
    fn hop(&mut self, client: u32) -> f64;

    /// Draws a number that is uniformly distributed between `low` and `high`, for the client with this index.
    fn uniform(&mut self, client: u32, low: f64, high: f64) -> f64;
}

/// Random numbers for one run, independent of the thread that simulates it.
#[derive(Debug)]
pub(crate) struct Stream(Xoshiro256PlusPlus);

impl Stream {
    pub(crate) fn new(seed: u64, clients: u32, strategy: Strategy, run: u32) -> Self {
        let mut hasher = SipHasher13::new();
        hasher.write(strategy.name().as_bytes());
        hasher.write(&seed.to_le_bytes());
        hasher.write(&clients.to_le_bytes());
        hasher.write(&run.to_le_bytes());
        Self(Xoshiro256PlusPlus::seed_from_u64(hasher.finish()))
    }
}

impl Draws for Stream {
    #[inline]
    fn hop(&mut self, _client: u32) -> f64 {
        let z: f64 = StandardNormal.sample(&mut self.0);
        (HOP_MEAN_MS + HOP_DEVIATION_MS * z).abs()
    }

    #[inline]
    fn uniform(&mut self, _client: u32, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.random::<f64>()
    }
}

/// Simulates one run of the same model as `reference::run`, but with only a quarter as many events.
pub(crate) fn run(
    clients: u32,
    strategy: Strategy,
    draws: &mut impl Draws,
    mut on_write: impl FnMut(Write),
) -> Race {
    let mut reads_ms: Vec<f64> = Vec::new();
    let mut memories = vec![BASE_MS; clients as usize];
    // Each client's next write. Times are not negative, so their bits compare like the times themselves.
    let mut next = BinaryHeap::new();
    for client in 0..clients {
        let read_ms = draws.hop(client);
        reads_ms.push(read_ms);
        next.push(Reverse((write_ms(read_ms, client, draws).to_bits(), client)));
    }
    let (mut changed_ms, mut time_ms, mut calls) = (0.0, 0.0, 0);
    while let Some(mut first) = next.peek_mut() {
        let Reverse((at, client)) = *first;
        let (now, read_ms) = (f64::from_bits(at), &mut reads_ms[client as usize]);
        let accepted = changed_ms <= *read_ms;
        calls += 1;
        on_write(Write { at_ms: now, client, accepted });
        let answered = now + draws.hop(client);
        if accepted {
            changed_ms = now;
            time_ms = answered.max(time_ms);
            PeekMut::pop(first);
        } else {
            let asked = answered + draws.hop(client);
            let memory = &mut memories[client as usize];
            *read_ms = asked + strategy.wait(memory, |low, high| draws.uniform(client, low, high));
            *first = Reverse((write_ms(*read_ms, client, draws).to_bits(), client));
        }
    }
    Race { time_ms, calls }
}

/// Returns the time, in ms, at which a client's write reaches the server, two hops after the client's read did.
fn write_ms(read_ms: f64, client: u32, draws: &mut impl Draws) -> f64 {
    read_ms + draws.hop(client) + draws.hop(client)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_succeeds_exactly_once() {
        for strategy in Strategy::ALL {
            for clients in [1, 2, 7, 100] {
                let mut writes = Vec::new();
                let mut stream = Stream::new(9, clients, strategy, 0);
                let race = run(clients, strategy, &mut stream, |write| writes.push(write));
                assert_eq!(race.calls, writes.len() as u64);
                assert!(race.calls >= u64::from(clients));
                let mut winners: Vec<u32> = writes.iter().filter(|w| w.accepted).map(|w| w.client).collect();
                winners.sort_unstable();
                assert_eq!(winners, (0..clients).collect::<Vec<_>>(), "{strategy}");
                assert!(writes.is_sorted_by(|a, b| a.at_ms <= b.at_ms), "{strategy}");
                assert!(race.time_ms > writes.last().unwrap().at_ms);
            }
        }
    }

    #[test]
    fn lone_client_needs_four_hops() {
        let mut stream = Stream::new(3, 1, Strategy::Full, 0);
        let four_hops: f64 = (0..4).map(|_| Stream::hop(&mut stream, 0)).sum();
        let race = run(1, Strategy::Full, &mut Stream::new(3, 1, Strategy::Full, 0), |_| {});
        assert_eq!(race, Race { time_ms: four_hops, calls: 1 });
    }
}
