//! The consumer's options, and the rules that decide whether and when a failed message becomes visible again.

use std::fmt;
use std::time::Duration;

use comeback_backoff::{Jitter, requested_wait};
use comeback_engine::{BACKOFF_RANGE, DueBy, MAX_AGE_RANGE, ReasonCode, Timestamp, ceil_secs, simple_name};
use lambda_runtime::Diagnostic;

/// Maximum backoff, the same as the retry handler's.
const LONGEST_BACKOFF: Duration = Duration::from_secs(*BACKOFF_RANGE.end());
/// Maximum visibility timeout from the second receive on: SQS's 12 hours, less a margin of 30 s, less the 1,230 s for
/// which a throttled poller may have held the message. How long it was held is unknown, because SQS reports only the
/// time of the first receive.
const LONGEST_LATER_HIDING: Duration = Duration::from_secs(41_940);
const LONGEST_AGE: Duration = Duration::from_secs(*MAX_AGE_RANGE.end());
const SHORTEST_AGE: Duration = Duration::from_secs(*MAX_AGE_RANGE.start());
const MAX_BACKOFF: Duration = Duration::from_secs(3_600);
/// Default maximum backoff for a FIFO queue, where a hidden message holds up its group.
const FIFO_MAX_BACKOFF: Duration = Duration::from_secs(60);
const MOST_RECEIVES: u32 = 1_000;
const MOST_AT_ONCE: usize = 1_000;
/// Number of equal steps in the range of a `RetryAfter`'s jitter.
const PARTS: u64 = 1_000_000;
/// Maximum number of characters that a log line quotes from an ignored `RetryAfter`.
const SHOWN: usize = 64;

/// The options for a consumer, with durations in whole seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The ceiling of the first backoff: 1 s to `max_backoff`; by default, 10 s. The ceiling doubles with each receive.
    pub base_backoff: Duration,
    /// The maximum backoff, up to 43,170 s. The default is an hour. For a FIFO queue, where a hidden message holds up
    /// its group, it is a minute, or `base_backoff` if that is longer.
    pub max_backoff: Option<Duration>,
    /// The jitter of the backoff: `Full` by default; `Decorrelated` is refused.
    pub jitter: Jitter,
    /// The age, counted from sending, at which a failed message is dead-lettered: 60 s to 14 days; by default, 14 days.
    pub max_age: Duration,
    /// The number of receives after which a failed message is dead-lettered: 1 to 1,000. By default, there is no
    /// limit (`None`).
    pub max_receives: Option<u32>,
    /// The URL of the dead-letter queue. Without one, a message that gets no retry is hidden for `max_backoff` again
    /// and again, until the queue's redrive policy moves it or its retention period ends.
    pub dead_letter_queue_url: Option<String>,
    /// The maximum number of records, or FIFO groups, that are processed at the same time: 1 to 1,000; by default, 1.
    pub concurrency: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            base_backoff: Duration::from_secs(10),
            max_backoff: None,
            jitter: Jitter::Full,
            max_age: LONGEST_AGE,
            max_receives: None,
            dead_letter_queue_url: None,
            concurrency: 1,
        }
    }
}

/// Error for [`Options`] that are not valid, with a message that lists every mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct BadOptions(Vec<String>);

impl Options {
    pub(crate) fn check(&self, region: Option<&str>) -> Result<(), BadOptions> {
        let mut problems = Vec::new();
        let mut check = |name: &str, value: &dyn fmt::Debug, holds: bool, must: String| {
            if !holds {
                problems.push(format!("{name} is {value:?}; it must be {must}"));
            }
        };
        let seconds = |value: Duration, least: Duration, most: Duration| {
            value.subsec_nanos() == 0 && (least..=most).contains(&value)
        };
        let range = |least: Duration, most: Duration| {
            format!("{} s to {} s, in whole seconds", least.as_secs(), most.as_secs())
        };
        let second = Duration::from_secs(1);
        if let Some(cap) = self.max_backoff {
            let holds = seconds(cap, second, LONGEST_BACKOFF);
            check("max_backoff", &cap, holds, range(second, LONGEST_BACKOFF));
        }
        let cap = self.max_backoff.unwrap_or(MAX_BACKOFF);
        let holds = seconds(self.base_backoff, second, cap);
        check("base_backoff", &self.base_backoff, holds, range(second, cap));
        let holds = seconds(self.max_age, SHORTEST_AGE, LONGEST_AGE);
        check("max_age", &self.max_age, holds, range(SHORTEST_AGE, LONGEST_AGE));
        let holds = matches!(self.jitter, Jitter::Full | Jitter::Equal | Jitter::None);
        check("jitter", &self.jitter, holds, "Full, Equal or None".into());
        if let Some(most) = self.max_receives {
            let holds = (1..=MOST_RECEIVES).contains(&most);
            check("max_receives", &most, holds, format!("1 to {MOST_RECEIVES}"));
        }
        let holds = (1..=MOST_AT_ONCE).contains(&self.concurrency);
        check("concurrency", &self.concurrency, holds, format!("1 to {MOST_AT_ONCE}"));
        if let Some(url) = &self.dead_letter_queue_url {
            let path = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
            let holds = path.and_then(|path| path.split_once('/')).is_some_and(|(host, queue)| {
                !host.is_empty() && !queue.is_empty() && !url.contains(char::is_whitespace)
            });
            check("dead_letter_queue_url", url, holds, "the URL of an SQS queue".into());
            // Calls go to the function's region, where another queue may have the same name.
            let is_here = region.is_none() || region_of(url).is_none_or(|it| region == Some(it));
            check("dead_letter_queue_url", url, is_here, "in the function's region".into());
        }
        if problems.is_empty() { Ok(()) } else { Err(BadOptions(problems)) }
    }

