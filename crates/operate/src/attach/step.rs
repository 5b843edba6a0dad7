//! The steps of a plan: the settings that they change, and the calls that they make.

use std::time::Duration;

use comeback_backoff::{Backoff, Delays, Jitter};
use serde::Serialize;

use crate::account::Account;
use crate::attach::attachment::Attachment;
use crate::attach::grant::Grant;
use crate::attach::kept;
use crate::aws::{InvokeSettings, NewAlarm};
use crate::failure::Failure;
use crate::function::Target;
use crate::handler_setting::{SettingPlace, TARGET_FUNCTIONS, TARGET_FUNCTIONS_PARAMETER};
use crate::interrupt::Interrupt;
use crate::layout::Layout;
use crate::text::{Text, Tone};

/// An idempotent change to a function, or to the resources that its retries need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Adds tags that store the function's earlier settings.
    Keep(Vec<(String, String)>),
    /// Adds a tag with this key and the current time as its value.
    Mark(&'static str),
    /// Removes tags from the function.
    Forget(Vec<(String, String)>),
    /// Grants permissions to a role.
    Allow(Grant),
    /// Removes permissions from a role.
    Withdraw(Grant),
    /// Adds the function to the allow-list if `true`, or removes it from the list if `false`.
    List(SettingPlace, bool),
    /// Allows recursive loops for the function if `true`, or forbids them if `false`.
    Recursion(bool),
    /// Creates an alarm for events that Lambda drops. If `exists` is true, replaces an alarm that notifies nobody.
    Watch { alarm: NewAlarm, exists: bool },
    /// Deletes the alarm with this name, which fires when Lambda drops one of the function's events.
    Unwatch(String),
    /// Replaces the function's settings for asynchronous invocations, or deletes them if every new value is a default.
    Settings(InvokeSettings),
}

/// A setting that a plan changes, with the values before and after the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The resource that has the setting, such as `function orders` or `stack comeback`.
    pub resource: String,
    /// The setting's name, such as `retries` or `on failure`.
    pub setting: String,
    /// The setting's value before the change; `None` if it was not set.
    pub from: Option<String>,
    /// The setting's value after the change; `None` if the change removes it.
    pub to: Option<String>,
}

impl Difference {
    fn text(&self) -> Text {
        let Self { setting, from, to, .. } = self;
        let (tone, line) = match (from, to) {
            (None, to) => (Tone::Good, format!("+ {setting}: {}", to.as_deref().unwrap_or_default())),
            (Some(from), None) => (Tone::Bad, format!("- {setting}: {from}")),
            (Some(from), Some(to)) => (Tone::Warning, format!("~ {setting}: {from} → {to}")),
        };
        Text::from("    ").and(Text::toned(tone, line))
    }

    /// The setting with its values before and after the change, such as `retries: 1 → 0`.
    pub(crate) fn change(&self) -> String {
        let [from, to] = [&self.from, &self.to].map(|it| it.as_deref().unwrap_or("not set"));
        format!("{}: {from} → {to}", self.setting)
    }

    pub(crate) fn name(&self) -> String {
        format!("{}: {}", self.resource, self.setting)
    }
}

/// Adds a line for each resource, and below it the resource's changed settings.
pub(crate) fn lay_out(differences: &[Difference], layout: &mut Layout) {
    let mut above = "";
    for difference in differences {
        if difference.resource != above {
            layout.line(format!("  {}", difference.resource));
            above = &difference.resource;
        }
        layout.line(difference.text());
    }
}

fn difference(resource: String, setting: &str, from: Option<&str>, to: Option<&str>) -> Difference {
    let (from, to) = (from.map(ToOwned::to_owned), to.map(ToOwned::to_owned));
    Difference { resource, setting: setting.to_owned(), from, to }
}

