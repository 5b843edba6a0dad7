//! Kills commands at random AWS calls: no dead-letter may be lost, and each duplicate must have a cause.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use comeback_engine::{FailedEvent, Record, Timestamp};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::aws::simulated::{Call, Fault, Stored};
use crate::change::{Change, Performed};
use crate::dead::discard::Discard;
use crate::dead::file::StoredDeadLetter;
use crate::dead::filter::Filter;
use crate::dead::import::Import;
use crate::dead::pace::Pace;
use crate::dead::plan::Chosen;
use crate::dead::redrive::Redrive;
use crate::dead::snapshot::{Selection, scan};
use crate::dead::testing::{Dead, SampleDeadLetter, event, malformed, record, unknown};
use crate::deployment::queue::HIDDEN_FOR;

/// The number of random histories, each with its own dead-letters, filter, pace, faults and kills.
const HISTORIES: u64 = 300;
/// The number of random histories for a test that is slow because it writes files.
const HISTORIES_WITH_FILES: u64 = 40;

struct History {
    dead: Dead,
    dead_letters: Vec<SampleDeadLetter>,
    filter: Filter,
    pace: Pace,
    luck: Xoshiro256PlusPlus,
    folder: tempfile::TempDir,
    fault_rate: Rc<Cell<f64>>,
    /// The number of unanswered sends and failed or unanswered deletions, each of which may explain one duplicate.
    explained: Rc<Cell<usize>>,
}

impl History {
    fn of(seed: u64) -> Self {
        let mut luck = Xoshiro256PlusPlus::seed_from_u64(seed);
        let dead_letters: Vec<_> = (0..luck.random_range(1..120)).map(|_| any(&mut luck)).collect();
        let dead = Dead::with(dead_letters.iter().cloned());
        let fault_rate = Rc::new(Cell::new([0.0, 0.01, 0.1][luck.random_range(0..3)]));
        let explained = Rc::new(Cell::new(0));
        let faults = RefCell::new(Xoshiro256PlusPlus::seed_from_u64(seed + 1));
        let (rate, explains) = (Rc::clone(&fault_rate), Rc::clone(&explained));
        dead.aws.on_call(move |call: Call<'_>| {
            let mut faults = faults.borrow_mut();
            let fault = match faults.random_range(0..3) {
                _ if !call.action.starts_with("sqs:") || !faults.random_bool(rate.get()) => return None,
                0 => Fault::CallFails,
                1 => Fault::EntriesFail((0..call.entries).filter(|_| faults.random_bool(0.5)).collect()),
                _ => Fault::AnswerLost,
            };
            let may_double = match call.action {
                "sqs:SendMessage" => fault == Fault::AnswerLost,
                action => action == "sqs:DeleteMessage",
            };
            explains.set(explains.get() + if may_double { call.entries } else { 0 });
            Some(fault)
        });
        let error = luck.random_bool(0.5).then(|| "Time*".to_owned());
        Self {
            dead,
            dead_letters,
            filter: Filter { error, ..Filter::default() },
            pace: Pace([0.5, 7.0, 25.0, 1_000.0][luck.random_range(0..4)]),
            luck,
            folder: tempfile::tempdir().unwrap(),
            fault_rate,
            explained,
        }
    }

    fn is_chosen(&self, dead_letter: &SampleDeadLetter) -> bool {
        self.filter.takes_everything() || dead_letter.error_type == "Timeout"
    }

    fn chosen(&self) -> Chosen {
        Chosen::matching(self.filter.clone())
    }

    /// Plans a change and carries it out, with random kills in all runs but the last; returns the number of kills.
    async fn run_to_the_end<C: Change>(&mut self, mut change: impl FnMut(&Self, Option<u64>) -> C) -> usize {
        let (mut luck, mut kills) = (self.luck.clone(), 0);
        for _ in 0..luck.random_range(0..12) {
            let limit = luck.random_bool(0.2).then(|| luck.random_range(1..40));
            let change = change(self, limit);
            let ended = self.dead.aws.killed_after(luck.random_range(0..120), run(&self.dead, &change)).await;
            kills += usize::from(ended.is_none());
            self.check_kept();
            self.dead.aws.advance(HIDDEN_FOR);
        }
        self.fault_rate.set(0.0);
        let result = run(&self.dead, &change(self, None)).await;
        assert_eq!(result, Some(Ok(())), "nothing is in the way");
        assert_eq!(self.dead.depth().in_flight, 0, "everything was given back");
        kills
    }

    /// Asserts that each dead-letter is in the dead-letter queue, in an exported file, or in the retry queue.
    fn check_kept(&self) {
        let kept: BTreeSet<String> = self.dead.dead().into_iter().map(|it| it.message.body).collect();
        let exported: BTreeSet<String> = exported(self.folder.path()).into_iter().map(|it| it.body).collect();
        let retried: BTreeSet<String> = self.dead.retried().iter().map(key_of).collect();
        for SampleDeadLetter { body, key, .. } in &self.dead_letters {
            assert!(
                kept.contains(body) || exported.contains(body) || retried.contains(key),
                "{body} is lost"
            );
        }
    }

    /// The number of copies of each dead-letter, by body.
    fn in_dead_letter_queue(&self) -> BTreeMap<String, usize> {
        counted(self.dead.dead().into_iter().map(|stored| stored.message.body))
    }
}

