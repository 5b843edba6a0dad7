use comeback_engine::Settings;

use crate::Mapping;
use crate::doctor::diagnosis::{Diagnosis, Judged, broken, ok, seen, skipped, warning};
use crate::doctor::facts::Facts;
use crate::doctor::fix;

/// The engine's limits are of batches of this size.
const BATCH_SIZE: i32 = 10;

pub(in crate::doctor) fn enabled(facts: &Facts) -> Judged {
    let Some(mapping) = facts.mapping()? else {
        let queue = &facts.deployment.retry_queue;
        return Ok(broken(
            format!("no event source mapping hands {} to {}", queue.name(), facts.deployment.handler),
            "nothing is retried: failed events wait in the queue, and are lost after 14 days",
            format!(
                "aws lambda create-event-source-mapping --function-name {} --event-source-arn {} \
                 --batch-size {BATCH_SIZE} --function-response-types ReportBatchItemFailures \
                 --scaling-config MaximumConcurrency={}",
                facts.deployment.handler,
                queue.arn,
                concurrency_of_handler(facts)
            ),
        ));
    };
    let state = &mapping.state;
    Ok(match state.as_str() {
        "Enabled" | "Enabling" | "Creating" | "Updating" => ok(format!("{state}, {}", mapping.uuid)),
        _ => broken(
            format!("the mapping {} is {state}", mapping.uuid),
            "nothing is retried until it is enabled: failed events wait in the queue, and are lost after 14 days",
            fix::mapping(mapping, "--enabled"),
        ),
    })
}

pub(in crate::doctor) fn no_other_queue(facts: &Facts) -> Judged {
    let mappings = seen(&facts.mappings)?;
    let other = mappings.iter().find(|mapping| mapping.queue_arn != facts.deployment.retry_queue.arn);
    Ok(match other {
        None => ok(format!("none but {}", facts.deployment.retry_queue.name())),
        Some(other) => broken(
            format!("the handler is also fed by {}", other.queue_arn),
            "the handler reads invocation records from its retry queue alone; it keeps or gives up whatever else arrives",
            format!("aws lambda delete-event-source-mapping --uuid {}", other.uuid),
        ),
    })
}

pub(in crate::doctor) fn partial_responses(facts: &Facts) -> Judged {
    of_mapping(facts, |mapping| {
        if mapping.reports_failures {
            return ok("ReportBatchItemFailures");
        }
        broken(
            "ReportBatchItemFailures is off",
            "events are lost: Lambda deletes every message of a batch, those too that only wait",
            fix::mapping(mapping, "--function-response-types ReportBatchItemFailures"),
        )
    })
}

pub(in crate::doctor) fn batch_size(facts: &Facts) -> Judged {
    of_mapping(facts, |mapping| match mapping.batch_size {
        BATCH_SIZE => ok(format!("{BATCH_SIZE} messages")),
        other => warning(
            format!("{other} messages"),
            "a smaller batch costs more invocations; a larger one may not be done when the handler's time ends",
            fix::mapping(mapping, format!("--batch-size {BATCH_SIZE}")),
        ),
    })
}

pub(in crate::doctor) fn no_window(facts: &Facts) -> Judged {
    of_mapping(facts, |mapping| match mapping.window.as_secs() {
        0 => ok("none"),
        seconds => warning(
            format!("{seconds} s"),
            "the window adds its length to each short backoff on a quiet queue",
            fix::mapping(mapping, "--maximum-batching-window-in-seconds 0"),
        ),
    })
}

