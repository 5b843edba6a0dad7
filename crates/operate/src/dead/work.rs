//! Carries out a change to dead-letters: stores a copy of each one elsewhere, and then deletes the original.

use std::convert::Infallible;

use comeback_engine::ReasonCode;

use crate::aws::{EntryFailure, EntryFailureKind, NewMessage, Received};
use crate::dead::plan::{Acted, DeadLetterOutcome, Picked};
use crate::dead::scan::{Scan, ScanEnd, failed, tell_pause};
use crate::failure::Failure;
use crate::operator::{Operator, Progress};

/// Stores dead-letters in another queue or in a file, so that they can be deleted from the dead-letter queue.
pub(super) trait DeadLetterAction {
    /// The data that the action stores for a dead-letter, such as the message to send.
    type Prepared;

    /// Prepares a dead-letter for [`perform`](Self::perform). If that is impossible, fails with the reason.
    fn prepare(&self, received: &Received) -> Result<Self::Prepared, ReasonCode>;

    /// Performs the action on the prepared dead-letters. Returns one result for each, in the same order. `Ok` means
    /// that the dead-letter is stored elsewhere. The caller then deletes it from the dead-letter queue.
    async fn perform(&self, prepared: Vec<Self::Prepared>) -> Vec<Result<(), NotDone>>;

    /// Undoes the last part of the action. `_dead_letters` is the number of dead-letters that could not be deleted.
    /// Returns true on success. By default, nothing is undone, because a consumer may already have received the
    /// messages.
    fn take_back(&self, _dead_letters: usize) -> bool {
        false
    }
}

#[derive(Clone, Debug)]
pub(super) struct NotDone {
    pub(super) why: String,
    /// True if the action would fail for all other dead-letters too.
    pub(super) for_all: bool,
    /// True if, despite the failure, a copy of the dead-letter may exist.
    pub(super) may_be_elsewhere: bool,
}

impl NotDone {
    fn of_send(failure: &EntryFailure, queue: &str) -> Self {
        let why = failed("sqs:SendMessage", failure);
        let for_all = matches!(failure.kind, EntryFailureKind::Denied | EntryFailureKind::Missing);
        match failure.is_unanswered() {
            true => {
                let why = format!("no answer, so it may be in the {queue} too ({why})");
                Self { why, for_all, may_be_elsewhere: true }
            }
            false => Self { why, for_all, may_be_elsewhere: false },
        }
    }
}

/// Sends messages to the queue at `url`. `queue` is the queue's name in error messages, for
/// example `retry queue`.
pub(super) async fn send(
    operator: &Operator,
    (url, queue): (&str, &str),
    messages: Vec<NewMessage>,
) -> Vec<Result<(), NotDone>> {
    let answers = operator.account.aws.send(url, messages, &tell_pause(operator)).await;
    let not_done = |failure| NotDone::of_send(&failure, queue);
    answers.into_iter().map(|answer| answer.map_err(not_done)).collect()
}

/// Performs an action on a plan's dead-letters. Deletes each dead-letter that the action has stored elsewhere. `did`
/// is a verb such as `redrove`.
pub(super) async fn act<A: DeadLetterAction>(
    operator: &Operator,
    picked: &Picked,
    action: &A,
    did: &'static str,
) -> Result<Acted, Failure> {
    let scan = Scan::new(operator, picked.deployment(), picked.snapshot.newest);
    let mut run =
        Run { operator, picked, action, scan, tried: 0, met: 0, outcome: DeadLetterOutcome::default() };
    let Err(end) = run.until_its_end().await;
    let Run { scan, mut outcome, .. } = run;
    let read = scan.give_back(end).await?;
    outcome.incomplete = read.incomplete();
    match read.end {
        ScanEnd::Failed(failure) if outcome.done == 0 && outcome.not_deleted.is_none() => Err(failure),
        _ => Ok(Acted { plan: picked.clone(), outcome, read, did }),
    }
}

struct Run<'a, A> {
    operator: &'a Operator,
    picked: &'a Picked,
    action: &'a A,
    scan: Scan<'a>,
    tried: u64,
    /// The number of the plan's dead-letters that were received.
    met: usize,
    outcome: DeadLetterOutcome,
}

