//! Letters counted by group, and whether they can be acted on.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use comeback_engine::{Letter, LetterKind, Reason, ReasonCode, Timestamp};
use serde::Serialize;

use crate::operate::account::Failure;
use crate::operate::dead::filter::{Filter, ReasonName};
use crate::operate::dead::queue::{LetterQueue, Received};
use crate::operate::dead::scan::{Read, Reader, Scan};

/// Functions named one by one.
const MOST_NAMED: usize = 20;
/// A function may write anything as an error's type. Past this many groups, letters are counted together.
const MOST_GROUPS: usize = 1_000;
const LONGEST_ERROR_TYPE: usize = 256;

/// What there is of a filter's letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Letters that the filter takes and that can be acted on.
    pub(crate) chosen: u64,
    /// These letters by group.
    groups: BTreeMap<Alike, Counted>,
    /// The first of them, as many as were asked for.
    pub(crate) letters: Vec<Described>,
    /// Letters that the filter takes and that would be dead-lettered again at once, by reason.
    pub(crate) left: BTreeMap<&'static str, u64>,
    /// Functions of such letters that `TARGET_FUNCTIONS` does not allow; the first twenty.
    pub(crate) not_allowed: BTreeSet<String>,
    /// When the last of all letters was sent, by SQS's clock.
    pub(crate) newest: Option<Timestamp>,
}

/// Reason, target and error type.
type Alike = (&'static str, Option<String>, Option<String>);
/// How many letters, and when the first and the last of them were given up.
type Counted = (u64, Timestamp, Timestamp);

/// Letters with the same reason, target and error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Group<'a> {
    pub(crate) reason: &'static str,
    pub(crate) target: Option<&'a str>,
    /// The last error's type, or its first 256 characters.
    pub(crate) error_type: Option<&'a str>,
    pub(crate) count: u64,
    pub(crate) oldest: Timestamp,
    pub(crate) newest: Timestamp,
}

/// A letter on one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Described {
    /// The event's key. A message that was not understood has none.
    pub(crate) key: Option<String>,
    pub(crate) message_id: String,
    /// `event`; `verbatim` for a body left as it was received; `record` for what SQS's own redrive took; `unknown` for
    /// any other message.
    pub(crate) kind: &'static str,
    /// The reason's name, `max_receive_count` or `unknown`.
    pub(crate) reason: &'static str,
    pub(crate) target: Option<String>,
    pub(crate) error_type: Option<String>,
    pub(crate) retries: Option<u64>,
    pub(crate) given_up: Timestamp,
    pub(crate) sent: Timestamp,
}

impl Survey {
    /// Reads every letter that was sent until `now`, and describes the first `most`. `judge` says whether a letter can be
    /// acted on.
    pub(crate) async fn read<Q: LetterQueue>(
        reader: &Reader<'_, Q>,
        filter: &Filter,
        judge: &dyn Fn(&Received) -> Result<(), Reason>,
        most: usize,
        now: Timestamp,
    ) -> Result<(Self, Read), Failure> {
        let mut survey = Self::default();
        let look = |received: &Received| {
            survey.newest = survey.newest.max(Some(received.record.sent));
            let letter = received.letter();
            if filter.takes(&letter, now) {
                match judge(received) {
                    Ok(()) => survey.choose(received, &letter, most),
                    Err(reason) => survey.leave(&letter, reason.code),
                }
            }
            ControlFlow::Continue(())
        };
        let read = Scan::new(reader, now).look(look).await?;
        Ok((survey, read))
    }

    fn choose(&mut self, received: &Received, letter: &Letter<'_>, most: usize) {
        self.chosen += 1;
        if self.letters.len() < most {
            self.letters.push(Described::of(received, letter));
        }
        let target = letter.function_arn.as_deref().map(ToOwned::to_owned);
        let error = letter.error_type.as_ref().map(|text| text.chars().take(LONGEST_ERROR_TYPE).collect());
        let mut alike = (ReasonName::of(letter).name(), target, error);
        if self.groups.len() >= MOST_GROUPS && !self.groups.contains_key(&alike) {
            alike = ("other", None, None);
        }
        let moment = letter.given_up;
        let (count, oldest, newest) = self.groups.entry(alike).or_insert((0, moment, moment));
        *count += 1;
        *oldest = moment.min(*oldest);
        *newest = moment.max(*newest);
    }

    fn leave(&mut self, letter: &Letter<'_>, reason: ReasonCode) {
        *self.left.entry(reason.name()).or_default() += 1;
        if reason == ReasonCode::TargetNotAllowed && self.not_allowed.len() < MOST_NAMED {
            self.not_allowed.extend(letter.function_arn.as_deref().map(ToOwned::to_owned));
        }
    }

