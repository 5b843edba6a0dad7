use comeback_engine::MAXIMUM_CONCURRENCY_RANGE;
use serde::Serialize;

use crate::aws::queue::LONGEST_DELAY;
use crate::figures::calls::ApiCall;
use crate::figures::prices;
use crate::scenario::Scenario;

/// What the moves of a rate of failing events come to, once as many events are given up as arrive.
///
/// # Why there are no more
///
/// If no message were hidden, a wait of *w* seconds would take ⌈*w* / 900⌉ moves. A message that is hidden
/// for the whole of it takes none, which saves a move at least for each 900 s that it is hidden. So
/// *H* hidden messages save *H* / 900 moves a second at least. (Waits are under 900 s too, and the
/// handler hides the long ones first, so they save hardly more.)
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moves {
    /// Events that wait as delayed messages. This is also how many event-hours are spent delayed in an hour.
    pub delayed: f64,
    /// Messages sent again a second, at most.
    pub per_second: f64,
    /// List price of those, in US dollars: each is sent, received and deleted, and needs its share of the
    /// handler and of its log, in full batches of small messages.
    pub usd_per_hour: f64,
    /// The same for a million hours that an event is delayed; none if none is.
    pub usd_per_million_event_hours: Option<f64>,
}

impl Moves {
    /// Of so many events that wait, of which so many are hidden. `all` moves a second would be made if
    /// none were.
    pub(super) fn of(all: f64, waiting: f64, hidden: f64) -> Self {
        let delayed = waiting - hidden;
        let saved = hidden / LONGEST_DELAY.as_secs_f64();
        let per_second = if delayed > 0.0 { all - saved } else { 0.0 };
        let usd_per_hour = per_second * 3_600.0 * usd_a_move();
        let usd_per_million_event_hours = (delayed > 0.0).then(|| usd_per_hour / delayed * 1e6);
        Self { delayed, per_second, usd_per_hour, usd_per_million_event_hours }
    }
}

/// How many moves a wait of so many seconds takes.
pub(super) fn moves_of(wait: u32) -> u64 {
    u64::from(wait).div_ceil(LONGEST_DELAY.as_secs())
}

/// Batches under way at once. A message is received when it arrives and when it is due, and once for each
/// move.
pub(crate) fn pollers(retries_per_second: f64, moves_per_second: f64) -> u64 {
    let Scenario { handler_run_time, batch_size, .. } = Scenario::default();
    let received = 2.0 * retries_per_second + moves_per_second;
    let busy = received * handler_run_time.as_millis() as f64 / (1_000 * batch_size) as f64;
    (busy.ceil() as u64).max(*MAXIMUM_CONCURRENCY_RANGE.start())
}

/// The list price of a move in a full batch, in US dollars.
pub(crate) fn usd_a_move() -> f64 {
    // So many that no part of a cent is lost.
    const BATCHES: u64 = 100_000;
    let Scenario { handler_run_time, batch_size, .. } = Scenario::default();
    let calls =
        [ApiCall::SendAgain, ApiCall::ReceiveMessage, ApiCall::InvokeHandler, ApiCall::DeleteMessageBatch];
    let requests: f64 = calls.map(|call| prices::requests(call, BATCHES)).iter().sum();
    let compute = prices::gb_seconds(BATCHES, handler_run_time, prices::HANDLER_MEMORY_GB);
    // The moves of a batch have one line.
    let logs = prices::logs(prices::log_bytes(BATCHES, BATCHES));
    (requests + prices::compute(compute) + logs) / (BATCHES * batch_size as u64) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_takes_a_move_for_each_900_seconds_or_part_of_them() {
        assert_eq!([0, 1, 900, 901, 1_800, 43_170].map(moves_of), [0, 1, 1, 2, 2, 48]);
    }

    /// A tenth of three SQS requests, 0.12 USD a million; of an invocation, 0.02; of 0.1 s of 0.25 GB,
    /// 0.033,333,5; and of 702 bytes of log, 0.0351.
    #[test]
    fn a_million_moves_cost_a_fifth_of_a_dollar() {
        assert!((usd_a_move() * 1e6 - 0.208_433_5).abs() < 1e-9, "{}", usd_a_move());
    }

    #[test]
    fn hidden_messages_save_moves_and_what_is_left_has_a_price() {
        // 4 moves a second if none is hidden, and 3 with 900 hidden: 10,800 an hour.
        let moves = Moves::of(4.0, 2_700.0, 900.0);
        assert_eq!((moves.delayed, moves.per_second), (1_800.0, 3.0));
        assert!((moves.usd_per_hour - 10_800.0 * 0.208_433_5e-6).abs() < 1e-9, "{moves:?}");
        // 6 moves for each hour of an event.
        let usd = moves.usd_per_million_event_hours.unwrap();
        assert!((usd - 6.0 * 0.208_433_5).abs() < 1e-9, "{usd}");
    }

    #[test]
    fn with_room_for_all_there_is_no_move() {
        let none =
            Moves { delayed: 0.0, per_second: 0.0, usd_per_hour: 0.0, usd_per_million_event_hours: None };
        assert_eq!(Moves::of(4.0, 2_700.0, 2_700.0), none);
    }

    #[test]
    fn batches_under_way_are_rounded_up_and_two_at_least() {
        // 10 messages are a batch, and 10 batches a second keep one poller busy.
        assert_eq!(pollers(0.0, 0.0), 2);
        assert_eq!(pollers(50.0, 100.0), 2, "200 messages a second");
        assert_eq!(pollers(50.0, 101.0), 3);
        assert_eq!(pollers(50_000.0, 500.0), 1_005);
    }
}
