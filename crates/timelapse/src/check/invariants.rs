//! The checks of the [`Invariant`]s, in the order of the enum. An excuse is an argument.

use std::time::Duration;

use comeback_engine::{Location, Outcome, ReasonCode, Timestamp, WaitingMessage, WaitsFor, What};

use super::handling::Handling;
use super::history::Hops;
use super::ledger::LedgerEntry;
use super::parameter::{Document, LongestWaits};
use super::pauses::{Failed, Reads};
use super::{Broken, Invariant};
use crate::event::EventNumber;
use crate::faults::fault::InFlightEffect;
use crate::faults::records::Flaw;

/// A message counts as due this long before its due time (rule 8 in the engine's `decide.rs`).
const CLOCK_TOLERANCE: Duration = Duration::from_millis(500);
/// Maximum delay of a message (SQS quotas, "Message delay").
const LONGEST_DELAY: Duration = Duration::from_secs(900);
/// The largest message that SQS accepts, in bytes.
const LARGEST_MESSAGE: usize = 1_048_576;
/// Maximum number of bytes by which the invocation record grows from one failure to the next, not counting the
/// envelope.
const RECORD_ALLOWANCE: usize = 64 * 1_024;
/// Maximum number of bytes that an envelope adds to its payload.
const ENVELOPE: usize = 256;
/// SQS must keep a message for at least this long after a handler has processed it. This is the longest possible
/// backoff.
const RECENTLY: Duration = Duration::from_secs(12 * 3_600);
/// Maximum error in the time between two reads of the pauses: the clock may be off by 5 s at each.
const SKEW: Duration = Duration::from_secs(10);
/// Allowed difference between two due times for one wait, because two clocks may each be off by 5 s.
const CLOCKS_DIFFER: Duration = Duration::from_secs(10);

type Checked = Result<(), Broken>;

/// The state of a message according to log lines: what it waits for, and the time of the newest line; `None` if it is
/// settled.
pub(super) type State = Option<(Timestamp, WaitsFor)>;

/// The log's statement about a message; `None` if there is no line.
pub(super) type Said = Option<State>;

pub(super) fn none_vanishes(event: EventNumber, life: &LedgerEntry) -> Checked {
    Invariant::NoneVanishes.check(event, life.end().is_some(), || {
        "no invocation and no message carries it, and no dead-letter has it".into()
    })
}

/// Checks that the retry's invocation record will not be too large for Lambda to send if the retry fails.
pub(super) fn none_would_vanish(handling: &Handling<'_>) -> Checked {
    let bytes = handling.seen.bytes + RECORD_ALLOWANCE;
    Invariant::NoneVanishes.check(handling.event(), bytes <= LARGEST_MESSAGE + ENVELOPE, || {
        format!("re-invoked, though Lambda would drop the record of its next failure, of {bytes} bytes")
    })
}

/// Checks that a dead-letter's reason is true. A missing or unknown reason fails the check.
pub(super) fn true_reasons(
    handling: &Handling<'_>,
    reason: Option<ReasonCode>,
    key: Option<&str>,
) -> Checked {
    let Handling { seen, now, known, policy, .. } = *handling;
    let (number, max_retries) = (seen.origin.attempt.number, policy.settings().max_retries);
    let is_true = reason.is_some_and(|reason| match reason {
        ReasonCode::MaxRetries => number >= max_retries,
        ReasonCode::MaxAge => handling.is_too_old(),
        ReasonCode::TargetNotAllowed => seen.origin.flaw == Some(Flaw::Unlisted),
        ReasonCode::MalformedRecord | ReasonCode::PayloadLost => seen.origin.flaw == Some(Flaw::Unreadable),
        // The policy's own tests check which errors are non-retryable.
        ReasonCode::NonRetryableError => true,
        ReasonCode::PayloadTooLarge => seen.bytes + RECORD_ALLOWANCE + ENVELOPE > LARGEST_MESSAGE,
        ReasonCode::Cancelled => known.cancelled(handling.failed(key), now),
        // Nothing in the simulation leads to these reasons.
        ReasonCode::TargetNotFound | ReasonCode::TargetRefused | ReasonCode::MalformedEnvelope => false,
    });
    Invariant::TrueReasons.check(handling.event(), is_true, || {
        let (reason, end) = (reason.map_or("no known reason", ReasonCode::name), handling.end());
        format!("dead-lettered as {reason} at {now} after attempt {number} of {max_retries}; MAX_AGE ends at {end}")
    })
}

