//! Checks on the event source mapping and on the two queues.

use std::time::Duration;

use comeback_engine::{
    MAXIMUM_CONCURRENCY_RANGE, QUEUE_VISIBILITY_TIMEOUT, RETENTION, SQS_MESSAGE_BYTES, Settings,
};

use crate::aws::Mapping;
use crate::deployment::Deployment;
use crate::doctor::facts::Facts;
use crate::doctor::fix;
use crate::doctor::judgement::{CheckOutcome, Judged, Judgement, broken, ok, skipped, warning};
use crate::durations;
use crate::failure::seen;
use crate::text::Text;

/// The required batch size of the event source mapping. The engine's limits assume it.
const BATCH_SIZE: i32 = 10;

pub(crate) fn enabled(facts: &Facts) -> Judged {
    let Some(mapping) = &facts.deployment.mapping else {
        let queue = &facts.deployment.retry_queue;
        return Ok(broken(
            format!("no event source mapping feeds {} to {}", queue.name(), facts.deployment.handler),
            "nothing is retried: failed events wait in the queue, and are lost after 14 days",
            facts.deployment.aws(format!(
                "lambda create-event-source-mapping --function-name {} --event-source-arn {} \
                 --batch-size {BATCH_SIZE} --function-response-types ReportBatchItemFailures \
                 --scaling-config MaximumConcurrency={}",
                facts.deployment.handler,
                queue.arn,
                concurrency_of_handler(facts)
            )),
        ));
    };
    let Mapping { uuid, state, .. } = mapping;
    Ok(if mapping.feeds() {
        ok(format!("{state}, {uuid}"))
    } else {
        broken(
            format!("the mapping {uuid} is {state}"),
            "nothing is retried until it is enabled: failed events wait in the queue, and are lost after 14 days",
            fix::mapping(facts.place_flags(), mapping, "--enabled"),
        )
    })
}

pub(crate) fn no_other_queue(facts: &Facts) -> Judged {
    let mappings = seen(&facts.mappings)?;
    let other = mappings.iter().find(|mapping| mapping.queue_arn != facts.deployment.retry_queue.arn);
    Ok(match other {
        None => ok(format!("only {}", facts.deployment.retry_queue.name())),
        Some(other) => broken(
            format!("{} also feeds the handler", other.queue_arn),
            "the handler expects invocation records from its retry queue only; it keeps or dead-letters \
             anything else. If it drains an old retry queue (docs/remove.md), keep the mapping until that queue \
             is empty: events left there are no longer retried, and are lost after 14 days",
            facts.deployment.aws(format!("lambda delete-event-source-mapping --uuid {}", other.uuid)),
        ),
    })
}

pub(crate) fn partial_responses(facts: &Facts) -> Judged {
    let means = "events are lost: Lambda deletes every message of a batch, including those still waiting";
    of_mapping(facts, |mapping| reports_failures(facts.place_flags(), mapping, means))
}

/// Judges whether a mapping reports batch item failures. `means` is the consequence if it does not.
pub(crate) fn reports_failures(place_flags: &str, mapping: &Mapping, means: &str) -> Judgement {
    if mapping.reports_failures {
        return ok("ReportBatchItemFailures");
    }
    let fix = fix::mapping(place_flags, mapping, "--function-response-types ReportBatchItemFailures");
    broken("ReportBatchItemFailures is off", means, fix)
}

pub(crate) fn batch_size(facts: &Facts) -> Judged {
    of_mapping(facts, |mapping| match mapping.batch_size {
        BATCH_SIZE => ok(format!("{BATCH_SIZE} messages")),
        other => warning(
            format!("the mapping's batch size is {other}"),
            "smaller batches cost more invocations; larger ones may not finish before the handler times out",
            fix::mapping(facts.place_flags(), mapping, format!("--batch-size {BATCH_SIZE}")),
        ),
    })
}

pub(crate) fn no_window(facts: &Facts) -> Judged {
    of_mapping(facts, |mapping| match mapping.window.as_secs() {
        0 => ok("none"),
        seconds => warning(
            format!("the mapping's batching window is {seconds} s"),
            "on a quiet queue, the window delays every short backoff by its length",
            fix::mapping(facts.place_flags(), mapping, "--maximum-batching-window-in-seconds 0"),
        ),
    })
}

