use super::*;

const DETACHED: Timestamp = Timestamp::from_secs(1_700_000_000);
const DUE: &str = "2023-11-15T00:00:00.000Z";

/// Long after the destination was taken away, with three hidden messages and a log that has nothing of the function.
fn hours_later() -> Leaving {
    Leaving {
        now: DETACHED.saturating_add(Duration::from_secs(7_200)),
        at_once: false,
        timeout: Duration::from_secs(900),
        queue: Depth { in_flight: 3, ..Depth::default() },
        is_consumed: true,
        log: Log::Read(Waiting::default()),
        sharing: Vec::new(),
    }
}

fn wait(leaving: &Leaving) -> Option<String> {
    leaving.wait(false, Some(DETACHED))
}

#[test]
fn messages_of_others_keep_nothing() {
    assert_eq!(wait(&hours_later()), None);
}

#[test]
fn each_sign_of_a_waiting_event_is_said() {
    let early = DETACHED.saturating_add(Duration::from_secs(1_019));
    let cases = [
        (
            Leaving { now: early, ..hours_later() },
            "invocations that are under way may still fail until 2023-11-14T22:30:20.000Z",
        ),
        (
            Leaving { is_consumed: false, ..hours_later() },
            "the handler takes nothing from the retry queue, and it is not empty",
        ),
        (
            Leaving { queue: Depth { visible: 2, ..Depth::default() }, ..hours_later() },
            "the handler has not yet looked at about 2 messages of the retry queue",
        ),
        (Leaving { log: Log::Unread, ..hours_later() }, "the handler's log was not read"),
        (
            Leaving { log: Log::Missing, ..hours_later() },
            "the retry queue is not empty, and the handler has no log",
        ),
        (
            Leaving { log: Log::hidden(Some("WARN")).unwrap(), ..hours_later() },
            "the handler's log level is WARN, which hides what waits (set it to INFO)",
        ),
    ];
    for (leaving, said) in cases {
        assert_eq!(wait(&leaving).as_deref(), Some(said));
        assert_eq!(wait(&Leaving { at_once: true, ..leaving }), None);
    }
    let attached = hours_later().wait(true, Some(DETACHED));
    assert!(attached.is_some_and(|said| said.contains("under way")), "an old mark does not count");
    assert!(hours_later().wait(false, None).is_some(), "nobody knows since when");
}

#[test]
fn a_queue_that_seems_empty_is_believed_only_with_the_log() {
    let empty = Leaving { queue: Depth::default(), is_consumed: false, ..hours_later() };
    let with = |log: Log| wait(&Leaving { log, ..empty.clone() });
    assert!(empty.needs_log(Some(DETACHED)) && hours_later().needs_log(Some(DETACHED)));
    assert!(!hours_later().needs_log(None), "it is too early");
    let mut waiting = Waiting::default();
    waiting.see(&HandlerLine { key: "k".into(), timestamp: Some(DETACHED), ..HandlerLine::default() });
    assert!(with(Log::Read(waiting)).is_some_and(|said| said.starts_with("1 of its events")));
    assert_eq!(with(Log::Read(Waiting::default())), None);
    assert_eq!(with(Log::Missing), None, "the handler has never run");
    assert!(with(Log::Unread).is_some() && with(Log::Hidden("ERROR".into())).is_some());
}

#[test]
fn a_level_above_info_hides_the_events() {
    for level in [None, Some("INFO"), Some("DEBUG"), Some("TRACE")] {
        assert_eq!(Log::hidden(level), None);
    }
    for level in HIDING {
        assert_eq!(Log::hidden(Some(level)), Some(Log::Hidden(level.into())));
    }
}

#[test]
fn a_line_without_a_key_counts_for_twelve_hours() {
    for (action, waits) in
        [("defer", true), ("keep", true), ("hold", true), ("reinvoke", false), ("dead_letter", false)]
    {
        let mut log = Waiting::default();
        let line = HandlerLine { timestamp: Some(DETACHED), action: action.into(), ..HandlerLine::default() };
        log.see(&line);
        let end = DETACHED.saturating_add(Duration::from_secs(43_200));
        let just_before = Timestamp::from_millis(end.as_millis() - 1);
        let said = log.wait(just_before);
        assert_eq!(
            said.is_some_and(|said| said.ends_with(&format!("may wait until {end}"))),
            waits,
            "{action}"
        );
        assert_eq!(log.wait(end), None);
    }
}

#[test]
fn an_event_waits_until_a_line_settles_it() {
    let line = |at: u64, action: &str, problem: Option<&str>| HandlerLine {
        key: "k".into(),
        timestamp: Some(DETACHED.saturating_add(Duration::from_secs(at))),
        action: action.into(),
        due: Timestamp::from_rfc3339(DUE).filter(|_| action == "defer"),
        problem: problem.map(ToOwned::to_owned),
        ..HandlerLine::default()
    };
    let after = |lines: &[HandlerLine], now: Timestamp| {
        let mut log = Waiting::default();
        lines.iter().for_each(|line| log.see(line));
        log.wait(now)
    };
    let (before_due, after_due) = (DETACHED, DETACHED.saturating_add(Duration::from_secs(86_400)));
    let waits = Some(format!("1 of its events wait, the last until {DUE}"));
    let due = Some("1 of its events wait, and all of them are due".to_owned());
    let (defer, settled) = (line(1, "defer", None), line(2, "reinvoke", None));
    assert_eq!(after(&[], after_due), None);
    assert_eq!(after(std::slice::from_ref(&defer), before_due), waits);
    assert_eq!(after(std::slice::from_ref(&defer), after_due), due);
    for end in [settled.clone(), line(2, "dead_letter", None)] {
        assert_eq!(after(&[defer.clone(), end.clone()], after_due), None);
        assert_eq!(after(&[end, defer.clone()], after_due), None, "whatever comes first");
    }
    for refused in [line(2, "reinvoke", Some("throttled")), line(2, "keep", None), line(2, "hold", None)] {
        assert_eq!(after(&[defer.clone(), refused], after_due), due);
    }
    let again = line(3, "defer", None);
    assert_eq!(after(&[again, defer.clone(), settled.clone()], after_due), due, "it failed again");
    let copies = after(&[defer, settled], before_due);
    assert_eq!(copies, Some(format!("a copy of an event waits until {DUE}")));
}
