//! Scans the dead-letter queue: receives every dead-letter once, and finally makes all undeleted ones visible again.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use comeback_engine::{Record, Timestamp};
use futures_util::future::join_all;
use serde::Serialize;

use crate::aws::{EntryFailure, EntryFailureKind, MOST_OF_A_RECEIVE, Receive, Received};
use crate::deployment::Deployment;
use crate::deployment::queue::{Depth, HIDDEN_FOR, Queue};
use crate::durations;
use crate::failure::Failure;
use crate::numbers::counted;
use crate::operator::{Operator, Progress};

/// The number of dead-letters to receive at once, ten in each concurrent call.
pub(super) const ROUND: usize = 80;
/// The wait time of each receive: the shortest long poll, because a short poll queries only some of SQS's servers.
const WAIT: Duration = Duration::from_secs(1);
/// The maximum number of dead-letters to hide at once. SQS allows about 120,000 messages in flight, including those of
/// other readers.
const MOST_HIDDEN: usize = 110_000;
/// The number of consecutive rounds without a new dead-letter after which a scan ends. Two rounds are sixteen long
/// polls.
const QUIET_ROUNDS: u32 = 2;
const GIVEN_BACK_AT_ONCE: usize = 1_000;
/// If a scan makes more than this many dead-letters visible again, it tells the operator first, because this takes a
/// while.
const MANY: usize = 2_000;

/// The reason why a scan ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanEnd {
    /// Every dead-letter was read.
    All,
    /// The command needs no more dead-letters.
    Enough,
    /// The operator interrupted the scan.
    Interrupted,
    /// The scan reached the maximum number of dead-letters that it may hide at once.
    TooManyHidden,
    /// A call to AWS failed.
    Failed(Failure),
}

/// The result of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanResult {
    /// The number of distinct dead-letters that were read.
    pub dead_letters: u64,
    /// The number of dead-letters that were ignored because they were sent after the cut-off time, usually the scan's
    /// start.
    pub newer: u64,
    /// The reason why the scan ended.
    pub end: ScanEnd,
    /// The number of dead-letters that stay hidden for up to 15 minutes, and the reason.
    pub still_hidden: Option<(u64, String)>,
    /// Dead-letters that another reader keeps hidden.
    pub locked: Option<Locked>,
}

/// Dead-letters that another reader has hidden. Nobody else can read them until they are visible again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Locked {
    /// The approximate number of hidden dead-letters.
    pub dead_letters: u64,
    /// The time by which the dead-letters are visible again if their reader has already stopped.
    pub until: Timestamp,
}

impl Locked {
    /// Estimates how many dead-letters other readers hide. `depth` was counted before this scan, and `read` is the
    /// number of dead-letters that the scan read.
    fn of(depth: Depth, read: u64, now: Timestamp) -> Option<Self> {
        // Since the counts were taken, hidden dead-letters may have become visible and been read.
        let dead_letters = depth.in_flight.saturating_sub(read.saturating_sub(depth.visible));
        (dead_letters > 0).then(|| Self { dead_letters, until: now.saturating_add(HIDDEN_FOR) })
    }

    /// `until` as a time of day, rounded up to the next whole minute.
    fn clock(&self) -> String {
        let until = Timestamp::from_secs(self.until.rounded_up_to_secs().as_secs().next_multiple_of(60));
        format!("{} UTC", until.to_string().get(11..16).unwrap_or_default())
    }
}

impl fmt::Display for Locked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = counted(self.dead_letters, "more is", "more are");
        let (clock, minutes) = (self.clock(), minutes());
        write!(
            f,
            "{count} hidden by another command, possibly a killed one, for up to {minutes} minutes after its \
             end (until {clock} if it ended just now)"
        )
    }
}

const fn minutes() -> u64 {
    HIDDEN_FOR.as_secs() / 60
}

/// A count such as `1 dead-letter`.
pub(super) fn counted_dead_letters(dead_letters: u64) -> String {
    counted(dead_letters, "dead-letter", "dead-letters")
}

impl ScanResult {
    /// The reason why the scan may have missed dead-letters; `None` if it read all that the command needed.
    pub(super) fn incomplete(&self) -> Option<String> {
        match &self.end {
            ScanEnd::All => self.locked.map(|locked| locked.to_string()),
            ScanEnd::Enough => None,
            ScanEnd::Interrupted => Some("it was interrupted".into()),
            ScanEnd::TooManyHidden => Some(format!(
                "{MOST_HIDDEN} dead-letters are hidden, and SQS allows about 120000 at once; redrive or \
                 discard some to reach the rest"
            )),
            ScanEnd::Failed(failure) => Some(failure.to_string()),
        }
    }

