//! One request for one function or several: one plan, one question, one update of the allow-list. What fails for a function
//! does not stop the others.

use std::fmt::Write as _;
use std::io::Write as _;

use anstyle::AnsiColor;
use serde_json::{Value, json};

use crate::account::Failure;
use crate::failure::CommandFailure;
use crate::operate::attach::attachment::Attachment;
use crate::operate::attach::change::{AttachPlan, Change, Difference, delays};
use crate::operate::function::FunctionName;
use crate::operate::handler_setting::{self, list_with, list_without};
use crate::operate::session::{Session, coloured, confirm, confirm_in_person};
use crate::text::terminal::shown;

/// What an operator asks for.
pub(super) struct Request<'a> {
    /// `attach` or `detach`.
    pub(super) verb: &'static str,
    pub(super) functions: &'a [FunctionName],
    pub(super) dry_run: bool,
}

/// Each function with its plan, or with the reason why it has none or was not finished.
type Plans<'a> = Vec<(&'a FunctionName, Result<AttachPlan, Failure>)>;

impl<'a> Request<'a> {
    /// Shows the plans, asks, makes the changes, and checks them. Gives the plans that were made.
    pub(super) async fn carry_out(
        &self,
        session: &Session,
        plan: impl AsyncFn(&Attachment) -> Result<AttachPlan, Failure>,
    ) -> Result<Plans<'a>, CommandFailure> {
        let mut plans = session.interrupt.or(self.plans(session, &plan)).await?;
        self.answer(session, &plans, false);
        self.show(session, &plans)?;
        let is_performed = !self.dry_run && planned(&plans).any(|plan| !plan.changes.is_empty());
        if is_performed {
            confirm(&self.question(&plans), session).await?;
            for question in planned(&plans).filter_map(|plan| plan.question.as_ref()) {
                confirm_in_person(question, session).await?;
            }
            // Somebody else may have made a change before the answer.
            let again = session.interrupt.or(self.plans(session, &plan)).await?;
            if !agree(&again, &plans) {
                let what = "nothing was changed: somebody else made a change since the plan was made; run the \
                            command again";
                return Err(Failure::CouldNot(what.into()).into());
            }
            plans = again;
            self.make(session, &mut plans).await?;
            self.check(session, &mut plans, &plan).await?;
        }
        self.answer(session, &plans, is_performed);
        if is_performed && !session.common.json && planned(&plans).next().is_some() {
            let done = match planned(&plans).any(|plan| plan.left.is_some()) {
                true => "Not finished. The changes so far were made and verified.",
                false => "Done. The changes were made and verified.",
            };
            writeln!(anstream::stdout(), "{done}")?;
        }
        Ok(plans)
    }

    /// Reads everything again each time, to see the changes of this run and of others. Each plan leaves room for those before
    /// it.
    async fn plans(
        &self,
        session: &Session,
        plan: &impl AsyncFn(&Attachment) -> Result<AttachPlan, Failure>,
    ) -> Result<Plans<'a>, Failure> {
        let deployment = session.deployment().await?;
        let (mut plans, mut listed) = (Vec::new(), Vec::new());
        for function in self.functions {
            let read = Attachment::read(&session.account, deployment.clone(), function).await;
            let planned = match read.map(|attachment| attachment.beside(&listed)) {
                Ok(attachment) => plan(&attachment).await,
                Err(failure) => Err(failure),
            };
            let is_listed = |change: &Change| matches!(change, Change::List(_, true));
            let new = planned.iter().filter(|plan| plan.changes.iter().any(is_listed));
            listed.extend(new.map(|plan| plan.target.arn.clone()));
            plans.push((function, planned));
        }
        // A single function's failure is the command's.
        match &*plans {
            [(_, Err(failure))] => Err(failure.clone()),
            _ => Ok(plans),
        }
    }

    fn question(&self, plans: &Plans<'_>) -> String {
        let names: Vec<String> = plans
            .iter()
            .filter(|(_, plan)| plan.as_ref().is_ok_and(|plan| !plan.changes.is_empty()))
            .map(|(function, _)| function.to_string())
            .collect();
        format!("{} {}?", self.verb, names.join(", "))
    }

    /// Makes the changes: those before the allow-list's of each function, then one edit of the allow-list for all, then the
    /// rest. A function that fails is left out of what follows.
    async fn make(&self, session: &Session, plans: &mut Plans<'_>) -> Result<(), Failure> {
        let is_list = |change: &Change| matches!(change, Change::List(..));
        self.make_each(session, plans, |changes| {
            let end = changes.iter().position(is_list).unwrap_or(changes.len());
            &changes[..end]
        })
        .await?;
        self.edit_list(session, plans).await?;
        self.make_each(session, plans, |changes| {
            let begin = changes.iter().position(is_list).map_or(changes.len(), |place| place + 1);
            &changes[begin..]
        })
        .await
    }

    async fn make_each(
        &self,
        session: &Session,
        plans: &mut Plans<'_>,
        part: impl Fn(&[Change]) -> &[Change],
    ) -> Result<(), Failure> {
        for (_, planned) in plans {
            let Ok(plan) = &*planned else { continue };
            let mut failed = None;
            for change in part(&plan.changes) {
                if session.interrupt.is_raised() {
                    let what = "not every change was made; run the command again for the others";
                    return Err(Failure::Interrupted(what.into()));
                }
                match change.make(&session.account, &plan.target, &session.interrupt).await {
                    Ok(()) => report(session, plan, change),
                    Err(failure @ Failure::Interrupted(_)) => return Err(failure),
                    Err(failure) => {
                        failed = Some(failure);
                        break;
                    }
                }
            }
            if let Some(failure) = failed {
                *planned = Err(failure);
            }
        }
        Ok(())
    }

    /// Edits the allow-list once for all functions. CloudFormation takes one update at a time.
    async fn edit_list(&self, session: &Session, plans: &mut Plans<'_>) -> Result<(), Failure> {
        let edits: Vec<(handler_setting::SettingPlace, String, bool)> = planned(plans)
            .flat_map(|plan| plan.changes.iter().map(move |change| (plan, change)))
            .filter_map(|(plan, change)| match change {
                Change::List(place, is_listed) => Some((place.clone(), plan.target.arn.clone(), *is_listed)),
                _ => None,
            })
            .collect();
        let Some((place, ..)) = edits.first() else { return Ok(()) };
        if session.interrupt.is_raised() {
            let what = "the allow-list was not changed; run the command again";
            return Err(Failure::Interrupted(what.into()));
        }
        let edit = |list: &str| {
            edits.iter().fold(list.to_owned(), |list, (_, arn, is_listed)| {
                if *is_listed { list_with(&list, arn) } else { list_without(&list, arn) }
            })
        };
        let edited = handler_setting::edit(&session.account, place, &edit, &session.interrupt).await;
        if let Err(failure @ Failure::Interrupted(_)) = edited {
            return Err(failure);
        }
        for (_, planned) in plans {
            let Ok(plan) = &*planned else { continue };
            let Some(change) = plan.changes.iter().find(|change| matches!(change, Change::List(..))) else {
                continue;
            };
            match &edited {
                Ok(()) => report(session, plan, change),
                Err(failure) => *planned = Err(failure.clone()),
            }
        }
        Ok(())
    }

    /// Waits until the changes are seen: what was just changed is not seen everywhere at once.
    async fn check(
        &self,
        session: &Session,
        plans: &mut Plans<'a>,
        plan: &impl AsyncFn(&Attachment) -> Result<AttachPlan, Failure>,
    ) -> Result<(), Failure> {
        let settled = async {
            let mut seen = self.plans(session, plan).await?;
            for delay in delays() {
                if planned(&seen).all(|plan| plan.changes.is_empty()) {
                    break;
                }
                tokio::time::sleep(delay).await;
                seen = self.plans(session, plan).await?;
            }
            Ok::<_, Failure>(seen)
        };
        // Those that failed have changes left, and nobody waits for them.
        if plans.iter().all(|(_, plan)| plan.is_err()) {
            return Ok(());
        }
        let seen = session.interrupt.or(settled).await?;
        for ((_, planned), (_, seen)) in plans.iter_mut().zip(seen) {
            if planned.is_err() {
                continue;
            }
            match seen {
                Ok(seen) if seen.changes.is_empty() => {}
                Ok(seen) => *planned = Err(not_visible(&seen)),
                Err(failure) => *planned = Err(failure),
            }
        }
        Ok(())
    }

    /// An object for each function. `made`: the changes were made.
    fn answer(&self, session: &Session, plans: &Plans<'_>, made: bool) {
        let object = |(function, plan): &(&FunctionName, Result<AttachPlan, Failure>)| -> Value {
            let name = function.to_string();
            match plan {
                Ok(plan) => {
                    // Nothing is left to do, now or later.
                    let is_done = plan.left.is_none() && (made || plan.changes.is_empty());
                    json!({
                        "function": name,
                        "differences": plan.differences().collect::<Vec<_>>(),
                        "notes": plan.notes,
                        "left": plan.left,
                        "done": is_done && !plan.is_about_nothing(),
                        "failure": null,
                    })
                }
                Err(failure) => json!({
                    "function": name, "differences": [], "notes": [], "left": null, "done": false,
                    "failure": failure.to_string(),
                }),
            }
        };
        let functions: Vec<Value> = plans.iter().map(object).collect();
        session.answer(&json!({"functions": functions, "dry_run": self.dry_run}));
    }

    fn show(&self, session: &Session, plans: &Plans<'_>) -> std::io::Result<()> {
        if session.common.json {
            return Ok(());
        }
        let mut out = anstream::stdout();
        for (function, plan) in plans {
            match plan {
                Ok(plan) => write!(out, "{}", self.text(function, plan))?,
                Err(failure) => writeln!(out, "{function}: {}", shown(&failure.to_string()))?,
            }
        }
        Ok(())
    }

    fn text(&self, function: &FunctionName, plan: &AttachPlan) -> String {
        let (verb, mut text) = (self.verb, String::new());
        if !plan.changes.is_empty() {
            text += &format!("{verb} {function}:\n{}\n", changes(plan));
        } else if plan.left.is_none() {
            let is = if verb == "attach" { "attached" } else { "not attached" };
            text += &format!("{function} is {is}; nothing to change\n");
        }
        for note in &plan.notes {
            text += &format!("note: {}\n", shown(note));
        }
        if let Some(left) = plan.left.as_ref().filter(|_| self.dry_run || !plan.changes.is_empty()) {
            text += &format!("left for later: {}\n", shown(left));
        }
        text
    }

    /// The end of the command: what failed, by function.
    pub(super) fn result<'f>(
        &self,
        ended: impl Iterator<Item = (&'f FunctionName, Result<(), Failure>)>,
    ) -> Result<(), CommandFailure> {
        let (mut all, mut failed) = (0, Vec::new());
        for (function, end) in ended {
            all += 1;
            failed.extend(end.err().map(|failure| (function, failure)));
        }
        match (all, failed.len()) {
            (_, 0) => Ok(()),
            (1, _) => Err(failed.swap_remove(0).1.into()),
            (_, count) => {
                let mut what = format!("{count} of {all} functions failed:");
                for (function, failure) in failed {
                    write!(what, "\n  {function}: {failure}").expect("BUG: writing to a String");
                }
                Err(Failure::Undone(what).into())
            }
        }
    }
}

