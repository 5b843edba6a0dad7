use std::collections::{BTreeMap, BTreeSet};

use comeback_engine::{Reason, ReasonCode, Timestamp};

use super::described::{Described, Whole};
use super::filter::Filter;
use super::groups::{Group, Groups};
use super::queue::{LetterQueue, Received};
use super::read::{End, Progress, Read};
use super::scan::{ROUND, Scan};
use crate::{Failure, Interrupt};

/// Functions that are named one by one.
const MOST_NAMED: usize = 20;

/// What there is of a filter's letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Letters that the filter takes, and that can be acted on.
    pub chosen: u64,
    /// These letters by group, the largest first.
    pub groups: Vec<Group>,
    /// Some of them one by one, as many as were asked for.
    pub letters: Vec<Described>,
    /// Letters that the filter takes and that would be dead-lettered again at once: how many, by the reason's name.
    pub left: BTreeMap<&'static str, u64>,
    /// Functions of such letters that the handler may not re-invoke; the first twenty.
    pub not_allowed: BTreeSet<String>,
    /// When the last of all letters was sent, by SQS's own clock.
    pub newest: Option<Timestamp>,
    /// What was read.
    pub read: Read,
}

/// Reads every letter that was sent until `now`. `judge` says whether one can be acted on.
pub(super) async fn survey<Q: LetterQueue>(
    queue: &Q,
    filter: &Filter,
    judge: &dyn Fn(&Received) -> Result<(), Reason>,
    most: usize,
    now: Timestamp,
    interrupt: &Interrupt,
    tell: &dyn Fn(Progress),
) -> Result<Survey, Failure> {
    let mut scan = Scan::new(queue, interrupt, now)?;
    let mut counted = Counted::default();
    let end = loop {
        let letters = match scan.next(ROUND).await {
            Ok(letters) => letters,
            Err(end) => break end,
        };
        for received in &letters {
            counted.count(received, filter, judge, most, now);
        }
        if let Err(end) = scan.hold(&letters) {
            break end;
        }
        tell(Progress::Read(scan.letters()));
    };
    let read = scan.give_back(end, tell).await;
    could_begin(&read)?;
    let Counted { chosen, groups, letters, left, not_allowed, newest } = counted;
    Ok(Survey { chosen, groups: groups.into_groups(), letters, left, not_allowed, newest, read })
}

/// Reads letters until one has this key, or its message this id.
pub(super) async fn find<Q: LetterQueue>(
    queue: &Q,
    key: &str,
    now: Timestamp,
    interrupt: &Interrupt,
    tell: &dyn Fn(Progress),
) -> Result<(Option<Whole>, Read), Failure> {
    let mut scan = Scan::new(queue, interrupt, now)?;
    let mut found = None;
    let end = loop {
        let letters = match scan.next(ROUND).await {
            Ok(letters) => letters,
            Err(end) => break end,
        };
        found = letters.iter().find_map(|received| {
            let letter = received.letter();
            let is_it = letter.key.as_deref() == Some(key) || received.record.message_id == key;
            is_it.then(|| Whole::of(received, letter))
        });
        if let Err(end) = scan.hold(&letters) {
            break end;
        }
        tell(Progress::Read(scan.letters()));
        if found.is_some() {
            break End::Enough;
        }
    };
    let read = scan.give_back(end, tell).await;
    could_begin(&read)?;
    Ok((found, read))
}

/// A failure before anything was read is the command's.
pub(super) fn could_begin(read: &Read) -> Result<(), Failure> {
    match &read.end {
        End::Failed(failure) if read.letters == 0 => Err(failure.clone()),
        _ => Ok(()),
    }
}

#[derive(Default)]
struct Counted {
    chosen: u64,
    groups: Groups,
    letters: Vec<Described>,
    left: BTreeMap<&'static str, u64>,
    not_allowed: BTreeSet<String>,
    newest: Option<Timestamp>,
}

impl Counted {
    fn count(
        &mut self,
        received: &Received,
        filter: &Filter,
        judge: &dyn Fn(&Received) -> Result<(), Reason>,
        most: usize,
        now: Timestamp,
    ) {
        self.newest = self.newest.max(Some(received.record.sent));
        let letter = received.letter();
        if !filter.takes(&letter, now) {
            return;
        }
        if let Err(reason) = judge(received) {
            *self.left.entry(reason.code.name()).or_default() += 1;
            if reason.code == ReasonCode::TargetNotAllowed && self.not_allowed.len() < MOST_NAMED {
                self.not_allowed.extend(letter.function_arn.as_deref().map(ToOwned::to_owned));
            }
            return;
        }
        self.chosen += 1;
        self.groups.count(&letter);
        if self.letters.len() < most {
            self.letters.push(Described::of(received, &letter));
        }
    }
}
