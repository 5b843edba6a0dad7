//! Acting on dead-letters: each is deleted once it is safe elsewhere.

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::time::Duration;

use comeback_delivery::Cause;
use comeback_engine::{Reason, Timestamp};

use crate::account::Failure;
use crate::operate::dead::filter::Filter;
use crate::operate::dead::queue::{CallFailure, HIDDEN_FOR, QueueCalls, ROUND, Received};
use crate::operate::dead::scan::{End, Read, Reader, Scan};

/// What is done with a dead-letter before it is deleted.
pub(crate) trait DeadLetterAction {
    /// What it takes for one dead-letter.
    type Prepared;

    /// Checks that it can be done.
    fn prepare(&self, received: &Received) -> Result<Self::Prepared, Reason>;

    /// Performs the action. If it returns `Ok`, the dead-letter is safe elsewhere and is deleted.
    async fn perform(
        &self,
        queue: &impl QueueCalls,
        prepared: Vec<Self::Prepared>,
    ) -> Vec<Result<(), CallFailure>>;

    /// Undoes the last `dead_letters` that were performed, which stay in the queue. Says whether it did.
    fn take_back(&self, dead_letters: usize) -> bool;

    /// Hears of a dead-letter that is safe elsewhere and deleted.
    fn is_gone(&self, _message_id: &str) {}
}

/// Which dead-letters to act on, and how fast.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Work {
    /// `None`: the dead-letters that are planned, and nothing is said of others.
    pub(crate) filter: Option<Filter>,
    /// The time that ages count from.
    pub(crate) now: Timestamp,
    /// Dead-letters sent later are left alone. By SQS's clock: the newest dead-letter of the plan.
    pub(crate) until: Timestamp,
    pub(crate) pace: Pace,
    pub(crate) limit: Option<u64>,
}

/// Dead-letters a second; above zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pace(pub(crate) f64);

impl Pace {
    /// Dead-letters to act on together: those of one second. The very first dead-letter goes alone: where a permission
    /// is missing, only that one is done and not deleted.
    pub(crate) fn at_once(self, tried: u64) -> usize {
        if tried == 0 { 1 } else { (self.0 as usize).clamp(1, ROUND) }
    }

    /// Dead-letters to receive together: the last is acted on well before it becomes visible again.
    fn at_hand(self) -> usize {
        ((self.0 * HIDDEN_FOR.as_secs_f64() / 3.0) as usize).clamp(1, ROUND)
    }

    pub(crate) fn time_for(self, dead_letters: u64) -> Duration {
        Duration::try_from_secs_f64(dead_letters as f64 / self.0).unwrap_or(Duration::MAX)
    }
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Dead-letters that are safe elsewhere, and deleted.
    pub(crate) dead_letters: u64,
    /// Dead-letters that are, or may be, elsewhere and were not deleted, and why: a repeated command acts on them
    /// again.
    pub(crate) not_deleted: Option<(u64, String)>,
    /// Dead-letters that were left, by problem.
    pub(crate) left: BTreeMap<String, u64>,
}

impl Done {
    fn not_delete(&mut self, why: &str) {
        self.not_deleted.get_or_insert_with(|| (0, why.to_owned())).0 += 1;
    }

    /// Counts a dead-letter that was left. Fails if every other dead-letter would be left too.
    pub(crate) fn leave(&mut self, failure: CallFailure) -> Result<(), Failure> {
        if failure.may_be_elsewhere {
            self.not_delete(&failure.why);
        } else {
            *self.left.entry(failure.why.clone()).or_default() += 1;
        }
        if failure.for_all { Err(Failure::CouldNot(failure.why)) } else { Ok(()) }
    }
}

struct Run<'a, Q, A> {
    reader: &'a Reader<'a, Q>,
    scan: Scan<'a, Q>,
    action: &'a A,
    work: &'a Work,
    planned: &'a HashSet<String>,
    tried: u64,
    done: Done,
}

impl Work {
    /// Performs `action` on every dead-letter that matches the work and whose message id was `planned`.
    pub(crate) async fn run<Q: QueueCalls, A: DeadLetterAction>(
        &self,
        reader: &Reader<'_, Q>,
        planned: &HashSet<String>,
        action: &A,
    ) -> Result<(Done, Read), Failure> {
        let scan = Scan::new(reader, self.until);
        let mut run = Run { reader, scan, action, work: self, planned, tried: 0, done: Done::default() };
        let Err(end) = run.until_its_end().await;
        let Run { scan, done, .. } = run;
        let read = scan.give_back(end).await?;
        match read.end {
            End::Failed(failure) if done.dead_letters == 0 && done.not_deleted.is_none() => Err(failure),
            _ => Ok((done, read)),
        }
    }
}