    pub(crate) fn cap(&self, fifo: bool) -> Duration {
        let default = if fifo { FIFO_MAX_BACKOFF.max(self.base_backoff) } else { MAX_BACKOFF };
        self.max_backoff.unwrap_or(default)
    }

    /// Draws the backoff, in whole seconds, after the given number of receives.
    pub(crate) fn draw(&self, receives: u32, fifo: bool, draw: Draw<'_>) -> Duration {
        // The shift cannot overflow, because the cap is reached after at most 32 doublings.
        let doubled = self.base_backoff.as_secs() << (receives.max(1) - 1).min(32);
        let ceiling = doubled.min(self.cap(fifo).as_secs());
        let least = match self.jitter {
            Jitter::Equal => ceiling.div_ceil(2),
            Jitter::None => ceiling,
            _ => 1,
        };
        Duration::from_secs(draw(least, ceiling))
    }

    /// Returns the reason why a failed message gets no retry, or `None` if it may get one. Ignores the message's age.
    fn ends(&self, message: SystemAttributes, error_type: &str) -> Option<NoRetry> {
        if matches!(simple_name(error_type), "NonRetryable" | "NonRetriable" | "NeverRetry") {
            let detail = format!("{error_type} forbids retries");
            return Some(NoRetry { reason: ReasonCode::NonRetryableError, detail });
        }
        let most = self.max_receives.filter(|most| message.receives >= *most)?;
        let detail = format!("received {} times; max_receives is {most}", message.receives);
        Some(NoRetry { reason: ReasonCode::MaxRetries, detail })
    }

    fn too_old(&self, message: SystemAttributes) -> NoRetry {
        let detail = format!("sent at {}; max_age is {} s", message.sent, self.max_age.as_secs());
        NoRetry { reason: ReasonCode::MaxAge, detail }
    }