    /// The groups, the largest first.
    pub(crate) fn groups(&self) -> Vec<Group<'_>> {
        let mut groups = Vec::new();
        for (alike, counted) in &self.groups {
            let ((reason, target, error_type), &(count, oldest, newest)) = (alike, counted);
            let (target, error_type) = (target.as_deref(), error_type.as_deref());
            groups.push(Group { reason, target, error_type, count, oldest, newest });
        }
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        groups
    }
}

impl Described {
    pub(crate) fn of(received: &Received, letter: &Letter<'_>) -> Self {
        Self {
            key: letter.key.clone(),
            message_id: received.record.message_id.clone(),
            kind: match letter.kind {
                LetterKind::Event => "event",
                LetterKind::Verbatim => "verbatim",
                LetterKind::Record => "record",
                LetterKind::Unknown => "unknown",
            },
            reason: ReasonName::of(letter).name(),
            target: letter.function_arn.as_deref().map(ToOwned::to_owned),
            error_type: letter.error_type.clone(),
            retries: letter.retries_made,
            given_up: letter.given_up,
            sent: received.record.sent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::dead::scan::End;
    use crate::operate::dead::simulated::{NOW, Simulated, event, malformed, record, unknown};
    use crate::operate::session::Interrupt;

    async fn list(simulated: &Simulated, most: usize, now: Timestamp) -> Result<(Survey, Read), Failure> {
        let (_raise, interrupt) = Interrupt::new();
        let reader = Reader { queue: simulated, interrupt: &interrupt, progress: &|_| () };
        Survey::read(&reader, &Filter::default(), &|_| Ok(()), most, now).await
    }

    #[tokio::test(start_paused = true)]
    async fn letters_are_counted_by_group_and_given_back() {
        let timeouts = (0..250).map(|_| event("Timeout"));
        let others = (0..3).map(|_| record("Throttled"));
        let simulated = Simulated::with(timeouts.chain(others).chain([unknown(), malformed()]));
        let (survey, read) = list(&simulated, 2, NOW).await.unwrap();
        let groups = survey.groups();
        let groups = groups.iter().map(|it| (it.count, it.reason, it.error_type));
        let expected = [
            (250, "max_age", Some("Timeout")),
            (3, "max_receive_count", Some("Throttled")),
            (1, "malformed_record", None),
            (1, "unknown", None),
        ];
        assert_eq!(groups.collect::<Vec<_>>(), expected);
        assert_eq!((survey.chosen, survey.letters.len()), (255, 2));
        assert_eq!((read.letters, read.end), (255, End::All));
        assert_eq!(simulated.depth().visible, 255);
    }

    #[tokio::test(start_paused = true)]
    async fn letters_sent_later_are_left_alone() {
        let simulated = Simulated::with([event("Timeout"), event("Timeout")]);
        let first = simulated.dead()[0].record.sent;
        let (survey, read) = list(&simulated, 0, first).await.unwrap();
        assert_eq!((survey.chosen, read.letters, read.newer), (1, 1, 1));
        assert_eq!((survey.newest, simulated.depth().visible), (Some(first), 2));
    }

    #[tokio::test(start_paused = true)]
    async fn ctrl_c_gives_back_what_was_read() {
        let simulated = Simulated::with((0..500).map(|_| event("Timeout")));
        let (raise, interrupt) = Interrupt::new();
        let progress = |_| raise.send(true).unwrap();
        let reader = Reader { queue: &simulated, interrupt: &interrupt, progress: &progress };
        let (_, read) = Survey::read(&reader, &Filter::default(), &|_| Ok(()), 0, NOW).await.unwrap();
        assert_eq!((read.letters, &read.end), (80, &End::Interrupted));
        assert_eq!(simulated.depth().visible, 500);
        let failure = read.result("nothing was changed").unwrap_err();
        assert_eq!(failure, Failure::Interrupted("nothing was changed".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_denied_receive_fails_the_command() {
        let simulated = Simulated::with([event("Timeout")]);
        simulated.denied.set("receive");
        let failure = list(&simulated, 0, NOW).await.unwrap_err();
        assert_eq!(failure, Failure::CouldNot("sqs:ReceiveMessage: AccessDenied".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn letters_that_cannot_be_given_back_are_reported() {
        let simulated = Simulated::with((0..30).map(|_| event("Timeout")));
        simulated.denied.set("give_back");
        let (_, read) = list(&simulated, 0, NOW).await.unwrap();
        let why = "sqs:ChangeMessageVisibility: refused: AccessDenied: give_back; docs/operate.md lists the permissions of \
            each command";
        assert_eq!(read.still_hidden, Some((30, why.into())));
        let undone = format!(
            "read 30; 30 letters could not be given back and are hidden for 15 minutes at most: {why}"
        );
        assert_eq!(read.result("read 30"), Err(Failure::Undone(undone)));
        assert_eq!(simulated.depth().in_flight, 30);
    }
}
