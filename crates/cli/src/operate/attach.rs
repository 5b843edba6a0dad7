//! `comeback attach` and `comeback detach`: send the failures of a function to Comeback, or leave them to Lambda again.
//!
//! An [`Attachment`] is everything that is there. Its `attach` and `detach` plan the changes and their order, and call
//! nothing. Then the plan is shown, confirmed, performed and checked. There is no other state: an interrupted run is resumed
//! by planning again.

mod attachment;
mod change;
mod grant;
pub(crate) mod kept;
mod leaving;
mod plan;
#[cfg(test)]
mod plans;

use std::io::Write as _;

use anstyle::AnsiColor;
use clap::Args;
use comeback_engine::FunctionArn;
use serde_json::json;

use crate::account::Failure;
use crate::clock::now;
use crate::failure;
use crate::operate::attach::attachment::Attachment;
use crate::operate::attach::change::{AttachPlan, Difference, delays};
use crate::operate::attach::leaving::Leaving;
use crate::operate::function::{FunctionName, Target, command_name};
use crate::operate::pauses::OpenPause;
use crate::operate::session::{Common, Session, coloured, confirm, confirm_in_person};
use crate::text::terminal::shown;

pub(crate) const ATTACH_EXAMPLES: &str = "\
Examples:
  comeback attach orders --dry-run
  comeback attach orders:live --yes
  comeback attach orders --stack billing --move --yes
  comeback attach orders --handler my-retry-handler --json --yes";

#[derive(Debug, Args)]
pub(crate) struct AttachArguments {
    /// Function as NAME, NAME:ALIAS, NAME:VERSION or ARN; name the alias or version that callers invoke
    #[arg(value_name = "FUNCTION[:ALIAS]")]
    pub(crate) function: FunctionName,
    /// Show the changes without making them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Take the function over from another deployment
    #[arg(long = "move")]
    pub(crate) may_move: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn attach(
    arguments: &AttachArguments,
    session: Session,
) -> Result<(), failure::CommandFailure> {
    let AttachArguments { function, dry_run, may_move, .. } = arguments;
    let request = Request { verb: "attach", function, dry_run: *dry_run };
    request.carry_out(&session, async |attachment| attachment.attach(*may_move)).await?;
    Ok(())
}

pub(crate) const DETACH_EXAMPLES: &str = "\
Examples:
  comeback detach orders --dry-run
  comeback detach orders:live --yes
  comeback detach orders --now --yes";

#[derive(Debug, Args)]
pub(crate) struct DetachArguments {
    /// Function as NAME, NAME:ALIAS, NAME:VERSION or ARN
    #[arg(value_name = "FUNCTION[:ALIAS]")]
    pub(crate) function: FunctionName,
    /// Show the changes without making them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not wait for the function's events: dead-letter those still waiting, unless another alias or version stays
    /// attached
    #[arg(long)]
    pub(crate) now: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn detach(
    arguments: &DetachArguments,
    session: Session,
) -> Result<(), failure::CommandFailure> {
    let DetachArguments { function, dry_run, now: at_once, .. } = arguments;
    let request = Request { verb: "detach", function, dry_run: *dry_run };
    // Reads the time again too: what `detach` keeps must not be before the destination is removed.
    let plan = async |attachment: &Attachment| {
        let open = OpenPause::all(&session.account, &attachment.deployment, now()).await?;
        let (home, place) = (&attachment.deployment.handler_arn, session.common.place_flags());
        check_not_paused(&open.unwrap_or_default(), &attachment.target, home, &place)?;
        let leaving = Leaving::read(&session.account, attachment, *at_once, now()).await?;
        attachment.detach(&leaving)
    };
    let planned = request.carry_out(&session, plan).await?;
    if planned.is_about_nothing() {
        let what = format!(
            "Lambda has no function {function}, and nothing of it is left to remove; check its \
                            name"
        );
        return Err(Failure::CouldNot(what).into());
    }
    match planned.left {
        Some(left) if !dry_run => {
            let what = not_finished(function, &left, planned.price_of_now.as_deref());
            Err(Failure::Undone(what).into())
        }
        _ => Ok(()),
    }
}

fn not_finished(function: &FunctionName, left: &str, price_of_now: Option<&str>) -> String {
    let or = price_of_now.map(|price| format!(", or use --now: {price}")).unwrap_or_default();
    format!("{function}: not finished: {left}; run the command again later{or}")
}

/// Fails if the function has an open pause of its own, which would outlive its attachment.
fn check_not_paused(
    open: &[OpenPause],
    target: &Target,
    home: &FunctionArn,
    place: &str,
) -> Result<(), Failure> {
    let own = [target.arn.clone(), target.invoked_arn()];
    let Some(pause) = open.iter().find(|pause| own.contains(&pause.target)) else { return Ok(()) };
    let name = pause.name();
    Err(Failure::Undone(format!(
        "{name} has been paused since {}; end the pause first: `comeback resume {}{place}`",
        pause.from,
        command_name(&pause.target, home)
    )))
}

struct Request<'a> {
    /// `attach` or `detach`.
    verb: &'static str,
    function: &'a FunctionName,
    dry_run: bool,
}

impl Request<'_> {
    /// Shows the plan, asks, makes the changes, and checks them. Gives the plan that was made.
    async fn carry_out(
        &self,
        session: &Session,
        plan: impl AsyncFn(&Attachment) -> Result<AttachPlan, Failure>,
    ) -> Result<AttachPlan, failure::CommandFailure> {
        // Reads everything again each time, to see the changes of this run and of others.
        let plan = async || {
            let deployment = session.deployment().await?;
            plan(&Attachment::read(&session.account, deployment, self.function).await?).await
        };
        let mut planned = session.interrupt.or(plan()).await?;
        let is_json = session.common.json;
        self.answer(session, &planned, false);
        if !is_json {
            self.show(&planned)?;
        }
        let is_performed = !planned.changes.is_empty() && !self.dry_run;
        if is_performed {
            confirm(&format!("{} {}?", self.verb, self.function), session).await?;
            if let Some(question) = &planned.question {
                confirm_in_person(question, session).await?;
            }
            // Somebody else may have made a change before the answer.
            let again = session.interrupt.or(plan()).await?;
            if !again.agrees_with(&planned) {
                let what = "nothing was changed: somebody else made a change since the plan was made; run the \
                            command again";
                return Err(Failure::CouldNot(what.into()).into());
            }
            planned = again;
            make(session, &planned, &plan).await?;
        }
        let is_done = planned.left.is_none() && (is_performed || planned.changes.is_empty());
        self.answer(session, &planned, is_done && !planned.is_about_nothing());
        if is_performed && !is_json {
            let done = match planned.left {
                Some(_) => "Not finished. The changes so far were made and verified.",
                None => "Done. The changes were made and verified.",
            };
            writeln!(anstream::stdout(), "{done}")?;
        }
        Ok(planned)
    }

