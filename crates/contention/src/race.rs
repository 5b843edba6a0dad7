use crate::draws::Draws;
use crate::strategy::{BASE_MS, Strategy};

/// Time and calls of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Race {
    /// When the last client had its answer, in ms.
    pub(crate) time_ms: f64,
    /// How many writes the server saw, refused ones included.
    pub(crate) calls: u64,
}

/// A write as it reaches the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Write {
    /// When, in ms from the run's start.
    pub at_ms: f64,
    /// Who sent it, from 0.
    pub client: u32,
    /// Whether the version it was based on was still the row's.
    pub accepted: bool,
}

/// One run, an event for each call.
///
/// A write is accepted if no other was accepted since its client's read, which is known when it arrives. So a client
/// goes from one write to the next (answer, wait, read, version, write) in one step, and the outcome is that of
/// `reference::run` with a quarter of the events. Only the order of draws differs.
pub(crate) fn run(
    clients: u32,
    strategy: Strategy,
    draws: &mut impl Draws,
    mut on_write: impl FnMut(Write),
) -> Race {
    let mut racers: Vec<Racer> =
        (0..clients).map(|client| Racer::starting_at(draws.hop(client), client, draws)).collect();
    let mut next = Tournament::new(racers.iter().map(Racer::key));
    let (mut changed_ms, mut time_ms, mut calls) = (0.0, 0.0, 0);
    loop {
        let (key, client) = next.winner();
        if key == FINISHED {
            return Race { time_ms, calls };
        }
        let racer = &mut racers[client as usize];
        let now = racer.write_ms;
        let accepted = changed_ms <= racer.read_ms;
        calls += 1;
        on_write(Write { at_ms: now, client, accepted });
        let answered = now + draws.hop(client);
        if accepted {
            changed_ms = now;
            time_ms = answered.max(time_ms);
            next.replace_key(FINISHED);
        } else {
            let read_ms = answered + draws.hop(client);
            let wait = strategy.wait(&mut racer.memory, |low, high| draws.uniform(client, low, high));
            racer.send(read_ms + wait, client, draws);
            next.replace_key(racer.key());
        }
    }
}

/// Sorts after every time. (Times are not negative, so their bits are ordered as they are.)
const FINISHED: u64 = u64::MAX;

/// A client, reading or writing.
struct Racer {
    read_ms: f64,
    write_ms: f64,
    memory: f64,
}

impl Racer {
    fn starting_at(read_ms: f64, client: u32, draws: &mut impl Draws) -> Self {
        let mut racer = Self { read_ms, write_ms: read_ms, memory: BASE_MS };
        racer.send(read_ms, client, draws);
        racer
    }

    /// Reads at `read_ms`, and writes when it has the version.
    fn send(&mut self, read_ms: f64, client: u32, draws: &mut impl Draws) {
        self.read_ms = read_ms;
        self.write_ms = read_ms + draws.hop(client) + draws.hop(client);
    }

    fn key(&self) -> u64 {
        self.write_ms.to_bits()
    }
}

/// Priority queue of a fixed number of players, in which only the first player's key changes.
///
/// A tree of losers: a new key replays the winner's log₂ n matches on the way up, against the losers that stand there.
/// On runs of this study it takes two thirds of a binary heap's time: it never compares siblings, and all its
/// branches are predictable.
#[derive(Debug)]
pub(crate) struct Tournament<K> {
    winner: (K, u32),
    /// By match; the children of match m are 2m and 2m + 1, and player p starts at n + p.
    losers: Vec<(K, u32)>,
}

impl<K: Copy + Ord> Tournament<K> {
    /// Starts with each player's first key; there is at least one.
    pub(crate) fn new(keys: impl IntoIterator<Item = K>) -> Self {
        let players: Vec<(K, u32)> = keys.into_iter().zip(0..).collect();
        let n = players.len();
        let mut winners = players.clone();
        winners.extend(&players);
        let mut losers = players;
        for node in (1..n).rev() {
            (winners[node], losers[node]) = play(winners[2 * node], winners[2 * node + 1]);
        }
        Self { winner: winners[1], losers }
    }

    /// The least key and its player.
    pub(crate) fn winner(&self) -> (K, u32) {
        self.winner
    }

    /// Gives the winner another key.
    pub(crate) fn replace_key(&mut self, key: K) {
        self.winner.0 = key;
        let mut node = (self.losers.len() + self.winner.1 as usize) / 2;
        while node > 0 {
            (self.winner, self.losers[node]) = play(self.winner, self.losers[node]);
            node /= 2;
        }
    }
}

fn play<K: Ord>(one: (K, u32), other: (K, u32)) -> ((K, u32), (K, u32)) {
    if other.0 < one.0 { (other, one) } else { (one, other) }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::{prop_assert_eq, proptest};

    use super::*;
    use crate::draws::Stream;

    #[test]
    fn each_client_succeeds_exactly_once_and_time_goes_on() {
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
    fn a_client_alone_succeeds_at_once_after_four_hops() {
        let mut stream = Stream::new(3, 1, Strategy::Full, 0);
        let four_hops: f64 = (0..4).map(|_| Stream::hop(&mut stream, 0)).sum();
        let race = run(1, Strategy::Full, &mut Stream::new(3, 1, Strategy::Full, 0), |_| {});
        assert_eq!(race, Race { time_ms: four_hops, calls: 1 });
    }

    proptest! {
        #[test]
        fn a_tournament_is_a_priority_queue(keys in vec(0..50u64, 1..40), steps in vec(0..50u64, 0..200)) {
            let mut tournament = Tournament::new(keys.iter().copied());
            let mut expected = keys;
            for step in steps {
                let (key, player) = tournament.winner();
                prop_assert_eq!(key, *expected.iter().min().unwrap());
                prop_assert_eq!(expected[player as usize], key);
                expected[player as usize] = key + step;
                tournament.replace_key(key + step);
            }
        }
    }
}
