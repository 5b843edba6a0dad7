//! The checks of a deployment and of the functions attached to it. Facts are read once, and judged by pure functions.
//!
//! | file | holds |
//! |---|---|
//! | `check` | [`Check`], and [`CHECKS`]: all of them, by number |
//! | `selection` | [`Selection`]: which of them are made |
//! | `diagnosis` | how a check came out |
//! | `facts` | what the checks look at, read from the account |
//! | `stack` | the checks of the deployment itself |
//! | `attached` | the checks of the functions |
//! | `needed` | judging whether a role may do what it must |
//! | `fix` | the commands that repair |
//! | `probe` | [`probe()`]: an event that fails once, followed until it was retried |
//! | `sample` | a healthy deployment, for the tests |

mod attached;
mod check;
mod diagnosis;
mod facts;
mod fix;
mod needed;
mod probe;
#[cfg(test)]
mod sample;
mod selection;
mod stack;

use comeback_engine::Timestamp;
use serde::Serialize;

use crate::{Account, Deployment, FunctionName};
use check::Of;
use diagnosis::{Diagnosis, or_unseen, skipped};
use facts::Facts;

pub use check::{CHECKS, Check, Group};
pub use diagnosis::Outcome;
pub use probe::probe;
pub use selection::{CheckNumber, Selection, UnknownCheck};

/// What the checks found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Examination {
    /// In the order of the checks' numbers.
    pub checks: Vec<Finding>,
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check's number.
    pub id: &'static str,
    /// What it belongs to.
    pub group: Group,
    /// What it looks at.
    pub title: &'static str,
    /// The function, and the alias or version of it; `None` for a check of the deployment.
    pub about: Option<String>,
    /// How it came out.
    pub outcome: Outcome,
    /// What was there.
    pub found: String,
    /// What follows from that; `None` if nothing is wrong.
    pub means: Option<String>,
    /// The command that repairs it, or what to do.
    pub fix: Option<String>,
}

impl Examination {
    /// Makes the selected checks, of the attached functions and of those that are `named`. Nothing is changed. What could not
    /// be read is a warning of each check that is about it.
    pub async fn make(
        account: &Account,
        deployment: &Deployment,
        named: &[FunctionName],
        selection: &Selection,
        now: Timestamp,
    ) -> Self {
        let facts = Facts::read(account, deployment, named, now).await;
        Self::of(&facts, selection)
    }

    fn of(facts: &Facts, selection: &Selection) -> Self {
        let selected = CHECKS.iter().filter(|check| selection.has(check));
        Self { checks: selected.flat_map(|check| findings(check, facts)).collect() }
    }

    /// Whether the check that sends an event was selected.
    #[must_use]
    pub fn has_probe(&self) -> bool {
        self.checks.iter().any(|check| check.group == Group::Probe)
    }

    /// Puts what a probe found in the place of the check that says none was made.
    pub fn probed(&mut self, finding: Finding) {
        self.checks
            .iter_mut()
            .filter(|check| check.id == finding.id)
            .for_each(|check| *check = finding.clone());
    }

    /// How many checks came out so.
    #[must_use]
    pub fn count(&self, outcome: Outcome) -> usize {
        self.checks.iter().filter(|check| check.outcome == outcome).count()
    }

    /// Whether nothing is broken; if `strict`, nothing is a warning either.
    #[must_use]
    pub fn is_healthy(&self, strict: bool) -> bool {
        let worst = self.checks.iter().map(|check| check.outcome).max();
        worst <= Some(if strict { Outcome::Ok } else { Outcome::Warning })
    }
}

fn findings(check: &'static Check, facts: &Facts) -> Vec<Finding> {
    let functions = facts.functions.all.iter();
    match check.of {
        Of::Stack(judge) => vec![Finding::of(check, None, or_unseen(judge(facts)))],
        Of::Function(judge) => functions
            .map(|function| {
                Finding::of(check, Some(function.name.clone()), or_unseen(judge(facts, function)))
            })
            .collect(),
        Of::Entrance(judge) => functions
            .flat_map(|function| function.entrances.iter().map(move |entrance| (function, entrance)))
            .map(|(function, entrance)| {
                let about = entrance.of(function);
                Finding::of(check, Some(about), or_unseen(judge(facts, function, entrance)))
            })
            .collect(),
        Of::Probe => vec![Finding::of(check, None, skipped("pass --probe to send one"))],
    }
}

impl Finding {
    fn of(check: &Check, about: Option<String>, diagnosis: Diagnosis) -> Self {
        let Diagnosis { outcome, found, remedy } = diagnosis;
        let (means, fix) = remedy.map(|remedy| (remedy.means, remedy.fix)).unzip();
        let &Check { id, group, title, .. } = check;
        Self { id, group, title, about, outcome, found, means, fix }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;
    use crate::doctor::sample::healthy;

    #[test]
    fn nothing_is_found_on_a_healthy_deployment() {
        let examination = Examination::of(&healthy(), &Selection::All);
        let others: Vec<_> = examination.checks.iter().filter(|it| it.outcome != Outcome::Ok).collect();
        let ids: Vec<_> = others.iter().map(|check| (check.id, check.outcome)).collect();
        assert_eq!(ids, [("CB112", Outcome::Skipped), ("CB201", Outcome::Skipped)]);
        assert!(examination.is_healthy(true));
        assert_eq!(examination.checks.len(), CHECKS.len());
    }

    #[test]
    fn a_warning_is_unhealthy_only_if_it_is_strict() {
        let mut facts = healthy();
        facts.alarms = Err(Failure::CouldNot("cloudwatch:DescribeAlarms denied".into()));
        let examination = Examination::of(&facts, &Selection::All);
        assert_eq!(examination.count(Outcome::Warning), 3, "each check of the alarms");
        assert_eq!((examination.is_healthy(false), examination.is_healthy(true)), (true, false));
        facts.mappings = Ok(Vec::new());
        assert!(!Examination::of(&facts, &Selection::All).is_healthy(false));
    }

    #[test]
    fn what_was_not_read_is_never_taken_for_good() {
        let unseen = || Failure::CouldNot("denied".into());
        let mut facts = healthy();
        facts.mappings = Err(unseen());
        facts.handler = Err(unseen());
        facts.retry_queue = Err(unseen());
        facts.dead_letter_queue = Err(unseen());
        facts.errors = Err(unseen());
        let function = &mut facts.functions.all[0];
        function.target = Err(unseen());
        function.dropped = Err(unseen());
        let examination = Examination::of(&facts, &Selection::All);
        let good: Vec<_> =
            examination.checks.iter().filter(|it| it.outcome == Outcome::Ok).map(|it| it.id).collect();
        let expected =
            ["CB010", "CB020", "CB021", "CB030", "CB031", "CB032", "CB033", "CB034", "CB035", "CB040"];
        assert_eq!(good[..expected.len()], expected, "those alone look at something else");
    }

    #[test]
    fn a_finding_is_about_the_alias_it_was_made_of() {
        let mut facts = healthy();
        facts.functions.all[0].entrances[0].qualifier = Some("live".into());
        let examination = Examination::of(&facts, &Selection::Only(vec!["CB102".parse().unwrap()]));
        let about: Vec<_> = examination.checks.iter().map(|check| check.about.as_deref()).collect();
        assert_eq!(about, [Some("orders:live")]);
    }
}