impl Step {
    pub(crate) fn differences(&self, target: &Target) -> Vec<Difference> {
        let function = format!("function {}", target.name);
        let tag = |key: &str, from, to| difference(function.clone(), &format!("tag {key}"), from, to);
        let one = match self {
            Self::Keep(tags) => {
                return tags.iter().map(|(key, value)| tag(key, None, Some(value))).collect();
            }
            Self::Forget(tags) => {
                return tags.iter().map(|(key, value)| tag(key, Some(value), None)).collect();
            }
            Self::Mark(key) => tag(key, None, Some("now")),
            Self::Settings(to) => {
                let resource = format!("function {}", target.named(target.qualifier.as_deref()));
                return between(&resource, &target.settings(), to);
            }
            Self::Allow(Grant { role, policy, statements }) => {
                let actions: Vec<_> = statements.iter().flat_map(|(actions, _)| actions).copied().collect();
                let (policy, actions) = (format!("policy {policy}"), actions.join(", "));
                difference(format!("role {role}"), &policy, None, Some(&actions))
            }
            Self::Withdraw(Grant { role, policy, .. }) => {
                difference(format!("role {role}"), &format!("policy {policy}"), Some("allowed"), None)
            }
            Self::List(place, is_listed) => {
                let arn = Some(&*target.arn);
                let (from, to) = if *is_listed { (None, arn) } else { (arn, None) };
                let (resource, setting) = match place {
                    SettingPlace::Stack(stack) => (format!("stack {stack}"), TARGET_FUNCTIONS_PARAMETER),
                    SettingPlace::Function(name) => (format!("function {name}"), TARGET_FUNCTIONS),
                };
                difference(resource, setting, from, to)
            }
            Self::Recursion(allowed) => {
                let (from, to) = (kept::recursion(!allowed), kept::recursion(*allowed));
                difference(function, "recursive loops", Some(from), Some(to))
            }
            Self::Watch { alarm: NewAlarm { name, actions, .. }, exists } => {
                let nobody = "notifies nobody";
                let to = match &**actions {
                    [] => nobody.to_owned(),
                    topics => format!("notifies {}", topics.join(", ")),
                };
                difference(function, &format!("alarm {name}"), exists.then_some(nobody), Some(&to))
            }
            Self::Unwatch(alarm) => difference(function, &format!("alarm {alarm}"), Some("there"), None),
        };
        vec![one]
    }
}

fn between(resource: &str, from: &InvokeSettings, to: &InvokeSettings) -> Vec<Difference> {
    let texts = |it: &InvokeSettings| {
        let (retries, event_age) =
            (it.retries.map(|it| it.to_string()), it.event_age.map(|it| format!("{it}s")));
        [it.on_failure.clone(), retries, event_age, it.on_success.clone()]
    };
    let both = texts(from).into_iter().zip(texts(to));
    let named = ["on failure", "retries", "event age", "on success"].into_iter().zip(both);
    let changed = named.filter(|(_, (from, to))| from != to);
    changed
        .map(|(setting, (from, to))| difference(resource.to_owned(), setting, from.as_deref(), to.as_deref()))
        .collect()
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FunctionPlan {
    pub(crate) target: Target,
    pub(crate) is_gone: bool,
    pub(crate) steps: Vec<Step>,
    pub(crate) notes: Vec<Text>,
    /// Text that says which changes must wait for a later run, and why. `None` if no change must wait.
    pub(crate) left: Option<String>,
    /// A sentence that says what `--now` does to the events that `detach` would otherwise wait for.
    pub(crate) effect_of_now: Option<String>,
    /// A warning that the operator must confirm even with `--yes`.
    pub(crate) warning: Option<String>,
}

impl FunctionPlan {
    pub(crate) fn of(attachment: &Attachment) -> Self {
        Self { target: attachment.target.clone(), is_gone: attachment.is_gone, ..Self::default() }
    }

    pub(crate) fn note(&mut self, note: impl Into<Text>) {
        self.notes.push(note.into());
    }

    /// Adds a step that removes the function's tags with these keys, if it has any.
    pub(crate) fn forget(&mut self, keys: impl IntoIterator<Item = String>) {
        let tag = |key: String| self.target.tags.get(&key).cloned().map(|value| (key, value));
        let tags: Vec<_> = keys.into_iter().filter_map(tag).collect();
        if !tags.is_empty() {
            self.steps.push(Step::Forget(tags));
        }
    }

    /// The steps before and after the edit of the allow-list; without an edit, all steps are in the first part.
    pub(crate) fn around_list(&self) -> (&[Step], &[Step]) {
        match self.steps.iter().position(|step| matches!(step, Step::List(..))) {
            Some(edit) => (&self.steps[..edit], &self.steps[edit + 1..]),
            None => (&self.steps, &[]),
        }
    }

    pub(crate) fn differences(&self) -> Vec<Difference> {
        self.steps.iter().flat_map(|step| step.differences(&self.target)).collect()
    }

    /// Returns true if the function does not exist and there is nothing to remove.
    pub(crate) fn is_of_unknown_function(&self) -> bool {
        self.is_gone && self.steps.is_empty()
    }
}

/// The delays between checks while a change becomes visible in AWS, about a minute in total.
pub(crate) fn delays() -> Delays {
    let backoff = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(8));
    let backoff = backoff.and_then(|backoff| backoff.with_jitter(Jitter::None));
    backoff.expect("BUG: constants in order").with_retries(9).seeded(0)
}

