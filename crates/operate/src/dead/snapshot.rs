//! The result of a scan: a row for each dead-letter, without its payload.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use comeback_engine::{ReasonCode, ReceivedDeadLetter, Timestamp, short_name};

use crate::aws::Received;
use crate::dead::filter::Filter;
use crate::dead::groups::{
    Alike, Described, Group, LONGEST_ERROR, MOST_GROUPS, RowValues, cut, dead_letters_table, largest_first,
};
use crate::dead::rules::RedriveRules;
use crate::dead::scan::{ScanEnd, ScanResult, show_each};
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::layout::Table;
use crate::operator::Operator;
use crate::shown::shown;

/// The maximum size of a key in a snapshot, in bytes. Longer keys are truncated.
const MOST_OF_A_KEY: usize = 120;
/// The size, in bytes, to which error messages in a snapshot are truncated.
const MOST_OF_A_MESSAGE: usize = 140;
/// The maximum number of functions that a plan or an error names.
pub(super) const MOST_NAMED: usize = 20;

/// The dead-letters that a scan found.
#[derive(Debug)]
pub struct Snapshot {
    /// The time when the scan began.
    pub at: Timestamp,
    /// The filter that the dead-letters match.
    pub filter: Filter,
    /// The deployment, as it was when the scan began.
    pub deployment: Deployment,
    /// The result of the scan. Its counts include dead-letters that do not match the filter.
    pub read: ScanResult,
    /// Descriptions of the first dead-letters, as many as the caller asked for.
    pub(super) described: Vec<Described>,
    /// When the newest dead-letter in the queue was sent, according to SQS's clock.
    pub(super) newest: Timestamp,
    /// The dead-letters in the snapshot, the oldest first.
    rows: Vec<Row>,
    /// The values that all rows of a group share, by group number.
    kinds: Vec<Alike>,
    seen: Seen,
    /// The message ids of dead-letters that this process has redriven or discarded since the scan.
    gone: RefCell<HashSet<Box<str>>>,
}

/// A dead-letter in a snapshot, in at most 500 bytes of memory.
#[derive(Debug)]
pub struct Row {
    /// The message's SQS id.
    pub message_id: Box<str>,
    /// The event's key, truncated to 120 bytes; `None` for a message that could not be parsed.
    pub key: Option<Box<str>>,
    /// The message of the last error, or the reason's details if there is no message; truncated to 140 bytes.
    pub message: Option<Box<str>>,
    /// The time when the event was dead-lettered.
    pub dead_lettered_at: Timestamp,
    /// The time when the message was sent to the dead-letter queue.
    pub sent: Timestamp,
    /// The number of retries that were made; `None` if it is unknown.
    pub retries: Option<u32>,
    /// The reason why the handler would immediately dead-letter the event again, or `None` if it would not.
    pub refused: Option<ReasonCode>,
    /// The index into [`Snapshot::kinds`] for this dead-letter's kind.
    kind: u32,
}

/// A selection of dead-letters in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Selects every dead-letter.
    All,
    /// Selects the dead-letters in a group, by the group's number.
    Group(usize),
    /// Selects dead-letters by their message ids.
    DeadLetters(BTreeSet<String>),
}

impl Selection {
    /// Selects one dead-letter, by its message id.
    pub fn one(message_id: impl Into<String>) -> Self {
        Self::DeadLetters([message_id.into()].into())
    }
}

/// The functions of all dead-letters that the scan read, including those that do not match the filter.
#[derive(Debug, Default)]
struct Seen {
    /// The names of the first twenty functions that the scan found, for error messages.
    functions: BTreeSet<String>,
    has_target: bool,
}

/// Scans the queue for dead-letters that match a filter, and checks which dead-letters could be redriven.
///
/// # Errors
///
/// Fails if the deployment or its dead-letter queue cannot be read, if the scan is interrupted, or if the filter names
/// an unknown function.
pub async fn scan(operator: &Operator, filter: Filter) -> Result<Snapshot, Failure> {
    let deployment = operator.deployment().await?;
    // If the handler refuses its settings, its rules are unknown, so no dead-letter is checked. A redrive then fails.
    let rules = RedriveRules::new(&deployment, None, None).ok();
    let snapshot = Snapshot::take(operator, &deployment, filter, rules.as_ref(), 0).await?;
    snapshot.is_whole_enough()?;
    snapshot.unknown_target()?;
    Ok(snapshot)
}