    /// The result of a command that has scanned the queue; an error also says what was `done`.
    ///
    /// # Errors
    ///
    /// Fails if the scan was interrupted or failed, or if dead-letters could not be read or stayed hidden.
    pub fn result(&self, done: &str) -> Result<(), Failure> {
        let hidden = self.still_hidden.as_ref().map(|(dead_letters, why)| {
            format!(
                "{dead_letters} dead-letters could not be made visible again and stay hidden for up to {} minutes: \
                 {why}",
                minutes()
            )
        });
        let locked = self.locked.filter(|_| self.end != ScanEnd::Enough).map(|locked| locked.to_string());
        let is_whole = hidden.is_none() && locked.is_none();
        let after = [done.to_owned()].into_iter().chain(locked).chain(hidden);
        let before = match self.end {
            ScanEnd::All | ScanEnd::Enough if is_whole => return Ok(()),
            ScanEnd::TooManyHidden | ScanEnd::Failed(_) => self.incomplete(),
            ScanEnd::All | ScanEnd::Enough | ScanEnd::Interrupted => None,
        };
        let what = before.into_iter().chain(after).collect::<Vec<_>>().join("; ");
        Err(if self.end == ScanEnd::Interrupted { Failure::interrupted(what) } else { Failure::undone(what) })
    }
}

/// Returns the error message for a failed entry in a batch call to SQS.
pub(crate) fn failed(action: &str, failure: &EntryFailure) -> String {
    let is_denied = failure.kind == EntryFailureKind::Denied;
    let remedy = if is_denied { "; docs/operate.md lists the permissions of each command" } else { "" };
    format!("{action}: {failure}{remedy}")
}

/// Returns a callback that tells the operator how long a batch call waits at SQS's request, and why.
pub(crate) fn tell_pause(operator: &Operator) -> impl Fn(Duration, &str) {
    |pause, why| {
        let waits = format!("waiting {}, as SQS asked: {why}", durations::text(pause));
        operator.follow.remark(&waits.into());
    }
}

/// Calls `show` for each dead-letter that was not sent after `until`. Stops once `show` returns true.
pub(super) async fn show_each(
    operator: &Operator,
    deployment: &Deployment,
    until: Timestamp,
    mut show: impl FnMut(&Received) -> bool,
) -> Result<ScanResult, Failure> {
    let now = operator.now();
    let depth = operator.interrupt.or(Depth::read(&operator.account, &deployment.dead_letter_queue)).await?;
    if depth.visible > 0 {
        let (count, minutes) = (counted_dead_letters(depth.visible), minutes());
        let hides = format!(
            "Reading {count}. Nobody else sees them until this ends (if it is killed, for up to {minutes} minutes)."
        );
        operator.follow.remark(&hides.into());
    }
    let mut scan = Scan::new(operator, deployment, until);
    let tell = |read: u64, of: u64| {
        operator.follow.progress(Progress { done: read, of: Some(of), unit: "dead-letters read" });
    };
    let end = loop {
        let dead_letters = match scan.next(ROUND).await {
            Ok(dead_letters) => dead_letters,
            Err(end) => break end,
        };
        let is_enough = dead_letters.iter().any(&mut show);
        tell(scan.read.dead_letters, depth.visible);
        if is_enough {
            break ScanEnd::Enough;
        }
    };
    tell(scan.read.dead_letters, scan.read.dead_letters);
    let lost = if end == ScanEnd::All { scan.lost(&deployment.dead_letter_queue, depth).await } else { 0 };
    let read = scan.give_back(end).await?;
    let depth = Depth { in_flight: depth.in_flight + lost, ..depth };
    Ok(ScanResult { locked: Locked::of(depth, read.dead_letters, now), ..read })
}

/// A scan in progress, which returns each dead-letter only once.
pub(super) struct Scan<'a> {
    operator: &'a Operator,
    url: &'a str,
    until: Timestamp,
    /// The receipt handle for each message id, or `None` once the dead-letter is deleted. 110,000 handles take about
    /// 50 MB.
    handles: BTreeMap<String, Option<String>>,
    hidden: usize,
    read: ScanResult,
    quiet_rounds: u32,
    /// The number of receives of known dead-letters since the last new one.
    met_again: usize,
}