pub(super) fn max_retries(handling: &Handling<'_>) -> Checked {
    let (retry, most) = (handling.retry(), handling.policy.settings().max_retries);
    Invariant::MaxRetries.check(handling.event(), retry <= most, || format!("attempt {retry} of {most}"))
}

/// Checks that a re-invocation comes before `MAX_AGE` ends, and that its envelope contains the correct time of the
/// first failure (`claimed`).
pub(super) fn max_age(handling: &Handling<'_>, claimed: Timestamp) -> Checked {
    let (now, first_failure, end) = (handling.now, handling.first_failure, handling.end());
    let is_its_first_failure = claimed.as_secs() == first_failure.as_secs();
    Invariant::MaxAge.check(handling.event(), is_its_first_failure && now <= end, || {
        format!(
            "re-invoked at {now}; MAX_AGE ended at {end}, and counts from {claimed} in its envelope; it first \
             failed at {first_failure}"
        )
    })
}

pub(super) fn longest_wait(handling: &Handling<'_>, hidden_for: Duration, latest: Timestamp) -> Checked {
    let now = handling.now;
    Invariant::LongestWait.check(handling.event(), now.saturating_add(hidden_for) <= latest, || {
        format!("hidden or delayed at {now} for {} s, but at most until {latest}", hidden_for.as_secs())
    })
}

pub(super) fn due_time(handling: &Handling<'_>, failed: Failed<'_>) -> Checked {
    let (now, earliest) = (handling.now, handling.earliest_due(failed));
    let is_due = !handling.is_first_receive() && now.saturating_add(CLOCK_TOLERANCE) > earliest;
    Invariant::DueTime.check(handling.event(), is_due, || {
        let receive = handling.seen.receive_count;
        format!(
            "re-invoked at {now} on receive {receive}; due on a later receive, at {earliest} at the earliest"
        )
    })
}

pub(super) fn attempts_by_one(handling: &Handling<'_>, next: u64) -> Checked {
    let failed = handling.seen.origin.attempt.number;
    Invariant::AttemptsByOne.check(handling.event(), next == failed + 1, || {
        format!("attempt {failed} is followed by attempt {next}")
    })
}

/// Returns the value in `found`. Fails if it is `None`, which means that `sent` lacks the event's exact payload.
pub(super) fn payload_verbatim<T>(event: EventNumber, found: Option<T>, sent: &str) -> Result<T, Broken> {
    found.ok_or_else(|| Invariant::PayloadVerbatim.broken(event, format!("it was sent as {sent}")))
}

pub(super) fn allow_list(event: EventNumber, invoked_arn: &str, target: &str, flaw: Option<Flaw>) -> Checked {
    let is_target = invoked_arn.strip_suffix(":$LATEST").unwrap_or(invoked_arn) == target;
    Invariant::AllowList.check(event, is_target && flaw.is_none(), || format!("{invoked_arn} was invoked"))
}

pub(super) fn explained_duplicates(event: EventNumber, times: u32, excuses: u32) -> Checked {
    Invariant::ExplainedDuplicates.check(event, times <= 1 + excuses, || {
        format!("its message was re-invoked, dead-lettered or moved {times} times, with {excuses} excuses")
    })
}

/// Checks that an `Invoke` call at `next` is not too early, unless a fault excuses it.
pub(super) fn spaced_invokes(
    event: EventNumber,
    next: Timestamp,
    earliest: Timestamp,
    excused: bool,
) -> Checked {
    Invariant::SpacedInvokes.check(event, next >= earliest || excused, || {
        format!("it may be called again at {next}; an earlier call forbids the next until {earliest}")
    })
}

/// Checks that a message whose receipt handle was logged is hidden, and has been neither re-invoked nor moved. An
/// operator may use the handle to make the message visible.
pub(super) fn spaced_recalls(event: EventNumber, is_called: bool, is_hidden: bool) -> Checked {
    Invariant::SpacedInvokes.check(event, !is_called && is_hidden, || {
        format!("its line has a handle; called: {is_called}, hidden: {is_hidden}")
    })
}

pub(super) fn leaves_for_a_reason(event: EventNumber, was_settled: bool) -> Checked {
    Invariant::LeavesForAReason.check(event, was_settled, || {
        "its message was deleted, but neither re-invoked nor dead-lettered nor moved".into()
    })
}

pub(super) fn hops_end_in_time(event: EventNumber, end: Timestamp, due: Timestamp) -> Checked {
    Invariant::HopsEndInTime.check(event, end.since(due) <= Duration::from_secs(1), || {
        format!("its hop ends at {end}, it is due at {due}")
    })
}