pub(crate) fn concurrency(facts: &Facts) -> Judged {
    let set = concurrency_of_handler(facts);
    of_mapping(facts, |mapping| {
        let limit = mapping.maximum_concurrency.map(|limit| u64::from(limit.unsigned_abs()));
        let (is_fewer, has) = match (limit, mapping.maximum_pollers) {
            (Some(limit), _) if limit == set => return ok(format!("{set}, as the handler assumes")),
            (Some(limit), None) => (limit < set, format!("the mapping's MaximumConcurrency is {limit}")),
            (Some(limit), Some(pollers)) => {
                (limit < set, format!("the mapping's {pollers} provisioned pollers come to {limit}"))
            }
            (None, _) => (false, "the mapping has no MaximumConcurrency".into()),
        };
        let most = *MAXIMUM_CONCURRENCY_RANGE.end();
        let beyond = if limit > Some(most) { format!(" of at most {most}") } else { String::new() };
        let found = format!("{has}, but the handler assumes {set}{beyond}");
        let fix = match (limit, mapping.maximum_pollers) {
            (Some(limit), Some(_)) => fix::provisioned(facts, mapping, limit),
            _ => fix::mapping(
                facts.place_flags(),
                mapping,
                format!("--scaling-config MaximumConcurrency={set}"),
            ),
        };
        if is_fewer {
            let means = "the handler re-sends messages that it could hide, which costs requests";
            return warning(found, means, fix);
        }
        let means = "the handler may hide more messages than SQS has room for, and every retry would stall \
                     without an error";
        broken(found, means, fix)
    })
}

fn of_mapping(facts: &Facts, judge: impl Fn(&Mapping) -> Judgement) -> Judged {
    let mapping = facts.deployment.mapping.as_ref();
    Ok(mapping.map_or_else(|| skipped("there is no mapping (CB001)"), judge))
}

/// The handler's `MAXIMUM_CONCURRENCY`, or the default if its settings are refused (CB020 reports that).
fn concurrency_of_handler(facts: &Facts) -> u64 {
    facts.deployment.policies().map_or(Settings::default().maximum_concurrency, |policies| {
        policies.stack().settings().maximum_concurrency
    })
}

/// The highest `maxReceiveCount` that SQS allows. The retry queue should have it.
pub(crate) const MAX_RECEIVE_COUNT: u64 = 1_000;
/// AWS recommends a visibility timeout of at least this multiple of the function's timeout.
pub(crate) const TIMEOUTS: u32 = 6;

pub(crate) fn two_standard_queues(facts: &Facts) -> Judged {
    let (retry, dead) = (&facts.deployment.retry_queue, &facts.deployment.dead_letter_queue);
    let setting = |name, value| fix::setting(facts, name, value);
    if retry.arn == dead.arn {
        return Ok(broken(
            format!("{} is both the retry queue and the dead-letter queue", retry.name()),
            "the handler does not start: a dead-letter would be retried forever",
            setting("DEAD_LETTER_QUEUE_URL", "URL_OF_ANOTHER_QUEUE"),
        ));
    }
    for (queue, name) in [(dead, "DEAD_LETTER_QUEUE_URL"), (retry, "RETRY_QUEUE_URL")] {
        if queue.name().ends_with(".fifo") {
            return Ok(broken(
                format!("{} is a FIFO queue", queue.name()),
                "the handler does not start: a hidden message would block its group",
                setting(name, "URL_OF_A_STANDARD_QUEUE"),
            ));
        }
    }
    Ok(ok(format!("{} and {}", retry.name(), dead.name())))
}

pub(crate) fn visibility(facts: &Facts) -> Judged {
    let queue = seen(&facts.retry_queue)?;
    let receives = queue.redrive.as_ref().map_or(MAX_RECEIVE_COUNT, |redrive| redrive.max_receive_count);
    let of_timeout = facts.deployment.timeout * TIMEOUTS;
    let of_receives = Duration::from_secs(RETENTION.as_secs() / MAX_RECEIVE_COUNT);
    let seconds = queue.visibility.as_secs();
    // The fix assumes the usual `maxReceiveCount`, because CB012 reports a lower one.
    let wanted = QUEUE_VISIBILITY_TIMEOUT.max(of_timeout);
    let attribute = format!("VisibilityTimeout={}", wanted.as_secs());
    let fix = fix::queue(facts.place_flags(), &facts.deployment.retry_queue.url, attribute);
    let is = format!("the retry queue's visibility timeout is {seconds} s");
    Ok(if queue.visibility < of_timeout {
        let timeout = facts.deployment.timeout.as_secs();
        broken(
            format!("{is}, under {TIMEOUTS} times the handler's timeout of {timeout} s"),
            "SQS delivers messages again while the handler is still working on them",
            fix,
        )
    } else if receives >= MAX_RECEIVE_COUNT && queue.visibility <= of_receives {
        broken(
            format!("{is}, so {receives} receives take less than 14 days"),
            "while the handler cannot run, SQS dead-letters events too early",
            fix,
        )
    } else if queue.visibility > wanted {
        warning(
            format!("{is}, but the handler assumes {}", QUEUE_VISIBILITY_TIMEOUT.as_secs()),
            "a message that could not be hidden returns this late, and SQS may refuse the longest waits",
            fix,
        )
    } else {
        ok(format!("{seconds} s"))
    })
}

