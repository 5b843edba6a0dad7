use crate::draws::Draws;
use crate::race::{Race, Write};
use crate::strategy::Strategy;
use crate::tournament::Tournament;

/// What is on its way between a client and the server; each client has one message under way.
#[derive(Clone, Copy)]
enum Message {
    Read,
    Version(u32),
    Write(u32),
    Answer { accepted: bool },
}

/// When a message arrives, then when it was sent: times are not negative, so their bits are ordered
/// as they are, and ties go by order of sending.
type Key = u128;

const NO_MESSAGE: Key = Key::MAX;

/// One run, an event for each message, with its draws in the order of the published program: a hop
/// when a message is sent, and after a refused write the hop of the next read, then its wait.
pub(crate) fn run(
    clients: u32,
    strategy: Strategy,
    draws: &mut impl Draws,
    mut on_write: impl FnMut(Write),
) -> Race {
    let mut sent = 0u64;
    let mut sending = |arrives: f64| {
        sent += 1;
        Key::from(arrives.to_bits()) << 64 | Key::from(sent)
    };
    let mut messages = vec![Message::Read; clients as usize];
    let mut memories = vec![Strategy::START_MS; clients as usize];
    let mut next = Tournament::new((0..clients).map(|client| sending(draws.hop(client))));
    let (mut now, mut version, mut calls) = (0.0, 0, 0);
    loop {
        let (key, client) = next.winner();
        if key == NO_MESSAGE {
            return Race { time_ms: now, calls };
        }
        now = f64::from_bits((key >> 64) as u64);
        let message = &mut messages[client as usize];
        let mut wait = None;
        *message = match *message {
            Message::Read => Message::Version(version),
            Message::Version(read) => Message::Write(read),
            Message::Write(read) => {
                let accepted = read == version;
                version += u32::from(accepted);
                calls += 1;
                on_write(Write { at_ms: now, client, accepted });
                Message::Answer { accepted }
            }
            Message::Answer { accepted: true } => {
                next.replace_key(NO_MESSAGE);
                continue;
            }
            Message::Answer { accepted: false } => {
                wait = Some(&mut memories[client as usize]);
                Message::Read
            }
        };
        let mut arrives = now + draws.hop(client);
        if let Some(memory) = wait {
            arrives += strategy.wait(memory, |low, high| draws.uniform(client, low, high));
        }
        next.replace_key(sending(arrives));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Stream;
    use crate::race;

    /// A stream for each client, so that it does not matter in which order clients draw.
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

    fn observed(run: impl FnOnce(&mut dyn FnMut(Write)) -> Race) -> (Race, Vec<Write>) {
        let mut writes = Vec::new();
        let race = run(&mut |write| writes.push(write));
        (race, writes)
    }

    #[test]
    fn an_event_for_each_call_changes_nothing() {
        for strategy in Strategy::ALL {
            for (clients, seed) in [(1, 1), (2, 2), (3, 3), (10, 4), (60, 5), (150, 6)] {
                let fast = observed(|on_write| {
                    race::run(clients, strategy, &mut PerClient::new(clients, seed), on_write)
                });
                let every_message =
                    observed(|on_write| run(clients, strategy, &mut PerClient::new(clients, seed), on_write));
                assert_eq!(fast, every_message, "{clients} clients, {strategy}");
            }
        }
    }
}
