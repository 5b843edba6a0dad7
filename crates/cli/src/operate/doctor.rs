//! `comeback doctor`: numbered checks of a deployment and of the functions attached to it. Facts are read once, and judged
//! by pure functions.

mod checks;
mod diagnosis;
mod facts;
mod fix;
mod functions;
mod handler;
mod probe;
mod queues;
mod rights;
#[cfg(test)]
mod sample;

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use clap::Args;
use comeback_engine::Timestamp;
use serde::Serialize;

use crate::clock::now;
use crate::failure;
use crate::operate::account::{Account, Failure};
use crate::operate::deployment::Deployment;
use crate::operate::doctor::checks::{CHECKS, Check, CheckNumber, Finding, Group, Of, Selection};
use crate::operate::doctor::diagnosis::{Outcome, or_unseen, skipped};
use crate::operate::doctor::facts::Facts;
use crate::operate::function::FunctionName;
use crate::operate::session::{Common, Session};
use crate::operate::trace::sentence;
use crate::operate::trace::story::Step;
use crate::text::numbers::counted;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback doctor
  comeback doctor orders:live --strict
  comeback doctor --only CB012,CB013 --json
  comeback doctor --probe

docs/doctor.md says what each check looks at. Nothing is changed; --probe sends one event.";

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Functions to check besides those that are attached
    #[arg(value_name = "FUNCTION")]
    pub(crate) functions: Vec<FunctionName>,
    /// Make these checks alone
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', conflicts_with = "skip")]
    pub(crate) only: Vec<CheckNumber>,
    /// Make all checks but these
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pub(crate) skip: Vec<CheckNumber>,
    /// Exit with 3 for warnings too
    #[arg(long)]
    pub(crate) strict: bool,
    /// Send the example function an event that fails once, and follow it until it was retried
    #[arg(long)]
    pub(crate) probe: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &DoctorArguments, session: Session) -> Result<(), failure::Failure> {
    let work = async {
        let deployment = session.deployment().await?;
        let account = &session.account;
        let selection = arguments.selection();
        let mut examination =
            Examination::make(account, &deployment, &arguments.functions, &selection, now()).await;
        if arguments.probe && examination.has_probe() {
            let mut say = |step: &Step| anstream::eprintln!("probe: {}", sentence(step));
            examination.probed(probe::probe(account, &deployment, now(), &mut say).await);
        }
        Ok((deployment, examination))
    };
    let (deployment, examination) = session.interrupt.or(work).await?;
    let mut out = anstream::stdout();
    let healthy = examination.is_healthy(arguments.strict);
    if session.common.json {
        writeln!(out, "{}", serde_json::json!({"healthy": healthy, "checks": examination.checks}))?;
    } else {
        write(&mut out, &deployment, &examination)?;
    }
    if healthy {
        return Ok(());
    }
    let [broken, warnings] = [Outcome::Broken, Outcome::Warning].map(|outcome| examination.count(outcome));
    let strictly = if arguments.strict { format!(", and {warnings} a warning") } else { String::new() };
    Err(Failure::Undone(format!(
        "{broken} of {} checks found something broken{strictly}",
        examination.checks.len()
    ))
    .into())
}

impl DoctorArguments {
    fn selection(&self) -> Selection {
        match (self.only.is_empty(), self.skip.is_empty()) {
            (false, _) => Selection::Only(self.only.clone()),
            (true, false) => Selection::Without(self.skip.clone()),
            (true, true) => Selection::All,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Examination {
    pub(crate) checks: Vec<Finding>,
}

impl Examination {
    /// Makes the selected checks, of the attached functions and of those that are `named`. Nothing is changed. What could not
    /// be read is a warning of each check that is about it.
    pub(crate) async fn make(
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
    pub(crate) fn has_probe(&self) -> bool {
        self.checks.iter().any(|check| check.group == Group::Probe)
    }

    /// Replaces the check that says no probe was made.
    pub(crate) fn probed(&mut self, finding: Finding) {
        self.checks
            .iter_mut()
            .filter(|check| check.id == finding.id)
            .for_each(|check| *check = finding.clone());
    }

    pub(crate) fn count(&self, outcome: Outcome) -> usize {
        self.checks.iter().filter(|check| check.outcome == outcome).count()
    }

    /// Whether nothing is broken; if `strict`, nothing is a warning either.
    pub(crate) fn is_healthy(&self, strict: bool) -> bool {
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

/// Every check, by group; for a problem, what it means and what fixes it.
pub(crate) fn write(
    out: &mut impl Write,
    deployment: &Deployment,
    examination: &Examination,
) -> io::Result<()> {
    let bold = Style::new().bold();
    match &deployment.stack {
        Some(stack) => writeln!(out, "{} of stack {stack}", deployment.handler)?,
        None => writeln!(out, "{}", deployment.handler)?,
    }
    for checks in examination.checks.chunk_by(|one, next| one.group == next.group) {
        writeln!(out, "\n{bold}{}{bold:#}", checks[0].group)?;
        checks.iter().try_for_each(|check| write_check(out, check))?;
    }
    writeln!(out, "\n{}", summary(examination))
}

fn write_check(out: &mut impl Write, check: &Finding) -> io::Result<()> {
    let (mark, style) = match check.outcome {
        Outcome::Ok => ("ok     ", AnsiColor::Green.on_default()),
        Outcome::Skipped => ("skipped", Style::new().dimmed()),
        Outcome::Warning => ("warning", AnsiColor::Yellow.on_default()),
        Outcome::Broken => ("broken ", AnsiColor::Red.on_default()),
    };
    let about = check.about.as_ref().map_or_else(String::new, |about| format!("{about}: "));
    writeln!(out, "{style}{mark}{style:#} {} {about}{}: {}", check.id, check.title, check.found)?;
    if let Some(means) = &check.means {
        writeln!(out, "        means: {means}")?;
    }
    if let Some(fix) = &check.fix {
        writeln!(out, "        fix:   {fix}")?;
    }
    Ok(())
}

fn summary(examination: &Examination) -> String {
    let count = |outcome| examination.count(outcome) as u64;
    format!(
        "{} ok, {}, {} broken, {} skipped",
        count(Outcome::Ok),
        counted(count(Outcome::Warning), "warning", "warnings"),
        count(Outcome::Broken),
        count(Outcome::Skipped)
    )
}

#[cfg(test)]
mod tests {
    use crate::operate::doctor::sample::healthy;

    use super::*;

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
