//! `comeback status`: the state of a deployment on one screen.

mod read;

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use anstyle::AnsiColor;
use clap::Args;
use comeback_engine::LONG_PAUSE;
use indicatif::HumanCount;

use crate::clock::now;
use crate::failure;
use crate::operate::account::Failure;
use crate::operate::alarms::Alarm;
use crate::operate::pauses::OpenPause;
use crate::operate::session::{Common, Session, coloured};
use crate::operate::status::read::{LastHour, OldestLetter, Status};
use crate::text::durations::short;
use crate::text::numbers::{counted, rounded};

/// Between two screens of `--watch`. SQS's counts are a minute old anyway.
const INTERVAL: Duration = Duration::from_secs(5);
/// Clears a terminal, and begins at its top.
const CLEAR: &str = "\x1b[2J\x1b[H";

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback status
  comeback status --watch
  comeback status --handler my-retry-handler --json";

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Show it anew every five seconds, until Ctrl-C
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &StatusArguments, session: Session) -> Result<(), failure::Failure> {
    let interrupt = session.interrupt.clone();
    if !arguments.watch {
        return show(&interrupt.or(read(&session, None)).await?, &session);
    }
    let mut before = None;
    while !interrupt.is_raised() {
        let status = interrupt.or(read(&session, before.as_ref())).await?;
        if std::io::stdout().is_terminal() && !session.common.json {
            write!(std::io::stdout(), "{CLEAR}")?;
        }
        show(&status, &session)?;
        before = Some(status);
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = interrupt.raised() => {}
        }
    }
    Ok(())
}

async fn read(session: &Session, before: Option<&Status>) -> Result<Status, Failure> {
    // Settings and mappings change while one watches.
    let deployment = session.deployment().await?;
    Status::read(&session.account, &deployment, before, now()).await
}

fn show(status: &Status, session: &Session) -> Result<(), failure::Failure> {
    let mut out = anstream::stdout();
    if session.common.json {
        writeln!(out, "{}", serde_json::json!(status))?;
    } else {
        write!(out, "{}", text(status))?;
    }
    out.flush()?;
    Ok(())
}

/// SQS deletes a letter after 14 days. Four days before, somebody should look.
const OLD_LETTER_SECONDS: u64 = 10 * 86_400;

/// The screen, a line for each topic.
pub(crate) fn text(status: &Status) -> String {
    let of_stack = status.stack.as_ref().map(|stack| format!(" of stack {stack}")).unwrap_or_default();
    let lines = [
        ("Waiting", waiting(status)),
        ("Due", due(status)),
        ("Dead letters", dead_letters(status)),
        ("Last hour", last_hour(&status.last_hour)),
        ("Handler", handler(status)),
        ("Pauses", pauses(status.pauses.as_deref())),
        ("Alarms", alarms(&status.alarms)),
    ];
    let lines = lines.map(|(title, line)| format!("{title:<13} {line}\n")).concat();
    format!(
        "{}{of_stack}\n\n{lines}\nCounts of messages are approximate, and a minute old.\n",
        status.handler
    )
}

fn waiting(status: &Status) -> String {
    let queue = &status.retry_queue;
    let limit = status.hide_up_to.map(|limit| format!(" (HIDE_UP_TO {})", HumanCount(limit)));
    let limit = limit.unwrap_or_default();
    let (total, hidden) = (HumanCount(queue.in_flight + queue.delayed), HumanCount(queue.in_flight));
    format!("{total}: {hidden} hidden{limit}, {} delayed", HumanCount(queue.delayed))
}

fn due(status: &Status) -> String {
    let oldest = status.last_hour.oldest_due_seconds.filter(|_| status.retry_queue.visible > 0);
    let oldest = oldest.map(|age| format!(", the oldest message {} old", short(age))).unwrap_or_default();
    format!("{}{oldest}", HumanCount(status.retry_queue.visible))
}

fn dead_letters(status: &Status) -> String {
    let letters = HumanCount(status.dead_letters.total()).to_string();
    let Some(OldestLetter { age_seconds, is_exact, .. }) = status.oldest_dead_letter else {
        return letters;
    };
    let at_least = if is_exact { "" } else { "at least " };
    let age = format!("{letters}, the oldest {at_least}{} old", short(age_seconds as f64));
    if age_seconds < OLD_LETTER_SECONDS {
        return coloured(AnsiColor::Yellow, &age);
    }
    coloured(AnsiColor::Red, &format!("{age}: SQS deletes a letter after 14 days"))
}

fn last_hour(hour: &LastHour) -> String {
    let LastHour {
        arrived: None, dead_lettered: None, invocations: None, errors: None, throttles: None, ..
    } = hour
    else {
        let count = |count: Option<f64>| count.map_or_else(|| "?".into(), rounded);
        let (errors, throttles) = (count(hour.errors), count(hour.throttles));
        return format!(
            "{} arrived, {} dead-lettered; handler: {} invocations, {errors} errors, {throttles} throttles",
            count(hour.arrived),
            count(hour.dead_lettered),
            count(hour.invocations),
        );
    };
    "CloudWatch has no data".into()
}

fn handler(status: &Status) -> String {
    let Some(mapping) = &status.mapping else {
        return coloured(AnsiColor::Red, "no event source mapping feeds it: nothing is retried");
    };
    if mapping.state != "Enabled" {
        return coloured(AnsiColor::Red, &format!("its mapping is {}: nothing is retried", mapping.state));
    }
    match mapping.maximum_concurrency {
        Some(most) => format!("its mapping is enabled, for {most} invocations at a time"),
        None => "its mapping is enabled, without a limit of invocations at a time".into(),
    }
}