pub(in crate::doctor) fn concurrency(facts: &Facts) -> Judged {
    let set = concurrency_of_handler(facts);
    of_mapping(facts, |mapping| {
        let pollers = mapping.maximum_concurrency.map(|limit| u64::from(limit.unsigned_abs()));
        let flag = fix::mapping(mapping, format!("--scaling-config MaximumConcurrency={set}"));
        match pollers {
            Some(pollers) if pollers == set => ok(format!("{set}, as the handler assumes")),
            Some(pollers) if pollers < set => warning(
                format!("the mapping's is {pollers}, and the handler assumes {set}"),
                "the handler sends messages again that it could hide, which costs requests",
                flag,
            ),
            pollers => broken(
                match pollers {
                    Some(pollers) => format!("the mapping's is {pollers}, and the handler assumes {set}"),
                    None => format!("the mapping has none, and the handler assumes {set}"),
                },
                "the handler may hide more messages than SQS has room for, and then every retry stalls without an error",
                flag,
            ),
        }
    })
}

fn of_mapping(facts: &Facts, judge: impl Fn(&Mapping) -> Diagnosis) -> Judged {
    Ok(facts.mapping()?.map_or_else(|| skipped("there is no mapping (CB001)"), judge))
}

/// The handler's `MAXIMUM_CONCURRENCY`. If it is refused, CB020 says so, and the default stands in.
fn concurrency_of_handler(facts: &Facts) -> u64 {
    facts
        .deployment
        .policy()
        .map_or(Settings::default().maximum_concurrency, |policy| policy.maximum_concurrency())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::doctor::diagnosis::Outcome;
    use crate::doctor::sample::{assert_found, healthy};

    fn with(change: impl FnOnce(&mut Mapping)) -> Facts {
        let mut facts = healthy();
        change(&mut facts.mappings.as_mut().unwrap()[0]);
        facts
    }

    #[test]
    fn a_mapping_is_there_and_enabled() {
        let mut none = healthy();
        none.mappings = Ok(Vec::new());
        assert_found(
            enabled(&none),
            Outcome::Broken,
            "no event source mapping hands retries to retry-handler",
        );
        let disabled = with(|mapping| mapping.state = "Disabled".into());
        assert_found(enabled(&disabled), Outcome::Broken, "is Disabled");
        for state in ["Enabling", "Updating"] {
            let on_the_way = with(|mapping| mapping.state = state.into());
            assert_found(enabled(&on_the_way), Outcome::Ok, state);
        }
        for check in [partial_responses, batch_size, no_window, concurrency] {
            assert_found(check(&none), Outcome::Skipped, "CB001");
        }
    }

    #[test]
    fn a_mapping_of_another_queue_is_found() {
        let other = with(|mapping| mapping.queue_arn = "arn:aws:sqs:eu-west-1:123456789012:dead".into());
        assert_found(no_other_queue(&other), Outcome::Broken, ":dead");
        assert_found(enabled(&other), Outcome::Broken, "no event source mapping hands retries");
    }

    #[test]
    fn partial_responses_are_on() {
        let off = with(|mapping| mapping.reports_failures = false);
        assert_found(partial_responses(&off), Outcome::Broken, "ReportBatchItemFailures is off");
    }

    #[test]
    fn batches_are_of_ten_and_not_waited_for() {
        for size in [1, 9, 11] {
            let other = with(|mapping| mapping.batch_size = size);
            assert_found(batch_size(&other), Outcome::Warning, &format!("{size} messages"));
        }
        let window = with(|mapping| mapping.window = Duration::from_secs(20));
        assert_found(no_window(&window), Outcome::Warning, "20 s");
    }

    #[test]
    fn the_concurrency_is_the_handlers() {
        let limited = |limit| with(|mapping| mapping.maximum_concurrency = limit);
        assert_found(concurrency(&limited(Some(9))), Outcome::Warning, "is 9, and the handler assumes 10");
        assert_found(concurrency(&limited(Some(11))), Outcome::Broken, "is 11, and the handler assumes 10");
        assert_found(concurrency(&limited(None)), Outcome::Broken, "has none, and the handler assumes 10");
        let mut set = limited(Some(25));
        set.deployment.variables.insert("MAXIMUM_CONCURRENCY".into(), "25".into());
        assert_found(concurrency(&set), Outcome::Ok, "25");
    }
}