impl<'a> Scan<'a> {
    /// Estimates how many dead-letters are hidden by a receive of this scan that got no answer. `before` was counted
    /// before the scan.
    async fn lost(&self, queue: &Queue, before: Depth) -> u64 {
        // The counts are older than the scan, so they do not include dead-letters sent during the scan.
        let unread = before.visible.saturating_sub(self.read.dead_letters + self.read.newer);
        if unread == 0 {
            return 0;
        }
        // SQS's counts may be a minute old, and may include deleted dead-letters. So those in flight are counted again.
        let recounted = self.operator.interrupt.or(Depth::read(&self.operator.account, queue)).await;
        recounted.map_or(unread, |now| {
            now.in_flight.saturating_sub(before.in_flight + self.hidden as u64).min(unread)
        })
    }

    /// Begins a scan that ignores dead-letters sent after `until`.
    pub(super) fn new(operator: &'a Operator, deployment: &'a Deployment, until: Timestamp) -> Self {
        Self {
            operator,
            url: &deployment.dead_letter_queue.url,
            until,
            handles: BTreeMap::new(),
            hidden: 0,
            read: ScanResult {
                dead_letters: 0,
                newer: 0,
                end: ScanEnd::All,
                still_hidden: None,
                locked: None,
            },
            quiet_rounds: 0,
            met_again: 0,
        }
    }

    /// Receives the next dead-letters, up to the smaller of `most` and [`ROUND`].
    pub(super) async fn next(&mut self, most: usize) -> Result<Vec<Received>, ScanEnd> {
        loop {
            if self.operator.interrupt.is_raised() {
                return Err(ScanEnd::Interrupted);
            }
            if self.hidden >= MOST_HIDDEN {
                return Err(ScanEnd::TooManyHidden);
            }
            let dead_letters = self.round(most.min(ROUND)).await?;
            if !dead_letters.is_empty() {
                self.quiet_rounds = 0;
                return Ok(dead_letters);
            }
            if self.quiet_rounds == QUIET_ROUNDS {
                return Err(ScanEnd::All);
            }
        }
    }

    /// The newest receipt handle of a dead-letter. SQS may hand out a dead-letter twice. If it is then deleted by its
    /// earlier handle, SQS reports success but may delete nothing.
    pub(super) fn newest_handle(&self, dead_letter: &Received) -> String {
        let newest = self.handles.get(dead_letter.id()).and_then(Option::as_ref);
        newest.unwrap_or(&dead_letter.record.receipt_handle).clone()
    }

    pub(super) fn deleted(&mut self, dead_letter: &Received) {
        let handle = self.handles.insert(dead_letter.id().to_owned(), None);
        self.hidden -= usize::from(handle.flatten().is_some());
    }

    /// Ends the scan, and makes its dead-letters visible again. Fails only if the scan failed before it read any
    /// dead-letter.
    pub(super) async fn give_back(self, end: ScanEnd) -> Result<ScanResult, Failure> {
        let Self { operator, url, handles, mut read, .. } = self;
        let handles: Vec<String> = handles.into_values().flatten().collect();
        if handles.len() > MANY {
            let count = counted_dead_letters(handles.len() as u64);
            operator.follow.remark(&format!("making {count} visible again").into());
        }
        let mut not_tried = handles.len();
        for some in handles.chunks(GIVEN_BACK_AT_ONCE) {
            not_tried -= some.len();
            let visible = some.iter().map(|handle| (handle.clone(), Duration::ZERO)).collect();
            let answers = operator.account.aws.hide(url, visible, true, &tell_pause(operator)).await;
            // Nothing is left to do if SQS refuses a handle: the dead-letter is visible, deleted, or received by
            // another reader.
            let failures = answers.into_iter().filter_map(Result::err);
            let failures: Vec<_> = failures.filter(|it| it.kind != EntryFailureKind::Refused).collect();
            let Some(failure) = failures.first() else { continue };
            let why = failed("sqs:ChangeMessageVisibility", failure);
            let (hidden, _) = read.still_hidden.get_or_insert((0, why));
            *hidden += failures.len() as u64;
            if failure.kind == EntryFailureKind::Denied {
                *hidden += not_tried as u64;
                break;
            }
        }
        match end {
            ScanEnd::Failed(failure) if read.dead_letters == 0 => Err(failure),
            _ => Ok(ScanResult { end, ..read }),
        }
    }