    /// Returns a failed message's retry, or the reason not to retry it. If a `RetryAfter` is ignored, also returns the
    /// reason for ignoring it.
    pub(crate) fn decide(
        &self,
        message: SystemAttributes,
        error: &Diagnostic,
        now: Timestamp,
        draw: Draw<'_>,
    ) -> (Result<NextRetry, NoRetry>, Option<String>) {
        let (asked, ignored) = match requested(error, now) {
            Some(Ok(wait)) => (Some(wait), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        if let Some(end) = self.ends(message, &error.error_type) {
            return (Err(end), ignored);
        }
        let (delay, due_by) = match asked {
            Some(wait) => {
                let extra = wait.as_nanos() / 10 * u128::from(draw(0, PARTS - 1)) / u128::from(PARTS);
                let extra = Duration::from_nanos(u64::try_from(extra).unwrap_or(u64::MAX));
                (wait.saturating_add(extra), DueBy::RetryAfter)
            }
            None => (self.draw(message.receives, message.fifo, draw), DueBy::Policy),
        };
        // The last receive is due shortly before `max_age`, so that the function has time to run.
        let margin = SHORTEST_AGE.min(self.max_age / 10);
        let last = message.sent.saturating_add(self.max_age - margin);
        let due = now.saturating_add(delay);
        let decided = match due <= last {
            true => Ok(NextRetry { due, due_by }),
            false if last >= now.saturating_add(margin) => Ok(NextRetry { due: last, due_by }),
            false => Err(self.too_old(message)),
        };
        (decided, ignored)
    }
}

/// A function that draws a whole number between two inclusive bounds.
pub(crate) type Draw<'a> = &'a dyn Fn(u64, u64) -> u64;

/// SQS's data about a message and its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SystemAttributes {
    pub(crate) receives: u32,
    pub(crate) sent: Timestamp,
    pub(crate) first_receive: Timestamp,
    pub(crate) fifo: bool,
}

impl SystemAttributes {
    /// Returns the visibility timeout to set at `now` for a message due at `due`: whole seconds, at least 1.
    pub(crate) fn hiding(self, due: Timestamp, now: Timestamp) -> Duration {
        let longest = if self.receives > 1 {
            LONGEST_LATER_HIDING
        } else {
            LONGEST_BACKOFF.saturating_sub(Duration::from_secs(ceil_secs(now.since(self.first_receive))))
        };
        Duration::from_secs(ceil_secs(due.since(now))).min(longest).max(Duration::from_secs(1))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextRetry {
    pub(crate) due: Timestamp,
    pub(crate) due_by: DueBy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoRetry {
    pub(crate) reason: ReasonCode,
    pub(crate) detail: String,
}

/// Returns the wait that a `RetryAfter` error requests, or the reason why it is ignored; `None` for any other error.
fn requested(error: &Diagnostic, now: Timestamp) -> Option<Result<Duration, String>> {
    if simple_name(&error.error_type) != "RetryAfter" {
        return None;
    }
    let since_epoch = Duration::from_millis(now.as_millis());
    let why = match requested_wait(&error.error_message, std::time::UNIX_EPOCH + since_epoch) {
        Ok(wait) if !wait.is_zero() => return Some(Ok(wait)),
        Ok(_) => "its time is not after the failure",
        Err(unreadable) => unreadable.reason(),
    };
    let said = error.error_message.split(';').next().unwrap_or_default();
    let said: String = said.trim().chars().take(SHOWN).collect();
    Some(Err(format!("{said:?}: {why}")))
}

/// Returns the AWS region in the host name of a queue's URL, or `None` if the host name has no region.
fn region_of(queue_url: &str) -> Option<&str> {
    let (_, rest) = queue_url.split_once("://")?;
    let host = rest.split('/').next()?;
    let labels: Vec<&str> = host.split('.').collect();
    let region = match labels[..] {
        ["sqs" | "sqs-fips", region, _, ..] | [region, "queue", _, ..] => region,
        _ => return None,
    };
    let number = region.rsplit('-').next()?;
    let is_region = region.matches('-').count() >= 2 && number.bytes().all(|it| it.is_ascii_digit());
    is_region.then_some(region)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    use super::*;

    #[test]
    fn every_bad_option_is_named() {
        let bad = Options {
            base_backoff: Duration::ZERO,
            max_backoff: Some(Duration::from_secs(43_171)),
            jitter: Jitter::Decorrelated,
            max_age: Duration::from_millis(60_500),
            max_receives: Some(0),
            dead_letter_queue_url: Some("arn:aws:sqs:eu-west-1:1:dead".into()),
            concurrency: 0,
        };
        assert_eq!(
            bad.check(None).unwrap_err().to_string().split("; ").collect::<Vec<_>>(),
            [
                "max_backoff is 43171s",
                "it must be 1 s to 43170 s, in whole seconds",
                "base_backoff is 0ns",
                "it must be 1 s to 43171 s, in whole seconds",
                "max_age is 60.5s",
                "it must be 60 s to 1209600 s, in whole seconds",
                "jitter is Decorrelated",
                "it must be Full, Equal or None",
                "max_receives is 0",
                "it must be 1 to 1000",
                "concurrency is 0",
                "it must be 1 to 1000",
                "dead_letter_queue_url is \"arn:aws:sqs:eu-west-1:1:dead\"",
                "it must be the URL of an SQS queue",
            ]
        );
        assert_eq!(Options::default().check(None), Ok(()));
    }

    #[test]
    fn default_backoff_is_the_handlers() {
        let (options, handlers) = (Options::default(), comeback_engine::Settings::default());
        assert_eq!(options.base_backoff, Duration::from_secs(handlers.base_backoff));
        assert_eq!(options.cap(false), Duration::from_secs(handlers.max_backoff));
        assert_eq!(options.jitter, handlers.jitter);
    }

    #[test]
    fn dead_letter_queue_in_another_region_is_refused() {
        for (url, region) in [
            ("https://sqs.eu-west-1.amazonaws.com/1/dead", Some("eu-west-1")),
            ("https://sqs-fips.us-gov-west-1.amazonaws.com/1/dead", Some("us-gov-west-1")),
            ("https://us-east-2.queue.amazonaws.com/1/dead", Some("us-east-2")),
            ("https://sqs.eusc-de-east-1.amazonaws.eu/1/dead", Some("eusc-de-east-1")),
            ("https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com/1/dead", None),
            ("http://127.0.0.1:4566/1/dead", None),
        ] {
            assert_eq!(region_of(url), region, "{url}");
            let options = Options { dead_letter_queue_url: Some(url.into()), ..Options::default() };
            assert_eq!(options.check(region), Ok(()), "{url}");
            assert_eq!(options.check(Some("eu-north-1")).is_err(), region.is_some(), "{url}");
        }
    }

    fn failed(error_type: &str, error_message: &str) -> Diagnostic {
        Diagnostic { error_type: error_type.into(), error_message: error_message.into() }
    }

    /// Returns the test cases in the file `name`, except those with a lone surrogate, which a Rust string cannot hold.
    fn shared_cases(name: &str) -> Vec<serde_json::Value> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/directives/");
        let text = std::fs::read_to_string(format!("{folder}{name}")).unwrap();
        let cases: Vec<_> =
            text.lines().filter_map(|line| serde_json::from_str(line.trim_end_matches(',')).ok()).collect();
        assert!(cases.len() > 40);
        cases
    }

    #[test]
    fn every_shared_wait_is_read_as_expected() {
        for case in shared_cases("retry-after.json") {
            let text = case["text"].as_str().unwrap();
            let failed_at = Timestamp::from_rfc3339(case["failed_at"].as_str().unwrap()).unwrap();
            let read = requested(&failed("RetryAfter", text), failed_at).unwrap();
            let read = read.map(|wait| wait.as_secs_f64());
            let read = read.map_err(|why| why.rsplit_once("\": ").unwrap().1.to_owned());
            let expected = match case["wait"].as_f64() {
                Some(0.0) => Err("its time is not after the failure".to_owned()),
                Some(wait) => Ok(wait),
                None => Err(case["ignored"].as_str().unwrap().to_owned()),
            };
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn every_shared_name_is_read_as_expected() {
        let now = Timestamp::from_secs(1_000_000);
        let message = SystemAttributes { receives: 1, sent: now, first_receive: now, fifo: false };
        for case in shared_cases("names.json") {
            let error = failed(case["error_type"].as_str().unwrap(), "900");
            let (decided, _) = Options::default().decide(message, &error, now, &|least, _| least);
            let decided = decided.map(|retry| retry.due_by).map_err(|end| end.reason);
            let expected = match case["name"].as_str().unwrap() {
                "RetryAfter" => Ok(DueBy::RetryAfter),
                "NonRetryable" | "NonRetriable" | "NeverRetry" => Err(ReasonCode::NonRetryableError),
                _ => Ok(DueBy::Policy),
            };
            assert_eq!(decided, expected, "{}", error.error_type);
        }
    }

    #[test]
    fn draws_stay_in_bounds_and_spread() {
        for (jitter, least, mean) in [(Jitter::Full, 1, 320.5), (Jitter::Equal, 320, 480.0)] {
            let generator = std::cell::RefCell::new(Xoshiro256PlusPlus::seed_from_u64(7));
            let draw = |least, most| generator.borrow_mut().random_range(least..=most);
            let options = Options { jitter, ..Options::default() };
            let draws: Vec<u64> = (0..20_000).map(|_| options.draw(7, false, &draw).as_secs()).collect();
            let mut seen = draws.clone();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen, (least..=640).collect::<Vec<_>>(), "every whole second is drawn");
            assert!((draws.iter().sum::<u64>() as f64 / 20_000.0 - mean).abs() < 5.0);
        }
    }

    proptest! {
        #[test]
        fn backoff_never_exceeds_its_ceiling(
            base in 1_u64..=3_600,
            cap in 1_u64..=43_170,
            receives in any::<u32>(),
            high in any::<bool>(),
        ) {
            let options = Options {
                base_backoff: Duration::from_secs(base.min(cap)),
                max_backoff: Some(Duration::from_secs(cap)),
                ..Options::default()
            };
            prop_assert_eq!(options.check(None), Ok(()));
            let drawn = options.draw(receives, false, &|least, most| if high { most } else { least });
            let doublings = receives.saturating_sub(1).min(63);
            let ceiling = (u128::from(base.min(cap)) << doublings).min(u128::from(cap));
            prop_assert_eq!(u128::from(drawn.as_secs()), if high { ceiling } else { 1 });
        }

        #[test]
        fn hiding_ends_when_due_or_at_the_limit(
            receives in 1_u32..5,
            held in 0_u64..50_000,
            left in 0_u64..100_000_000,
        ) {
            let now = Timestamp::from_secs(1_000_000);
            let first_receive = Timestamp::from_secs(1_000_000 - held);
            let message = SystemAttributes { receives, sent: first_receive, first_receive, fifo: false };
            let hiding = message.hiding(now.saturating_add(Duration::from_millis(left)), now);
            let longest = if receives > 1 { 41_940 } else { 43_170_u64.saturating_sub(held) };
            prop_assert_eq!(hiding.as_secs(), left.div_ceil(1_000).min(longest).max(1));
        }
    }
}
