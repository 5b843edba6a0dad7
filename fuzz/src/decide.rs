use std::time::Duration;

use comeback_engine::{
    Action, BACKOFF_RANGE, Concurrency, Envelope, FailedEvent, HOLD, Jitter, LONGEST_SPREAD, MAX_AGE_RANGE,
    MAX_RETRIES_RANGE, Pause, PauseTarget, Pauses, Policy, Record, Settings, Style, Timestamp,
    longest_between_reads,
};

/// A message, a policy, a pause and a time. Any bytes are a question: numbers of fixed width, then the body.
#[derive(Clone, Debug)]
pub struct Question {
    /// The policy's settings: its numbers, `JITTER` and `ENVELOPE` are free.
    pub settings: Settings,
    /// A pause of every function, from its start to its end and its spread in seconds; an end of 0 means that it is open.
    pub pause: Option<(u64, u64, u64)>,
    /// Its id is a number.
    pub record: Record,
    /// The handler's clock.
    pub now: Timestamp,
}

/// [`comeback_engine::decide()`] on a [`Question`].
///
/// # Panics
///
/// If `decide` does, or if its answer leaves the bounds that hold for every message.
pub fn decide(data: &[u8]) {
    Question::from_bytes(data).check();
}

impl Question {
    /// Reads bytes: missing ones are zero, and numbers out of range are brought into it.
    #[must_use]
    pub fn from_bytes(data: &[u8]) -> Self {
        let mut rest = data;
        let settings = Settings {
            max_age: number::<4>(&mut rest) % (MAX_AGE_RANGE.end() + 1),
            max_retries: number::<2>(&mut rest) % (MAX_RETRIES_RANGE.end() + 1),
            base_backoff: number::<2>(&mut rest) % (BACKOFF_RANGE.end() + 1),
            max_backoff: number::<2>(&mut rest) % (BACKOFF_RANGE.end() + 1),
            jitter: one_of(&Jitter::ALL, number::<1>(&mut rest)),
            envelope: one_of(&Style::ALL, number::<1>(&mut rest)),
            non_retryable_errors: vec!["*Fatal*".into(), "Order*".into()],
            target_functions: vec!["arn:aws:lambda:eu-west-1:123456789012:function:flaky-*".into()],
            ..Settings::default()
        };
        let max_backoff = settings.max_backoff.max(1);
        let settings = Settings {
            max_age: settings.max_age.max(*MAX_AGE_RANGE.start()),
            base_backoff: settings.base_backoff.clamp(1, max_backoff),
            max_backoff,
            ..settings
        };
        let id = number::<4>(&mut rest);
        let receive_count = number::<4>(&mut rest).try_into().expect("BUG: four bytes are a u32");
        let [sent, first_receive, now] = [(); 3].map(|()| Timestamp::from_millis(number::<8>(&mut rest)));
        // So that it ends before the year 10000.
        let (from, length) = (number::<5>(&mut rest) % 249_000_000_000, number::<4>(&mut rest));
        let until = if length == 0 { 0 } else { from + length };
        let pause = (from > 0).then(|| (from, until, number::<4>(&mut rest) % LONGEST_SPREAD.as_secs()));
        let message = crate::message(String::from_utf8_lossy(rest));
        let record = Record { message_id: id.to_string(), receive_count, sent, first_receive, ..message };
        Self { settings, pause, record, now }
    }

