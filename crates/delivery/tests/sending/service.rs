use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::panic::resume_unwind;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use comeback_delivery::futures_util::future::{FutureExt, LocalBoxFuture};
use comeback_delivery::limits::Limits;
use comeback_delivery::{EntryAnswer, ErrorKind, Lane, Operation, Sender, ServiceError};
use send_wrapper::SendWrapper;

pub(crate) const ROOMY: Limits = Limits { entries: 10, bytes: 1_000, entry_bytes: 1_000 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: usize,
    pub(crate) size: usize,
    pub(crate) lane: Option<u8>,
}

pub(crate) fn entries<const N: usize>(lanes: [Option<u8>; N]) -> Vec<Entry> {
    (0..N).map(|id| Entry { id, size: 1, lane: lanes[id] }).collect()
}

/// A scripted result for one entry; the last result in a script repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Ok,
    Error(ErrorKind),
    /// The response ends before this entry, so the call has no result for it or for later entries.
    Cut,
    /// If the first entry in a call has this fate, the whole call fails with this error.
    Whole(ErrorKind),
    /// If the first entry in a call has this fate, the call panics.
    Panic,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) ids: Vec<usize>,
    /// The service's result for each entry; `None` while the call is under way, or if it was dropped.
    pub(crate) answers: Option<Vec<Option<Fate>>>,
    pub(crate) began: u32,
    pub(crate) ended: u32,
}

pub(crate) struct Service {
    pub(crate) limits: Limits,
    pub(crate) script: Vec<Fate>,
    pub(crate) place: Cell<usize>,
    /// Number of polls before a call or a wait completes.
    pub(crate) polls: usize,
    /// Bytes that an entry adds to a call beyond its own size.
    pub(crate) overhead: usize,
    /// A call fails as a whole, with this kind of error, if it contains an entry with one of these ids.
    pub(crate) bad: (ErrorKind, Vec<usize>),
    pub(crate) lanes: fn(Lane) -> Lane,
    pub(crate) calls: RefCell<Vec<Call>>,
    pub(crate) waits: RefCell<Vec<Duration>>,
    /// Counter that advances when a call begins, when a call ends, and when a wait ends.
    pub(crate) clock: Cell<u32>,
}

impl Service {
    pub(crate) fn new(script: impl Into<Vec<Fate>>) -> Self {
        let (calls, waits, place, clock) = Default::default();
        let (script, bad) = (script.into(), (ErrorKind::Refused, Vec::new()));
        Self {
            limits: ROOMY,
            script,
            place,
            polls: 0,
            overhead: 0,
            bad,
            lanes: |lane| lane,
            calls,
            waits,
            clock,
        }
    }

    pub(crate) fn sent(&self) -> Vec<Vec<usize>> {
        self.calls.borrow().iter().map(|call| call.ids.clone()).collect()
    }

    /// Returns a sender to this service; its waits are recorded and take no real time.
    pub(crate) fn sender<'s>(&'s self) -> Sender<&'s Self, impl Fn(Duration) -> LocalBoxFuture<'s, ()>> {
        Sender::over(self, |wait| self.sleep(wait).boxed_local())
    }

    async fn sleep(&self, wait: Duration) {
        self.waits.borrow_mut().push(wait);
        yields(self.polls).await;
        self.tick();
    }

    fn tick(&self) -> u32 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    fn next_fate(&self) -> Fate {
        let place = self.place.replace(self.place.get() + 1);
        self.script[place.min(self.script.len() - 1)]
    }

    fn fates(&self, entries: &[&Entry]) -> Vec<Option<Fate>> {
        let (kind, bad) = &self.bad;
        let mut fates: Vec<Option<Fate>> = entries.iter().map(|_| Some(self.next_fate())).collect();
        if entries.iter().any(|entry| bad.contains(&entry.id)) {
            fates[0] = Some(Fate::Whole(*kind));
        }
        if let Some(Fate::Whole(_) | Fate::Panic) = fates[0] {
            return vec![fates[0]; entries.len()];
        }
        if let Some(cut) = fates.iter().position(|fate| *fate == Some(Fate::Cut)) {
            fates[cut..].fill(None);
        }
        fates
    }
}