    /// `done` says that nothing is left to do, now or later.
    fn answer(&self, session: &Session, plan: &AttachPlan, done: bool) {
        session.answer(&json!({
            "function": self.function.to_string(),
            "differences": plan.differences().collect::<Vec<_>>(),
            "notes": plan.notes,
            "left": plan.left,
            "dry_run": self.dry_run,
            "done": done,
        }));
    }

    fn show(&self, plan: &AttachPlan) -> std::io::Result<()> {
        let mut out = anstream::stdout();
        let Request { verb, function, .. } = self;
        if !plan.changes.is_empty() {
            writeln!(out, "{verb} {function}:\n{}", changes(plan))?;
        } else if plan.left.is_none() {
            let is = if *verb == "attach" { "attached" } else { "not attached" };
            writeln!(out, "{function} is {is}; nothing to change")?;
        }
        for note in &plan.notes {
            writeln!(out, "note: {}", shown(note))?;
        }
        if let Some(left) = plan.left.as_ref().filter(|_| self.dry_run || !plan.changes.is_empty()) {
            writeln!(out, "left for later: {}", shown(left))?;
        }
        Ok(())
    }
}

/// Makes the changes and waits until they are seen.
async fn make(
    session: &Session,
    planned: &AttachPlan,
    plan: &impl AsyncFn() -> Result<AttachPlan, Failure>,
) -> Result<(), Failure> {
    for (made, change) in planned.changes.iter().enumerate() {
        if session.interrupt.is_raised() {
            let all = planned.changes.len();
            let what = format!("{made} of {all} changes were made; run the command again for the others");
            return Err(Failure::Interrupted(what));
        }
        change.make(&session.account, &planned.target, &session.interrupt).await?;
        if !session.common.json {
            for Difference { resource, setting, .. } in change.differences(&planned.target) {
                anstream::eprintln!("  {}", shown(&format!("{resource}: {setting}")));
            }
        }
    }
    // What was just changed is not seen everywhere at once.
    let settled = async {
        let mut seen = plan().await?;
        for delay in delays() {
            if seen.changes.is_empty() {
                break;
            }
            tokio::time::sleep(delay).await;
            seen = plan().await?;
        }
        Ok::<_, Failure>(seen)
    };
    let seen = session.interrupt.or(settled).await?;
    if seen.changes.is_empty() {
        return Ok(());
    }
    let missing: Vec<String> =
        seen.differences().map(|it| format!("{}: {}", it.resource, it.setting)).collect();
    Err(Failure::Undone(format!(
        "every change was made, but a minute later some are not visible ({}): somebody else changed them too, \
         or AWS needs longer; run the command again",
        missing.join(", ")
    )))
}

