//! Changes: all are planned, shown, confirmed and performed in one way.
//!
//! A [`Change`] plans and performs. [`Planned`] is the plan of any change, as a program handles it: a terminal prints
//! its layout, asks its question and performs it; a page shows it, and performs it when its button is pressed.

use std::pin::Pin;
use std::rc::Rc;

use serde::Serialize;

use crate::failure::Failure;
use crate::layout::Layout;
use crate::text::Text;

/// A serializable value that describes its own layout.
pub trait Answer: Serialize {
    /// Its layout.
    fn layout(&self) -> Layout;

    /// The rows of [`Block::Rows`](crate::Block::Rows), each with a cell for each column. There may be a hundred
    /// thousand, so they are made one by one.
    fn rows(&self) -> Box<dyn Iterator<Item = Vec<Text>> + '_> {
        Box::new(std::iter::empty())
    }

    /// The result of a command that answers with this and does nothing else: a failure if it shows something broken or
    /// left out.
    ///
    /// # Errors
    ///
    /// See above.
    fn end(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A change to a deployment.
#[allow(async_fn_in_trait, reason = "all of a command or a console runs on one thread")]
pub trait Change {
    /// The plan. Its identity shows later whether it still holds.
    type Plan: Plan;
    /// The result: what was done, what was left, and what was not possible.
    type Done: Answer;

    /// Reads what the change depends on, and plans it. Changes nothing.
    ///
    /// # Errors
    ///
    /// If the account cannot be read, or refuses the change as a whole.
    async fn plan(&self) -> Result<Self::Plan, Failure>;

    /// Performs a plan. Reports progress, and stops between two calls if the operator asks for it.
    async fn perform(&self, plan: &Self::Plan) -> Performed<Self::Plan, Self::Done>;
}

/// A plan of a change.
pub trait Plan: Answer + Clone {
    /// The part that the operator agrees to: two plans with the same identity are the same plan, whatever else they
    /// show. By default, all of their JSON.
    fn identity(&self) -> String {
        json(self)
    }

    /// The question to ask before performing it; `None` if it has nothing to perform.
    fn question(&self) -> Option<Question>;
}

/// A question to the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The text, in lower case, with a question mark.
    pub text: String,
    /// Ask it even where prompts are skipped, because nobody can know in advance that it will come up.
    pub in_person: bool,
}

impl Question {
    /// A question that a yes answers.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), in_person: false }
    }
}

/// The outcome of performing a plan.
#[derive(Debug)]
pub enum Performed<P, D> {
    /// The plan no longer holds, and nothing was done. Holds the plan as it is now.
    Outdated(P),
    /// The result, and the failure that the work ended with, if any.
    Done(D, Result<(), Failure>),
    /// Nothing was done, because of this failure.
    Failed(Failure),
}

/// The plan of any change, ready to be shown and performed.
pub struct Planned {
    /// Its layout.
    pub layout: Layout,
    /// The plan as JSON, on one line.
    pub json: String,
    /// See [`Plan::identity`].
    pub identity: String,
    /// The question to ask before performing it; `None` if it has nothing to perform.
    pub question: Option<Question>,
    /// The result of a run that does not perform it.
    pub end: Result<(), Failure>,
    perform: Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = Ended>>>>,
}

impl std::fmt::Debug for Planned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Planned").field("question", &self.question).finish_non_exhaustive()
    }
}

/// The outcome of performing the plan of any change.
#[derive(Debug)]
pub enum Ended {
    /// The plan no longer holds, and nothing was done. Holds the plan as it is now.
    Outdated(Box<Planned>),
    /// The plan was performed.
    Done {
        /// The layout of the result.
        layout: Layout,
        /// The result as JSON, on one line.
        json: String,
        /// The failure that the work ended with, if any.
        result: Result<(), Failure>,
    },
    /// Nothing was done.
    Failed(Failure),
}

impl Planned {
    /// Plans a change.
    ///
    /// # Errors
    ///
    /// Those of [`Change::plan`].
    pub async fn of<C: Change + 'static>(change: C) -> Result<Self, Failure> {
        let plan = change.plan().await?;
        Ok(Self::from_plan(Rc::new(change), plan))
    }

    fn from_plan<C: Change + 'static>(change: Rc<C>, plan: C::Plan) -> Self {
        Self {
            layout: plan.layout(),
            json: json(&plan),
            identity: plan.identity(),
            question: plan.question(),
            end: plan.end(),
            perform: Box::new(move || {
                Box::pin(async move {
                    match change.perform(&plan).await {
                        Performed::Outdated(plan) => Ended::Outdated(Box::new(Self::from_plan(change, plan))),
                        Performed::Done(done, result) => {
                            Ended::Done { layout: done.layout(), json: json(&done), result }
                        }
                        Performed::Failed(failure) => Ended::Failed(failure),
                    }
                })
            }),
        }
    }

    /// Performs the plan.
    pub async fn perform(self) -> Ended {
        (self.perform)().await
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("BUG: an answer is plain JSON")
}

/// The failure of a plan that no longer holds, in a program that does not ask again.
pub fn outdated() -> Failure {
    Failure::undone(Text::from("the plan is out of date, and nothing was changed; run the command again"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::layout::Block;

    /// An answer without colours, with ` | ` between the cells of a row.
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