fn pauses(pauses: Option<&[OpenPause]>) -> String {
    match pauses {
        None => "the handler reads none: its variable PAUSES is not set".into(),
        Some([]) => "none".into(),
        Some(pauses) => pauses.iter().map(pause).collect::<Vec<_>>().join(&format!("\n{:14}", "")),
    }
}

fn pause(pause: &OpenPause) -> String {
    let name = pause.name();
    let part = |part: Option<String>| part.unwrap_or_default();
    let text = format!(
        "{name}{}, for {}{}{}{}",
        if pause.is_hard { ", new events too" } else { "" },
        short(pause.open_seconds as f64),
        part(pause.until.map(|until| format!(" and until {until}"))),
        part(pause.by.as_ref().map(|by| format!(", by {by}"))),
        part(pause.why.as_ref().map(|why| format!(": {why}"))),
    );
    let colour = if pause.open_seconds > LONG_PAUSE.as_secs() { AnsiColor::Red } else { AnsiColor::Yellow };
    coloured(colour, &text)
}

fn alarms(alarms: &[Alarm]) -> String {
    let ringing: Vec<&str> =
        alarms.iter().filter(|alarm| alarm.state == "ALARM").map(|alarm| alarm.name.as_str()).collect();
    let all = counted(alarms.len() as u64, "alarm", "alarms");
    match ringing.as_slice() {
        [] if alarms.is_empty() => "none is set".into(),
        [] => format!("{all}, none in state ALARM"),
        ringing => coloured(
            AnsiColor::Red,
            &format!("{} of {all} in state ALARM: {}", ringing.len(), ringing.join(", ")),
        ),
    }
}

#[cfg(test)]
mod tests {
    use comeback_engine::Timestamp;

    use crate::operate::deployment::Depth;
    use crate::operate::status::read::MappingState;

    use super::*;

    fn quiet() -> Status {
        Status {
            handler: "retry".into(),
            stack: Some("comeback".into()),
            retry_queue: Depth { visible: 0, in_flight: 0, delayed: 0 },
            hide_up_to: Some(50_000),
            dead_letters: Depth { visible: 0, in_flight: 0, delayed: 0 },
            oldest_dead_letter: None,
            mapping: Some(MappingState { state: "Enabled".into(), maximum_concurrency: Some(10) }),
            pauses: Some(Vec::new()),
            last_hour: LastHour::default(),
            alarms: Vec::new(),
        }
    }

    fn plain(status: &Status) -> String {
        anstream::adapter::strip_str(&text(status)).to_string()
    }

    #[test]
    fn a_quiet_deployment_claims_nothing_that_is_not_known() {
        let expected = "\
retry of stack comeback

Waiting       0: 0 hidden (HIDE_UP_TO 50,000), 0 delayed
Due           0
Dead letters  0
Last hour     CloudWatch has no data
Handler       its mapping is enabled, for 10 invocations at a time
Pauses        none
Alarms        none is set

Counts of messages are approximate, and a minute old.
";
        assert_eq!(plain(&quiet()), expected);
    }

    #[test]
    fn a_busy_deployment_says_what_is_wrong_with_it() {
        let alarm =
            |name: &str, state: &str| Alarm { name: name.into(), state: state.into(), notifies: true };
        let busy = Status {
            stack: None,
            retry_queue: Depth { visible: 3, in_flight: 1_200, delayed: 34 },
            hide_up_to: None,
            dead_letters: Depth { visible: 5, in_flight: 2, delayed: 0 },
            oldest_dead_letter: Some(OldestLetter {
                sent: Timestamp::from_secs(0),
                age_seconds: 11 * 86_400,
                is_exact: false,
            }),
            mapping: Some(MappingState { state: "Disabled".into(), maximum_concurrency: None }),
            pauses: Some(vec![
                OpenPause {
                    target: "arn:aws:lambda:eu-west-1:123456789012:function:orders:live".into(),
                    from: Timestamp::from_secs(0),
                    until: None,
                    open_seconds: 90_000,
                    by: Some("anna".into()),
                    why: Some("deploy 4711".into()),
                    is_hard: true,
                },
                OpenPause {
                    target: "*".into(),
                    from: Timestamp::from_secs(0),
                    until: Some(Timestamp::from_secs(1_700_000_000)),
                    open_seconds: 60,
                    by: None,
                    why: None,
                    is_hard: false,
                },
            ]),
            last_hour: LastHour {
                arrived: Some(1_500.0),
                oldest_due_seconds: Some(75.0),
                ..LastHour::default()
            },
            alarms: vec![alarm("letters", "ALARM"), alarm("errors", "OK")],
            ..quiet()
        };
        let expected = "\
retry

Waiting       1,234: 1,200 hidden, 34 delayed
Due           3, the oldest message 1m 15s old
Dead letters  7, the oldest at least 11d old: SQS deletes a letter after 14 days
Last hour     1,500 arrived, ? dead-lettered; handler: ? invocations, ? errors, ? throttles
Handler       its mapping is Disabled: nothing is retried
Pauses        orders:live, new events too, for 25h, by anna: deploy 4711
              every function, for 1m and until 2023-11-14T22:13:20.000Z
Alarms        1 of 2 alarms in state ALARM: letters

Counts of messages are approximate, and a minute old.
";
        assert_eq!(plain(&busy), expected);
    }
}