impl<Q: QueueCalls, A: DeadLetterAction> Run<'_, Q, A> {
    async fn until_its_end(&mut self) -> Result<Infallible, End> {
        loop {
            let mut chosen = self.choose().await?.into_iter();
            while chosen.len() > 0 {
                let at_once = self.work.pace.at_once(self.tried);
                let (dead_letters, prepared): (Vec<_>, Vec<_>) = chosen.by_ref().take(at_once).unzip();
                // It begins now, and ends when the next dead-letters may go.
                let turn = tokio::time::sleep(self.work.pace.time_for(dead_letters.len() as u64));
                let acted = self.act_on(dead_letters, prepared).await;
                (self.reader.progress)(self.done.dead_letters);
                acted?;
                tokio::select! {
                    () = turn => {}
                    () = self.reader.interrupt.raised() => return Err(End::Interrupted),
                }
            }
        }
    }

    /// The next dead-letters to act on.
    async fn choose(&mut self) -> Result<Vec<(Received, A::Prepared)>, End> {
        let room = self.work.limit.map_or(usize::MAX, |limit| (limit - self.tried) as usize);
        if room == 0 {
            return Err(End::Enough);
        }
        let mut chosen = Vec::new();
        for received in self.scan.next(self.work.pace.at_hand()).await? {
            let is_planned = self.planned.contains(&received.record.message_id);
            let is_meant = match &self.work.filter {
                Some(filter) => filter.takes(&received.dead_letter(), self.work.now),
                None => is_planned,
            };
            if chosen.len() == room || !is_meant {
                continue;
            }
            let why = match self.action.prepare(&received) {
                Ok(prepared) if is_planned => {
                    chosen.push((received, prepared));
                    continue;
                }
                // Another reader had hidden it, or there were too many dead-letters to read them all.
                Ok(_) => "not in the plan".to_owned(),
                Err(reason) => reason.code.to_string(),
            };
            *self.done.left.entry(why).or_default() += 1;
        }
        Ok(chosen)
    }

    /// Acts on dead-letters, and deletes those that are safe elsewhere. If a deletion fails, the work ends: going on
    /// would only make copies. What can be is taken back of dead-letters that surely stay.
    async fn act_on(&mut self, dead_letters: Vec<Received>, prepared: Vec<A::Prepared>) -> Result<(), End> {
        self.tried += dead_letters.len() as u64;
        let answers = self.action.perform(self.reader.queue, prepared).await;
        let (mut safe, mut end) = (Vec::new(), Ok(()));
        for (dead_letter, answer) in dead_letters.into_iter().zip(answers) {
            match answer {
                Ok(()) => safe.push(dead_letter),
                Err(failure) => end = self.done.leave(failure).map_err(End::Failed).and(end),
            }
        }
        let handles = safe.iter().map(|dead_letter| dead_letter.record.receipt_handle.clone()).collect();
        let answers = self.reader.queue.delete(handles).await;
        // Any other dead-letter may be deleted: an answer may have been lost, even if credentials had expired at the
        // next try.
        let stays = |answer: &&Result<(), Cause>| {
            let error = answer.as_ref().err().and_then(Cause::error);
            error.is_some_and(|error| error.code.contains("AccessDenied"))
        };
        let stay = answers.iter().rev().take_while(stays).count();
        let done = if stay > 0 && self.action.take_back(stay) { safe.len() - stay } else { safe.len() };
        let mut first_why = None;
        for (number, (dead_letter, answer)) in safe.iter().zip(answers).enumerate() {
            let Err(cause) = answer else {
                self.done.dead_letters += 1;
                self.scan.deleted(dead_letter);
                self.action.is_gone(&dead_letter.record.message_id);
                continue;
            };
            let why = first_why.get_or_insert_with(|| CallFailure::of("sqs:DeleteMessage", &cause).why);
            end = Err(End::Failed(Failure::CouldNot(why.clone())));
            if number < done {
                self.done.not_delete(why);
            } else {
                *self.done.left.entry(why.clone()).or_default() += 1;
            }
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::operate::dead::redrive::Redrive;
    use crate::operate::dead::simulated::{NOW, Put, Simulated, event, malformed, policies, unknown};
    use crate::operate::session::Interrupt;

    fn work(per_second: f64) -> Work {
        let (filter, pace) = (Some(Filter::default()), Pace(per_second));
        Work { filter, now: NOW, until: NOW, pace, limit: None }
    }

    fn with(dead_letters: usize) -> Simulated {
        Simulated::with((0..dead_letters).map(|_| event("Timeout")))
    }

    async fn redrive(simulated: &Simulated, work: &Work) -> Result<(Done, Read), Failure> {
        let (_raise, interrupt) = Interrupt::new();
        let reader = Reader {
            queue: simulated,
            interrupt: &interrupt,
            progress: Box::new(|_| ()),
            remark: Box::new(|_| ()),
        };
        let policies = policies();
        work.run(&reader, &simulated.ids(), &Redrive::new(&policies, None).unwrap()).await
    }

    #[tokio::test(start_paused = true)]
    async fn dead_letters_go_at_their_pace() {
        for (per_second, at_once, seconds) in [(50.0, 50, 3.0), (4.0, 4, 37.5), (0.5, 1, 300.0)] {
            let simulated = with(150);
            let start = tokio::time::Instant::now();
            assert_eq!(redrive(&simulated, &work(per_second)).await.unwrap().0.dead_letters, 150);
            assert!(start.elapsed().as_secs_f64() >= seconds, "{per_second} a second");
            assert_eq!(simulated.most_sent_at_once.get(), at_once);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_the_limit_are_done() {
        let simulated = with(150);
        let (done, read) = redrive(&simulated, &Work { limit: Some(77), ..work(50.0) }).await.unwrap();
        assert_eq!((done.dead_letters, read.end), (77, End::Enough));
        assert_eq!((simulated.depth().visible, simulated.retried().len()), (73, 77));
    }

    #[tokio::test(start_paused = true)]
    async fn dead_letters_that_another_reader_hid_from_the_plan_are_left() {
        let simulated = with(10);
        let planned = simulated.ids();
        (0..90).for_each(|_| drop(simulated.put(&event("Timeout"))));
        let (_raise, interrupt) = Interrupt::new();
        let reader = Reader {
            queue: &simulated,
            interrupt: &interrupt,
            progress: Box::new(|_| ()),
            remark: Box::new(|_| ()),
        };
        let policies = policies();
        let redrive = Redrive::new(&policies, None).unwrap();
        let (done, _) = work(50.0).run(&reader, &planned, &redrive).await.unwrap();
        assert_eq!(done.summary("redrove"), "redrove 10 dead-letters; left 90: not in the plan");
        assert_eq!((simulated.depth().visible, simulated.retried().len()), (90, 10));
    }

    #[tokio::test(start_paused = true)]
    async fn ctrl_c_ends_the_work_after_the_dead_letters_at_hand() {
        let simulated = with(150);
        let (raise, interrupt) = Interrupt::new();
        let progress = Box::new(|_: u64| raise.send(true).unwrap());
        let reader = Reader { queue: &simulated, interrupt: &interrupt, progress, remark: Box::new(|_| ()) };
        let policies = policies();
        let redrive = Redrive::new(&policies, None).unwrap();
        let (done, read) = work(10.0).run(&reader, &simulated.ids(), &redrive).await.unwrap();
        assert_eq!((done.dead_letters, read.end), (1, End::Interrupted));
        assert_eq!((simulated.depth().visible, simulated.retried().len()), (149, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_denied_send_leaves_everything() {
        let simulated = with(150);
        simulated.denied.set("send");
        let failure = redrive(&simulated, &work(50.0)).await.unwrap_err();
        let why = "sqs:SendMessage: refused: AccessDenied: send; docs/operate.md lists the permissions of each command";
        assert_eq!(failure, Failure::CouldNot(why.into()));
        assert_eq!((simulated.depth().visible, simulated.retried().len()), (150, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_denied_deletion_makes_one_copy() {
        let simulated = with(150);
        simulated.denied.set("delete");
        let (done, _) = redrive(&simulated, &work(50.0)).await.unwrap();
        let why = "sqs:DeleteMessage: refused: AccessDenied: delete; docs/operate.md lists the permissions of each command";
        assert_eq!((done.dead_letters, done.not_deleted), (0, Some((1, why.into()))));
        assert_eq!((simulated.depth().visible, simulated.retried().len()), (150, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn dead_letters_that_would_be_dead_lettered_again_are_left() {
        let elsewhere = event("Timeout");
        let body = elsewhere.body.replace("function:orders", "function:payments");
        let elsewhere = Put { body, ..elsewhere };
        let simulated = Simulated::with([event("Timeout"), malformed(), unknown(), elsewhere]);
        let (done, _) = redrive(&simulated, &work(50.0)).await.unwrap();
        let left = [("malformed_record".to_owned(), 2), ("target_not_allowed".to_owned(), 1)];
        assert_eq!((done.dead_letters, done.left), (1, BTreeMap::from(left)));
    }

    #[test]
    fn a_seconds_dead_letters_go_at_once() {
        let numbers = [1e-8, 0.1, 0.9, 1.0, 7.9, 50.0, 1e6].map(Pace);
        assert_eq!(numbers.map(|pace| pace.at_once(1)), [1, 1, 1, 1, 7, 50, 80]);
        assert_eq!(numbers.map(Pace::at_hand), [1, 30, 80, 80, 80, 80, 80]);
        assert_eq!(Pace(50.0).time_for(812), Duration::from_millis(16_240));
        assert_eq!(Pace(1e-8).time_for(u64::MAX), Duration::MAX);
    }

    proptest! {
        #[test]
        fn a_dead_letter_at_hand_has_its_turn_before_it_is_visible(exponent in -7.0..6.0) {
            let pace = Pace(10f64.powf(exponent));
            // The last waits for the turns of all before it.
            let before = pace.at_hand() as u64 - 1;
            prop_assert!(pace.time_for(before) <= HIDDEN_FOR / 3);
        }
    }
}
