//! Tests of the demonstration: an operator's queries and changes during a night shift, on a manual clock.

use std::collections::BTreeMap;

use comeback_engine::{RequestKind, Timestamp};

use super::super::clock::ManualClock;
use super::*;
use crate::change::{Change, Performed, perform};
use crate::dead::{self, Chosen, Filter, Redrive};
use crate::deployment::find::Which;
use crate::doctor::diagnosis::Examination;
use crate::doctor::doctor;
use crate::operator::Operator;
use crate::pause::PauseRetries;
use crate::request::RequestEvents;
use crate::resume::ResumeRetries;
use crate::status::status;
use crate::trace::{LinesOf, TraceOptions, trace};
use crate::waiting::report::ReportQuery;
use crate::waiting::waiting;

const NOW: Timestamp = Timestamp::from_secs(1_789_400_000);

struct Shift {
    demo: Demo,
    clock: Rc<ManualClock>,
    operator: Operator,
}

impl Shift {
    fn begin(seed: u64) -> Self {
        let clock = Rc::new(ManualClock::new(NOW));
        let demo = Demo::new(seed, Rc::<ManualClock>::clone(&clock));
        let operator = Operator::new(demo.account(), Which::Stack(Sample::STACK.into()));
        Self { demo, clock, operator }
    }

    fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    async fn perform(&self, change: impl Change) {
        let plan = change.plan(&self.operator).await.unwrap();
        let Ok((Performed::Done(_, Ok(())), _)) = perform(&change, &self.operator, &plan).await else {
            panic!("not done")
        };
    }

    /// The number of waiting events, and the time of the earliest first failure, by function and error.
    async fn waits(&self) -> BTreeMap<(String, String), (u64, Timestamp)> {
        let waiting = waiting(&self.operator, |_| ReportQuery::default(), None).await.unwrap();
        let report = serde_json::to_value(waiting.report()).unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or("none").to_owned();
        let group = |group: &serde_json::Value| {
            let function = text(&group["target"]).split(':').nth(6).unwrap().to_owned();
            let first = serde_json::from_value(group["oldest_first_failure"].clone()).unwrap();
            ((function, text(&group["error_type"])), (group["count"].as_u64().unwrap(), first))
        };
        report["groups"].as_array().unwrap().iter().map(group).collect()
    }

    async fn dead(&self) -> BTreeMap<(String, String), usize> {
        let snapshot = dead::scan(&self.operator, Filter::default()).await.unwrap();
        let groups = snapshot.groups().into_iter().map(|(_, group)| {
            let target = group.alike.target.clone().unwrap();
            (
                (comeback_engine::short_name(&target).to_owned(), group.alike.reason.to_string()),
                group.count as usize,
            )
        });
        groups.collect()
    }
}

fn orders() -> Option<crate::function::FunctionName> {
    Some("orders".parse().unwrap())
}

#[tokio::test]
async fn night_shift_finds_pauses_fixes_and_redrives_until_nothing_is_left() {
    let shift = Shift::begin(1);
    // The operator finds out what is wrong, and since when.
    let waits = shift.waits().await;
    let functions: Vec<_> = waits.keys().map(|(function, error)| (&**function, &**error)).collect();
    assert_eq!(functions, [("invoices", "RetryAfter"), ("orders", "ConnectTimeout"), ("thumbnails", "none")]);
    let (count, since) = waits[&("orders".into(), "ConnectTimeout".into())];
    assert!((90..150).contains(&count) && NOW.since(since) <= HOUR, "{count} since {since}");
    let dead = shift.dead().await;
    assert_eq!(
        dead.keys().collect::<Vec<_>>(),
        [&("emails:$LATEST".to_owned(), "non_retryable_error".to_owned())]
    );

    // While an operator fixes `orders`, its events are held.
    let why = Some("the payment service".into());
    shift.perform(PauseRetries { function: orders(), end: None, spread: None, why }).await;
    shift.pass(HOUR);
    let held = shift.waits().await[&("orders".into(), "ConnectTimeout".into())].0;
    assert!(held >= count, "{held} of {count}");

    for DemoFunction { name, .. } in shift.demo.functions() {
        assert!(shift.demo.set_broken(name, false));
    }
    shift.perform(ResumeRetries { function: orders(), spread: None }).await;
    let (kind, within, keys) = (RequestKind::Retry, MINUTE, Vec::new());
    shift.perform(RequestEvents { kind, within, function: None, error: None, keys, why: None }).await;
    let all = Chosen::matching(Filter::default());
    shift.perform(Redrive::new(all)).await;
    // `comeback retry` does not shorten waits that a function asked for, so another hour has to pass.
    shift.pass(HOUR);
    let status = status(&shift.operator, true, None).await.unwrap();
    assert_eq!(status.retry_queue.total(), 0);
    assert_eq!(status.dead_letters.total(), 0);
    assert!(shift.waits().await.is_empty());
}

#[tokio::test]
async fn demonstration_is_the_same_for_the_same_seed() {
    let lines = async |seed| {
        let shift = Shift::begin(seed);
        shift.pass(HOUR);
        let state = shift.demo.aws().state();
        state.log_groups[Sample::LOG_GROUP].lines.iter().map(|line| line.message.clone()).collect::<Vec<_>>()
    };
    let (one, again, other) = (lines(1).await, lines(1).await, lines(2).await);
    assert!(one == again && one != other && one.len() > 500, "{}", one.len());
}

#[tokio::test]
async fn doctor_finds_the_alarm_that_notifies_nobody() {
    let shift = Shift::begin(1);
    let diagnosis = doctor(&shift.operator, &Examination::default()).await.unwrap();
    let checks = serde_json::to_value(&diagnosis).unwrap()["checks"].as_array().unwrap().clone();
    let is_wrong =
        |check: &&serde_json::Value| ["warning", "broken"].contains(&check["outcome"].as_str().unwrap());
    let wrong: Vec<_> = checks.iter().filter(is_wrong).map(|check| check["id"].as_str().unwrap()).collect();
    assert_eq!(wrong, ["CB041", "CB042"]);
}

#[tokio::test]
async fn every_event_has_a_story() {
    let shift = Shift::begin(1);
    let first = ReportQuery { events: Some(0..1), ..ReportQuery::default() };
    let waiting = waiting(&shift.operator, |_| first, None).await.unwrap();
    let key =
        serde_json::to_value(waiting.report()).unwrap()["events"][0]["key"].as_str().unwrap().to_owned();
    let options = TraceOptions { id: key.clone(), lines: LinesOf::All, since: 24 * HOUR };
    let story = serde_json::to_string(&trace(&shift.operator, &options).await.unwrap()).unwrap();
    assert!(story.contains(&key) && story.contains("[ERROR] "), "{story}");
}