impl Snapshot {
    /// Scans the queue for dead-letters that match a filter, and describes the first `describe` of them.
    pub(super) async fn take(
        operator: &Operator,
        deployment: &Deployment,
        filter: Filter,
        rules: Option<&RedriveRules>,
        describe: usize,
    ) -> Result<Self, Failure> {
        let at = operator.now();
        let (mut rows, mut described, mut seen, mut newest) =
            (Rows::default(), Vec::new(), Seen::default(), None);
        let show = |received: &Received| {
            newest = newest.max(Some(received.record.sent));
            let dead_letter = received.dead_letter();
            seen.note(dead_letter.function_arn.as_deref(), &filter);
            if filter.takes(&dead_letter, at) {
                if described.len() < describe {
                    described.push(Described::of(received, &dead_letter).cut());
                }
                rows.add(received, &dead_letter, rules.and_then(|rules| rules.message(received).err()));
            }
            false
        };
        let read = show_each(operator, deployment, at, show).await?;
        let Rows { mut rows, kinds, .. } = rows;
        rows.sort_by_key(|row| row.sent);
        rows.shrink_to_fit();
        let (newest, deployment) = (newest.unwrap_or(at), deployment.clone());
        Ok(Self {
            at,
            filter,
            deployment,
            read,
            described,
            newest,
            rows,
            kinds,
            seen,
            gone: RefCell::default(),
        })
    }

    /// Returns true if the deployment still has the queues and settings that it had when the scan began.
    pub(super) fn is_of(&self, now: &Deployment) -> bool {
        let then = &self.deployment;
        then.variables == now.variables
            && then.retry_queue == now.retry_queue
            && then.dead_letter_queue == now.dead_letter_queue
    }

    /// Fails if the scan was interrupted or failed, but not if there were too many dead-letters to read.
    pub(super) fn is_whole_enough(&self) -> Result<(), Failure> {
        match &self.read.end {
            ScanEnd::Interrupted => self.read.result("nothing was changed"),
            ScanEnd::Failed(failure) => Err(failure.clone()),
            ScanEnd::All | ScanEnd::Enough | ScanEnd::TooManyHidden => Ok(()),
        }
    }

    /// Checks the function in the filter. Returns a note if its alias or version may be misspelled.
    ///
    /// # Errors
    ///
    /// Fails after a complete scan if the function has no dead-letter and is not on the allow-list.
    pub(super) fn unknown_target(&self) -> Result<Option<String>, Failure> {
        let is_unseen = !self.seen.has_target && self.read.incomplete().is_none();
        let Some(target) = self.filter.target.as_ref().filter(|_| is_unseen) else { return Ok(None) };
        if self.deployment.retries(&self.deployment.arn_of(target)) {
            // The allow-list usually allows every alias, even an alias that does not exist.
            let note =
                || format!("no dead-letter belongs to {target}; its alias or version may be misspelled");
            return Ok(target.qualifier.is_some().then(note));
        }
        let functions: Vec<_> = self.seen.functions.iter().map(|function| shown(function)).collect();
        let named = match functions.join(", ") {
            functions if functions.is_empty() => functions,
            functions => format!("; dead-letters exist for: {functions}"),
        };
        Err(Failure::undone(format!(
            "--target {target}: no dead-letter belongs to this function, and TARGET_FUNCTIONS does not allow it{named}"
        )))
    }

    /// Returns the selected rows, oldest first, except those for dead-letters that this process has redriven or
    /// discarded since the scan.
    pub fn rows(&self, selection: &Selection) -> Vec<&Row> {
        let gone = self.gone.borrow();
        let is_left = |row: &&Row| gone.is_empty() || !gone.contains(&row.message_id);
        self.rows.iter().filter(|row| selection.has(row)).filter(is_left).collect()
    }

    /// The newest dead-letter for the event with this key.
    pub fn dead_letter_of(&self, key: &str) -> Option<&Row> {
        let key = Some(beginning(key, MOST_OF_A_KEY));
        self.rows(&Selection::All).into_iter().rfind(|row| row.key.as_deref() == key)
    }

    /// The groups that still contain dead-letters, largest group first, each with its group number.
    pub fn groups(&self) -> Vec<(usize, Group)> {
        self.groups_of(&self.rows(&Selection::All))
    }

    pub(super) fn groups_of(&self, rows: &[&Row]) -> Vec<(usize, Group)> {
        let groups = self.kinds.iter().cloned().map(Group::empty);
        let mut groups: Vec<(usize, Group)> = groups.enumerate().collect();
        for row in rows {
            groups[row.kind as usize].1.add(row.dead_lettered_at, row.sent);
        }
        groups.retain(|(_, group)| group.count > 0);
        largest_first(&mut groups);
        groups
    }

