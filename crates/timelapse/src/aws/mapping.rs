//! The event source mapping: its pollers, its batches, and its interpretation of the handler's response.

use std::time::Duration;

use comeback_engine::{Record, Timestamp};
use slab::Slab;

/// Number of pollers that Lambda keeps for a quiet queue if the mapping has a maximum concurrency. Source: "Configuring
/// scaling behavior for SQS event source mappings", AWS Lambda Developer Guide.
const QUIET_POLLERS: usize = 5;
/// Length of a long poll: SQS's maximum. AWS bills an idle queue for 648,000 polls in 30 days, which is what five
/// pollers with this poll make.
pub(crate) const LONG_POLL: Duration = Duration::from_secs(20);

/// The event source mapping; `B` is the content of a batch.
#[derive(Debug)]
pub(crate) struct Mapping<B> {
    /// The batch of each running invocation, and the index of its poller. The batch is `None` once it has been taken. A
    /// poller that Lambda added under load has no index.
    under_way: Slab<(Option<B>, Option<usize>)>,
    /// Records from earlier batches, kept so that their buffers can be reused.
    pub(crate) spare: Vec<Vec<Record>>,
    /// When each poller of a quiet queue began to poll, or `None` while the handler works on its batch.
    looking_since: [Option<Timestamp>; QUIET_POLLERS],
    pub(crate) poll_planned: bool,
}

impl<B> Mapping<B> {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            under_way: Slab::new(),
            spare: Vec::new(),
            looking_since: [Some(now); QUIET_POLLERS],
            poll_planned: false,
        }
    }

    pub(crate) fn batches_under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Starts an invocation of the handler; returns the batch's key and the number of empty polls before the batch.
    pub(crate) fn start(&mut self, now: Timestamp, batch: B) -> (usize, u64) {
        // The batch comes from the poller that has been polling the longest. If all pollers are busy, it comes from one
        // that Lambda added under load.
        let longest = (0..QUIET_POLLERS)
            .filter(|&poller| self.looking_since[poller].is_some())
            .min_by_key(|&poller| self.looking_since[poller]);
        let empty =
            longest.and_then(|poller| self.looking_since[poller].take()).map_or(0, |since| polls(since, now));
        let key = self.under_way.insert((Some(batch), longest));
        (key, empty)
    }

    /// Removes and returns a batch's content; its poller stays busy.
    pub(crate) fn take(&mut self, key: usize) -> B {
        self.under_way[key].0.take().expect("BUG: a batch was taken twice")
    }

    /// Frees the poller that received a batch, after the handler has responded or has been stopped.
    pub(crate) fn end(&mut self, now: Timestamp, key: usize) {
        if let Some(poller) = self.under_way.remove(key).1 {
            self.looking_since[poller] = Some(now);
        }
    }

    /// Returns the number of empty polls that the idle pollers have made since they became idle.
    pub(crate) fn empty_polls(&self, now: Timestamp) -> u64 {
        self.looking_since.iter().flatten().map(|&since| polls(since, now)).sum()
    }
}

fn polls(since: Timestamp, now: Timestamp) -> u64 {
    (now.since(since).as_millis() / LONG_POLL.as_millis()) as u64
}

/// For each message in a batch, returns true if it stays on the queue after a response with these `batchItemFailures`.
/// An unknown id keeps all messages. Source: "Reporting batch item failures", AWS Lambda Developer Guide.
pub(crate) fn kept(records: &[Record], batch_item_failures: &[&str]) -> Vec<bool> {
    let of_this_batch = |id: &&str| records.iter().any(|record| record.message_id == **id);
    if !batch_item_failures.iter().all(of_this_batch) {
        return vec![true; records.len()];
    }
    records.iter().map(|record| batch_item_failures.contains(&record.message_id.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(1_000 + secs)
    }

    #[test]
    fn a_quiet_minute_costs_fifteen_polls() {
        let mapping = Mapping::<()>::new(at(0));
        assert_eq!(mapping.empty_polls(at(60)), 15);
        assert_eq!(mapping.empty_polls(at(30 * 86_400)), 648_000);
    }

    #[test]
    fn a_batch_is_billed_with_the_empty_polls_before_it() {
        let mut mapping = Mapping::new(at(0));
        let (key, polls) = mapping.start(at(50), ());
        assert_eq!(polls, 2, "at 20 s and 40 s without a message, before the receive");
        assert_eq!(mapping.empty_polls(at(59)), 8, "the other four go on");
        mapping.end(at(51), key);
        assert_eq!(mapping.empty_polls(at(71)), 4 * 3 + 1, "it starts anew at its batch's end");
    }

    #[test]
    fn pollers_that_load_adds_have_no_empty_polls() {
        let mut mapping = Mapping::new(at(0));
        let billed: Vec<u64> = (0..7).map(|_| mapping.start(at(20), ()).1).collect();
        assert_eq!(billed, [1, 1, 1, 1, 1, 0, 0]);
        assert_eq!(mapping.batches_under_way(), 7);
    }
}
