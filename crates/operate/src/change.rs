//! Changes to a deployment, all of which are planned, shown, confirmed and carried out in the same way.
//!
//! The `comeback` command and the console show the plan of a [`Change`], and [`perform`] it once the operator confirms.

use serde::Serialize;

use crate::failure::Failure;
use crate::layout::Layout;
use crate::operator::Operator;
use crate::operator_line::{Activity, record};
use crate::text;
use crate::text::Text;

/// The output of a command: a serializable value that describes its own layout.
pub trait Answer: Serialize {
    /// The layout in which the value is shown.
    fn layout(&self) -> Layout;

    /// The rows of the layout's [`Block::Rows`](crate::Block::Rows), with one cell per column. The iterator builds one
    /// row at a time.
    fn rows(&self) -> Box<dyn Iterator<Item = Vec<Text>> + '_> {
        Box::new(std::iter::empty())
    }

    /// The value as JSON, on one line.
    fn json(&self) -> String {
        serde_json::to_string(self).expect("BUG: an answer is plain JSON")
    }

    /// The result of a command that only shows this value.
    ///
    /// # Errors
    ///
    /// Fails if the value reports a problem or is incomplete.
    fn end(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A change to a deployment, planned first and then carried out.
#[allow(async_fn_in_trait, reason = "all of a command or a console runs on one thread")]
pub trait Change: Sized {
    /// The plan for the change.
    type Plan: Plan;
    /// The result of the change: what was done, what was left undone, and what could not be done.
    type Done: Answer;

    /// Reads what the change depends on, and plans the change without modifying anything.
    ///
    /// # Errors
    ///
    /// Fails if the account cannot be read, or if the whole change is refused.
    async fn plan(&self, operator: &Operator) -> Result<Self::Plan, Failure>;

    /// Carries out a plan, but stops before the next call to AWS if the operator interrupts the work.
    ///
    /// # Errors
    ///
    /// Fails if an error occurs before anything has been done.
    async fn perform(&self, operator: &Operator, plan: &Self::Plan) -> Result<Performed<Self>, Failure>;

    /// The record of the change that was made; `None` if nothing was changed.
    fn activity(&self, done: &Self::Done) -> Option<Activity>;
}

/// The plan for a change, for the operator to confirm.
pub trait Plan: Answer + Clone {
    /// The part of the plan that must not change after the operator agrees to it; by default, the plan's JSON.
    fn identity(&self) -> String {
        self.json()
    }

    /// The question to ask before the plan is carried out; `None` if the plan changes nothing.
    fn question(&self) -> Option<Question>;

    /// The log group of the deployment's handler, where the change is recorded.
    fn log_group(&self) -> &str;
}

/// The result of a change: the plan, updated with what was done.
#[derive(Debug, Serialize)]
pub struct Completed<P> {
    #[serde(flatten)]
    pub(crate) plan: P,
    /// Notes for the operator, which are not part of the JSON.
    #[serde(skip)]
    pub(crate) notes: Vec<Text>,
}

/// A yes-or-no question for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The question's text, in lower case, with a question mark.
    pub text: String,
    /// True for an unexpected question, which the command asks even with `--yes`.
    pub in_person: bool,
}

impl Question {
    /// A question that `--yes` answers.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), in_person: false }
    }
}

/// The outcome of carrying out a plan for a change of type `C`.
#[derive(Debug)]
pub enum Performed<C: Change> {
    /// Nothing was done, because the plan is out of date; the field is the new plan.
    Outdated(C::Plan),
    /// The plan was carried out, with this result and the failure that ended the work, if any.
    Done(C::Done, Result<(), Failure>),
}

/// Carries out a plan that `operator` made, and records the change. The second value is an error if the change could
/// not be recorded.
///
/// # Errors
///
/// Fails in the same cases as [`Change::perform`].
pub async fn perform<C: Change>(
    change: &C,
    operator: &Operator,
    plan: &C::Plan,
) -> Result<(Performed<C>, Result<(), Failure>), Failure> {
    let performed = change.perform(operator, plan).await?;
    if let Performed::Done(done, result) = &performed
        && let Some(activity) = change.activity(done)
    {
        let recorded = record(operator, plan.log_group(), &activity, result).await;
        return Ok((performed, recorded));
    }
    Ok((performed, Ok(())))
}

/// The layout of a change's result, with a note if the change could not be recorded.
pub fn result_layout(done: &impl Answer, recorded: &Result<(), Failure>) -> Layout {
    let mut layout = done.layout();
    if let Err(failure) = recorded {
        layout.note(text!["the change is not recorded: ", failure.text()]);
    }
    layout
}

/// The error for an outdated plan, used by programs that do not show the new plan.
pub fn outdated() -> Failure {
    Failure::undone(Text::from("the plan is out of date, and nothing was changed; run the command again"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::layout::Block;

    /// An answer as plain text without colours, with ` | ` between the cells of a row.
    pub(crate) fn plain(answer: &impl Answer) -> String {
        let row = |cells: &Vec<Text>| cells.iter().map(Text::to_string).collect::<Vec<_>>().join(" | ");
        let mut lines = Vec::new();
        for block in answer.layout().0 {
            match block {
                Block::Line(text) => lines.push(text.to_string()),
                Block::Facts(facts) => {
                    for fact in &facts {
                        lines.extend(fact.text().iter().map(|text| format!("{}: {text}", fact.title)));
                    }
                }
                Block::Table(table) => {
                    let heads: Vec<_> = table.columns.iter().map(|column| column.head).collect();
                    lines.push(heads.join(" | "));
                    lines.extend(table.rows.iter().map(row));
                }
                Block::Rows(heads) => {
                    lines.push(heads.join(" | "));
                    lines.extend(answer.rows().map(|cells| row(&cells)));
                }
                Block::Series(series) => lines.push(format!("{series:?}")),
                Block::Timeline(moments) => {
                    for moment in moments {
                        lines.push(format!("{} {}", moment.at, moment.text));
                        lines.extend(moment.below.iter().map(|line| format!("| {line}")));
                    }
                }
                Block::Note(text) => lines.push(format!("note: {text}")),
                Block::Warning(text) => lines.push(format!("warning: {text}")),
            }
        }
        lines.into_iter().map(|line| line + "\n").collect()
    }
}
