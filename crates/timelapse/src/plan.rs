//! From a goal to a policy: every policy of a grid is rehearsed with the same events, and the cheapest recommended.

mod candidate;
mod choice;
mod goal;

use comeback_engine::{Policy, SettingError, Settings};
use rayon::prelude::*;
use serde::Serialize;

use crate::scenario::ScenarioError;
use crate::simulation::RunError;
use crate::watch::Violation;
use goal::grid;

pub use candidate::{Candidate, EVENTS};
pub use choice::{Limit, LimitedBy};
pub use goal::Goal;

/// The policies of a grid beside a goal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The outage to recover from, and how soon.
    pub goal: Goal,
    /// The cheapest policy that meets the goal.
    pub cheapest: Option<Candidate>,
    /// Why no policy meets the goal; empty if one does.
    pub limits: Vec<Limit>,
    /// Today's default settings.
    pub defaults: Candidate,
    /// The policies that lose nothing and that no other such policy beats, the fastest first. A policy beats another
    /// if its 99th percentile of recovery, its retries and its price are no worse, and one of them is better.
    pub unbeaten: Vec<Candidate>,
    /// Every policy compared.
    pub grid: Vec<Candidate>,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// Everything refused in the settings and in the goal.
    #[error("{}", texts(.settings, .goal))]
    Refused {
        /// Refused settings.
        settings: Vec<SettingError>,
        /// Refused parts of the goal, in the words of the command line.
        goal: Vec<ScenarioError>,
    },
    /// An invariant did not hold in the run of one of the policies.
    #[error(transparent)]
    Violated(Box<Violation>),
}

impl Plan {
    /// Rehearses every policy of the grid, on all cores. `settings` is the policy apart from `BASE_BACKOFF`,
    /// `MAX_BACKOFF` and `JITTER`, which the grid varies. `progress` is called after each. The same goal and
    /// settings give the same plan, whatever the number of cores.
    ///
    /// # Errors
    ///
    /// The goal or the settings were refused, or a run broke an invariant.
    pub fn of(goal: &Goal, settings: &Settings, progress: &(impl Fn() + Sync)) -> Result<Self, PlanError> {
        let in_settings = Policy::new(settings.clone()).err().unwrap_or_default();
        let in_goal = goal.check().err().unwrap_or_default();
        if !(in_settings.is_empty() && in_goal.is_empty()) {
            return Err(PlanError::Refused { settings: in_settings, goal: in_goal });
        }
        let rehearse = |settings: &Settings| {
            let candidate = Candidate::rehearse(goal, settings);
            progress();
            candidate
        };
        // All of them, so that the first that breaks an invariant is the same each time.
        let candidates: Vec<Result<Candidate, RunError>> =
            grid(goal, settings).par_iter().map(rehearse).collect();
        let candidates = candidates.into_iter().collect::<Result<_, _>>().map_err(|error| match error {
            RunError::Violated(violation) => PlanError::Violated(violation),
            RunError::Refused(refused) => panic!("BUG: a plan's scenario was refused: {refused:?}"),
        })?;
        Ok(Self::chosen(goal.clone(), candidates))
    }

    /// How many policies a plan for a goal compares.
    pub fn policies(goal: &Goal) -> usize {
        grid(goal, &Settings::default()).len()
    }

    fn chosen(goal: Goal, grid: Vec<Candidate>) -> Self {
        let cheapest = choice::cheapest(&grid, goal.recover_within).cloned();
        let limits = if cheapest.is_some() { Vec::new() } else { choice::limits(&grid, goal.recover_within) };
        let defaults = grid.iter().find(|candidate| candidate.has_default_backoff());
        Self {
            defaults: defaults.expect("BUG: the grid is without the defaults").clone(),
            unbeaten: choice::unbeaten(&grid).into_iter().cloned().collect(),
            goal,
            cheapest,
            limits,
            grid,
        }
    }
}

fn texts(settings: &[SettingError], goal: &[ScenarioError]) -> String {
    let all = settings.iter().map(ToString::to_string).chain(goal.iter().map(ToString::to_string));
    all.collect::<Vec<_>>().join("\n")
}
