use std::hash::{BuildHasherDefault, DefaultHasher};

use super::*;
use crate::log_fold::LogFold;
use crate::log_line::LogLine;
use crate::outcome::What;

type Fold = LogFold<BuildHasherDefault<DefaultHasher>>;

const ORDERS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
/// The time of the request, in seconds. Handlers notice the request within 37.5 s.
const AT: u64 = 100_000;

fn at(second: u64) -> Timestamp {
    Timestamp::from_secs(second)
}

fn policies() -> Policies {
    let variables = [("TARGET_FUNCTIONS", ORDERS), ("MAX_RETRIES", "9")];
    Policies::from_variables(|name| variables.iter().find(|it| it.0 == name).map(|it| it.1.into())).unwrap()
}

/// Returns a pauses document. Each pause is (from, until, spread), and each request (at, within), in seconds.
fn document(pauses: &[(u64, Option<u64>, u64)], requests: &[(u64, u64)]) -> Pauses {
    let until = |until: &Option<u64>| until.map_or_else(|| "null".to_owned(), |until| until.to_string());
    let pauses = pauses.iter().map(|(from, end, spread)| {
        format!(r#"{{"target":"*","from":{from},"until":{},"spread":{spread}}}"#, until(end))
    });
    let requests =
        requests.iter().map(|(at, within)| format!(r#"{{"target":"*","at":{at},"within":{within}}}"#));
    let [pauses, requests] = [pauses.collect::<Vec<_>>(), requests.collect()].map(|all| all.join(","));
    Pauses::read(&format!(r#"{{"v":1,"pauses":[{pauses}],"retries":[{requests}]}}"#)).unwrap()
}

fn line(second: u64, what: What) -> LogLine<'static> {
    let mut line = crate::log_line::tests::line(what);
    line.timestamp = at(second);
    line.event.as_mut().unwrap().target = ORDERS.into();
    line
}

fn backs_off(second: u64) -> LogLine<'static> {
    defers(second, DueBy::Policy)
}

fn defers(second: u64, due_by: DueBy) -> LogLine<'static> {
    line(second, What::Defer { due: at(second + 3_600), due_by, delay: 3_600, early: None, failure: None })
}

fn holds(second: u64) -> LogLine<'static> {
    line(second, What::Hold { due: at(second), delay: 1_344, not_before: None, failure: None })
}

fn keeps(second: u64, cause: Cause) -> LogLine<'static> {
    line(
        second,
        What::Keep { cause, delay: Some(3_600), not_before: None, reason: None, due: None, failure: None },
    )
}