/// The plans of the functions that have not failed.
fn planned<'p>(plans: &'p Plans<'_>) -> impl Iterator<Item = &'p AttachPlan> {
    plans.iter().filter_map(|(_, plan)| plan.as_ref().ok())
}

/// Returns true if both show the same changes of the same functions.
fn agree(one: &Plans<'_>, other: &Plans<'_>) -> bool {
    one.iter().zip(other).all(|((_, one), (_, other))| match (one, other) {
        (Ok(one), Ok(other)) => one.agrees_with(other),
        (Err(_), Err(_)) => true,
        _ => false,
    })
}

/// Says that a change was made, unless JSON is printed.
fn report(session: &Session, plan: &AttachPlan, change: &Change) {
    if !session.common.json {
        for Difference { resource, setting, .. } in change.differences(&plan.target) {
            anstream::eprintln!("  {}", shown(&format!("{resource}: {setting}")));
        }
    }
}

fn not_visible(seen: &AttachPlan) -> Failure {
    let missing: Vec<String> =
        seen.differences().map(|it| format!("{}: {}", it.resource, it.setting)).collect();
    Failure::Undone(format!(
        "every change was made, but a minute later some are not visible ({}): somebody else changed them too, \
         or AWS needs longer; run the command again",
        missing.join(", ")
    ))
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
    use crate::operate::attach::grant::Grant;
    use crate::operate::attach::plans::target;
    use crate::operate::function::{InvokeSettings, Target};
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

    use super::*;

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
