use std::hash::Hasher;

use comeback_engine::{Action, Pauses, Policy, ReasonCode, Record, Style, Timestamp, decide};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use siphasher::sip::SipHasher13;

use crate::START;
use crate::aws::failure_record::FailureRecords;
use crate::aws::id::Id;
use crate::aws::target::{DOWN, TARGET_ARN};
use crate::event::EventNumber;

/// One event whose target fails every time: its retries in order, and why there are no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) retries: Vec<Made>,
    pub(super) given_up: ReasonCode,
}

/// When a retry was made, in whole seconds: the engine waits for whole seconds, and nothing else takes
/// time here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Made {
    /// Since the failure before it.
    pub(super) wait: u32,
    /// Since the first failure.
    pub(super) at: u32,
}

impl Chain {
    /// Follows an event through the engine's own decisions. The record of a failure is received at once,
    /// hidden for as long as the engine says, and received again, until it is retried; the retry fails
    /// at once.
    pub(super) fn follow(policy: &Policy, seed: u64, event: EventNumber) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(stream(seed, event));
        let mut records = FailureRecords::of(TARGET_ARN);
        let mut payload = format!(r#"{{"order":{event}}}"#);
        let mut now = START;
        let mut retries = Vec::new();
        loop {
            let failed_at = now;
            let mut record = Record {
                message_id: Id::draw(&mut rng).to_string(),
                receipt_handle: String::new(),
                body: records.write(now, Id::draw(&mut rng), &payload, DOWN, String::new()),
                receive_count: 1,
                sent: now,
                first_receive: now,
                moved: None,
                trace_header: None,
            };
            match serve_backoff(&mut record, policy, &mut now) {
                Ok(enveloped) => payload = enveloped,
                Err(given_up) => return Self { retries, given_up },
            }
            retries.push(Made { wait: seconds(failed_at, now), at: seconds(START, now) });
        }
    }
}

/// Receives a message until it is retried or given up, and leaves `now` at that moment. Gives the
/// payload of the retry.
fn serve_backoff(record: &mut Record, policy: &Policy, now: &mut Timestamp) -> Result<String, ReasonCode> {
    loop {
        let hidden_for = match decide(record, policy, &Pauses::default(), *now) {
            Action::Defer { visibility_timeout, .. } | Action::Hold { visibility_timeout, .. } => {
                visibility_timeout
            }
            // The styles delay alike, and the engine reads both.
            Action::Reinvoke { envelope, .. } => return Ok(envelope.seal(Style::Wrap)),
            Action::DeadLetter { reason, .. } => return Err(reason.code),
        };
        *now = now.saturating_add(hidden_for);
        record.receive_count += 1;
    }
}

fn seconds(from: Timestamp, to: Timestamp) -> u32 {
    u32::try_from(to.since(from).as_secs()).expect("BUG: MAX_AGE is 14 days at most")
}

fn stream(seed: u64, event: EventNumber) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(&seed.to_le_bytes());
    hasher.write(&(event.0 as u64).to_le_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use comeback_engine::{Jitter, Settings};

    use super::*;

    fn chain(settings: Settings) -> Chain {
        let settings = Settings { target_functions: vec![TARGET_ARN.into()], ..settings };
        Chain::follow(&Policy::new(settings).unwrap(), 1, EventNumber(0))
    }

    fn waits(settings: Settings) -> Vec<u32> {
        chain(settings).retries.iter().map(|made| made.wait).collect()
    }

    fn without_jitter() -> Settings {
        Settings { jitter: Jitter::None, ..Settings::default() }
    }

    #[test]
    fn waits_add_up_and_the_last_retry_comes_before_max_age() {
        let chain = chain(Settings { max_age: 100, ..without_jitter() });
        let made: Vec<(u32, u32)> = chain.retries.iter().map(|made| (made.wait, made.at)).collect();
        // 1, 2, 4, 8, 16 and 32 s add up to 63 s. Another 64 s are too many: they are cut to end a tenth of
        // MAX_AGE before its end.
        assert_eq!(made, [(1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, 63), (27, 90)]);
        assert_eq!(chain.given_up, ReasonCode::MaxAge);
        // After 511 s, 512 s more are too many. A tenth of MAX_AGE would be over a minute.
        let cut = waits(Settings { max_age: 700, ..without_jitter() });
        assert_eq!(cut, [1, 2, 4, 8, 16, 32, 64, 128, 256, 700 - 60 - 511]);
    }

    #[test]
    fn each_failure_is_a_new_message_so_that_14_days_are_used_to_their_end() {
        let chain = chain(Settings { max_age: 14 * 86_400, ..without_jitter() });
        assert_eq!(chain.retries.last().map(|made| made.at), Some(14 * 86_400 - 60));
    }

    #[test]
    fn max_retries_ends_a_chain() {
        let chain = chain(Settings { max_retries: 3, ..without_jitter() });
        assert_eq!((chain.retries.len(), chain.given_up), (3, ReasonCode::MaxRetries));
    }

    #[test]
    fn an_error_that_is_not_retried_has_no_retry() {
        let globs = vec!["TargetD*".to_owned()];
        let chain = chain(Settings { non_retryable_errors: globs, ..without_jitter() });
        assert_eq!((chain.retries.len(), chain.given_up), (0, ReasonCode::NonRetryableError));
    }

    #[test]
    fn a_decorrelated_chain_is_one_chain() {
        let decorrelated = Settings { jitter: Jitter::Decorrelated, ..Settings::default() };
        let waits = waits(decorrelated);
        let cut_off = waits.len() - 1;
        assert!(waits[..cut_off].windows(2).all(|pair| pair[1] <= 3 * pair[0]), "{waits:?}");
    }

    #[test]
    fn events_and_seeds_differ() {
        let policy =
            Policy::new(Settings { target_functions: vec![TARGET_ARN.into()], ..Settings::default() });
        let policy = policy.unwrap();
        let [one, other, reseeded] =
            [(1, 0), (1, 1), (2, 0)].map(|(s, e)| Chain::follow(&policy, s, EventNumber(e)));
        assert!(one != other && one != reseeded && other != reseeded);
    }
}
