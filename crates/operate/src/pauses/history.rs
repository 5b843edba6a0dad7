//! The history of a deployment's pauses, from the last hundred versions of the SSM parameter.

use std::time::Duration;

use comeback_engine::{Pause, Pauses, Timestamp};
use serde::Serialize;

use crate::account::Account;
use crate::account::user_name;
use crate::aws::ParameterVersion;
use crate::durations;
use crate::failure::Failure;
use crate::layout::{Layout, Table};
use crate::pauses::target_name;
use crate::text::Text;

/// One change to a pause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PauseChange {
    at: Timestamp,
    by: Option<String>,
    what: PauseEvent,
    /// The ARN of the paused function, `*` for every function, or `None` if the parameter's text cannot be parsed.
    target: Option<String>,
    until: Option<Timestamp>,
    /// The pause's spread, in seconds, or `None` in an entry for the end of a pause.
    spread_seconds: Option<u64>,
    why: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum PauseEvent {
    Paused,
    Changed,
    Resumed,
    Unreadable,
}

/// Reads the history of the pauses from SSM, oldest entry first.
pub(crate) async fn read(account: &Account, name: &str) -> Result<Vec<PauseChange>, Failure> {
    Ok(entries(&account.aws.parameter_history(name).await?))
}

/// Returns the changes between consecutive versions of the parameter. If SSM has deleted version 1, the changes in
/// the oldest version are unknown.
fn entries(versions: &[ParameterVersion]) -> Vec<PauseChange> {
    let (mut entries, mut before) = (Vec::new(), Vec::new());
    for version in versions {
        let at = version.at.unwrap_or(Timestamp::from_secs(0));
        let entry = |what, pause: Option<&Pause>| PauseChange {
            at,
            by: version.by.as_deref().map(user_name).map(ToOwned::to_owned).or_else(|| pause?.by.clone()),
            what,
            target: pause.map(|pause| pause.target.to_string()),
            until: pause.filter(|_| what != PauseEvent::Resumed).and_then(|pause| pause.until),
            spread_seconds: pause.filter(|_| what != PauseEvent::Resumed).map(|pause| pause.spread.as_secs()),
            why: pause.and_then(|pause| pause.why.clone()),
        };
        let Ok(pauses) = Pauses::read(&version.text) else {
            entries.push(entry(PauseEvent::Unreadable, None));
            continue;
        };
        // Only an open pause names its operator. The end of a pause comes from the operator's clock, and the time of a
        // version from SSM's.
        let is_open = |pause: &Pause| pause.by.is_some() && !pause.is_over(at);
        let open: Vec<Pause> = pauses.iter().filter(|pause| is_open(pause)).cloned().collect();
        let is_known = version.number == 1 || !std::ptr::eq(version, &versions[0]);
        if is_known {
            for pause in &open {
                match before.iter().find(|earlier: &&Pause| earlier.target == pause.target) {
                    None => entries.push(entry(PauseEvent::Paused, Some(pause))),
                    Some(earlier) if earlier != pause => {
                        entries.push(entry(PauseEvent::Changed, Some(pause)))
                    }
                    Some(_) => {}
                }
            }
            let is_gone = |earlier: &&Pause| {
                !earlier.is_over(at) && !open.iter().any(|pause| pause.target == earlier.target)
            };
            entries
                .extend(before.iter().filter(is_gone).map(|pause| entry(PauseEvent::Resumed, Some(pause))));
        }
        before = open;
    }
    entries
}

pub(crate) fn layout(entries: &[PauseChange]) -> Layout {
    let mut layout = Layout::default();
    if entries.is_empty() {
        layout.line("nobody has paused anything yet");
        return layout;
    }
    let mut table = Table::new(["when", "who", "what", "function", "until", "spread", "why"]);
    for entry in entries {
        let what = match entry.what {
            PauseEvent::Paused => "paused",
            PauseEvent::Changed => "changed",
            PauseEvent::Resumed => "resumed",
            PauseEvent::Unreadable => "wrote an unreadable text",
        };
        let until = match (entry.what, entry.until) {
            (_, Some(until)) => until.into(),
            (PauseEvent::Paused | PauseEvent::Changed, None) => "resume".into(),
            (PauseEvent::Resumed | PauseEvent::Unreadable, None) => Text::default(),
        };
        let spread = entry.spread_seconds.map(|it| durations::text(Duration::from_secs(it)));
        table.row([
            entry.at.into(),
            entry.by.as_deref().unwrap_or_default().into(),
            what.into(),
            entry.target.as_deref().map(target_name).unwrap_or_default().into(),
            until,
            spread.unwrap_or_default().into(),
            entry.why.as_deref().unwrap_or_default().into(),
        ]);
    }
    layout.table(table);
    layout
}

#[cfg(test)]
mod tests {
    use comeback_engine::{PauseTarget, short_name};

    use crate::pauses::edits;

    use super::*;

    fn at(second: u64) -> Timestamp {
        Timestamp::from_secs(1_700_000_000 + second)
    }

    fn version(number: i64, second: u64, by: &str, text: String) -> ParameterVersion {
        ParameterVersion { number, at: Some(at(second)), by: Some(by.into()), text }
    }

    #[test]
    fn empty_history_has_no_table() {
        assert_eq!(layout(&[]).0, [crate::layout::Block::Line("nobody has paused anything yet".into())]);
    }

    #[test]
    fn each_version_says_what_it_changed() {
        let target: PauseTarget = "arn:aws:lambda:eu-west-1:123456789012:function:orders".parse().unwrap();
        let pause = |target: &PauseTarget, until| Pause {
            target: target.clone(),
            from: at(0),
            until,
            spread: Duration::ZERO,
            by: Some("anna".into()),
            why: Some("deploy 4711".into()),
        };
        let paused = Pauses::default().with([pause(&target, None)]);
        let both = edits::with(&paused, &pause(&PauseTarget::All, Some(at(60))), at(10));
        let changed = edits::with(&both, &pause(&target, Some(at(500))), at(70));
        // The clock behind this end is ahead of SSM's.
        let resumed = edits::closed(&changed, &target, Duration::ZERO, at(95));
        let versions = [
            version(1, 0, "anna", paused.write()),
            version(2, 10, "ben", both.write()),
            version(3, 70, "ben", changed.fitted(at(70)).unwrap().0.write()),
            version(4, 90, "carl", resumed.write()),
            version(5, 100, "dora", "by hand".into()),
        ];
        let said = |versions: &[ParameterVersion]| {
            let said = |entry: &PauseChange| {
                let of = entry.target.as_deref().map(short_name).unwrap_or_default().to_owned();
                (entry.by.clone().unwrap(), entry.what, of, entry.until)
            };
            entries(versions).iter().map(said).collect::<Vec<_>>()
        };
        let entry = |by: &str, what, of: &str, until| (by.to_owned(), what, of.to_owned(), until);
        // The pause of every function reached its planned end without being resumed.
        let expected = [
            entry("anna", PauseEvent::Paused, "orders", None),
            entry("ben", PauseEvent::Paused, "*", Some(at(60))),
            entry("ben", PauseEvent::Changed, "orders", Some(at(500))),
            entry("carl", PauseEvent::Resumed, "orders", None),
            entry("dora", PauseEvent::Unreadable, "", None),
        ];
        assert_eq!(said(&versions), expected);
        assert_eq!(
            said(&versions[1..]),
            expected[2..],
            "what the first version kept has changed is not known"
        );
    }
}
