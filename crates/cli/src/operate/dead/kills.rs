//! Commands killed at any call, again and again, over queues whose calls fail: nothing is lost, and nothing is doubled
//! without a cause.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use comeback_engine::{FailedEvent, Record, Timestamp};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::account::Failure;
use crate::operate::dead::discard::{Export, Line};
use crate::operate::dead::filter::Filter;
use crate::operate::dead::import::Importing;
use crate::operate::dead::queue::Received;
use crate::operate::dead::redrive::Redrive;
use crate::operate::dead::scan::{End, Read, Reader, Scan};
use crate::operate::dead::simulated::{self, NOW, Put, Simulated, policies};
use crate::operate::dead::survey::Survey;
use crate::operate::dead::work::{DeadLetterAction, Done, Pace, Work};
use crate::operate::session::Interrupt;

/// One history of the queues, and a command that is killed in it again and again.
struct History {
    simulated: Simulated,
    dead_letters: Vec<Put>,
    filter: Filter,
    pace: Pace,
    luck: Xoshiro256PlusPlus,
    folder: tempfile::TempDir,
}

impl History {
    fn of(seed: u64) -> Self {
        let mut luck = Xoshiro256PlusPlus::seed_from_u64(seed);
        let simulated = Simulated::new(seed);
        let dead_letters: Vec<Put> =
            (0..luck.random_range(1..120)).map(|_| simulated::any(&mut luck)).collect();
        dead_letters.iter().for_each(|dead_letter| drop(simulated.put(dead_letter)));
        simulated.fault_rate.set([0.0, 0.01, 0.1][luck.random_range(0..3)]);
        let error = luck.random_bool(0.5).then(|| "Time*".to_owned());
        Self {
            simulated,
            dead_letters,
            filter: Filter { error, ..Filter::default() },
            pace: Pace([0.5, 7.0, 25.0, 1_000.0][luck.random_range(0..4)]),
            luck,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn is_chosen(&self, dead_letter: &Put) -> bool {
        self.filter.takes_everything() || dead_letter.error_type == "Timeout"
    }

    fn work(&self, luck: &mut Xoshiro256PlusPlus) -> Work {
        let limit = luck.random_bool(0.2).then(|| luck.random_range(1..40));
        Work { filter: Some(self.filter.clone()), now: NOW, until: NOW, pace: self.pace, limit }
    }

    /// Runs a command again and again, killed at random calls at first and undisturbed in the end, until it has
    /// nothing more to do. Says how often it was killed.
    async fn run_to_the_end(
        &mut self,
        mut run: impl AsyncFnMut(&Simulated, &Work) -> Option<(Done, Read)>,
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
        let (done, read) = worked;
        assert_eq!((read.end, done.not_deleted, read.still_hidden), (End::All, None, None));
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
        assert!(
            there + elsewhere.len() >= self.dead_letters.len(),
            "{there} dead-letters, {}",
            elsewhere.len()
        );
    }

    /// The dead-letters that are in the dead-letter queue, by body.
    fn in_dead_letter_queue(&self) -> BTreeMap<String, usize> {
        counted(self.simulated.dead().into_iter().map(|received| received.record.body))
    }
}

fn counted(texts: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    texts.for_each(|text| *counts.entry(text).or_default() += 1);
    counts
}

/// As the handler reads what it is sent: it must be an event that starts anew.
fn key_of(record: &Record) -> String {
    let event = FailedEvent::read(record).expect("the handler reads it");
    assert_eq!((event.retry, event.first_failure), (1, Timestamp::from_secs(record.sent.as_secs())));
    assert!(event.error.is_none() && !event.not_found);
    assert!(event.payload.get().ends_with(&format!(r#""id":"{}"}}"#, event.origin_request_id)));
    event.origin_request_id
}

/// What is in the exports of a folder. The last line of one may be cut off.
fn exported(folder: &Path) -> Vec<Line> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let exports = files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let text: String = exports.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A command's future, driven on a paused clock.
fn block_on(history: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(history);
}

async fn run(simulated: &Simulated, action: &impl DeadLetterAction, work: &Work) -> Option<(Done, Read)> {
    let (_raise, interrupt) = Interrupt::new();
    let reader = Reader {
        queue: simulated,
        interrupt: &interrupt,
        progress: Box::new(|_| ()),
        remark: Box::new(|_| ()),
    };
    work.run(&reader, &simulated.ids(), action).await.ok()
}

/// How many random histories are tried, each with its own dead-letters, filter, pace, faults and up to a dozen kills.
const HISTORIES: u64 = 400;
/// Of commands that wait for a disk with each step.
const HISTORIES_WITH_FILES: u64 = 40;

#[test]
fn a_killed_redrive_loses_nothing_and_doubles_only_what_was_at_hand() {
    let (mut all_kills, mut all_copies) = (0, 0);
    for seed in 0..HISTORIES {
        block_on(async {
            let mut history = History::of(seed);
            let policies = policies();
            let kills = history
                .run_to_the_end(async |simulated, work| {
                    let redrive = Redrive::new(&policies, None).unwrap();
                    run(simulated, &redrive, work).await
                })
                .await;
            let retried = counted(history.simulated.retried().iter().map(key_of));
            let left = history.in_dead_letter_queue();
            let explained: BTreeSet<_> = history.simulated.explained();
            let explained = |key: &str| explained.iter().any(|body| body.contains(&format!("\"{key}\"")));
            let mut unexplained = 0;
            for dead_letter in &history.dead_letters {
                let copies = retried.get(&dead_letter.key).copied().unwrap_or(0);
                if history.is_chosen(dead_letter) && dead_letter.can_be_redriven {
                    assert!(copies >= 1, "seed {seed}: {dead_letter:?} is lost");
                    assert_eq!(left.get(&dead_letter.body), None, "seed {seed}: {dead_letter:?} was left");
                    unexplained += if explained(&dead_letter.key) { 0 } else { copies - 1 };
                } else {
                    assert_eq!(copies, 0, "seed {seed}: {dead_letter:?} was redriven");
                    assert_eq!(
                        left.get(&dead_letter.body),
                        Some(&1),
                        "seed {seed}: {dead_letter:?} was not left"
                    );
                }
            }
            let allowed = kills * history.pace.at_once(1);
            assert!(unexplained <= allowed, "seed {seed}: {unexplained} copies after {kills} kills");
            all_kills += kills;
            all_copies += unexplained;
        });
    }
    assert!(all_kills > 1_000 && all_copies > 100, "{all_kills} kills, and {all_copies} copies: too tame");
}

#[test]
fn a_killed_discard_loses_nothing() {
    for seed in 0..HISTORIES_WITH_FILES {
        block_on(async {
            let mut history = History::of(seed);
            let folder: PathBuf = history.folder.path().to_owned();
            let mut files = 0;
            history
                .run_to_the_end(async |simulated, work| {
                    files += 1;
                    let discard = Export::create(&folder.join(format!("{files}.jsonl"))).unwrap();
                    run(simulated, &discard, work).await
                })
                .await;
            let lines = exported(&folder);
            let exported = counted(lines.iter().map(|line| line.body.clone()));
            let left = history.in_dead_letter_queue();
            for dead_letter in &history.dead_letters {
                if history.is_chosen(dead_letter) {
                    assert!(exported.contains_key(&dead_letter.body), "seed {seed}: {dead_letter:?} is lost");
                    assert_eq!(left.get(&dead_letter.body), None, "seed {seed}: {dead_letter:?} was left");
                } else {
                    assert_eq!(
                        exported.get(&dead_letter.body),
                        None,
                        "seed {seed}: {dead_letter:?} was discarded"
                    );
                    assert_eq!(
                        left.get(&dead_letter.body),
                        Some(&1),
                        "seed {seed}: {dead_letter:?} was not left"
                    );
                }
            }
        });
    }
}

#[test]
fn a_killed_import_loses_nothing_and_doubles_only_what_was_at_hand() {
    for seed in 0..HISTORIES_WITH_FILES {
        block_on(async {
            let history = History::of(seed);
            let mut luck = history.luck.clone();
            let file = history.folder.path().join("dead-letters.jsonl");
            history.simulated.fault_rate.set(0.0);
            let discard = Export::create(&file).unwrap();
            let all = Work { filter: Some(Filter::default()), limit: None, ..history.work(&mut luck) };
            run(&history.simulated, &discard, &all).await.unwrap();
            drop(discard);
            assert_eq!(history.in_dead_letter_queue(), BTreeMap::new());
            let import = async || {
                let (_raise, interrupt) = Interrupt::new();
                let reader = Reader {
                    queue: &history.simulated,
                    interrupt: &interrupt,
                    progress: Box::new(|_| ()),
                    remark: Box::new(|_| ()),
                };
                Importing::read(&file)
                    .unwrap()
                    .run(&reader, history.pace, "arn:aws:sqs:eu-west-1:123456789012:dead")
                    .await
                    .unwrap()
                    .0
            };
            let kills = luck.random_range(0..12);
            history.simulated.fault_rate.set(0.05);
            for _ in 0..kills {
                history.simulated.killed_after(luck.random_range(0..12), import()).await;
            }
            history.simulated.fault_rate.set(0.0);
            assert_eq!(import().await.left, BTreeMap::new());
            assert_eq!(import().await.dead_letters, 0, "a repeated import does nothing");
            let back = history.in_dead_letter_queue();
            let explained = history.simulated.explained();
            let mut unexplained = 0;
            for dead_letter in &history.dead_letters {
                let copies = back.get(&dead_letter.body).copied().unwrap_or(0);
                assert!(copies >= 1, "seed {seed}: {dead_letter:?} is lost");
                unexplained += if explained.contains(&dead_letter.body) { 0 } else { copies - 1 };
            }
            assert!(unexplained <= kills * history.pace.at_once(1), "seed {seed}: {unexplained} copies");
            let reasons = history.simulated.dead().iter().filter(|it| !it.attributes.is_empty()).count();
            assert!(
                reasons
                    >= history.dead_letters.iter().filter(|dead_letter| dead_letter.reason.is_some()).count()
            );
        });
    }
}

#[test]
fn a_killed_survey_changes_nothing() {
    for seed in 0..HISTORIES {
        block_on(async {
            let mut history = History::of(seed);
            let before = history.in_dead_letter_queue();
            let (_raise, interrupt) = Interrupt::new();
            let filter = Filter::default();
            let reader = Reader {
                queue: &history.simulated,
                interrupt: &interrupt,
                progress: Box::new(|_| ()),
                remark: Box::new(|_| ()),
            };
            let survey = async || {
                let mut survey = Survey::describing(5);
                let show = |received: &Received| {
                    survey.count(received, &filter, |_| Ok(()), NOW);
                    false
                };
                let read = Scan::new(&reader, NOW).show_each(show).await?;
                Ok::<_, Failure>((survey, read))
            };
            let calls = history.luck.random_range(0..60);
            history.simulated.killed_after(calls, survey()).await;
            history.simulated.all_come_back();
            history.simulated.fault_rate.set(0.0);
            let (survey, read) = survey().await.unwrap();
            assert_eq!((read.end, survey.chosen), (End::All, history.dead_letters.len() as u64));
            assert_eq!(history.in_dead_letter_queue(), before);
        });
    }
}