impl Operation for &Service {
    type Entry = Entry;
    type Receipt = ();

    fn limits(&self) -> Limits {
        self.limits
    }

    fn size(&self, entry: &Entry) -> usize {
        entry.size
    }

    fn size_in_call(&self, entry: &Entry) -> usize {
        entry.size + self.overhead
    }

    fn lane(&self, entry: &Entry) -> Option<Lane> {
        entry.lane.map(|lane| (self.lanes)(Lane::new([[lane]])))
    }

    fn call(
        &self,
        entries: &[&Entry],
    ) -> impl Future<Output = Result<Vec<EntryAnswer>, ServiceError>> + Send {
        SendWrapper::new(self.answer(entries))
    }
}

impl Service {
    async fn answer(&self, entries: &[&Entry]) -> Result<Vec<EntryAnswer>, ServiceError> {
        let ids = entries.iter().map(|entry| entry.id).collect();
        let place = self.calls.borrow().len();
        self.calls.borrow_mut().push(Call { ids, began: self.tick(), ..Call::default() });
        yields(self.polls).await;
        let fates = self.fates(entries);
        {
            let call = &mut self.calls.borrow_mut()[place];
            (call.answers, call.ended) = (Some(fates.clone()), self.tick());
        }
        match fates[0] {
            Some(Fate::Whole(kind)) => return Err(error(kind)),
            Some(Fate::Panic) => resume_unwind(Box::new("planned")),
            _ => {}
        }
        let answers = fates.into_iter().map_while(|fate| {
            Some(match fate? {
                Fate::Ok | Fate::Whole(_) | Fate::Panic | Fate::Cut => Ok(()),
                Fate::Error(kind) => Err(error(kind)),
            })
        });
        Ok(answers.collect())
    }
}

impl Call {
    /// Returns true if the call was refused as a whole and then sent again in halves.
    pub(crate) fn was_halved(&self) -> bool {
        let first = self.answers.as_ref().and_then(|answers| answers[0]);
        self.ids.len() > 1 && matches!(first, Some(Fate::Whole(ErrorKind::Refused | ErrorKind::TooLarge)))
    }
}

impl Call {
    fn kinds(&self) -> impl Iterator<Item = Option<ErrorKind>> + '_ {
        let answers = self.answers.as_deref().unwrap_or_default();
        answers.iter().map(|fate| Fate::kind(*fate, answers[0]))
    }

    pub(crate) fn took_some(&self) -> bool {
        self.kinds().any(|kind| kind.is_none())
    }

    pub(crate) fn is_throttled_whole(&self) -> bool {
        self.kinds().all(|kind| kind == Some(ErrorKind::Throttled))
    }
}

impl Fate {
    /// Returns the kind of error that an entry gets; `None` if it is delivered. `first` is the fate of the first entry
    /// in the same call.
    pub(crate) fn kind(fate: Option<Self>, first: Option<Self>) -> Option<ErrorKind> {
        match (first, fate) {
            (Some(Self::Panic), _) => Some(ErrorKind::Panicked),
            (Some(Self::Whole(kind)), _) | (_, Some(Self::Error(kind))) => Some(kind),
            (_, None) => Some(ErrorKind::Transient),
            (_, Some(_)) => None,
        }
    }
}

pub(crate) fn error(kind: ErrorKind) -> ServiceError {
    ServiceError::new(kind, "Code", "message")
}

/// Stays pending for the given number of polls.
pub(crate) async fn yields(mut polls: usize) {
    poll_fn(move |context| {
        if polls == 0 {
            return Poll::Ready(());
        }
        polls -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

pub(crate) fn complete<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let context = &mut Context::from_waker(Waker::noop());
    for _ in 0..100_000 {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return output;
        }
    }
    panic!("it never ends");
}