/// Checks that the handler moves a message no more often than its wait requires; `hops` includes the move at `now`.
pub(super) fn fewest_hops(event: EventNumber, hops: &Hops, now: Timestamp, delay: Duration) -> Checked {
    let is_delay = (Duration::from_secs(1)..=LONGEST_DELAY).contains(&delay) && delay.subsec_nanos() == 0;
    let waited = now.saturating_add(delay).since(hops.since.unwrap_or(now));
    let begun = waited.as_millis().div_ceil(LONGEST_DELAY.as_millis()).max(1);
    let most = begun + u128::from(hops.excused);
    Invariant::FewestHops.check(event, is_delay && u128::from(hops.made) <= most, || {
        format!("moved {} times in {waited:?}, the last time for {delay:?}; {most} times would do", hops.made)
    })
}

/// Checks that at most `most` messages are in flight. Always passes if a fault may have raised the number.
pub(super) fn bounded_in_flight(in_flight: usize, most: usize, room: InFlightEffect) -> Checked {
    Invariant::BoundedInFlight.check(None, in_flight <= most || room > InFlightEffect::Kept, || {
        format!("{in_flight} messages are in flight; {most} at most")
    })
}

/// Checks that no message stays visible while a poller is free, unless one of the run's faults can fill the queue.
pub(super) fn no_stall(in_flight: usize, left_visible: bool, room: InFlightEffect) -> Checked {
    Invariant::NoStall.check(None, !left_visible || room == InFlightEffect::Full, || {
        format!("messages are visible, pollers are free, and {in_flight} are in flight")
    })
}

/// Checks that an expired message was last processed at least 12 hours ago, unless a fault ended its retention period
/// early.
pub(super) fn none_expires(event: EventNumber, now: Timestamp, seen: Timestamp, is_cut: bool) -> Checked {
    Invariant::NoneExpires.check(event, now.since(seen) >= RECENTLY || is_cut, || {
        format!("expired; a handler decided about it at {seen}")
    })
}

/// Checks a message that SQS has removed after 1,000 receives. A handler must have last processed it at least 12 hours
/// ago, unless a fault ended its retention period early.
pub(super) fn few_receives(event: EventNumber, now: Timestamp, seen: Timestamp, is_cut: bool) -> Checked {
    Invariant::FewReceives.check(event, now.since(seen) >= RECENTLY || is_cut, || {
        format!("received 1,000 times; a handler decided about it at {seen}")
    })
}

/// Checks an invocation. The handler must know the function's pauses, and must have tried to read them recently. It
/// must not know of an active pause. `between_reads` is `None` if the handler does not read the pauses.
pub(super) fn paused_not_invoked(
    handling: &Handling<'_>,
    reads: &Reads,
    received_at: Timestamp,
    between_reads: Option<Duration>,
) -> Checked {
    let Handling { now, known, .. } = *handling;
    let tried_within =
        |longest: Duration| reads.last_tried.is_some_and(|tried| received_at.since(tried) <= longest + SKEW);
    let pause = known.active(now);
    let may_invoke = !known.is_nothing() && pause.is_none() && between_reads.is_none_or(tried_within);
    Invariant::PausedNotInvoked.check(handling.event(), may_invoke, || {
        let tried = reads.last_tried;
        format!("invoked at {now}; its handler knows of {pause:?}, and last tried to read at {tried:?}")
    })
}

pub(super) fn pause_ends_nothing(handling: &Handling<'_>, reason: Option<ReasonCode>) -> Checked {
    let Handling { now, first_failure, policy, .. } = *handling;
    let without_pauses = first_failure.saturating_add(policy.max_age());
    let by_a_pause = reason == Some(ReasonCode::MaxAge)
        && !handling.is_too_old()
        && handling.leaves_no_retry_before(without_pauses);
    Invariant::PauseEndsNothing.check(handling.event(), !by_a_pause, || {
        format!("dead-lettered as too old at {now}; with its pauses, MAX_AGE ends at {}", handling.end())
    })
}

pub(super) fn cancelled_not_invoked(handling: &Handling<'_>, failed: Failed<'_>) -> Checked {
    let now = handling.now;
    Invariant::CancelledNotInvoked.check(handling.event(), !handling.known.cancelled(failed, now), || {
        format!("re-invoked at {now}; an operator has cancelled it")
    })
}

