//! Counting dead-letters by group and describing them, and the tables of both.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use comeback_engine::{
    DeadLetterKind, RETENTION, Reason, ReasonCode, ReceivedDeadLetter, Timestamp, short_name,
};
use comfy_table::Table;
use indicatif::HumanCount;
use serde::Serialize;

use crate::account::Failure;
use crate::operate::dead::filter::{Filter, reason_of};
use crate::operate::dead::queue::Received;
use crate::operate::dead::scan::Read;
use crate::operate::deployment::Deployment;
use crate::text::durations;
use crate::text::numbers::counted;
use crate::text::terminal::{shown, unwrapped_table};

/// Functions named one by one.
const MOST_NAMED: usize = 20;
/// A function may write anything as an error's type. Past this many groups, dead-letters are counted together.
pub(crate) const MOST_GROUPS: usize = 1_000;
pub(crate) const LONGEST_ERROR: usize = 256;
/// Characters of an error's message in a table.
const SHOWN_OF_A_MESSAGE: usize = 40;

/// What there is of a filter's dead-letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Dead-letters that the filter takes and that can be acted on.
    pub(crate) chosen: u64,
    groups: BTreeMap<Alike, Group>,
    /// Dead-letters to describe.
    most: usize,
    /// The first of them, described.
    pub(crate) dead_letters: Vec<Described>,
    /// Dead-letters that the filter takes and that would be dead-lettered again at once, by reason.
    pub(crate) left: BTreeMap<&'static str, u64>,
    /// Functions of such dead-letters that `TARGET_FUNCTIONS` does not allow; the first twenty.
    pub(crate) not_allowed: BTreeSet<String>,
    /// Functions of all dead-letters; the first twenty.
    functions: BTreeSet<String>,
    /// Some dead-letter is of the function that the filter names.
    is_of_target: bool,
    /// When the last of all dead-letters was sent, by SQS's clock.
    pub(crate) newest: Option<Timestamp>,
}

/// What the dead-letters of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Alike {
    pub(crate) reason: &'static str,
    pub(crate) target: Option<String>,
    /// The last error's type, or its first 256 characters.
    pub(crate) error_type: Option<String>,
    /// What was wrong with dead-letters that were not understood and name no error; or its first 256 characters.
    pub(crate) detail: Option<String>,
}

impl Alike {
    /// The dead-letters of too many groups.
    pub(crate) const OTHER: Self = Self { reason: "other", target: None, error_type: None, detail: None };

    pub(crate) fn of(dead_letter: &ReceivedDeadLetter<'_>) -> Self {
        Self {
            reason: reason_of(dead_letter),
            target: dead_letter.function_arn.as_deref().map(ToOwned::to_owned),
            error_type: dead_letter
                .error_type
                .as_ref()
                .map(|text| text.chars().take(LONGEST_ERROR).collect()),
            detail: malformation(dead_letter).map(|text| cut(text, LONGEST_ERROR)),
        }
    }
}

/// Dead-letters with the same reason, target and error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Group {
    pub(crate) reason: &'static str,
    pub(crate) target: Option<String>,
    /// The last error's type, or its first 256 characters.
    pub(crate) error_type: Option<String>,
    /// The error's message in one of them, or its first 256 characters.
    pub(crate) error_message: Option<String>,
    /// What was wrong with dead-letters that were not understood and name no error; or its first 256 characters.
    pub(crate) detail: Option<String>,
    pub(crate) count: u64,
    /// When the first and the last of them were dead-lettered.
    pub(crate) oldest: Timestamp,
    pub(crate) newest: Timestamp,
    /// When SQS deletes the first of them.
    pub(crate) expires: Timestamp,
}

impl Group {
    /// A group without dead-letters yet, with what is known of its first.
    pub(crate) fn of(
        alike: &Alike,
        message: Option<String>,
        dead_lettered_at: Timestamp,
        sent: Timestamp,
    ) -> Self {
        let Alike { reason, target, error_type, detail } = alike.clone();
        Self {
            reason,
            target,
            error_type,
            error_message: message,
            detail,
            count: 0,
            oldest: dead_lettered_at,
            newest: dead_lettered_at,
            expires: expires(sent),
        }
    }

    pub(crate) fn add(&mut self, dead_lettered_at: Timestamp, sent: Timestamp) {
        self.count += 1;
        self.oldest = dead_lettered_at.min(self.oldest);
        self.newest = dead_lettered_at.max(self.newest);
        self.expires = expires(sent).min(self.expires);
    }
}