pub(crate) fn receives(facts: &Facts) -> Judged {
    let queue = seen(&facts.retry_queue)?;
    Ok(match &queue.redrive {
        None => warning(
            "the retry queue has no redrive policy",
            "an event that the handler never receives is deleted after 14 days instead of dead-lettered",
            redrive_command(facts),
        ),
        Some(redrive) if redrive.max_receive_count < MAX_RECEIVE_COUNT => broken(
            format!("SQS redrives after {} receives", redrive.max_receive_count),
            "each wait takes a receive, so SQS itself dead-letters events long before MAX_AGE, without a \
             reason",
            redrive_command(facts),
        ),
        Some(redrive) => ok(format!("{} receives", redrive.max_receive_count)),
    })
}

fn redrive_command(facts: &Facts) -> Text {
    let Deployment { retry_queue, dead_letter_queue, .. } = &facts.deployment;
    fix::redrive(facts.place_flags(), &retry_queue.url, &dead_letter_queue.arn)
}

pub(crate) fn redrive_target(facts: &Facts) -> Judged {
    let queue = seen(&facts.retry_queue)?;
    let dead = &facts.deployment.dead_letter_queue;
    Ok(match &queue.redrive {
        None => skipped("the retry queue has no redrive policy (CB012)"),
        Some(redrive) if redrive.target_arn == dead.arn => ok(dead.name()),
        Some(redrive) => broken(
            format!(
                "SQS redrives to {}, but the handler's dead-letter queue is {}",
                redrive.target_arn, dead.arn
            ),
            "no command or alarm of Comeback sees what SQS dead-letters there",
            redrive_command(facts),
        ),
    })
}

pub(crate) fn retention(facts: &Facts) -> Judged {
    let Deployment { retry_queue, dead_letter_queue, .. } = &facts.deployment;
    for (queue, settings, name, what, outcome) in [
        (retry_queue, &facts.retry_queue, "retry", "waiting events", CheckOutcome::Broken),
        (dead_letter_queue, &facts.dead_letter_queue, "dead-letter", "dead-letters", CheckOutcome::Warning),
    ] {
        let retention = seen(settings)?.retention;
        if retention < RETENTION {
            let found =
                format!("the {name} queue keeps messages for {}", durations::short(retention.as_secs_f64()));
            let means = format!("after that, SQS silently deletes {what}");
            let attribute = format!("MessageRetentionPeriod={}", RETENTION.as_secs());
            let fix = fix::queue(facts.place_flags(), &queue.url, attribute);
            return Ok(Judgement { outcome, ..broken(found, means, fix) });
        }
    }
    Ok(ok("14 days in both"))
}

/// Checks that both queues accept messages of 1 MiB. Queues created before SQS raised the limit may accept only 256
/// KiB.
pub(crate) fn largest_message(facts: &Facts) -> Judged {
    let Deployment { retry_queue, dead_letter_queue, .. } = &facts.deployment;
    for (queue, settings, name, means) in [
        (
            retry_queue,
            &facts.retry_queue,
            "retry",
            "SQS refuses failed events with larger records, and Lambda may lose them",
        ),
        (
            dead_letter_queue,
            &facts.dead_letter_queue,
            "dead-letter",
            "SQS refuses larger dead-letters, which stay in the retry queue and are deleted after 14 days",
        ),
    ] {
        let bytes = seen(settings)?.largest_message;
        if bytes < SQS_MESSAGE_BYTES {
            let found = format!("the {name} queue accepts at most {bytes} bytes per message");
            let attribute = format!("MaximumMessageSize={SQS_MESSAGE_BYTES}");
            let fix = fix::queue(facts.place_flags(), &queue.url, attribute);
            return Ok(broken(found, means, fix));
        }
    }
    Ok(ok("1 MiB in both"))
}

#[cfg(test)]
mod tests {
    use crate::doctor::facts::queues::{QueueSettings, RedrivePolicy};
    use crate::doctor::tests::{assert_found, healthy};