    /// Receives up to `most` messages, and returns those that are new to this scan and were not sent after `until`.
    async fn round(&mut self, most: usize) -> Result<Vec<Received>, ScanEnd> {
        let sizes = (0..most).step_by(MOST_OF_A_RECEIVE).map(|before| (most - before).min(MOST_OF_A_RECEIVE));
        let options = Receive { visibility: HIDDEN_FOR, wait: WAIT };
        let answers =
            join_all(sizes.map(|size| self.operator.account.aws.receive(self.url, size, options))).await;
        let (mut fresh, mut met_again, mut failed) = (Vec::new(), 0, Ok(()));
        let dead_letters = answers.into_iter().flat_map(|answer| {
            answer.unwrap_or_else(|failure| {
                failed = Err(ScanEnd::Failed(failure));
                Vec::new()
            })
        });
        for dead_letter in dead_letters.map(Received::restored) {
            let Record { message_id, receipt_handle, .. } = &dead_letter.record;
            let known = self.handles.insert(message_id.clone(), Some(receipt_handle.clone()));
            self.hidden += usize::from(!matches!(known, Some(Some(_))));
            if known.is_some() {
                met_again += 1;
            } else if dead_letter.record.sent <= self.until {
                self.read.dead_letters += 1;
                fresh.push(dead_letter);
            } else {
                self.read.newer += 1;
            }
        }
        failed?;
        self.met_again = if fresh.is_empty() { self.met_again + met_again } else { 0 };
        // If a dead-letter is received again, unread ones may remain. Probably none remains once all the others have come
        // round: reading them took longer than they stay hidden.
        let may_remain = met_again > 0 && self.met_again <= self.handles.len();
        self.quiet_rounds += u32::from(fresh.is_empty() && !may_remain);
        Ok(fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aws::simulated::Fault;
    use crate::dead::testing::{Dead, NOW, event};
    use crate::interrupt::Interrupt;

    #[tokio::test]
    async fn reading_stops_at_the_limit_of_hidden_dead_letters() {
        let dead = Dead::with((0..300).map(|_| event("Timeout")));
        let (operator, deployment) = (dead.operator(), dead.deployment().await);
        let mut scan = Scan { hidden: MOST_HIDDEN - 100, ..Scan::new(&operator, &deployment, NOW) };
        let dead_letters = scan.next(ROUND).await.unwrap();
        scan.next(ROUND).await.unwrap();
        assert_eq!(scan.next(ROUND).await.unwrap_err(), ScanEnd::TooManyHidden);
        dead_letters.iter().take(61).for_each(|dead_letter| scan.deleted(dead_letter));
        assert_eq!(scan.next(ROUND).await.unwrap().len(), 80);
        let read = scan.give_back(ScanEnd::TooManyHidden).await.unwrap();
        assert_eq!(
            read.result("read 240 dead-letters").unwrap_err().to_string(),
            "110000 dead-letters are hidden, and SQS allows about 120000 at once; redrive or discard some to \
             reach the rest; read 240 dead-letters"
        );
    }

    #[test]
    fn dead_letters_hidden_by_others_are_reported() {
        let depth = |visible, in_flight| Depth { visible, in_flight, delayed: 0 };
        assert_eq!(Locked::of(depth(4, 0), 4, NOW), None);
        // The 51 hidden dead-letters became visible after they were counted, and were then read.
        assert_eq!(Locked::of(depth(4, 51), 55, NOW), None);
        let locked = Locked::of(depth(4, 51), 4, NOW).unwrap();
        assert_eq!(
            locked.to_string(),
            "51 more are hidden by another command, possibly a killed one, for up to 15 minutes after its end \
             (until 03:49 UTC if it ended just now)"
        );
        assert_eq!(locked.until, Timestamp::from_secs(2_000_000_000 + 900));
        let read = ScanResult {
            dead_letters: 4,
            newer: 0,
            end: ScanEnd::All,
            still_hidden: None,
            locked: Some(locked),
        };
        let undone = format!("read 4 dead-letters; {locked}");
        assert_eq!(read.result("read 4 dead-letters"), Err(Failure::undone(undone)));
        let ended = |end| ScanResult { end, ..read.clone() }.result("read 4 dead-letters");
        let interrupted = Failure::interrupted(format!("read 4 dead-letters; {locked}"));
        assert_eq!(ended(ScanEnd::Interrupted), Err(interrupted));
        let too_many = ended(ScanEnd::TooManyHidden).unwrap_err().to_string();
        assert!(
            too_many.ends_with(&format!("to reach the rest; read 4 dead-letters; {locked}")),
            "{too_many}"
        );
        let enough = ScanResult { end: ScanEnd::Enough, ..read };
        assert_eq!(enough.result("the dead-letter was found"), Ok(()));
    }

    #[tokio::test]
    async fn a_stopped_scan_gives_back_what_it_read() {
        let dead = Dead::with((0..500).map(|_| event("Timeout")));
        let (operator, deployment) = (dead.stopping_after(1), dead.deployment().await);
        let read = show_each(&operator, &deployment, NOW, |_| false).await.unwrap();
        assert_eq!((read.dead_letters, &read.end), (80, &ScanEnd::Interrupted));
        assert_eq!((dead.depth().visible, dead.depth().in_flight), (500, 0));
        assert_eq!(read.result("nothing was changed"), Err(Failure::interrupted("nothing was changed")));
    }

    #[tokio::test]
    async fn a_scan_that_takes_longer_than_dead_letters_stay_hidden_ends() {
        let dead = Dead::with((0..300).map(|_| event("Timeout")));
        let (aws, interrupt) = (dead.aws.clone(), Interrupt::default());
        let (raised, mut receives) = (interrupt.clone(), 0);
        dead.aws.on_call(move |call| {
            if call.action == "sqs:ReceiveMessage" {
                receives += 1;
                aws.advance(Duration::from_secs(60));
            }
            if receives == 500 {
                raised.raise();
            }
            None
        });
        let (operator, deployment) = (Operator { interrupt, ..dead.operator() }, dead.deployment().await);
        let read = show_each(&operator, &deployment, NOW, |_| false).await.unwrap();
        assert_eq!((read.dead_letters, read.end), (300, ScanEnd::All));
        assert_eq!(dead.depth().in_flight, 0);
    }

    #[tokio::test]
    async fn dead_letters_hidden_by_a_receive_without_an_answer_are_reported() {
        let dead = Dead::with((0..25).map(|_| event("Timeout")));
        let mut receives = 0;
        dead.aws.on_call(move |call| {
            receives += u32::from(call.action == "sqs:ReceiveMessage");
            (call.action == "sqs:ReceiveMessage" && receives == 2).then_some(Fault::AnswerLost)
        });
        let (operator, deployment) = (dead.operator(), dead.deployment().await);
        let read = show_each(&operator, &deployment, NOW, |_| false).await.unwrap();
        assert_eq!((read.dead_letters, dead.depth().in_flight), (15, 10));
        let failure = read.result("read 15 dead-letters").unwrap_err().to_string();
        assert!(
            failure.starts_with("read 15 dead-letters; 10 more are hidden by another command"),
            "{failure}"
        );
    }

    #[tokio::test]
    async fn dead_letters_that_end_before_they_are_read_are_not_missing() {
        let dead = Dead::with((0..25).map(|_| event("Timeout")));
        let (aws, mut receives) = (dead.aws.clone(), 0);
        dead.aws.on_call(move |call| {
            receives += u32::from(call.action == "sqs:ReceiveMessage");
            if receives == 1 {
                aws.advance(Duration::from_secs(15 * 86_400));
            }
            None
        });
        let (operator, deployment) = (dead.operator(), dead.deployment().await);
        let read = show_each(&operator, &deployment, NOW, |_| false).await.unwrap();
        assert_eq!((read.dead_letters, read.result("read none")), (0, Ok(())));
    }

    #[tokio::test]
    async fn dead_letters_sent_later_are_left_alone() {
        let dead = Dead::with([event("Timeout")]);
        let until = dead.aws.time();
        dead.aws.advance(Duration::from_secs(60));
        dead.put(&event("Timeout"));
        let (operator, deployment) = (dead.operator(), dead.deployment().await);
        let read = show_each(&operator, &deployment, until, |_| false).await.unwrap();
        assert_eq!((read.dead_letters, read.newer, dead.depth().visible), (1, 1, 2));
    }

    #[tokio::test]
    async fn dead_letters_that_cannot_be_given_back_are_reported() {
        let dead = Dead::with((0..30).map(|_| event("Timeout")));
        dead.aws.deny("sqs:ChangeMessageVisibility");
        let (operator, deployment) = (dead.operator(), dead.deployment().await);
        let read = show_each(&operator, &deployment, NOW, |_| false).await.unwrap();
        let (count, why) = read.still_hidden.clone().unwrap();
        assert!(count == 30 && why.starts_with("sqs:ChangeMessageVisibility: AccessDenied: "), "{why}");
        let undone = format!(
            "read 30; 30 dead-letters could not be made visible again and stay hidden for up to 15 minutes: {why}"
        );
        assert_eq!(read.result("read 30"), Err(Failure::undone(undone)));
        assert_eq!(dead.depth().in_flight, 30);
    }

    #[tokio::test]
    async fn a_denied_receive_fails() {
        let dead = Dead::with([event("Timeout")]);
        let (operator, deployment) = (dead.operator(), dead.deployment().await);
        dead.aws.deny("sqs:ReceiveMessage");
        let failure = show_each(&operator, &deployment, NOW, |_| false).await.unwrap_err();
        assert!(failure.to_string().starts_with("sqs:ReceiveMessage on "), "{failure}");
    }
}