/// Checks that a recall makes a message visible no later than `before`, and no earlier than `after_call`. A fault may
/// excuse it.
pub(super) fn recalls_shorten(
    event: EventNumber,
    now: Timestamp,
    [before, until]: [Timestamp; 2],
    after_call: Timestamp,
    excused: bool,
) -> Checked {
    // Timeouts are whole seconds, rounded up.
    let is_longer = until >= before.saturating_add(Duration::from_secs(1));
    let is_too_early = now < after_call && until < after_call;
    Invariant::RecallsShorten.check(event, !is_longer && !is_too_early || excused, || {
        format!("recalled at {now} until {until}; hidden until {before}, after a call until {after_call}")
    })
}

pub(super) fn kept_edits(text: &str, before: &Document, now: Timestamp) -> Result<Document, Broken> {
    let kept = Document::read(text).and_then(|new| new.keeps(before, now).map(|()| new));
    kept.map_err(|detail| Invariant::KeptEdits.broken(None, detail))
}

pub(super) fn lasting_requests(new: &Document, before: &Document, waits: LongestWaits) -> Checked {
    for request in new.requests.iter().filter(|request| before.find(request).is_none()) {
        let ([earliest, latest], until) = (request.ends(waits), request.until());
        // A request to cancel events by key also covers later failures, so it may last longer.
        let is_too_late = until > latest && request.keys.is_empty();
        Invariant::LastingRequests.check(None, earliest <= until && !is_too_late, || {
            format!("it lasts until {until}, not from {earliest} to {latest}: {request:?}")
        })?;
    }
    Ok(())
}

/// Refuses the failure of a command, unless a fault or another operator excuses it.
pub(super) fn working_commands(failed: String, excused: bool) -> Checked {
    Invariant::WorkingCommands.check(None, excused, || failed)
}

/// Checks what the log says of a message `after` the line about this outcome; until then, it should have said `before`.
/// If due times may change, the log may lack the latest one of a copy that was only moved again.
pub(super) fn true_log(
    event: EventNumber,
    outcome: &Outcome<'_>,
    [before, after]: [Said; 2],
    now: Timestamp,
    may_change: bool,
) -> Checked {
    let (waits_for, is_quiet) = (waits_for(outcome, now), outcome.only_moves_on());
    if let Some((Some((_, said)), waits_for)) = before.zip(waits_for).filter(|_| is_quiet) {
        Invariant::TrueLog.check(event, agree(said, waits_for) || may_change, || {
            format!("the log says {said:?}, but its copy waits for {waits_for:?}")
        })?;
    }
    let expected = match waits_for {
        None => Some(None),
        Some(_) if is_quiet || before == Some(None) => before,
        // If two lines have the same time, either line may be the last.
        Some(waits_for) => Some(before.flatten().max(Some((now, waits_for)))),
    };
    said_as_reported(event, after, expected)
}

/// Checks what the log says of a message. `reported` is what it should say after all reports so far.
pub(super) fn said_as_reported(event: EventNumber, said: Said, reported: Said) -> Checked {
    Invariant::TrueLog.check(event, said == reported, || {
        format!("the log says {said:?}, the handler's last report was {reported:?}")
    })
}

/// Returns what the message is waiting for; `None` if it was re-invoked or dead-lettered.
fn waits_for(outcome: &Outcome<'_>, now: Timestamp) -> Option<WaitsFor> {
    match outcome.what {
        What::Defer { due, due_by: by, .. } => Some(WaitsFor::Due { due, by }),
        What::Hold { .. } => Some(WaitsFor::Resume),
        What::Keep { cause, not_before, .. } => {
            let hidden_until = || Some(now.saturating_add(outcome.visibility_timeout()?));
            let at = if outcome.location == Location::Moved { not_before } else { hidden_until() };
            Some(WaitsFor::NextTry { cause, at })
        }
        What::Reinvoke { .. } | What::DeadLetter { .. } => None,
    }
}

fn agree(said: WaitsFor, now: WaitsFor) -> bool {
    match (said, now) {
        (WaitsFor::Due { due: said, .. }, WaitsFor::Due { due, .. }) => {
            due.since(said).max(said.since(due)) <= CLOCKS_DIFFER
        }
        // At least one report is about a hold or a failed call. Afterwards, the message waits for its due time.
        _ => true,
    }
}

/// Checks that a message that waits according to the log is on the queue, unless the queue itself has removed it.
pub(super) fn logged_waits_are_real(
    event: Option<EventNumber>,
    message: &WaitingMessage,
    is_on_queue: bool,
    excused: bool,
) -> Checked {
    Invariant::TrueLog.check(event, is_on_queue || excused, || {
        format!("the log says that it waits, but it is not on the queue: {message:?}")
    })
}

#[cfg(test)]
mod tests;