    use super::*;
    use crate::deployment::queue::Queue;

    fn with_mapping(change: impl FnOnce(&mut Mapping)) -> Facts {
        let mut facts = healthy();
        change(facts.deployment.mapping.as_mut().unwrap());
        facts
    }

    #[test]
    fn a_mapping_is_there_and_enabled() {
        let mut none = healthy();
        none.deployment.mapping = None;
        assert_found(
            enabled(&none),
            CheckOutcome::Broken,
            "no event source mapping feeds retries to retry-handler",
        );
        let disabled = with_mapping(|mapping| mapping.state = "Disabled".into());
        assert_found(enabled(&disabled), CheckOutcome::Broken, "is Disabled");
        for state in ["Enabling", "Updating"] {
            let on_the_way = with_mapping(|mapping| mapping.state = state.into());
            assert_found(enabled(&on_the_way), CheckOutcome::Ok, state);
        }
        for check in [partial_responses, batch_size, no_window, concurrency] {
            assert_found(check(&none), CheckOutcome::Skipped, "CB001");
        }
    }

    #[test]
    fn a_mapping_of_another_queue_is_found() {
        let mut other = healthy();
        other.mappings.as_mut().unwrap()[0].queue_arn = "arn:aws:sqs:eu-west-1:123456789012:dead".into();
        assert_found(no_other_queue(&other), CheckOutcome::Broken, ":dead");
        let means = no_other_queue(&other).unwrap().means.unwrap().to_string();
        assert!(means.contains("(docs/remove.md), keep the mapping until that queue is empty"), "{means}");
    }

    #[test]
    fn partial_responses_are_on() {
        let off = with_mapping(|mapping| mapping.reports_failures = false);
        assert_found(partial_responses(&off), CheckOutcome::Broken, "ReportBatchItemFailures is off");
    }

    #[test]
    fn batches_are_of_ten_and_not_waited_for() {
        for size in [1, 9, 11] {
            let other = with_mapping(|mapping| mapping.batch_size = size);
            assert_found(batch_size(&other), CheckOutcome::Warning, &format!("batch size is {size}"));
        }
        let window = with_mapping(|mapping| mapping.window = Duration::from_secs(20));
        assert_found(no_window(&window), CheckOutcome::Warning, "20 s");
    }

    #[test]
    fn the_concurrency_is_the_handlers() {
        let limited = |limit| with_mapping(|mapping| mapping.maximum_concurrency = limit);
        assert_found(
            concurrency(&limited(Some(9))),
            CheckOutcome::Warning,
            "is 9, but the handler assumes 10",
        );
        assert_found(
            concurrency(&limited(Some(11))),
            CheckOutcome::Broken,
            "is 11, but the handler assumes 10",
        );
        assert_found(
            concurrency(&limited(None)),
            CheckOutcome::Broken,
            "has no MaximumConcurrency, but the handler assumes 10",
        );
        let mut set = limited(Some(25));
        set.deployment.variables.insert("MAXIMUM_CONCURRENCY".into(), "25".into());
        assert_found(concurrency(&set), CheckOutcome::Ok, "25");
    }