/// The differences below their resources: `+` added, `-` removed, `~` changed.
fn changes(plan: &AttachPlan) -> String {
    let mut text = String::new();
    let mut above = String::new();
    for Difference { resource, setting, from, to } in plan.differences() {
        if resource != above {
            text.push_str(&format!("  {}\n", shown(&resource)));
            above = resource;
        }
        let (colour, line) = match (from, to) {
            (None, to) => (AnsiColor::Green, format!("+ {setting}: {}", to.unwrap_or_default())),
            (Some(from), None) => (AnsiColor::Red, format!("- {setting}: {from}")),
            (Some(from), Some(to)) => (AnsiColor::Yellow, format!("~ {setting}: {from} → {to}")),
        };
        text.push_str(&format!("    {}\n", coloured(colour, &shown(&line))));
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::operate::attach::change::Change;
    use crate::operate::attach::grant::Grant;
    use crate::operate::attach::plans::{attachment, target};
    use crate::operate::function::{InvokeSettings, Target};
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

    use super::*;

    #[test]
    fn a_function_with_a_pause_of_its_own_is_not_detached() {
        let live = Target { qualifier: Some("live".into()), ..target() };
        let home = attachment().deployment.handler_arn;
        let check = |paused: &str, target: &Target| {
            let paused = paused.replace("orders", &target.arn);
            let open = [OpenPause::sample(&paused)];
            check_not_paused(&open, target, &home, " --stack shop").map_err(|failure| failure.to_string())
        };
        let refused = |name: &str| {
            Err(format!(
                "{name} has been paused since 1970-01-01T00:00:00.000Z; end the pause first: `comeback resume \
                 {name} --stack shop`"
            ))
        };
        assert_eq!(check("orders", &target()), refused("orders"));
        assert_eq!(check("orders", &live), refused("orders"));
        assert_eq!(check("orders:live", &live), refused("orders:live"));
        for other in ["*", "orders:next", "orders-v2"] {
            assert_eq!(check(other, &live), Ok(()), "{other}");
        }
    }

    #[test]
    fn a_detach_that_waits_names_the_price_of_not_waiting() {
        let orders = "orders".parse().unwrap();
        let said = "orders: not finished: the allow-list stays; run the command again later";
        assert_eq!(not_finished(&orders, "the allow-list stays", None), said);
        let price = "waiting events of orders will be dead-lettered as target_not_allowed";
        let with_price = not_finished(&orders, "the allow-list stays", Some(price));
        assert_eq!(with_price, format!("{said}, or use --now: {price}"));
    }

    #[test]
    fn a_tag_cannot_command_the_terminal() {
        let plan = AttachPlan {
            target: target(),
            is_gone: false,
            changes: vec![Change::Keep(vec![(HOSTILE.into(), HOSTILE.into())])],
            notes: Vec::new(),
            left: None,
            price_of_now: None,
            question: None,
        };
        let text = changes(&plan);
        assert!(text.contains("+ tag a\\u{1b}]") && !is_obeyed_anywhere(&text), "{text}");
    }

    #[test]
    fn what_comes_goes_and_changes_has_its_own_sign() {
        let qualifier = Some("live".to_owned());
        let from = InvokeSettings { retries: Some(2), event_age: Some(600), ..InvokeSettings::default() };
        let to = InvokeSettings {
            retries: Some(0),
            on_failure: Some("arn:q".into()),
            ..InvokeSettings::default()
        };
        let invoke_settings = [(qualifier.clone(), from)].into();
        let (role, policy) = ("orders-role".into(), "comeback-q".into());
        let plan = AttachPlan {
            target: Target { qualifier, invoke_settings, ..target() },
            is_gone: false,
            changes: vec![
                Change::Settings(to),
                Change::Withdraw(Grant { role, policy, statements: Vec::new() }),
            ],
            notes: Vec::new(),
            left: None,
            price_of_now: None,
            question: None,
        };
        let plain = anstream::adapter::strip_str(&changes(&plan)).to_string();
        let expected = "  function orders:live\n    + on failure: arn:q\n    ~ retries: 2 → 0\n    - event age: 600s\n  \
        role orders-role\n    - policy comeback-q: allowed\n";
        assert_eq!(plain, expected);
    }
}
