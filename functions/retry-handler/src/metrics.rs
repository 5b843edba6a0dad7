//! Metrics in CloudWatch's embedded metric format. CloudWatch extracts them from log lines.

use std::collections::BTreeMap;

use comeback_engine::{BatchReport, Location, Outcome, Policy, RETENTION, Timestamp, What};
use serde_json::{Value, json};

/// Maximum number of values that a line may have for one metric. Source: "Specification: Embedded metric format",
/// Amazon CloudWatch User Guide.
const MOST_VALUES: usize = 100;
const NAMESPACE: &str = "Comeback";

/// Configuration of the handler's metrics, present only if metrics are on (`METRICS`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MetricsConfig {
    /// Name of the handler's function, a dimension of every metric.
    pub(crate) handler: String,
    /// True to report metrics for each target and for each dead-letter reason, in addition to those for the whole
    /// handler.
    pub(crate) by_target: bool,
}

impl MetricsConfig {
    /// Returns the log lines that report a batch's metrics to CloudWatch; `now` is the batch's start.
    pub(crate) fn lines(&self, policy: &Policy, report: &BatchReport<'_>, now: Timestamp) -> Vec<String> {
        let mut groups: BTreeMap<Group, Counted> = BTreeMap::new();
        for outcome in &report.outcomes {
            let group = if self.by_target { Group::of(outcome, policy) } else { Group::default() };
            groups.entry(group).or_default().add(outcome, now);
        }
        groups.into_iter().flat_map(|(group, counted)| counted.lines(&group, &self.handler, now)).collect()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    target: Option<String>,
    reason: Option<&'static str>,
}

#[derive(Debug, Default)]
struct Counted {
    counts: BTreeMap<&'static str, u64>,
    /// The measured values of each metric, in seconds, keyed by the metric's name.
    values: BTreeMap<&'static str, Vec<f64>>,
}

impl Group {
    /// Returns the group of metrics that an outcome is counted in. The group's target is an entry of
    /// `TARGET_FUNCTIONS`, so messages cannot create new metrics, which cost money.
    fn of(outcome: &Outcome<'_>, policy: &Policy) -> Self {
        let entry = outcome.event.as_ref().and_then(|event| policy.entry_of(&event.function_arn));
        let reason = outcome.reason().filter(|_| outcome.settled());
        Self { target: entry.map(ToString::to_string), reason: reason.map(|reason| reason.code.name()) }
    }
}

impl Counted {
    fn add(&mut self, outcome: &Outcome<'_>, now: Timestamp) {
        if outcome.record.is_first_receive() {
            self.count("Failures");
        }
        if outcome.problem().is_some() {
            self.count("Stuck");
        }
        if outcome.location == Location::Moved {
            self.count("Moves");
        }
        match &outcome.what {
            What::Hold { .. } => return self.count("Held"),
            What::Defer { .. } | What::Keep { .. } => return,
            What::DeadLetter { .. } => self.count("DeadLetters"),
            What::Reinvoke { due, early, .. } => {
                self.count("Retries");
                if early.is_some() {
                    self.count("Early");
                }
                // The handler notices a retry request only when it next checks the message. So a requested retry's
                // lateness is measured from the ordinary due time.
                let due = early.as_ref().map_or(*due, |early| early.otherwise_due);
                self.measure("Lateness", due, now);
            }
        }
        if let Some(event) = &outcome.event {
            // A payload may claim any time of first failure, but SQS keeps no message for longer than its retention
            // period.
            let oldest = now.before(RETENTION);
            self.measure("EventAge", event.first_failure.max(oldest), now);
        }
    }

    fn count(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }

    fn measure(&mut self, name: &'static str, since: Timestamp, now: Timestamp) {
        self.values.entry(name).or_default().push(now.since(since).as_secs_f64());
    }

    /// Returns a group's metrics as log lines: one, or more if a metric has too many values for a single line.
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
    let mut line = json!({"level": "INFO", "timestamp": now.to_string(), "Handler": handler});
    let mut dimensions = vec![vec!["Handler"]];
    if let Some(target) = &group.target {
        dimensions.push(vec!["Handler", "Target"]);
        line["Target"] = json!(target);
    }
    let units: Vec<Value> = metrics.iter().map(unit).collect();
    let mut directives = vec![json!({"Namespace": NAMESPACE, "Dimensions": dimensions, "Metrics": units})];
    if let Some(reason) = group.reason {
        line["Reason"] = json!(reason);
        let by_reason: Vec<Value> =
            metrics.iter().filter(|(name, ..)| *name == "DeadLetters").map(unit).collect();
        if !by_reason.is_empty() {
            let dimensions = [["Handler", "Reason"]];
            directives.push(json!({"Namespace": NAMESPACE, "Dimensions": dimensions, "Metrics": by_reason}));
        }
    }
    for (name, _, value) in metrics {
        line[name] = value;
    }
    line["_aws"] = json!({"Timestamp": now.as_millis(), "CloudWatchMetrics": directives});
    line.to_string()
}

#[cfg(test)]
mod tests {
    use comeback_engine::{BatchEvent, CallFailure, Cause, DueBy, Early, Reason, ReasonCode, Record};
    use proptest::prelude::*;