    /// Bytes that are read as this.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { settings, pause, record, now } = self;
        let place = |found: Option<usize>| u8::try_from(found.unwrap_or_default()).unwrap_or_default();
        let mut data = Vec::new();
        data.extend(&settings.max_age.to_le_bytes()[..4]);
        for setting in [settings.max_retries, settings.base_backoff, settings.max_backoff] {
            data.extend(&setting.to_le_bytes()[..2]);
        }
        data.push(place(Jitter::ALL.iter().position(|jitter| *jitter == settings.jitter)));
        data.push(place(Style::ALL.iter().position(|style| *style == settings.envelope)));
        data.extend(record.message_id.parse::<u32>().unwrap_or_default().to_le_bytes());
        data.extend(record.receive_count.to_le_bytes());
        for time in [record.sent, record.first_receive, *now] {
            data.extend(time.as_millis().to_le_bytes());
        }
        let (from, until, spread) = pause.unwrap_or_default();
        data.extend(&from.to_le_bytes()[..5]);
        data.extend(&until.saturating_sub(from).to_le_bytes()[..4]);
        if from > 0 {
            data.extend(&spread.to_le_bytes()[..4]);
        }
        data.extend(record.body.as_bytes());
        data
    }

    /// What the parameter would hold.
    ///
    /// # Panics
    ///
    /// If the pause makes no sense.
    #[must_use]
    pub fn pauses(&self) -> Pauses {
        let Some((from, until, spread)) = self.pause else { return Pauses::default() };
        let from = Timestamp::from_secs(from);
        let pause = Pause {
            target: PauseTarget::All,
            from,
            until: (until > 0).then(|| Timestamp::from_secs(until)),
            spread: Duration::from_secs(spread),
            by: None,
            why: None,
            concurrency: Concurrency::Untouched,
        };
        Pauses::default()
            .open(pause, from)
            .expect("BUG: it lasts a second at least, and ends before the year 10000")
    }

    fn check(&self) {
        let Self { settings, record, now, .. } = self;
        let pauses = self.pauses();
        let policy = Policy::new(settings.clone()).expect("BUG: settings are brought into range");
        let action = comeback_engine::decide(record, &policy, &pauses, *now);
        let again = comeback_engine::decide(record, &policy, &pauses, *now);
        assert_eq!(format!("{action:?}"), format!("{again:?}"), "the same question has the same answer");
        match &action {
            Action::Defer { due, visibility_timeout, .. } => {
                assert_eq!(visibility_timeout.subsec_nanos(), 0, "SQS counts whole seconds");
                assert!((1..=43_170).contains(&visibility_timeout.as_secs()), "{visibility_timeout:?}");
                self.check_later_look(&policy, *due, *visibility_timeout);
            }
            Action::Hold { visibility_timeout, .. } => {
                assert!(pauses.iter().any(|pause| pause.is_active(*now)), "nothing is paused");
                assert!(
                    (1..=HOLD.as_secs()).contains(&visibility_timeout.as_secs()),
                    "{visibility_timeout:?}"
                );
            }
            Action::Reinvoke { event, envelope, .. } => self.check_retry(&policy, event, envelope),
            Action::DeadLetter { reason, .. } => {
                assert_eq!(action.due(), None);
                assert!(!reason.detail.is_empty());
            }
        }
    }

    /// A message that was received again is not hidden longer than until it is due, and its due time
    /// does not move unless the end of a pause is noticed meanwhile.
    fn check_later_look(&self, policy: &Policy, due: Timestamp, hidden: Duration) {
        assert!(hidden <= due.since(self.now) + Duration::from_secs(1), "{hidden:?} until {due}");
        let later = self.now.saturating_add(hidden);
        let pauses = self.pauses();
        let latest_notice = longest_between_reads(policy);
        let is_noticed = |until: Timestamp| until.saturating_add(latest_notice) <= self.now;
        let is_settled = pauses.iter().all(|pause| pause.until.is_some_and(is_noticed) || later < pause.from);
        if self.record.receive_count > 1 && later >= due && is_settled {
            let look = comeback_engine::decide(&self.record, policy, &pauses, later);
            assert!(!matches!(look, Action::Defer { .. }), "deferred again: {look:?}");
            assert!(look.due().is_none_or(|moved| moved == due), "{due} has moved: {look:?}");
        }
    }

    fn check_retry(&self, policy: &Policy, event: &FailedEvent<'_>, envelope: &Envelope<'_>) {
        let first_failure = Timestamp::from_secs(envelope.metadata.initial_timestamp);
        assert!(self.record.receive_count > 1, "no backoff was served yet");
        assert!(policy.allows(&event.function_arn));
        assert!((1..=policy.max_retries()).contains(&envelope.metadata.attempt));
        assert!(first_failure <= self.record.sent, "a forged time would void MAX_AGE");
        let until = |pause: &Pause| pause.until.map_or(self.now, |until| until.min(self.now));
        let seen_by = HOLD + longest_between_reads(policy);
        let paused: Duration =
            self.pauses().iter().map(|pause| until(pause).since(pause.from) + seen_by).sum();
        assert!(self.now <= first_failure.saturating_add(policy.max_age() + paused));
        assert!(!self.pauses().iter().any(|pause| pause.is_active(self.now)), "it is paused");
        for style in Style::ALL {
            let sealed = envelope.seal(style);
            let sealed = serde_json::from_str(&sealed).expect("what is sealed is JSON");
            let opened = comeback_envelope::open(sealed).expect("what is sealed can be opened");
            assert_eq!(opened.payload.get(), envelope.original_payload.get());
            assert_eq!(opened.metadata.as_ref(), Some(&envelope.metadata));
        }
    }
}

/// The next `N` bytes, at most eight, little-endian; zeros where there are none.
fn number<const N: usize>(rest: &mut &[u8]) -> u64 {
    let (taken, left) = rest.split_at(N.min(rest.len()));
    *rest = left;
    taken.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn one_of<T: Copy>(all: &[T], number: u64) -> T {
    all[usize::try_from(number).unwrap_or_default() % all.len()]
}
