use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rand::RngExt;

use super::history::{History, block_on, counted, exported, key_of, run};
use super::letters::{NOW, policy};
use crate::Interrupt;
use crate::dead::discard::Discard;
use crate::dead::import::Importing;
use crate::dead::redrive::Redrive;
use crate::dead::survey::survey;
use crate::dead::work::Work;
use crate::dead::{End, Filter};

/// Each is a history of its own: letters, a filter, a pace, faults, and up to a dozen kills.
const HISTORIES: u64 = 400;
/// Of commands that wait for a disk with each step.
const HISTORIES_WITH_FILES: u64 = 40;

#[test]
fn a_redrive_that_is_killed_loses_nothing_and_doubles_only_what_was_at_hand() {
    let (mut all_kills, mut all_copies) = (0, 0);
    for seed in 0..HISTORIES {
        block_on(async {
            let mut history = History::of(seed);
            let policy = policy();
            let kills = history
                .run_to_the_end(async |simulated, work| {
                    let mut redrive = Redrive::new(&policy, None, NOW).unwrap();
                    run(simulated, &mut redrive, work).await
                })
                .await;
            let retried = counted(history.simulated.retried().iter().map(key_of));
            let left = history.in_dead_letter_queue();
            let explained: BTreeSet<_> = history.simulated.explained();
            let explained = |key: &str| explained.iter().any(|body| body.contains(&format!("\"{key}\"")));
            let mut unexplained = 0;
            for letter in &history.letters {
                let copies = retried.get(&letter.key).copied().unwrap_or(0);
                if history.is_chosen(letter) && letter.can_be_redriven {
                    assert!(copies >= 1, "seed {seed}: {letter:?} is lost");
                    assert_eq!(left.get(&letter.body), None, "seed {seed}: {letter:?} was left");
                    unexplained += if explained(&letter.key) { 0 } else { copies - 1 };
                } else {
                    assert_eq!(copies, 0, "seed {seed}: {letter:?} was redriven");
                    assert_eq!(left.get(&letter.body), Some(&1), "seed {seed}: {letter:?} was not left");
                }
            }
            let allowed = kills * history.pace.at_once();
            assert!(unexplained <= allowed, "seed {seed}: {unexplained} copies after {kills} kills");
            all_kills += kills;
            all_copies += unexplained;
        });
    }
    assert!(all_kills > 1_000 && all_copies > 100, "{all_kills} kills, and {all_copies} copies: too tame");
}

#[test]
fn a_discard_that_is_killed_loses_nothing() {
    for seed in 0..HISTORIES_WITH_FILES {
        block_on(async {
            let mut history = History::of(seed);
            let folder: PathBuf = history.folder.path().to_owned();
            let mut files = 0;
            history
                .run_to_the_end(async |simulated, work| {
                    files += 1;
                    let mut discard = Discard::to(&folder.join(format!("{files}.jsonl"))).unwrap();
                    run(simulated, &mut discard, work).await
                })
                .await;
            let lines = exported(&folder);
            let exported = counted(lines.iter().map(|line| line.body.clone()));
            let left = history.in_dead_letter_queue();
            for letter in &history.letters {
                if history.is_chosen(letter) {
                    assert!(exported.contains_key(&letter.body), "seed {seed}: {letter:?} is lost");
                    assert_eq!(left.get(&letter.body), None, "seed {seed}: {letter:?} was left");
                } else {
                    assert_eq!(exported.get(&letter.body), None, "seed {seed}: {letter:?} was discarded");
                    assert_eq!(left.get(&letter.body), Some(&1), "seed {seed}: {letter:?} was not left");
                }
            }
        });
    }
}

#[test]
fn an_import_that_is_killed_loses_nothing_and_doubles_only_what_was_at_hand() {
    for seed in 0..HISTORIES_WITH_FILES {
        block_on(async {
            let history = History::of(seed);
            let mut luck = history.luck.clone();
            let file = history.folder.path().join("letters.jsonl");
            history.simulated.fault_rate.set(0.0);
            let mut discard = Discard::to(&file).unwrap();
            let all = Work { filter: Filter::default(), limit: None, ..history.work(&mut luck) };
            run(&history.simulated, &mut discard, &all).await.unwrap();
            assert_eq!(history.in_dead_letter_queue(), BTreeMap::new());
            let import = async || {
                let (_raise, interrupt) = Interrupt::new();
                let importing = Importing::read(&file).unwrap();
                importing.run(&history.simulated, history.pace, &interrupt, &|_| ()).await.unwrap()
            };
            let kills = luck.random_range(0..12);
            history.simulated.fault_rate.set(0.05);
            for _ in 0..kills {
                history.simulated.killed_after(luck.random_range(0..12), import()).await;
            }
            history.simulated.fault_rate.set(0.0);
            assert_eq!(import().await.left, BTreeMap::new());
            assert_eq!(import().await.done, 0, "a repeated import does nothing");
            let back = history.in_dead_letter_queue();
            let explained = history.simulated.explained();
            let mut unexplained = 0;
            for letter in &history.letters {
                let copies = back.get(&letter.body).copied().unwrap_or(0);
                assert!(copies >= 1, "seed {seed}: {letter:?} is lost");
                unexplained += if explained.contains(&letter.body) { 0 } else { copies - 1 };
            }
            assert!(unexplained <= kills * history.pace.at_once(), "seed {seed}: {unexplained} copies");
            let reasons = history.simulated.dead().iter().filter(|it| !it.attributes.is_empty()).count();
            assert!(reasons >= history.letters.iter().filter(|letter| letter.reason.is_some()).count());
        });
    }
}

#[test]
fn a_survey_that_is_killed_changes_nothing() {
    for seed in 0..HISTORIES {
        block_on(async {
            let mut history = History::of(seed);
            let before = history.in_dead_letter_queue();
            let (_raise, interrupt) = Interrupt::new();
            let filter = Filter::default();
            let survey = || survey(&history.simulated, &filter, &|_| Ok(()), 5, NOW, &interrupt, &|_| ());
            let calls = history.luck.random_range(0..60);
            history.simulated.killed_after(calls, survey()).await;
            history.simulated.all_come_back();
            history.simulated.fault_rate.set(0.0);
            let survey = survey().await.unwrap();
            assert_eq!((survey.read.end, survey.chosen), (End::All, history.letters.len() as u64));
            assert_eq!(history.in_dead_letter_queue(), before);
        });
    }
}