    #[test]
    fn the_concurrency_of_provisioned_pollers_is_the_handlers() {
        let judged = |pollers: i32, assumed: &str| {
            let mut facts = with_mapping(|mapping| {
                (mapping.maximum_pollers, mapping.maximum_concurrency) = (Some(pollers), Some(pollers * 10));
            });
            facts.deployment.variables.insert("MAXIMUM_CONCURRENCY".into(), assumed.into());
            concurrency(&facts)
        };
        assert_found(judged(3, "30"), CheckOutcome::Ok, "30");
        assert_found(judged(2, "30"), CheckOutcome::Warning, "2 provisioned pollers come to 20, but");
        assert_found(judged(3, "10"), CheckOutcome::Broken, "3 provisioned pollers come to 30, but");
        let fix = |pollers| judged(pollers, "10").unwrap().fix.unwrap().to_string();
        assert!(fix(3).contains(r#""MAXIMUM_CONCURRENCY":"30""#), "{}", fix(3));
        let lowered = fix(200);
        assert!(lowered.ends_with("MaximumPollers=100"), "{lowered}");
        let found = "come to 2000, but the handler assumes 10 of at most 1000";
        assert_found(judged(200, "10"), CheckOutcome::Broken, found);
    }

    fn with_queue(change: impl FnOnce(&mut QueueSettings)) -> Facts {
        let mut facts = healthy();
        change(facts.retry_queue.as_mut().unwrap());
        facts
    }

    #[test]
    fn the_queues_are_two_and_standard() {
        let mut same = healthy();
        same.deployment.dead_letter_queue = same.deployment.retry_queue.clone();
        assert_found(two_standard_queues(&same), CheckOutcome::Broken, "retries is both");
        let mut fifo = healthy();
        fifo.deployment.dead_letter_queue = Queue::sample("dead.fifo");
        assert_found(two_standard_queues(&fifo), CheckOutcome::Broken, "dead.fifo is a FIFO queue");
        fifo.deployment.retry_queue = Queue::sample("retries-too.fifo");
        fifo.deployment.dead_letter_queue = Queue::sample("dead");
        assert_found(two_standard_queues(&fifo), CheckOutcome::Broken, "retries-too.fifo is a FIFO queue");
    }

    #[test]
    fn the_visibility_timeout_fits_the_handler_and_the_receives() {
        let hiding = |seconds| with_queue(|queue| queue.visibility = Duration::from_secs(seconds));
        for (seconds, outcome, words) in [
            (30, CheckOutcome::Broken, "30 s, under 6 times the handler's timeout of 60 s"),
            (1_209, CheckOutcome::Broken, "1209 s, so 1000 receives take less than 14 days"),
            (1_210, CheckOutcome::Ok, "1210 s"),
            (1_230, CheckOutcome::Ok, "1230 s"),
            (1_231, CheckOutcome::Warning, "1231 s, but the handler assumes 1230"),
        ] {
            assert_found(visibility(&hiding(seconds)), outcome, words);
        }
        let mut slow = hiding(1_230);
        slow.deployment.timeout = Duration::from_secs(300);
        assert_found(visibility(&slow), CheckOutcome::Broken, "under 6 times");
        let fixed = visibility(&slow).unwrap().fix.unwrap().to_string();
        assert!(fixed.ends_with("VisibilityTimeout=1800"), "{fixed}");
    }

    #[test]
    fn sqs_redrives_after_a_thousand_receives() {
        let without = with_queue(|queue| queue.redrive = None);
        assert_found(receives(&without), CheckOutcome::Warning, "no redrive policy");
        assert_found(redrive_target(&without), CheckOutcome::Skipped, "CB012");
        let few = with_queue(|queue| queue.redrive.as_mut().unwrap().max_receive_count = 999);
        assert_found(receives(&few), CheckOutcome::Broken, "999 receives");
        let elsewhere = with_queue(|queue| {
            let target_arn = "arn:aws:sqs:eu-west-1:123456789012:other".into();
            queue.redrive = Some(RedrivePolicy { target_arn, max_receive_count: 1_000 });
        });
        assert_found(redrive_target(&elsewhere), CheckOutcome::Broken, "SQS redrives to arn:aws:sqs");
        assert_found(receives(&elsewhere), CheckOutcome::Ok, "1000 receives");
    }

    #[test]
    fn both_queues_keep_for_14_days() {
        let short = Duration::from_secs(4 * 86_400);
        let retries = with_queue(|queue| queue.retention = short);
        assert_found(retention(&retries), CheckOutcome::Broken, "the retry queue keeps messages for 4d");
        let mut dead = healthy();
        dead.dead_letter_queue.as_mut().unwrap().retention = short;
        assert_found(retention(&dead), CheckOutcome::Warning, "the dead-letter queue keeps messages for 4d");
    }

    #[test]
    fn both_queues_take_the_largest_message() {
        let retries = with_queue(|queue| queue.largest_message = 262_144);
        let found = "the retry queue accepts at most 262144 bytes per message";
        assert_found(largest_message(&retries), CheckOutcome::Broken, found);
        let mut dead = healthy();
        dead.dead_letter_queue.as_mut().unwrap().largest_message = 1_048_575;
        assert_found(largest_message(&dead), CheckOutcome::Broken, "the dead-letter queue accepts");
        let fix = largest_message(&dead).unwrap().fix.unwrap().to_string();
        assert!(fix.ends_with("/dead --attributes MaximumMessageSize=1048576"), "{fix}");
    }

    #[test]
    fn a_queue_that_was_not_read_is_not_judged() {
        let mut unseen = healthy();
        unseen.retry_queue = Err(crate::failure::Failure::could_not("sqs:GetQueueAttributes denied"));
        for check in [visibility, receives, redrive_target, retention, largest_message] {
            assert!(check(&unseen).is_err());
        }
    }
}
