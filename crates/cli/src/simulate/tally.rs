use std::collections::BTreeMap;

use comeback_timelapse::{FaultCounts, Summary};
use serde::Serialize;

/// The figures of all runs. Its JSON has the members in this order.
#[derive(Debug, Serialize)]
pub(super) struct Tally {
    pub(super) first_seed: u64,
    pub(super) seeds: u64,
    pub(super) events: u64,
    pub(super) delivered: u64,
    pub(super) dead_lettered: BTreeMap<&'static str, u64>,
    pub(super) waiting: u64,
    pub(super) not_arrived: u64,
    pub(super) retries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) faults: Option<FaultCounts>,
    pub(super) repeat: String,
}

impl Tally {
    /// No run yet. `repeat` is the command that makes them all again.
    pub(super) fn new(first_seed: u64, seeds: u64, repeat: String) -> Self {
        Self {
            first_seed,
            seeds,
            events: 0,
            delivered: 0,
            dead_lettered: BTreeMap::new(),
            waiting: 0,
            not_arrived: 0,
            retries: 0,
            faults: None,
            repeat,
        }
    }

    pub(super) fn add(&mut self, summary: &Summary) {
        self.events += summary.events as u64;
        self.delivered += summary.delivered as u64;
        self.waiting += summary.waiting as u64;
        self.not_arrived += summary.not_arrived as u64;
        self.retries += summary.retries;
        for (reason, &count) in &summary.dead_lettered {
            *self.dead_lettered.entry(reason).or_default() += count as u64;
        }
        if let Some(counts) = &summary.faults {
            let all = self.faults.get_or_insert_default();
            all.duplicate_retries += counts.duplicate_retries;
            all.duplicate_dead_letters += counts.duplicate_dead_letters;
            all.duplicate_moves += counts.duplicate_moves;
            for (fault, count) in &counts.struck {
                *all.struck.entry(fault).or_default() += count;
            }
        }
    }
}