impl<A: DeadLetterAction> Run<'_, A> {
    async fn until_its_end(&mut self) -> Result<Infallible, ScanEnd> {
        let (pace, of) = (self.picked.pace, Some(self.picked.dead_letters));
        loop {
            let mut chosen = self.choose().await?.into_iter();
            while chosen.len() > 0 {
                let some: (Vec<_>, Vec<_>) = chosen.by_ref().take(pace.at_once(self.tried)).unzip();
                let (begin, count) = (self.operator.now(), some.0.len() as u64);
                let acted = self.act_on(some).await;
                let done = self.outcome.done;
                self.operator.follow.progress(Progress { done, of, unit: "dead-letters" });
                acted?;
                if !pace.rest(self.operator, begin, count).await {
                    return Err(ScanEnd::Interrupted);
                }
            }
        }
    }

    async fn choose(&mut self) -> Result<Vec<(Received, A::Prepared)>, ScanEnd> {
        let room = (self.picked.dead_letters - self.tried) as usize;
        if room == 0 || self.met == self.picked.ids.len() {
            return Err(ScanEnd::Enough);
        }
        let mut chosen = Vec::new();
        for received in self.scan.next(self.picked.pace.at_hand()).await? {
            if chosen.len() == room || !self.picked.ids.contains(received.id()) {
                continue;
            }
            self.met += 1;
            match self.action.prepare(&received) {
                Ok(prepared) => chosen.push((received, prepared)),
                Err(reason) => self.outcome.leave(reason.name()),
            }
        }
        Ok(chosen)
    }

    /// Performs the action, and deletes the dead-letters that are then stored elsewhere. Fails if a deletion fails,
    /// because acting on further dead-letters would only create more copies.
    async fn act_on(
        &mut self,
        (dead_letters, prepared): (Vec<Received>, Vec<A::Prepared>),
    ) -> Result<(), ScanEnd> {
        self.tried += dead_letters.len() as u64;
        let answers = self.action.perform(prepared).await;
        let (mut safe, mut end) = (Vec::new(), Ok(()));
        for (dead_letter, answer) in dead_letters.into_iter().zip(answers) {
            let Err(NotDone { why, for_all, may_be_elsewhere }) = answer else {
                safe.push(dead_letter);
                continue;
            };
            if may_be_elsewhere {
                self.outcome.not_delete(&why)
            } else {
                self.outcome.leave(&why)
            }
            if for_all {
                end = Err(ScanEnd::Failed(Failure::could_not(why)));
            }
        }
        self.delete(safe).await.and(end)
    }

    async fn delete(&mut self, safe: Vec<Received>) -> Result<(), ScanEnd> {
        let handles = safe.iter().map(|dead_letter| self.scan.newest_handle(dead_letter)).collect();
        let Operator { account, .. } = self.operator;
        let url = &self.picked.deployment().dead_letter_queue.url;
        let answers = account.aws.delete(url, handles, &tell_pause(self.operator)).await;
        // A dead-letter surely stays only if its deletion was denied or never tried. After any other failure, an
        // unanswered call may have deleted it.
        let surely_stays = |failure: &EntryFailure| match failure.kind {
            EntryFailureKind::NotTried => true,
            EntryFailureKind::Denied => failure.code.contains("AccessDenied"),
            _ => false,
        };
        let stays = |answer: &&Result<(), EntryFailure>| answer.as_ref().is_err_and(surely_stays);
        let stay = answers.iter().rev().take_while(stays).count();
        let done = if stay > 0 && self.action.take_back(stay) { safe.len() - stay } else { safe.len() };
        let mut first_why = None;
        for (number, (dead_letter, answer)) in safe.iter().zip(answers).enumerate() {
            let Err(failure) = answer else {
                self.outcome.done += 1;
                self.scan.deleted(dead_letter);
                self.picked.snapshot.forget(dead_letter.id());
                continue;
            };
            let why = first_why.get_or_insert_with(|| failed("sqs:DeleteMessage", &failure));
            if number < done { self.outcome.not_delete(why) } else { self.outcome.leave(why) }
        }
        match first_why {
            Some(why) => Err(ScanEnd::Failed(Failure::could_not(why))),
            None => Ok(()),
        }
    }
}
