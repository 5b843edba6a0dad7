//! Acting on letters, and deleting them once they are safe elsewhere.

use std::collections::BTreeMap;

use comeback_engine::Timestamp;

use super::deed::{Deed, Trouble};
use super::filter::Filter;
use super::pace::Pace;
use super::queue::{LetterQueue, Received};
use super::read::{End, Progress, Read};
use super::scan::Scan;
use super::survey::could_begin;
use crate::{Failure, Interrupt};

/// Which letters are acted on, and how fast.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Which letters.
    pub filter: Filter,
    /// The moment that ages count from.
    pub now: Timestamp,
    /// Letters that were sent later are left alone. By SQS's clock: the newest that the plan has seen.
    pub until: Timestamp,
    /// Letters a second.
    pub pace: Pace,
    /// Letters at most.
    pub limit: Option<u64>,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worked {
    /// Letters that are safe elsewhere, and deleted.
    pub done: u64,
    /// Letters that are safe elsewhere and could not be deleted, and why: repeated work does them again.
    pub not_deleted: Option<(u64, String)>,
    /// Letters that were left, by what was wrong.
    pub left: BTreeMap<String, u64>,
    /// What was read.
    pub read: Read,
}

/// A letter at hand.
type AtHand<P> = (Received, P);

/// One run of the work.
struct Run<'r, 'q, Q, D> {
    queue: &'q Q,
    deed: &'r mut D,
    scan: Scan<'q, Q>,
    work: &'r Work,
    interrupt: &'q Interrupt,
    tell: &'r dyn Fn(Progress),
    tried: u64,
    done: u64,
    not_deleted: Option<(u64, String)>,
    left: BTreeMap<String, u64>,
}

/// Does it with every letter that the work names.
pub(super) async fn work<'q, Q: LetterQueue, D: Deed>(
    queue: &'q Q,
    deed: &mut D,
    work: &Work,
    interrupt: &'q Interrupt,
    tell: &dyn Fn(Progress),
) -> Result<Worked, Failure> {
    let scan = Scan::new(queue, interrupt, work.until)?;
    let (not_deleted, left) = (None, BTreeMap::new());
    let mut run = Run { queue, deed, scan, work, interrupt, tell, tried: 0, done: 0, not_deleted, left };
    let end = run.until_its_end().await;
    let Run { scan, done, not_deleted, left, .. } = run;
    let read = scan.give_back(end, tell).await;
    could_begin(&read)?;
    if let (End::Failed(failure), 0, None) = (&read.end, done, &not_deleted) {
        return Err(failure.clone());
    }
    Ok(Worked { done, not_deleted, left, read })
}

impl<Q: LetterQueue, D: Deed> Run<'_, '_, Q, D> {
    async fn until_its_end(&mut self) -> End {
        loop {
            let chosen = match self.choose().await {
                Ok(chosen) => chosen,
                Err(end) => return end,
            };
            if let Err(end) = self.act_on(chosen).await {
                return end;
            }
        }
    }

    /// The next letters to act on. Those that the work does not name are held.
    async fn choose(&mut self) -> Result<Vec<AtHand<D::Prepared>>, End> {
        let room = self.work.limit.map_or(usize::MAX, |limit| (limit - self.tried) as usize);
        if room == 0 {
            return Err(End::Enough);
        }
        let mut chosen = Vec::new();
        for received in self.scan.next(self.work.pace.at_hand()).await? {
            let named = chosen.len() < room && self.work.filter.takes(&received.letter(), self.work.now);
            match named.then(|| self.deed.prepare(&received)) {
                Some(Ok(prepared)) => chosen.push((received, prepared)),
                not_to_do => {
                    if let Some(Err(reason)) = not_to_do {
                        *self.left.entry(reason.code.to_string()).or_default() += 1;
                    }
                    self.scan.hold([&received])?;
                }
            }
        }
        Ok(chosen)
    }

    /// Acts on letters a second's worth at a time, the very first alone: where a permission is missing, only that one
    /// is done and not deleted. Those whose turn does not come are held.
    async fn act_on(&mut self, chosen: Vec<AtHand<D::Prepared>>) -> Result<(), End> {
        let mut chosen = chosen.into_iter();
        let mut end = Ok(());
        while end.is_ok() && chosen.len() > 0 {
            let at_once = if self.tried == 0 { 1 } else { self.work.pace.at_once() };
            let some: Vec<_> = chosen.by_ref().take(at_once).collect();
            // It begins now, and ends when the next letters may go.
            let turn = tokio::time::sleep(self.work.pace.time_for(some.len() as u64));
            end = self.act_on_some(some).await;
            (self.tell)(Progress::Done(self.done));
            if end.is_ok() {
                tokio::select! {
                    () = turn => {}
                    () = self.interrupt.raised() => end = Err(End::Interrupted),
                }
            }
        }
        for (received, _) in chosen {
            self.scan.hold([&received])?;
        }
        end
    }

    async fn act_on_some(&mut self, some: Vec<AtHand<D::Prepared>>) -> Result<(), End> {
        let (received, prepared): (Vec<_>, Vec<_>) = some.into_iter().unzip();
        self.tried += received.len() as u64;
        let answers = self.deed.perform(self.queue, prepared).await;
        let (mut safe, mut kept, mut end) = (Vec::new(), Vec::new(), Ok(()));
        for (letter, answer) in received.into_iter().zip(answers) {
            let Err(trouble) = answer else {
                safe.push(letter);
                continue;
            };
            if trouble.of_all {
                end = Err(End::Failed(Failure::CouldNot(trouble.why.clone())));
            }
            *self.left.entry(trouble.why).or_default() += 1;
            kept.push(letter);
        }
        let deleted = self.delete(safe).await;
        self.scan.hold(&kept)?;
        deleted.and(end)
    }

    /// Deletes what is safe elsewhere. Where that does not work, going on would only make second copies.
    async fn delete(&mut self, safe: Vec<Received>) -> Result<(), End> {
        let handles = safe.iter().map(|letter| letter.record.receipt_handle.clone()).collect();
        let answers = self.queue.delete(handles).await;
        let mut end = Ok(());
        for (letter, answer) in safe.iter().zip(answers) {
            match answer {
                Ok(()) => {
                    self.done += 1;
                    self.scan.deleted(1);
                }
                Err(cause) => {
                    let why = Trouble::of("sqs:DeleteMessage", &cause).why;
                    end = Err(End::Failed(Failure::CouldNot(why.clone())));
                    let (count, _) = self.not_deleted.get_or_insert((0, why));
                    *count += 1;
                    self.scan.hold([letter])?;
                }
            }
        }
        end
    }
}