    use super::*;
    use crate::log::tests::failed_at;

    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);
    const ORDERS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";

    fn policy() -> Policy {
        Policy::from_variables(|name| (name == "TARGET_FUNCTIONS").then(|| ORDERS.into())).unwrap()
    }

    fn stack() -> MetricsConfig {
        MetricsConfig { handler: "retries".into(), by_target: false }
    }

    fn target() -> MetricsConfig {
        MetricsConfig { by_target: true, ..stack() }
    }

    fn ago(seconds: u64) -> Timestamp {
        Timestamp::from_secs(NOW.as_secs() - seconds)
    }

    fn of(function_arn: &str, what: What, location: Location) -> Outcome<'static> {
        let (record, event) = failed_at(function_arn, ago(3_600));
        Outcome { record, event: Some(event), policy: None, what, location }
    }

    fn retried(late: u64) -> Outcome<'static> {
        retried_of(&format!("{ORDERS}:$LATEST"), late, None)
    }

    fn retried_of(function_arn: &str, late: u64, early: Option<Early>) -> Outcome<'static> {
        let what = What::Reinvoke { due: ago(late), invoke_request_id: None, early };
        of(function_arn, what, Location::Settled)
    }

    fn waiting(delay: u64, early: Option<Early>) -> What {
        What::Defer { due: NOW, due_by: DueBy::Policy, delay, early, failure: None }
    }

    fn hidden(what: What) -> Outcome<'static> {
        of(ORDERS, what, Location::Hidden)
    }

    fn kept(cause: Cause, reason: Option<Reason>) -> Outcome<'static> {
        let (delay, not_before, due, failure) = (Some(1), None, None, Some(throttled()));
        hidden(What::Keep { cause, delay, not_before, reason, due, failure })
    }

    fn deferred() -> Outcome<'static> {
        hidden(waiting(1, None))
    }

    fn dead(function_arn: &str, code: ReasonCode) -> Outcome<'static> {
        of(function_arn, What::DeadLetter { reason: reason(code), due: None }, Location::Settled)
    }

    fn reason(code: ReasonCode) -> Reason {
        Reason { code, detail: "so it is".into() }
    }

    fn throttled() -> CallFailure {
        CallFailure { cause: "throttled".into(), remedy: None }
    }

    fn lines(metrics: &MetricsConfig, outcomes: Vec<Outcome<'_>>) -> Vec<Value> {
        let event = BatchEvent::default();
        let report = BatchReport { outcomes, ..BatchReport::new(&event) };
        let lines = metrics.lines(&policy(), &report, NOW);
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn batch_is_one_line_by_default() {
        let record = Box::leak(Box::new(Record { receive_count: 1, ..deferred().record.clone() }));
        let first = Outcome { record, ..deferred() };
        let early = Some(Early { otherwise_due: NOW, asked_at: NOW, asked_by: None });
        let held = What::Hold { due: NOW, delay: 1, not_before: None, failure: None };
        let outcomes = vec![
            first.clone(),
            first,
            hidden(waiting(1, early.clone())),
            retried_of(ORDERS, 2, early),
            retried(3),
            hidden(held),
            of(ORDERS, waiting(900, None), Location::Moved),
            kept(Cause::Refused, None),
            dead(ORDERS, ReasonCode::MaxAge),
        ];
        let expected = json!({
            "_aws": {
                "Timestamp": 1_700_000_000_000_u64,
                "CloudWatchMetrics": [{
                    "Namespace": "Comeback",
                    "Dimensions": [["Handler"]],
                    "Metrics": [
                        {"Name": "DeadLetters", "Unit": "Count"},
                        {"Name": "Early", "Unit": "Count"},
                        {"Name": "Failures", "Unit": "Count"},
                        {"Name": "Held", "Unit": "Count"},
                        {"Name": "Moves", "Unit": "Count"},
                        {"Name": "Retries", "Unit": "Count"},
                        {"Name": "Stuck", "Unit": "Count"},
                        {"Name": "EventAge", "Unit": "Seconds"},
                        {"Name": "Lateness", "Unit": "Seconds"},
                    ],
                }],
            },
            "level": "INFO", "timestamp": "2023-11-14T22:13:20.000Z", "Handler": "retries",
            "Failures": 2, "Early": 1, "Retries": 2, "DeadLetters": 1, "Held": 1, "Stuck": 1, "Moves": 1,
            "Lateness": [0.0, 3.0], "EventAge": [3_600.0, 3_600.0, 3_600.0],
        });
        assert_eq!(lines(&stack(), outcomes), [expected]);
    }

    #[test]
    fn targets_and_reasons_have_lines() {
        let outcomes = vec![
            retried(1),
            dead(ORDERS, ReasonCode::MaxAge),
            deferred(),
            dead(ORDERS, ReasonCode::MaxRetries),
        ];
        let lines = lines(&target(), outcomes);
        let members =
            |line: &Value| [&line["Target"], &line["Reason"], &line["DeadLetters"]].map(Clone::clone);
        assert_eq!(lines.len(), 3);
        assert_eq!(members(&lines[0]), [json!(ORDERS), Value::Null, Value::Null]);
        assert_eq!(members(&lines[1]), [json!(ORDERS), json!("max_age"), json!(1)]);
        assert_eq!(members(&lines[2]), [json!(ORDERS), json!("max_retries"), json!(1)]);
        let of_all = &lines[1]["_aws"]["CloudWatchMetrics"];
        assert_eq!(of_all[0]["Dimensions"], json!([["Handler"], ["Handler", "Target"]]));
        assert_eq!(of_all[1]["Dimensions"], json!([["Handler", "Reason"]]));
        assert_eq!(
            of_all[1]["Metrics"],
            json!([{"Name": "DeadLetters", "Unit": "Count"}]),
            "nothing else costs twice"
        );
        assert_eq!(lines[0]["_aws"]["CloudWatchMetrics"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn queue_content_adds_no_dimension() {
        let unknown = Outcome { event: None, ..dead(ORDERS, ReasonCode::MalformedRecord) };
        let other =
            dead("arn:aws:lambda:eu-west-1:123456789012:function:payments", ReasonCode::TargetNotAllowed);
        for line in lines(&target(), vec![unknown, other]) {
            assert_eq!(line["Target"], Value::Null, "{line}");
            assert_eq!(line["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([["Handler"]]));
        }
    }

    /// The `Target` dimension is the function's entry in `TARGET_FUNCTIONS`, whatever qualifier the ARN has.
    #[test]
    fn target_is_its_allow_list_entry() {
        let outcomes = ["zzz1".to_owned(), "9".repeat(1 << 20)]
            .map(|qualifier| retried_of(&format!("{ORDERS}:{qualifier}"), 0, None));
        let lines = lines(&target(), outcomes.into());
        assert_eq!(lines.len(), 1);
        assert_eq!((&lines[0]["Target"], &lines[0]["Retries"]), (&json!(ORDERS), &json!(2)));
    }

    #[test]
    fn claimed_age_is_at_most_14_days() {
        let (record, event) = failed_at(ORDERS, Timestamp::from_secs(0));
        let outcome = Outcome { record, event: Some(event), ..retried(0) };
        assert_eq!(lines(&stack(), vec![outcome])[0]["EventAge"], json!([1_209_600.0]));
    }

    #[test]
    fn nothing_to_count_is_no_line() {
        assert!(lines(&stack(), vec![deferred(), deferred()]).is_empty());
        assert!(lines(&stack(), Vec::new()).is_empty());
    }

    #[test]
    fn unsent_dead_letter_counts_as_stuck() {
        let stuck = kept(Cause::DeadLetterNotSent, Some(reason(ReasonCode::MaxAge)));
        let [line] = &lines(&target(), vec![stuck])[..] else { panic!("one line") };
        assert_eq!(
            (&line["Stuck"], &line["DeadLetters"], &line["Reason"]),
            (&json!(1), &Value::Null, &Value::Null)
        );
    }

    proptest! {
        /// CloudWatch would ignore a line with too many values.
        #[test]
        fn no_value_is_lost_and_no_array_too_long(latenesses in prop::collection::vec(0u64..1_000, 0..350)) {
            let lines = lines(&stack(), latenesses.iter().map(|late| retried(*late)).collect());
            prop_assert_eq!(lines.len(), latenesses.len().div_ceil(100));
            let mut values = Vec::new();
            for line in &lines {
                let some = line["Lateness"].as_array().unwrap();
                prop_assert!((1..=100).contains(&some.len()) && line["EventAge"].as_array().unwrap().len() <= 100);
                values.extend(some.iter().map(|value| value.as_f64().unwrap() as u64));
            }
            let retries: u64 = lines.iter().filter_map(|line| line["Retries"].as_u64()).sum();
            prop_assert_eq!(retries as usize, latenesses.len());
            prop_assert_eq!(values, latenesses);
        }
    }
}
