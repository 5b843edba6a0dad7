use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use comeback_engine::{FailedEvent, Record, Timestamp};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::letters::{self, NOW, Put};
use super::simulated::Simulated;
use crate::Interrupt;
use crate::dead::deed::Deed;
use crate::dead::export::Line;
use crate::dead::pace::Pace;
use crate::dead::work::{Work, Worked, work};
use crate::dead::{End, Filter};

/// One history of the queues, and a command that is killed in it again and again.
pub(super) struct History {
    pub(super) simulated: Simulated,
    pub(super) letters: Vec<Put>,
    filter: Filter,
    pub(super) pace: Pace,
    pub(super) luck: Xoshiro256PlusPlus,
    pub(super) folder: tempfile::TempDir,
}

impl History {
    pub(super) fn of(seed: u64) -> Self {
        let mut luck = Xoshiro256PlusPlus::seed_from_u64(seed);
        let simulated = Simulated::new(seed);
        let letters: Vec<Put> = (0..luck.random_range(1..120)).map(|_| letters::any(&mut luck)).collect();
        letters.iter().for_each(|letter| drop(simulated.put(letter)));
        simulated.fault_rate.set([0.0, 0.01, 0.1][luck.random_range(0..3)]);
        let error = luck.random_bool(0.5).then(|| "Time*".to_owned());
        Self {
            simulated,
            letters,
            filter: Filter { error, ..Filter::default() },
            pace: Pace::per_second([0.5, 7.0, 25.0, 1_000.0][luck.random_range(0..4)]),
            luck,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(super) fn is_chosen(&self, letter: &Put) -> bool {
        self.filter.takes_everything() || letter.error_type == "Timeout"
    }

    pub(super) fn work(&self, luck: &mut Xoshiro256PlusPlus) -> Work {
        let limit = luck.random_bool(0.2).then(|| luck.random_range(1..40));
        Work { filter: self.filter.clone(), now: NOW, until: NOW, pace: self.pace, limit }
    }

    /// Runs a command again and again, killed at random calls at first and undisturbed in the end, until it has
    /// nothing more to do. Says how often it was killed.
    pub(super) async fn run_to_the_end(
        &mut self,
        mut run: impl AsyncFnMut(&Simulated, &Work) -> Option<Worked>,
    ) -> usize {
        let (mut luck, mut kills) = (self.luck.clone(), 0);
        for _ in 0..luck.random_range(0..12) {
            let calls = luck.random_range(0..80);
            let work = self.work(&mut luck);
            let ended = self.simulated.killed_after(calls, run(&self.simulated, &work)).await;
            kills += usize::from(ended.is_none());
            self.check_kept();
            self.simulated.all_come_back();
        }
        self.simulated.fault_rate.set(0.0);
        let work = Work { limit: None, ..self.work(&mut luck) };
        let worked = run(&self.simulated, &work).await.expect("nothing is in the way");
        assert_eq!((worked.read.end, worked.not_deleted, worked.read.still_hidden), (End::All, None, None));
        assert_eq!(self.simulated.depth().in_flight, 0, "everything was given back");
        kills
    }

    /// At each moment, what is nowhere else is in the dead-letter queue.
    fn check_kept(&self) {
        let exported = exported(self.folder.path()).into_iter().map(|line| line.body);
        let depth = self.simulated.depth();
        let elsewhere: BTreeSet<String> =
            self.simulated.retried().into_iter().map(|record| key_of(&record)).chain(exported).collect();
        let there = depth.visible + depth.in_flight;
        assert!(there + elsewhere.len() >= self.letters.len(), "{there} letters, {}", elsewhere.len());
    }

    /// The letters that are in the dead-letter queue, by body.
    pub(super) fn in_dead_letter_queue(&self) -> BTreeMap<String, usize> {
        counted(self.simulated.dead().into_iter().map(|received| received.record.body))
    }
}

pub(super) fn counted(texts: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    texts.for_each(|text| *counts.entry(text).or_default() += 1);
    counts
}

/// As the handler reads what it is sent: it must be an event that starts anew.
pub(super) fn key_of(record: &Record) -> String {
    let event = FailedEvent::read(record).expect("the handler reads it");
    assert_eq!((event.retry, event.first_failure), (1, Timestamp::from_secs(record.sent.as_secs())));
    assert!(event.error.is_none() && !event.not_found);
    assert!(event.payload.get().ends_with(&format!(r#""id":"{}"}}"#, event.origin_request_id)));
    event.origin_request_id
}

/// What is in the exports of a folder. The last line of one may be cut off.
pub(super) fn exported(folder: &Path) -> Vec<Line> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let exports = files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let text: String = exports.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A command's future, driven on a paused clock.
pub(super) fn block_on(history: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(history);
}

pub(super) async fn run<D: Deed>(simulated: &Simulated, deed: &mut D, order: &Work) -> Option<Worked> {
    let (_raise, interrupt) = Interrupt::new();
    work(simulated, deed, order, &interrupt, &|_| ()).await.ok()
}