    /// Lays out rows as a table.
    pub fn table(&self, rows: &[&Row], now: Timestamp) -> Table {
        let lines = rows.iter().map(|row| {
            let Alike { reason, target, error_type, .. } = self.alike(row);
            RowValues {
                key: row.key.as_deref(),
                message_id: &row.message_id,
                target: target.as_deref(),
                reason,
                error_type: error_type.as_deref(),
                message: row.message.as_deref(),
                retries: row.retries.map(u64::from),
                dead_lettered_at: row.dead_lettered_at,
                sent: row.sent,
            }
        });
        dead_letters_table(lines, &self.deployment, now)
    }

    /// The values that all dead-letters in a row's group share.
    pub fn alike(&self, row: &Row) -> &Alike {
        &self.kinds[row.kind as usize]
    }

    /// The values that all dead-letters in a group share; `None` if no group has this number.
    pub fn group(&self, number: usize) -> Option<&Alike> {
        self.kinds.get(number)
    }

    /// Leaves a dead-letter out of all selections, because it was redriven or discarded.
    pub(super) fn forget(&self, message_id: &str) {
        self.gone.borrow_mut().insert(message_id.into());
    }
}

impl Selection {
    fn has(&self, row: &Row) -> bool {
        match self {
            Self::All => true,
            Self::Group(number) => row.kind as usize == *number,
            Self::DeadLetters(ids) => ids.contains(&*row.message_id),
        }
    }
}

impl Seen {
    fn note(&mut self, arn: Option<&str>, filter: &Filter) {
        let Some(arn) = arn else { return };
        self.has_target |= filter.target.as_ref().is_some_and(|target| target.names(arn));
        if self.functions.len() < MOST_NAMED {
            self.functions.insert(short_name(arn).to_owned());
        }
    }
}

#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    kinds: Vec<Alike>,
    by_alike: BTreeMap<Alike, u32>,
}

impl Rows {
    fn add(
        &mut self,
        received: &Received,
        dead_letter: &ReceivedDeadLetter<'_>,
        refused: Option<ReasonCode>,
    ) {
        let alike = Alike::of(dead_letter);
        let is_other = self.kinds.len() >= MOST_GROUPS && !self.by_alike.contains_key(&alike);
        let alike = if is_other { Alike::OTHER } else { alike };
        let next = self.kinds.len() as u32;
        let kind = *self.by_alike.entry(alike).or_insert_with_key(|alike| {
            let error_message = dead_letter.error_message.as_ref().map(|text| cut(text, LONGEST_ERROR));
            self.kinds.push(Alike { error_message, ..alike.clone() });
            next
        });
        let message = dead_letter.error_message.as_ref().or(dead_letter.detail.as_ref());
        self.rows.push(Row {
            message_id: received.id().into(),
            key: dead_letter.key.as_ref().map(|key| beginning(key, MOST_OF_A_KEY).into()),
            message: message.map(|message| beginning(message, MOST_OF_A_MESSAGE).into()),
            dead_lettered_at: dead_letter.dead_lettered_at,
            sent: received.record.sent,
            retries: dead_letter.retries_made.map(|retries| u32::try_from(retries).unwrap_or(u32::MAX)),
            refused,
            kind,
        });
    }
}