impl Step {
    /// Performs this step. Does nothing for an edit of the allow-list, which is made once for all functions.
    pub(crate) async fn make(
        &self,
        account: &Account,
        target: &Target,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        let (arn, name) = (&target.arn, &target.name);
        match self {
            Self::Keep(tags) => account.aws.tag(arn, tags.iter().cloned().collect()).await,
            Self::Mark(key) => {
                account.aws.tag(arn, [((*key).to_owned(), account.now().to_string())].into()).await
            }
            Self::Forget(tags) => {
                account.aws.untag(arn, tags.iter().map(|(key, _)| key.clone()).collect()).await
            }
            Self::Allow(grant) => grant.give(account).await,
            Self::Withdraw(grant) => grant.withdraw(account).await,
            Self::List(..) => Ok(()),
            Self::Recursion(allowed) => account.aws.allow_recursion(name, *allowed).await,
            Self::Watch { alarm, .. } => account.aws.put_alarm(alarm).await,
            Self::Unwatch(alarm) => account.aws.delete_alarm(alarm).await,
            Self::Settings(to) if *to == InvokeSettings::default() => {
                account.aws.delete_invoke_settings(name, target.qualifier.as_deref()).await
            }
            Self::Settings(to) => put_settings(account, target, to, interrupt).await,
        }
    }
}

/// Writes a function's settings for asynchronous invocations, and retries for about a minute while Lambda refuses the
/// destination.
async fn put_settings(
    account: &Account,
    target: &Target,
    to: &InvokeSettings,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let (name, qualifier) = (&target.name, target.qualifier.as_deref());
    let mut delays = delays();
    while !account.aws.put_invoke_settings(name, qualifier, to).await? {
        let Some(delay) = delays.next() else {
            return Err(Failure::could_not(format!(
                "lambda:PutFunctionEventInvokeConfig on {name}: Lambda still says that role {} may not send to the \
                 destination; run the command again",
                target.role()
            )));
        };
        tokio::select! {
            () = account.aws.sleep(delay) => {}
            () = interrupt.raised() => return Err(interrupted()),
        }
    }
    Ok(())
}

pub(crate) fn interrupted() -> Failure {
    Failure::interrupted("not every change was made; run the command again for the others")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_removed_and_changed_settings_have_their_own_signs() {
        let qualifier = Some("live".to_owned());
        let from = InvokeSettings { retries: Some(2), event_age: Some(600), ..InvokeSettings::default() };
        let to = InvokeSettings {
            retries: Some(0),
            on_failure: Some("arn:q".into()),
            ..InvokeSettings::default()
        };
        let invoke_settings = [(qualifier.clone(), from)].into();
        let target = Target { qualifier, invoke_settings, ..Target::sample() };
        let (role, policy) = ("orders-role".into(), "comeback-q".into());
        let steps = [Step::Settings(to), Step::Withdraw(Grant { role, policy, statements: Vec::new() })];
        let differences: Vec<_> = steps.iter().flat_map(|step| step.differences(&target)).collect();
        let mut layout = Layout::default();
        lay_out(&differences, &mut layout);
        let lines = layout.0.into_iter().map(|block| match block {
            crate::Block::Line(text) => (text.to_string(), text.tone()),
            other => panic!("{other:?}"),
        });
        let expected = [
            ("  function orders:live", Tone::Plain),
            ("    + on failure: arn:q", Tone::Good),
            ("    ~ retries: 2 → 0", Tone::Warning),
            ("    - event age: 600s", Tone::Bad),
            ("  role orders-role", Tone::Plain),
            ("    - policy comeback-q: allowed", Tone::Bad),
        ];
        assert_eq!(lines.collect::<Vec<_>>(), expected.map(|(line, tone)| (line.to_owned(), tone)));
    }
}