/// Applies the last retry request, or the last pause if there is no request. Returns the seconds from [`AT`] until the
/// retry is due.
fn recalled(lines: &[LogLine<'static>], pauses: &Pauses) -> Result<f64, NotRecalled> {
    let mut fold = Fold::default().keeping_handles();
    lines.iter().for_each(|line| fold.take(line));
    let message = fold.waiting().next().expect("it waits");
    let rules = Rules { policies: &policies(), pauses };
    let last = pauses.requests_to(RequestKind::Retry).last().map(Recall::Request);
    let entry = last.or_else(|| pauses.iter().last().map(Recall::Resume)).expect("an entry");
    let due = entry.due(message, &fold.kinds()[message.kind as usize], rules, at(AT + 60))?;
    Ok(due.since(at(AT)).as_secs_f64())
}

#[test]
fn a_request_recalls_to_the_moment_that_the_handler_draws() {
    let pauses = document(&[], &[(AT, 600)]);
    let due = recalled(&[backs_off(AT - 600)], &pauses).unwrap();
    let request = pauses.requests().next().unwrap();
    assert_eq!(at(AT).saturating_add(Duration::from_secs_f64(due)), request.due_of("m-1", 3));
    assert!((0.0..600.0).contains(&due), "{due}");
    // Without the request, the message would be due even sooner, although the handler hid the message for longer.
    let what =
        What::Defer { due: at(AT + 1), due_by: DueBy::Policy, delay: 9_000, early: None, failure: None };
    assert_eq!(recalled(&[line(AT - 600, what)], &pauses), Ok(1.0));
}

#[test]
fn a_pause_that_is_over_recalls_what_it_held() {
    let pauses = document(&[(AT - 900, Some(AT), 120)], &[]);
    let due = recalled(&[holds(AT - 60)], &pauses).unwrap();
    assert!((0.0..120.0).contains(&due), "{due}");
    assert_eq!(recalled(&[backs_off(AT - 60)], &pauses), Err(NotRecalled::NotCovered));
    // The function is paused again, and the new pause holds the message.
    let again = document(&[(AT + 30, None, 0), (AT - 900, Some(AT), 120)], &[]);
    let resume = Recall::Resume(again.iter().next().unwrap());
    let mut fold = Fold::default().keeping_handles();
    fold.take(&holds(AT - 60));
    let rules = Rules { policies: &policies(), pauses: &again };
    let due = resume.due(fold.waiting().next().unwrap(), &fold.kinds()[0], rules, at(AT + 60));
    assert_eq!(due, Err(NotRecalled::Paused));
}

#[test]
fn a_message_that_a_request_leaves_is_not_recalled() {
    let pauses = document(&[], &[(AT, 600)]);
    let not = |line: LogLine<'static>| recalled(&[line], &pauses).unwrap_err();
    assert_eq!(not(defers(AT - 600, DueBy::RetryAfter)), NotRecalled::RetryAfter);
    assert_eq!(not(defers(AT - 600, DueBy::Pause)), NotRecalled::Returning);
    assert_eq!(not(holds(AT - 600)), NotRecalled::Returning);
    let mut last = backs_off(AT - 600);
    last.event.as_mut().unwrap().retry = 9;
    assert_eq!(not(last), NotRecalled::LastRetry);
    let mut other = backs_off(AT - 600);
    other.event.as_mut().unwrap().error_type = Some("Throttled".into());
    let text = format!(
        r#"{{"v":1,"pauses":[],"retries":[{{"target":"*","at":{AT},"within":0,"errors":["Time*"]}}]}}"#
    );
    let of_timeouts = Pauses::read(&text).unwrap();
    assert_eq!(recalled(&[other], &of_timeouts), Err(NotRecalled::NotCovered));
    assert_eq!(recalled(&[backs_off(AT - 600)], &of_timeouts), Ok(0.0));
    assert_eq!(recalled(&[keeps(AT - 600, Cause::Refused)], &of_timeouts), Ok(0.0));
}

/// Returns the seconds from `AT` until the retry of the message in `line` is due.
fn recalled_for(list: &str, more: &str, line: LogLine<'static>) -> Result<f64, NotRecalled> {
    let pause = format!(r#"{{"target":"*","from":{},"until":null,"spread":0}}"#, AT + 30);
    let pauses = if list == "cancels" { pause } else { String::new() };
    let text =
        format!(r#"{{"v":1,"pauses":[{pauses}],"{list}":[{{"target":"*","at":{AT},"within":0{more}}}]}}"#);
    let pauses = Pauses::read(&text).unwrap();
    let mut fold = Fold::default().keeping_handles();
    fold.take(&line);
    let rules = Rules { policies: &policies(), pauses: &pauses };
    let entry = pauses.requests().next().map(Recall::Request);
    let due =
        entry.expect("an entry").due(fold.waiting().next().unwrap(), &fold.kinds()[0], rules, at(AT + 60))?;
    Ok(due.since(at(AT)).as_secs_f64())
}

#[test]
fn a_cancel_recalls_whatever_waits_even_in_a_pause() {
    let mut last = backs_off(AT - 600);
    last.event.as_mut().unwrap().retry = 9;
    let (asked, returning) = (defers(AT - 600, DueBy::RetryAfter), defers(AT - 600, DueBy::Pause));
    for line in
        [backs_off(AT - 600), holds(AT - 600), asked, returning, last, keeps(AT - 600, Cause::Refused)]
    {
        assert_eq!(recalled_for("cancels", "", line), Ok(0.0));
    }
    let mut unanswered = keeps(AT - 600, Cause::Unanswered);
    unanswered.receipt_handle = None;
    assert_eq!(recalled_for("cancels", "", unanswered), Err(NotRecalled::Unanswered));
}

#[test]
fn a_request_by_key_recalls_that_event_alone() {
    let key = backs_off(0).event.unwrap().key.into_owned();
    let (named, other) = (format!(r#","keys":["{key}"]"#), r#","keys":["another"]"#);
    for list in ["retries", "cancels"] {
        assert_eq!(recalled_for(list, &named, backs_off(AT - 600)), Ok(0.0));
        assert_eq!(recalled_for(list, other, backs_off(AT - 600)), Err(NotRecalled::NotCovered));
    }
    let asked = || defers(AT - 600, DueBy::RetryAfter);
    assert_eq!(recalled_for("retries", &named, asked()), Ok(0.0));
    assert_eq!(recalled_for("retries", "", asked()), Err(NotRecalled::RetryAfter));
}

#[test]
fn a_message_that_returns_soon_is_left_alone() {
    let pauses = document(&[], &[(AT, 0)]);
    assert_eq!(recalled(&[backs_off(AT + 120 - 3_600)], &pauses), Err(NotRecalled::Soon));
    assert_eq!(recalled(&[backs_off(AT + 121 - 3_600)], &pauses), Ok(0.0));
    let late = document(&[], &[(AT, 3_600)]);
    assert_eq!(
        recalled(&[keeps(AT + 130 - 3_600, Cause::Refused)], &late),
        Err(NotRecalled::Soon),
        "no later"
    );
    // The message is due 200 s after `AT`, and becomes visible `longer` seconds after that.
    let hidden_for = |longer: u64| {
        let (due, delay) = (at(AT + 200), 800 + longer);
        let what = What::Defer { due, due_by: DueBy::Policy, delay, early: None, failure: None };
        recalled(&[line(AT - 600, what)], &document(&[], &[(AT, 39_600)]))
    };
    assert_eq!([hidden_for(30), hidden_for(31)], [Err(NotRecalled::Soon), Ok(200.0)], "clocks differ");
}

#[test]
fn only_the_newest_line_counts() {
    let pauses = document(&[], &[(AT, 0)]);
    let without = |mut line: LogLine<'static>| {
        line.receipt_handle = None;
        line
    };
    let unanswered = without(keeps(AT - 60, Cause::Unanswered));
    for lines in [[backs_off(AT - 600), unanswered.clone()], [unanswered, backs_off(AT - 600)]] {
        assert_eq!(recalled(&lines, &pauses), Err(NotRecalled::Unanswered));
    }
    assert_eq!(
        recalled(&[backs_off(AT - 600), without(backs_off(AT - 60))], &pauses),
        Err(NotRecalled::Moved)
    );
    assert_eq!(recalled(&[without(backs_off(AT - 600)), backs_off(AT - 60)], &pauses), Ok(0.0));
}

#[test]
fn a_line_is_recalled_for_the_first_entry_alone() {
    let lines = [backs_off(AT - 600)];
    assert_eq!(recalled(&lines, &document(&[], &[(AT - 300, 0), (AT, 0)])), Err(NotRecalled::Before));
    assert_eq!(
        recalled(&lines, &document(&[], &[(AT, 60), (AT, 0)])),
        Err(NotRecalled::Before),
        "two at once"
    );
    let equal = |millis: u64| format!(r#"{{"target":"*","at":{AT},"millis":{millis},"within":0}}"#);
    let equals = format!(r#"{{"v":1,"pauses":[],"retries":[{},{}]}}"#, equal(7), equal(8));
    assert_eq!(recalled(&lines, &Pauses::read(&equals).unwrap()), Err(NotRecalled::Before));
    // The handler that wrote the line had already read the first of the two requests.
    assert_eq!(recalled(&lines, &document(&[], &[(AT - 638, 0), (AT, 0)])), Ok(0.0));
    assert_eq!(recalled(&lines, &document(&[], &[(AT - 637, 0), (AT, 0)])), Err(NotRecalled::Before));
    assert_eq!(recalled(&[backs_off(AT + 38)], &document(&[], &[(AT, 0)])), Err(NotRecalled::NotCovered));
    // The function was paused at the time of the first request, so the first request recalled nothing.
    let paused = document(&[(AT - 400, Some(AT - 200), 0)], &[(AT - 300, 0), (AT, 0)]);
    assert_eq!(recalled(&lines, &paused), Ok(0.0));
    let twice = document(&[(AT - 900, Some(AT - 60), 0), (AT - 30, Some(AT), 0)], &[]);
    assert_eq!(recalled(&[holds(AT - 90)], &twice), Err(NotRecalled::Before));
}

#[test]
fn an_entry_is_found_unless_an_operator_took_it_back() {
    let pauses = document(&[(AT - 900, Some(AT), 120)], &[(AT, 600)]);
    let request = Recall::Request(pauses.requests().next().unwrap());
    assert_eq!(request.find(&pauses), Some(request));
    for taken_back in [pauses.withdrawn(|_| true), document(&[], &[(AT + 1, 600)])] {
        assert_eq!(request.find(&taken_back), None, "{taken_back:?}");
    }
    let resume = Recall::Resume(pauses.iter().next().unwrap());
    let joined = document(&[(AT - 2_000, Some(AT), 60)], &[]);
    assert_eq!(resume.find(&joined), joined.iter().next().map(Recall::Resume));
    for other in [document(&[(AT - 900, Some(AT + 1), 120)], &[]), document(&[(AT - 900, None, 120)], &[])] {
        assert_eq!(resume.find(&other), None, "{other:?}");
    }
}