fn beginning(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dead::testing::{Dead, SampleDeadLetter, event, malformed, unknown};

    async fn scanned(dead: &Dead, filter: Filter) -> Snapshot {
        scan(&dead.operator(), filter).await.unwrap()
    }

    #[tokio::test]
    async fn a_row_is_small_and_has_no_payload() {
        let long = event("Timeout");
        let key = format!("\"origin_request_id\":\"{}\"", long.key);
        let body = long.body.replace("\"m\"", &format!("{:?}", "é".repeat(100_000)));
        let body = body.replace(&key, &format!("\"origin_request_id\":\"{}\"", "k".repeat(1_000)));
        let dead = Dead::with([SampleDeadLetter { body, ..long }, event("Timeout")]);
        let snapshot = scanned(&dead, Filter::default()).await;
        let texts = |row: &Row| {
            let texts = [Some(&row.message_id), row.key.as_ref(), row.message.as_ref()];
            texts.into_iter().flatten().map(|text| text.len()).sum::<usize>()
        };
        let largest = snapshot.rows.iter().map(texts).max().unwrap();
        // Each text has its own allocation, with at most 16 bytes of overhead.
        assert!(size_of::<Row>() + largest.max(100 + MOST_OF_A_KEY + MOST_OF_A_MESSAGE) + 3 * 16 <= 500);
        assert!(largest > 36 + 119 + 138 && !format!("{snapshot:?}").contains("1E400"));
    }

    #[tokio::test]
    async fn a_scan_groups_what_it_gives_back() {
        let dead = Dead::with([event("Timeout"), malformed(), event("Timeout"), unknown()]);
        let snapshot = scanned(&dead, Filter::default()).await;
        assert_eq!(dead.depth().in_flight, 0);
        let groups = snapshot.groups();
        let counts: Vec<_> = groups.iter().map(|(_, group)| (group.alike.reason, group.count)).collect();
        assert_eq!(counts, [("max_age", 2), ("malformed_record", 1), ("unknown", 1)]);
        for (number, group) in &groups {
            assert_eq!(snapshot.rows(&Selection::Group(*number)).len() as u64, group.count);
        }
        let rows = snapshot.rows(&Selection::All);
        let expires = rows.iter().map(|row| row.sent).min().unwrap().as_secs() + 14 * 86_400;
        assert!(groups.iter().any(|(_, group)| group.expires.as_secs() == expires));
        let some = scanned(&dead, Filter { error: Some("Time*".into()), ..Filter::default() }).await;
        assert_eq!((some.rows(&Selection::All).len(), some.read.dead_letters), (2, 4));
    }

    #[tokio::test]
    async fn scan_predicts_the_redrive() {
        let dead = Dead::with([event("Timeout"), malformed(), event("Timeout").of_payments()]);
        let snapshot = scanned(&dead, Filter::default()).await;
        let refused = snapshot.rows(&Selection::All).into_iter().map(|row| row.refused);
        let expected = [None, Some(ReasonCode::MalformedRecord), Some(ReasonCode::TargetNotAllowed)];
        assert_eq!(refused.collect::<Vec<_>>(), expected);
    }

    #[tokio::test]
    async fn a_stopped_scan_gives_back_what_it_holds() {
        let dead = Dead::with((0..200).map(|_| event("Timeout")));
        let stopped = scan(&dead.stopping_after(1), Filter::default()).await.unwrap_err();
        assert_eq!(stopped, Failure::interrupted("nothing was changed"));
        assert_eq!(dead.depth().in_flight, 0);
    }

    #[tokio::test]
    async fn unknown_target_is_reported() {
        let check = async |target: &str, dead: &Dead| {
            let filter = Filter { target: Some(target.parse().unwrap()), ..Filter::default() };
            let deployment = dead.deployment().await;
            let snapshot = Snapshot::take(&dead.operator(), &deployment, filter, None, 0).await;
            snapshot.unwrap().unknown_target()
        };
        let (dead, empty) = (Dead::with([event("Timeout")]), Dead::with([]));
        assert_eq!(check("orders", &dead).await, Ok(None));
        assert_eq!(check("orders", &empty).await, Ok(None), "TARGET_FUNCTIONS allows it");
        assert_eq!(check("orders:$LATEST", &empty).await, Ok(None));
        let note = "no dead-letter belongs to orders:lvie; its alias or version may be misspelled";
        assert_eq!(check("orders:lvie", &dead).await, Ok(Some(note.into())));
        let unknown = "--target ordres: no dead-letter belongs to this function, and TARGET_FUNCTIONS does not allow it";
        let of = format!("{unknown}; dead-letters exist for: orders:$LATEST");
        assert_eq!(check("ordres", &dead).await, Err(Failure::undone(of)));
        assert_eq!(check("ordres", &empty).await, Err(Failure::undone(unknown)));
        let hide =
            crate::aws::Receive { visibility: std::time::Duration::from_secs(900), wait: Default::default() };
        dead.put(&event("Timeout"));
        let url = dead.deployment().await.dead_letter_queue.url;
        dead.operator().account.aws.receive(&url, 1, hide).await.unwrap();
        for target in ["billing", "orders:lvie"] {
            assert_eq!(check(target, &dead).await, Ok(None), "the locked dead-letter may be of it");
        }
    }

    #[tokio::test]
    async fn a_functions_name_forges_no_line() {
        let other = event("Timeout");
        let body = other.body.replace("function:orders", "function:a\\nb\\u009b2J");
        let dead = Dead::with([SampleDeadLetter { body, ..other }]);
        let filter = Filter { target: Some("ordres".parse().unwrap()), ..Filter::default() };
        let failure = scan(&dead.operator(), filter).await.unwrap_err().to_string();
        assert!(!failure.contains(['\n', '\u{9b}']), "{failure}");
    }
}