/// Plans a change and performs it; returns `None` if the change did nothing.
async fn run<C: Change>(dead: &Dead, change: &C) -> Option<Result<(), crate::Failure>> {
    let operator = dead.operator();
    match change.perform(&operator, &change.plan(&operator).await.ok()?).await {
        Ok(Performed::Done(_, result)) => Some(result),
        Ok(Performed::Outdated(_)) | Err(_) => None,
    }
}

fn any(luck: &mut impl RngExt) -> SampleDeadLetter {
    let error = ["Timeout", "OutOfMemory"][luck.random_range(0..2)];
    match luck.random_range(0..8) {
        0 => record(error),
        1 => malformed(),
        2 => unknown(),
        _ => event(error),
    }
}

fn counted(texts: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    texts.for_each(|text| *counts.entry(text).or_default() += 1);
    counts
}

/// Returns a message's event key as the handler reads it, and asserts that the event's next retry is number 1.
fn key_of(stored: &Stored) -> String {
    let record = Record {
        message_id: stored.id.clone(),
        receipt_handle: String::new(),
        body: stored.message.body.clone(),
        receive_count: 1,
        sent: stored.sent,
        first_receive: stored.sent,
        moved: None,
        trace_header: None,
        attributes: Vec::new(),
    };
    let event = FailedEvent::read(&record).expect("the handler reads it");
    assert_eq!((event.retry, event.first_failure), (1, Timestamp::from_secs(record.sent.as_secs())));
    assert!(event.error.is_none() && !event.not_found);
    assert!(event.payload.get().ends_with(&format!(r#""id":"{}"}}"#, event.origin_request_id)));
    event.origin_request_id
}

fn exported(folder: &Path) -> Vec<StoredDeadLetter> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let exports = files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let text: String = exports.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn killed_redrive_loses_nothing() {
    let (mut all_kills, mut all_copies) = (0, 0);
    for seed in 0..HISTORIES {
        let mut history = History::of(seed);
        let redrive = |history: &History, limit| Redrive {
            pace: history.pace,
            limit,
            ..Redrive::new(history.chosen())
        };
        let kills = history.run_to_the_end(redrive).await;
        let retried = counted(history.dead.retried().iter().map(key_of));
        let left = history.in_dead_letter_queue();
        let mut copies = 0;
        for dead_letter in &history.dead_letters {
            let sent = retried.get(&dead_letter.key).copied().unwrap_or(0);
            if history.is_chosen(dead_letter) && dead_letter.can_be_redriven {
                assert!(sent >= 1, "seed {seed}: {dead_letter:?} is lost");
                assert_eq!(left.get(&dead_letter.body), None, "seed {seed}: {dead_letter:?} was left");
                copies += sent - 1;
            } else {
                assert_eq!(sent, 0, "seed {seed}: {dead_letter:?} was redriven");
                assert_eq!(
                    left.get(&dead_letter.body),
                    Some(&1),
                    "seed {seed}: {dead_letter:?} was not left"
                );
            }
        }
        let explained = history.explained.get() + kills * history.pace.at_once(1);
        assert!(copies <= explained, "seed {seed}: {copies} copies after {kills} kills");
        all_kills += kills;
        all_copies += copies;
    }
    assert!(all_kills > 500 && all_copies > 100, "{all_kills} kills, and {all_copies} copies: too tame");
}

#[tokio::test]
async fn killed_discard_loses_nothing() {
    for seed in 0..HISTORIES_WITH_FILES {
        let mut history = History::of(seed);
        let mut files = 0;
        history
            .run_to_the_end(|history, limit| {
                files += 1;
                let export = history.folder.path().join(format!("{files}.jsonl"));
                let (chosen, pace) = (history.chosen(), history.pace);
                Discard { chosen, export, pace, limit }
            })
            .await;
        let exported = counted(exported(history.folder.path()).into_iter().map(|line| line.body));
        let left = history.in_dead_letter_queue();
        for dead_letter in &history.dead_letters {
            let (is_exported, left) = (exported.contains_key(&dead_letter.body), left.get(&dead_letter.body));
            let expected = if history.is_chosen(dead_letter) { (true, None) } else { (false, Some(&1)) };
            assert_eq!((is_exported, left), expected, "seed {seed}: {dead_letter:?}");
        }
    }
}

#[tokio::test]
async fn killed_import_loses_nothing() {
    for seed in 0..HISTORIES_WITH_FILES {
        let history = History::of(seed);
        let mut luck = history.luck.clone();
        let file = history.folder.path().join("dead-letters.jsonl");
        history.fault_rate.set(0.0);
        let (chosen, export) = (Chosen::matching(Filter::default()), file.clone());
        let discard = Discard { chosen, export, pace: Pace(1_000.0), limit: None };
        assert_eq!(run(&history.dead, &discard).await, Some(Ok(())));
        assert_eq!(history.in_dead_letter_queue(), BTreeMap::new());
        let import = Import { file, pace: history.pace };
        let kills = luck.random_range(0..12);
        history.fault_rate.set(0.05);
        for _ in 0..kills {
            history.dead.aws.killed_after(luck.random_range(0..20), run(&history.dead, &import)).await;
        }
        history.fault_rate.set(0.0);
        assert_eq!(run(&history.dead, &import).await, Some(Ok(())));
        let back = history.in_dead_letter_queue();
        assert_eq!(run(&history.dead, &import).await, Some(Ok(())));
        assert_eq!(history.in_dead_letter_queue(), back, "a repeated import does nothing");
        let copies: usize =
            history.dead_letters.iter().map(|it| back.get(&it.body).map_or(0, |n| n - 1)).sum();
        assert!(history.dead_letters.iter().all(|it| back.contains_key(&it.body)), "seed {seed}");
        let explained = history.explained.get() + kills * history.pace.at_once(1);
        assert!(copies <= explained, "seed {seed}: {copies} copies");
        let reasons = history.dead.dead().iter().filter(|it| !it.message.attributes.is_empty()).count();
        assert!(reasons >= history.dead_letters.iter().filter(|it| it.reason.is_some()).count());
    }
}

#[tokio::test]
async fn killed_scan_changes_nothing() {
    for seed in 0..HISTORIES {
        let mut history = History::of(seed);
        let before = history.in_dead_letter_queue();
        let operator = history.dead.operator();
        let calls = history.luck.random_range(0..60);
        history.dead.aws.killed_after(calls, scan(&operator, Filter::default())).await;
        history.dead.aws.advance(HIDDEN_FOR);
        history.fault_rate.set(0.0);
        let snapshot = scan(&operator, Filter::default()).await.unwrap();
        assert_eq!(snapshot.rows(&Selection::All).len(), history.dead_letters.len());
        assert_eq!((history.in_dead_letter_queue(), history.dead.depth().in_flight), (before, 0));
    }
}
