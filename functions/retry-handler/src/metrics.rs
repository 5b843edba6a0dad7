//! Metrics in CloudWatch's embedded metric format: lines of the log that CloudWatch turns into metrics.

use std::collections::BTreeMap;

use comeback_engine::{BatchReport, Outcome, Policy, Step, Timestamp};
use serde_json::{Map, Value, json};

/// A metric's values in one line; CloudWatch ignores a line with more. Source: "Specification: Embedded metric
/// format", Amazon CloudWatch User Guide.
const MOST_VALUES: usize = 100;
const NAMESPACE: &str = "Comeback";
/// How long SQS keeps a message at most.
const RETENTION_MILLIS: u64 = 14 * 86_400_000;

/// What `METRICS` says, and the name of the handler's function: a dimension of each metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Metrics {
    Off,
    /// Of the handler as a whole.
    Stack {
        handler: String,
    },
    /// Also of each target, and dead-letters by reason.
    Target {
        handler: String,
    },
}

impl Metrics {
    /// The lines for a batch that the handler began with at `now`. None if nothing happened that counts.
    pub(crate) fn lines(&self, policy: &Policy, report: &BatchReport<'_>, now: Timestamp) -> Vec<String> {
        let handler = match self {
            Self::Off => return Vec::new(),
            Self::Stack { handler } | Self::Target { handler } => handler,
        };
        let mut groups: BTreeMap<Group, Counted> = BTreeMap::new();
        for outcome in &report.outcomes {
            let group = match self {
                Self::Off | Self::Stack { .. } => Group::default(),
                Self::Target { .. } => Group::of(outcome, policy),
            };
            groups.entry(group).or_default().add(outcome, now);
        }
        groups.into_iter().flat_map(|(group, counted)| counted.lines(&group, handler, now)).collect()
    }
}

/// Messages that are counted together. Each has lines of its own, whose dimensions it names.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    target: Option<String>,
    reason: Option<&'static str>,
}

/// What is counted of a group.
#[derive(Debug, Default)]
struct Counted {
    counts: BTreeMap<&'static str, u64>,
    /// In seconds.
    values: BTreeMap<&'static str, Vec<f64>>,
}

impl Group {
    /// Its target is an entry of `TARGET_FUNCTIONS`, never the message's own text: queue content must not make metrics
    /// up, which cost money.
    fn of(outcome: &Outcome<'_>, policy: &Policy) -> Self {
        let entry = outcome.retry.as_ref().and_then(|retry| policy.entry_of(&retry.function_arn));
        let reason = outcome.reason().filter(|_| outcome.settled());
        Self { target: entry.map(ToString::to_string), reason: reason.map(|reason| reason.code.name()) }
    }
}

impl Counted {
    fn add(&mut self, outcome: &Outcome<'_>, now: Timestamp) {
        let is_done = outcome.settled() && outcome.moved.is_none();
        if outcome.is_first_receive {
            self.count("Failures");
        }
        if outcome.moved.is_some() {
            self.count("Moves");
        }
        if outcome.problem.is_some() {
            self.count("Stuck");
        }
        match &outcome.step {
            Some(Step::Reinvoke { due }) if is_done => {
                self.count("Retries");
                self.measure("Lateness", *due, now);
            }
            Some(Step::DeadLetter { .. }) if is_done => self.count("DeadLetters"),
            Some(Step::Hold { .. }) => self.count("Held"),
            _ => {}
        }
        if let (true, Some(retry)) = (is_done, &outcome.retry) {
            // A payload may claim any time, and SQS keeps nothing for longer.
            let oldest = Timestamp::from_millis(now.as_millis().saturating_sub(RETENTION_MILLIS));
            self.measure("EventAge", retry.first_failure.max(oldest), now);
        }
    }

    fn count(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }

    fn measure(&mut self, name: &'static str, since: Timestamp, now: Timestamp) {
        self.values.entry(name).or_default().push(now.since(since).as_secs_f64());
    }

    /// More than one line only if there are more values than one may hold.
    fn lines(mut self, group: &Group, handler: &str, now: Timestamp) -> Vec<String> {
        let mut counts = self.counts.into_iter().map(|(name, count)| (name, "Count", json!(count))).collect();
        let mut lines = Vec::new();
        loop {
            let mut metrics: Vec<(&str, &str, Value)> = std::mem::take(&mut counts);
            for (name, values) in &mut self.values {
                let some: Vec<f64> = values.drain(..values.len().min(MOST_VALUES)).collect();
                if !some.is_empty() {
                    metrics.push((name, "Seconds", json!(some)));
                }
            }
            if metrics.is_empty() {
                return lines;
            }
            lines.push(line(group, handler, now, metrics));
        }
    }
}

fn line(group: &Group, handler: &str, now: Timestamp, metrics: Vec<(&str, &str, Value)>) -> String {
    let unit = |(name, unit, _): &(&str, &str, Value)| json!({"Name": name, "Unit": unit});
    let mut dimensions = vec![vec!["Handler"]];
    let mut members = Map::new();
    members.insert("level".into(), "INFO".into());
    members.insert("timestamp".into(), now.to_string().into());
    members.insert("Handler".into(), handler.into());
    if let Some(target) = &group.target {
        dimensions.push(vec!["Handler", "Target"]);
        members.insert("Target".into(), target.as_str().into());
    }
    let mut directives = vec![
        json!({"Namespace": NAMESPACE, "Dimensions": dimensions, "Metrics": metrics.iter().map(unit).collect::<Vec<_>>()}),
    ];
    if let Some(reason) = group.reason {
        let by_reason: Vec<Value> =
            metrics.iter().filter(|(name, ..)| *name == "DeadLetters").map(unit).collect();
        if !by_reason.is_empty() {
            let dimensions = [["Handler", "Reason"]];
            directives.push(json!({"Namespace": NAMESPACE, "Dimensions": dimensions, "Metrics": by_reason}));
        }
        members.insert("Reason".into(), reason.into());
    }
    members.extend(metrics.into_iter().map(|(name, _, value)| (name.to_owned(), value)));
    members.insert("_aws".into(), json!({"Timestamp": now.as_millis(), "CloudWatchMetrics": directives}));
    Value::Object(members).to_string()
}

#[cfg(test)]
mod tests;
