use crate::draws::Draws;
use crate::strategy::Strategy;
use crate::tournament::Tournament;

/// What a run took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Race {
    /// When the last client had its answer, in ms.
    pub time_ms: f64,
    /// How many writes the server saw, refused ones included.
    pub calls: u64,
}

/// A write as it reaches the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Write {
    /// When, in ms from the run's start.
    pub at_ms: f64,
    /// Who sent it, from 0.
    pub client: u32,
    /// The version it was based on was still the row's.
    pub accepted: bool,
}

/// One run, an event for each call.
///
/// Nothing depends on the messages in between: a write is accepted if no other was accepted since its
/// client's read, which is known when it arrives. So a client goes from one write to the next
/// (answer, wait, read, version, write) in one step, and the outcome is that of `reference::run`
/// with a quarter of the events. Only the order of draws differs.
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

/// Times are not negative, so their bits are ordered as they are; this is after all of them.
const FINISHED: u64 = u64::MAX;

/// A client whose read is under way, or its write.
struct Racer {
    read_ms: f64,
    write_ms: f64,
    memory: f64,
}

impl Racer {
    fn starting_at(read_ms: f64, client: u32, draws: &mut impl Draws) -> Self {
        let mut racer = Self { read_ms, write_ms: read_ms, memory: Strategy::START_MS };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Stream;

    fn observed(run: impl FnOnce(&mut dyn FnMut(Write)) -> Race) -> (Race, Vec<Write>) {
        let mut writes = Vec::new();
        let race = run(&mut |write| writes.push(write));
        (race, writes)
    }

    #[test]
    fn each_client_succeeds_exactly_once_and_time_goes_on() {
        for strategy in Strategy::ALL {
            for clients in [1, 2, 7, 100] {
                let mut stream = Stream::new(9, clients, strategy, 0);
                let (race, writes) = observed(|on_write| run(clients, strategy, &mut stream, on_write));
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
}