/// When SQS deletes a dead-letter that was sent then.
pub(crate) fn expires(sent: Timestamp) -> Timestamp {
    sent.saturating_add(RETENTION)
}

/// A dead-letter on one line.
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
    pub(crate) error_message: Option<String>,
    pub(crate) retries: Option<u64>,
    pub(crate) dead_lettered_at: Timestamp,
    pub(crate) sent: Timestamp,
    /// What was found, and which limit it broke.
    pub(crate) detail: Option<String>,
}

impl Survey {
    /// A survey that describes the first `most` dead-letters.
    pub(crate) fn describing(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Counts a dead-letter. `judge` says whether it can be acted on. Gives whether the filter takes it and it can be.
    pub(crate) fn count(
        &mut self,
        received: &Received,
        filter: &Filter,
        judge: impl Fn(&Received) -> Result<(), Reason>,
        now: Timestamp,
    ) -> bool {
        self.newest = self.newest.max(Some(received.record.sent));
        let dead_letter = received.dead_letter();
        let target = dead_letter.function_arn.as_deref().map(ToOwned::to_owned);
        if let Some(arn) = &target {
            self.is_of_target |= filter.target.as_ref().is_some_and(|target| target.names(arn));
            if self.functions.len() < MOST_NAMED {
                self.functions.insert(short_name(arn).to_owned());
            }
        }
        if !filter.takes(&dead_letter, now) {
            return false;
        }
        if let Err(Reason { code, .. }) = judge(received) {
            self.leave(code, target.as_deref());
            return false;
        }
        if self.dead_letters.len() < self.most {
            let described = Described::of(received, &dead_letter);
            let [error_type, error_message, detail] =
                [&described.error_type, &described.error_message, &described.detail]
                    .map(|text| text.as_ref().map(|text| cut(text, LONGEST_ERROR)));
            self.dead_letters.push(Described { error_type, error_message, detail, ..described });
        }
        let message = dead_letter.error_message.as_ref().map(|text| cut(text, LONGEST_ERROR));
        self.take(Alike::of(&dead_letter), message, dead_letter.dead_lettered_at, received.record.sent);
        true
    }

    /// Counts a dead-letter that would be dead-lettered again at once.
    pub(crate) fn leave(&mut self, code: ReasonCode, target: Option<&str>) {
        *self.left.entry(code.name()).or_default() += 1;
        if code == ReasonCode::TargetNotAllowed && self.not_allowed.len() < MOST_NAMED {
            self.not_allowed.extend(target.map(ToOwned::to_owned));
        }
    }

    /// Counts the dead-letters of a group, which can be acted on.
    pub(crate) fn take_group(&mut self, alike: &Alike, group: Group) {
        self.chosen += group.count;
        self.groups.insert(alike.clone(), group);
    }

    /// Counts a dead-letter that can be acted on.
    fn take(&mut self, alike: Alike, message: Option<String>, dead_lettered_at: Timestamp, sent: Timestamp) {
        self.chosen += 1;
        let is_other = self.groups.len() >= MOST_GROUPS && !self.groups.contains_key(&alike);
        let alike = if is_other { Alike::OTHER } else { alike };
        let group = self.groups.entry(alike);
        group
            .or_insert_with_key(|alike| Group::of(alike, message, dead_lettered_at, sent))
            .add(dead_lettered_at, sent);
    }

    /// Fails if the filter names a function that has no dead-letters and that the handler does not retry: its name may
    /// be misspelled. Returns a note if only its alias or version may be. Dead-letters that could not be read may belong
    /// to it.
    pub(crate) fn check_target(
        &self,
        filter: &Filter,
        read: &Read,
        deployment: &Deployment,
    ) -> Result<Option<String>, Failure> {
        let is_unseen = !self.is_of_target && read.incomplete().is_none();
        let Some(target) = filter.target.as_ref().filter(|_| is_unseen) else { return Ok(None) };
        if deployment.retries(&deployment.arn_of(target)) {
            // The allow-list usually allows every alias, also one that does not exist.
            let note = || format!("no dead-letter is of {target}; its alias or version may be misspelled");
            return Ok(target.qualifier.is_some().then(note));
        }
        let functions = listed(&self.functions);
        let named = if functions.is_empty() {
            String::new()
        } else {
            format!("; dead-letters exist for: {functions}")
        };
        Err(Failure::Undone(format!(
            "--target {target}: no dead-letter is of this function, and TARGET_FUNCTIONS does not allow \
             it{named}"
        )))
    }

    /// The groups, the largest first.
    pub(crate) fn groups(&self) -> Vec<&Group> {
        let mut groups: Vec<_> = self.groups.values().collect();
        groups.sort_by_key(|group| Reverse(group.count));
        groups
    }

    pub(crate) fn groups_table(&self, now: Timestamp) -> Table {
        let mut table = unwrapped_table();
        table.set_header(["dead-letters", "reason", "function", "error", "message", "oldest", "newest"]);
        for group in self.groups() {
            let row: [&str; 7] = [
                &HumanCount(group.count).to_string(),
                group.reason,
                short_name(group.target.as_deref().unwrap_or_default()),
                group.error_type.as_deref().unwrap_or_default(),
                &shown_message(group.error_message.as_ref().or(group.detail.as_ref())),
                &age(group.oldest, now),
                &age(group.newest, now),
            ];
            table.add_row(row.map(shown));
        }
        table
    }

    pub(crate) fn dead_letters_table(&self, now: Timestamp) -> Table {
        let mut table = unwrapped_table();
        table.set_header(["key", "function", "reason", "error", "message", "retries", "age"]);
        for dead_letter in &self.dead_letters {
            let row: [&str; 7] = [
                dead_letter.key.as_ref().unwrap_or(&dead_letter.message_id),
                short_name(dead_letter.target.as_deref().unwrap_or_default()),
                dead_letter.reason,
                dead_letter.error_type.as_deref().unwrap_or_default(),
                &shown_message(dead_letter.error_message.as_ref().or(dead_letter.detail.as_ref())),
                &dead_letter.retries.map(|retries| retries.to_string()).unwrap_or_default(),
                &age(dead_letter.dead_lettered_at, now),
            ];
            table.add_row(row.map(shown));
        }
        table
    }
}

/// A number of dead-letters.
pub(crate) fn counted_dead_letters(dead_letters: u64) -> String {
    counted(dead_letters, "dead-letter", "dead-letters")
}

/// How many dead-letters were chosen.
pub(crate) fn headline(chosen: u64, all: u64) -> String {
    match all {
        0 => "no dead-letters".to_owned(),
        _ => format!("{} of about {}", HumanCount(chosen), counted_dead_letters(all)),
    }
}

/// Functions that dead-letters name, on one line.
pub(crate) fn listed(functions: &BTreeSet<String>) -> String {
    functions.iter().map(|function| shown(function)).collect::<Vec<_>>().join(", ")
}

/// The detail of a dead-letter that was not understood and names no error. Other details name ages and counts, so
/// hardly two are alike.
fn malformation<'l>(dead_letter: &'l ReceivedDeadLetter<'_>) -> Option<&'l str> {
    use ReasonCode::{MalformedEnvelope, MalformedRecord, PayloadLost};
    let is_malformed = matches!(dead_letter.reason, Some(MalformedRecord | MalformedEnvelope | PayloadLost));
    let has_error = dead_letter.error_type.is_some() || dead_letter.error_message.is_some();
    let detail = dead_letter.detail.as_deref().filter(|_| is_malformed && !has_error)?;
    // Without the place of a JSON error, which differs from dead-letter to dead-letter.
    Some(detail.split_once(" at line ").map_or(detail, |(what, _)| what))
}

/// A message on one line of a table.
fn shown_message(message: Option<&String>) -> String {
    message.map(|text| cut(text.lines().next().unwrap_or_default(), SHOWN_OF_A_MESSAGE)).unwrap_or_default()
}

/// The first characters of a text, with `…` for the others.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

pub(crate) fn age(moment: Timestamp, now: Timestamp) -> String {
    durations::short(now.since(moment).as_secs_f64().floor())
}

impl Described {
    pub(crate) fn of(received: &Received, dead_letter: &ReceivedDeadLetter<'_>) -> Self {
        Self {
            key: dead_letter.key.clone(),
            message_id: received.record.message_id.clone(),
            kind: match dead_letter.kind {
                DeadLetterKind::Event => "event",
                DeadLetterKind::Verbatim => "verbatim",
                DeadLetterKind::Record => "record",
                DeadLetterKind::Unknown => "unknown",
            },
            reason: reason_of(dead_letter),
            target: dead_letter.function_arn.as_deref().map(ToOwned::to_owned),
            error_type: dead_letter.error_type.clone(),
            error_message: dead_letter.error_message.clone(),
            retries: dead_letter.retries_made,
            dead_lettered_at: dead_letter.dead_lettered_at,
            sent: received.record.sent,
            detail: dead_letter.detail.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::types::MessageAttributeValue;

    use super::*;
    use crate::operate::dead::queue::QueueCalls;
    use crate::operate::dead::scan::{End, Locked, Reader, Scan};
    use crate::operate::dead::simulated::{NOW, Put, Simulated, event, malformed, record, unknown};
    use crate::operate::session::Interrupt;
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

    async fn survey<Q: QueueCalls>(
        reader: &Reader<'_, Q>,
        most: usize,
        now: Timestamp,
    ) -> Result<(Survey, Read), Failure> {
        let (mut survey, filter) = (Survey::describing(most), Filter::default());
        let show = |received: &Received| {
            survey.count(received, &filter, |_| Ok(()), now);
            false
        };
        let read = Scan::new(reader, now).show_each(show).await?;
        Ok((survey, read))
    }

    async fn list(simulated: &Simulated, most: usize, now: Timestamp) -> Result<(Survey, Read), Failure> {
        let (_raise, interrupt) = Interrupt::new();
        survey(
            &Reader {
                queue: simulated,
                interrupt: &interrupt,
                progress: Box::new(|_| ()),
                remark: Box::new(|_| ()),
            },
            most,
            now,
        )
        .await
    }

    #[tokio::test(start_paused = true)]
    async fn dead_letters_are_counted_by_group_and_given_back() {
        let timeouts = (0..250).map(|_| event("Timeout"));
        let others = (0..3).map(|_| record("Throttled"));
        let simulated = Simulated::with(timeouts.chain(others).chain([unknown(), malformed()]));
        let (survey, read) = list(&simulated, 2, NOW).await.unwrap();
        let groups = survey.groups();
        let groups = groups.iter().map(|it| (it.count, it.reason, it.error_type.as_deref()));
        let expected = [
            (250, "max_age", Some("Timeout")),
            (3, "max_receive_count", Some("Throttled")),
            (1, "malformed_record", None),
            (1, "unknown", None),
        ];
        assert_eq!(groups.collect::<Vec<_>>(), expected);
        assert_eq!((survey.chosen, survey.dead_letters.len()), (255, 2));
        assert_eq!((read.dead_letters, read.end), (255, End::All));
        assert_eq!(simulated.depth().visible, 255);
    }

    #[tokio::test(start_paused = true)]
    async fn dead_letters_sent_later_are_left_alone() {
        let simulated = Simulated::with([event("Timeout"), event("Timeout")]);
        let first = simulated.dead()[0].record.sent;
        let (survey, read) = list(&simulated, 0, first).await.unwrap();
        assert_eq!((survey.chosen, read.dead_letters, read.newer), (1, 1, 1));
        assert_eq!((survey.newest, simulated.depth().visible), (Some(first), 2));
    }

    #[tokio::test(start_paused = true)]
    async fn ctrl_c_gives_back_what_was_read() {
        let simulated = Simulated::with((0..500).map(|_| event("Timeout")));
        let (raise, interrupt) = Interrupt::new();
        let progress = Box::new(|_: u64| raise.send(true).unwrap());
        let reader = Reader { queue: &simulated, interrupt: &interrupt, progress, remark: Box::new(|_| ()) };
        let (_, read) = survey(&reader, 0, NOW).await.unwrap();
        assert_eq!((read.dead_letters, &read.end), (80, &End::Interrupted));
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
    async fn dead_letters_that_cannot_be_given_back_are_reported() {
        let simulated = Simulated::with((0..30).map(|_| event("Timeout")));
        simulated.denied.set("give_back");
        let (_, read) = list(&simulated, 0, NOW).await.unwrap();
        let why = "sqs:ChangeMessageVisibility: refused: AccessDenied: give_back; docs/operate.md lists the permissions of \
            each command";
        assert_eq!(read.still_hidden, Some((30, why.into())));
        let undone = format!(
            "read 30; 30 dead-letters could not be made visible again and stay hidden for up to 15 minutes: \
             {why}"
        );
        assert_eq!(read.result("read 30"), Err(Failure::Undone(undone)));
        assert_eq!(simulated.depth().in_flight, 30);
    }

    /// A survey of these dead-letters, with a filter.
    fn surveyed(dead_letters: &[Put], filter: &Filter) -> Survey {
        let mut survey = Survey::describing(10);
        for received in Simulated::with(dead_letters.iter().cloned()).dead() {
            survey.count(&received, filter, |_| Ok(()), NOW);
        }
        survey
    }

    #[test]
    fn a_key_is_never_broken_and_an_error_is_cut() {
        let mut dead_letter = event("Timeout");
        dead_letter.body = dead_letter.body.replace("Timeout", &"t".repeat(300));
        let long = format!("{}-{}", dead_letter.key, "k".repeat(200));
        dead_letter.body = dead_letter.body.replace(&dead_letter.key, &long);
        dead_letter.body =
            dead_letter.body.replace(r#""m""#, &format!("\"{}\\n{}\"", "m".repeat(50), "n".repeat(50)));
        let survey = surveyed(&[dead_letter], &Filter::default());
        let dead_letters = survey.dead_letters_table(NOW).to_string();
        assert!(dead_letters.lines().any(|line| line.contains(&long)), "{dead_letters}");
        assert!(dead_letters.contains(&format!(" {}… ", "t".repeat(256))), "{dead_letters}");
        let message = format!(" {}… ", "m".repeat(40));
        for table in [dead_letters, survey.groups_table(NOW).to_string()] {
            assert!(table.lines().any(|line| line.contains(&message)), "{table}");
        }
    }

    #[test]
    fn dead_letters_that_were_not_understood_are_grouped_by_what_was_wrong() {
        let lost = "it has no requestPayload";
        let json = |column| format!("not JSON at line 1 column {column}");
        let mut survey = Survey::describing(10);
        let details = [lost.to_owned(), json(7), lost.to_owned(), json(812)];
        for (received, detail) in Simulated::with((0..4).map(|_| malformed())).dead().iter_mut().zip(details)
        {
            let value = MessageAttributeValue::builder().data_type("String").string_value(detail);
            received.attributes.push(("Detail".into(), value.build().unwrap()));
            survey.count(received, &Filter::default(), |_| Ok(()), NOW);
        }
        let groups = survey.groups();
        let groups = groups.iter().map(|it| (it.count, it.error_message.as_deref(), it.detail.as_deref()));
        assert_eq!(groups.collect::<Vec<_>>(), [(2, None, Some(lost)), (2, None, Some("not JSON"))]);
        for table in [survey.groups_table(NOW), survey.dead_letters_table(NOW)].map(|table| table.to_string())
        {
            assert!(table.contains(lost) && table.contains(" not JSON "), "{table}");
        }
    }

    #[test]
    fn a_functions_name_forges_no_line() {
        let names = [format!("a{HOSTILE}"), "b".into()].into();
        let text = listed(&names);
        assert!(text.ends_with(", b") && !text.contains('\n') && !is_obeyed_anywhere(&text), "{text}");
    }

    #[test]
    fn a_target_that_nobody_knows_is_said() {
        let whole = Read { dead_letters: 1, newer: 0, end: End::All, still_hidden: None, locked: None };
        let check_read = |target: &str, dead_letters: &[Put], read: &Read| {
            let filter = Filter { target: Some(target.parse().unwrap()), ..Filter::default() };
            surveyed(dead_letters, &filter).check_target(&filter, read, &Deployment::sample())
        };
        let check = |target: &str, dead_letters: &[Put]| check_read(target, dead_letters, &whole);
        let dead_letters = [event("Timeout")];
        assert_eq!(check("orders", &dead_letters), Ok(None));
        assert_eq!(check("orders", &[]), Ok(None), "TARGET_FUNCTIONS allows it");
        assert_eq!(check("orders:$LATEST", &[]), Ok(None));
        let note = "no dead-letter is of orders:lvie; its alias or version may be misspelled";
        assert_eq!(check("orders:lvie", &dead_letters), Ok(Some(note.into())));
        let unknown = "--target ordres: no dead-letter is of this function, and TARGET_FUNCTIONS does not \
                       allow it";
        let of = format!("{unknown}; dead-letters exist for: orders:$LATEST");
        assert_eq!(check("ordres", &dead_letters), Err(Failure::Undone(of)));
        assert_eq!(check("ordres", &[]), Err(Failure::Undone(unknown.into())));
        let locked = Read { locked: Some(Locked { dead_letters: 33, until: NOW }), ..whole };
        for target in ["billing", "orders:lvie"] {
            assert_eq!(
                check_read(target, &dead_letters, &locked),
                Ok(None),
                "the locked dead-letters may be of it"
            );
        }
    }
}
