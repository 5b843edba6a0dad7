use super::guarded::Guarded;
use super::hiding::after_failure;
use crate::Record;
use crate::account::{Account, VisibilityChange};
use crate::report::{Outcome, Step};

/// Keeps every message until a function may be re-invoked, hidden for as long as one whose step did not
/// work: a thousand receives outlast the queue's 14 days.
pub(super) async fn keep<'a, A: Account>(
    records: Vec<&'a Record>,
    account: &Guarded<'_, A>,
) -> Vec<Outcome<'a>> {
    let change = |record: &&'a Record| VisibilityChange {
        receipt_handle: &record.receipt_handle,
        visibility_timeout: after_failure(record),
    };
    let changes: Vec<_> = records.iter().map(change).collect();
    let mut answers = account.change_visibility(&changes).await;
    let outcomes = records.into_iter().zip(&changes).map(|(record, change)| Outcome {
        message_id: &record.message_id,
        retry: None,
        step: Some(Step::Keep { visibility_timeout: change.visibility_timeout }),
        problem: answers.next_answer().err(),
        hidden_for: None,
    });
    outcomes.collect()
}
