//! Checks on functions that read from SQS directly with `comeback-sqs`.

use std::time::Duration;

use crate::deployment::aws;
use crate::doctor::facts::consumers::{Consumer, DEAD_LETTER_QUEUE_URL, MAX_AGE, MaxAge, ReadQueue};
use crate::doctor::fix;
use crate::doctor::judgement::{Judged, Judgement, broken, ok, skipped, warning};
use crate::doctor::queues::{MAX_RECEIVE_COUNT, TIMEOUTS, reports_failures};
use crate::doctor::rights::{allow, judged, of_queue};
use crate::durations;
use crate::failure::seen;
use crate::rights::Right;
use crate::text;
use crate::text::shell;

/// The approximate time that a FIFO queue takes to deliver a message [`MAX_RECEIVE_COUNT`] times, with the default
/// `max_backoff`.
const FIFO_RECEIVES: Duration = Duration::from_secs(8 * 3_600);

pub(crate) fn partial_responses(consumer: &Consumer) -> Judged {
    let means = "messages are lost: Lambda deletes failed ones with the rest of their batch";
    Ok(reports_failures(&consumer.place_flags, &consumer.mapping, means))
}

pub(crate) fn visibility(consumer: &Consumer) -> Judged {
    let ReadQueue { queue, settings } = match seen(&consumer.queue)? {
        Ok(queue) => queue,
        Err(gone) => {
            let delete = format!("lambda delete-event-source-mapping --uuid {}", consumer.mapping.uuid);
            let delete = shell(aws(&consumer.place_flags, delete));
            let fix = text!["create the queue again, or remove its mapping: ", delete];
            return Ok(broken(gone, "its mapping has nothing to read", fix));
        }
    };
    let [visibility, timeout] = [settings.visibility, consumer.timeout].map(|it| it.as_secs());
    if visibility >= timeout {
        return Ok(ok(format!("{visibility} s, for a function that may run for {timeout} s")));
    }
    let wanted = timeout * u64::from(TIMEOUTS);
    Ok(broken(
        format!(
            "the visibility timeout of {} is {visibility} s, shorter than the function's timeout of {timeout} s",
            queue.name()
        ),
        "SQS delivers a message again while the function is still processing it",
        fix::queue(&consumer.place_flags, &queue.url, format!("VisibilityTimeout={wanted}")),
    ))
}

pub(crate) fn retention(consumer: &Consumer) -> Judged {
    let Ok(ReadQueue { queue, settings }) = seen(&consumer.queue)? else { return Ok(is_gone()) };
    let max_age = consumer.max_age.duration();
    let short = |it: Duration| durations::short(it.as_secs_f64());
    let source = match &consumer.max_age {
        MaxAge::Set(_) => format!("its variable {MAX_AGE}"),
        MaxAge::Default => format!("the default: it has no variable {MAX_AGE}"),
        MaxAge::Refused(text) => {
            return Ok(broken(
                format!("its variable {MAX_AGE} is {text:?}, not 60s to 14d"),
                "a function that passes it to comeback-sqs does not start",
                format!("correct {MAX_AGE} where the function is defined (docs/consumer.md)"),
            ));
        }
    };
    let is = format!("{} keeps messages for {}", queue.name(), short(settings.retention));
    let found = format!("{is}; max_age is {} ({source})", short(max_age));
    if settings.retention >= max_age {
        return Ok(ok(found));
    }
    let attribute = format!("MessageRetentionPeriod={}", max_age.as_secs());
    Ok(broken(
        found,
        "SQS silently deletes waiting messages before max_age instead of dead-lettering them",
        fix::queue(&consumer.place_flags, &queue.url, attribute),
    ))
}

pub(crate) fn receives(consumer: &Consumer) -> Judged {
    let Ok(ReadQueue { queue, settings }) = seen(&consumer.queue)? else { return Ok(is_gone()) };
    let Some(redrive) = &settings.redrive else { return Ok(ok("there is no redrive policy")) };
    let count = redrive.max_receive_count;
    if count >= MAX_RECEIVE_COUNT {
        let found = format!("after {count} receives");
        if !queue.name().ends_with(".fifo") || consumer.max_age.duration() <= FIFO_RECEIVES {
            return Ok(ok(found));
        }
        return Ok(warning(
            format!("SQS redrives after {count} receives, and {} is a FIFO queue", queue.name()),
            "a message also counts a receive each time that one before it in its group fails, so SQS may dead-letter it \
             before max_age, without a reason, and even before it has run",
            format!("raise max_backoff in the function's code, or set its variable {MAX_AGE} to 8h or less"),
        ));
    }
    Ok(warning(
        format!("SQS redrives after {count} receives"),
        "each failure counts as a receive, so SQS may dead-letter messages before max_age, without a reason",
        fix::redrive(&consumer.place_flags, &queue.url, &redrive.target_arn),
    ))
}

pub(crate) fn hides(consumer: &Consumer) -> Judged {
    let or_else = of_queue(consumer.queue.iter().flatten().next().map(|it| &it.settings));
    let means = "failed messages have no backoff: each returns after the queue's own visibility timeout";
    let (policy, flags) = (policy("CB305", consumer), &consumer.place_flags);
    judged(flags, means, &consumer.hide, or_else, |refused| allow(flags, &policy, refused))
}

pub(crate) fn sends_dead_letters(consumer: &Consumer) -> Judged {
    let Some(dead_letter_queue) = &consumer.dead_letter_queue else {
        let page = "docs/consumer.md";
        return Ok(skipped(format!(
            "the function has no variable {DEAD_LETTER_QUEUE_URL}, which names its dead-letter queue ({page})"
        )));
    };
    let means = "a message that should be dead-lettered stays in its queue until the redrive policy or the retention \
                 removes it";
    let correct = format!("correct {DEAD_LETTER_QUEUE_URL} where the function is defined (docs/consumer.md)");
    let ReadQueue { queue, settings } = match seen(dead_letter_queue)? {
        Ok(queue) => queue,
        Err(gone) => return Ok(broken(format!("{DEAD_LETTER_QUEUE_URL}: {gone}"), means, correct)),
    };
    if queue.arn == consumer.mapping.queue_arn {
        let found = format!("{DEAD_LETTER_QUEUE_URL} names {}, the queue that it reads", queue.name());
        return Ok(broken(found, means, correct));
    }
    let (policy, flags) = (policy("CB306", consumer), &consumer.place_flags);
    let allow = |refused: &[&Right]| allow(flags, &policy, refused);
    judged(flags, means, &consumer.send, of_queue(Some(settings)), allow)
}

fn is_gone() -> Judgement {
    skipped("the queue does not exist (CB302)")
}

/// The name of the policy that a suggested command adds to a role. Functions may share a role, so the name contains the
/// id of the event source mapping. With the names of the function and the queue instead, it might be too long.
fn policy(check: &str, consumer: &Consumer) -> String {
    format!("{check}-{}", consumer.mapping.uuid)
}

#[cfg(test)]
mod tests {
    use crate::aws::Verdict;
    use crate::deployment::queue::Queue;
    use crate::doctor::facts::queues::{QueueSettings, RedrivePolicy};
    use crate::doctor::judgement::CheckOutcome;
    use crate::doctor::tests::{assert_found, consumer};
    use crate::failure::Failure;

    use super::*;

    fn fix(judged: Judged) -> String {
        judged.unwrap().fix.unwrap().to_string()
    }

    fn with_queue(change: impl FnOnce(&mut QueueSettings)) -> Consumer {
        let mut consumer = consumer();
        change(&mut consumer.queue.as_mut().unwrap().as_mut().unwrap().settings);
        consumer
    }

    #[test]
    fn a_mapping_must_report_failures() {
        let mut consumer = consumer();
        assert_found(partial_responses(&consumer), CheckOutcome::Ok, "ReportBatchItemFailures");
        consumer.mapping.reports_failures = false;
        assert_found(partial_responses(&consumer), CheckOutcome::Broken, "ReportBatchItemFailures is off");
        let expected = "--function-response-types ReportBatchItemFailures --region eu-west-1";
        assert!(fix(partial_responses(&consumer)).ends_with(expected));
    }

    #[test]
    fn a_message_is_hidden_while_the_function_runs() {
        for (visibility, outcome) in [(59, CheckOutcome::Broken), (60, CheckOutcome::Ok)] {
            let consumer = with_queue(|queue| queue.visibility = Duration::from_secs(visibility));
            assert_found(super::visibility(&consumer), outcome, "60 s");
        }
        let consumer = with_queue(|queue| queue.visibility = Duration::from_secs(30));
        let found = "the visibility timeout of orders is 30 s, shorter than the function's timeout of 60 s";
        assert_found(visibility(&consumer), CheckOutcome::Broken, found);
        assert!(fix(visibility(&consumer)).contains("/orders --attributes VisibilityTimeout=360 "));
    }

    #[test]
    fn messages_are_kept_for_max_age() {
        let mut consumer = with_queue(|queue| queue.retention = Duration::from_secs(4 * 86_400));
        let found = "orders keeps messages for 4d; max_age is 14d (the default: it has no variable MAX_AGE)";
        assert_found(retention(&consumer), CheckOutcome::Broken, found);
        assert!(fix(retention(&consumer)).contains("MessageRetentionPeriod=1209600"));
        consumer.max_age = MaxAge::Refused("soon".into());
        let found = "its variable MAX_AGE is \"soon\", not 60s to 14d";
        assert_found(retention(&consumer), CheckOutcome::Broken, found);
        assert!(fix(retention(&consumer)).contains("correct MAX_AGE"), "more retention would not help");
        consumer.max_age = MaxAge::Set(Duration::from_secs(4 * 86_400));
        assert_found(retention(&consumer), CheckOutcome::Ok, "max_age is 4d (its variable MAX_AGE)");
        consumer.max_age = MaxAge::Set(Duration::from_secs(4 * 86_400 + 1));
        assert_found(retention(&consumer), CheckOutcome::Broken, "");
    }

    #[test]
    fn a_redrive_policy_must_not_end_retries() {
        let with_count = |max_receive_count: u64| {
            let redrive = RedrivePolicy { target_arn: "arn:dead".into(), max_receive_count };
            with_queue(|queue| queue.redrive = Some(redrive))
        };
        assert_found(receives(&consumer()), CheckOutcome::Ok, "no redrive policy");
        assert_found(receives(&with_count(1_000)), CheckOutcome::Ok, "after 1000 receives");
        assert_found(receives(&with_count(999)), CheckOutcome::Warning, "SQS redrives after 999 receives");
        let fix = fix(receives(&with_count(5)));
        assert!(
            fix.contains(r#"\"deadLetterTargetArn\":\"arn:dead\",\"maxReceiveCount\":\"1000\""#),
            "{fix}"
        );
    }

    #[test]
    fn fifo_redrive_policy_may_end_retries() {
        let mut consumer = consumer();
        let queue = consumer.queue.as_mut().unwrap().as_mut().unwrap();
        queue.queue = Queue::sample("orders.fifo");
        assert_found(receives(&consumer), CheckOutcome::Ok, "no redrive policy");
        let queue = consumer.queue.as_mut().unwrap().as_mut().unwrap();
        queue.settings.redrive =
            Some(RedrivePolicy { target_arn: "arn:dead".into(), max_receive_count: 1_000 });
        assert_found(receives(&consumer), CheckOutcome::Warning, "orders.fifo is a FIFO queue");
        consumer.max_age = MaxAge::Set(Duration::from_secs(8 * 3_600));
        assert_found(receives(&consumer), CheckOutcome::Ok, "after 1000 receives");
    }

    #[test]
    fn missing_queue_is_not_a_missing_permission() {
        let gone = || Ok(Err("queue arn:orders does not exist".to_owned()));
        let without =
            Consumer { queue: gone(), dead_letter_queue: Some(gone()), send: Ok(Vec::new()), ..consumer() };
        assert_found(visibility(&without), CheckOutcome::Broken, "queue arn:orders does not exist");
        assert!(fix(visibility(&without)).contains("aws lambda delete-event-source-mapping --uuid 6ec5b0c5"));
        assert_found(retention(&without), CheckOutcome::Skipped, "CB302");
        assert_found(receives(&without), CheckOutcome::Skipped, "CB302");
        assert_found(
            sends_dead_letters(&without),
            CheckOutcome::Broken,
            "DEAD_LETTER_QUEUE_URL: queue arn:orders does not exist",
        );
        assert!(fix(sends_dead_letters(&without)).contains("correct DEAD_LETTER_QUEUE_URL"));
    }

    #[test]
    fn a_queue_is_not_its_own_dead_letter_queue() {
        let consumer = Consumer { dead_letter_queue: Some(consumer().queue), ..consumer() };
        let found = "DEAD_LETTER_QUEUE_URL names orders, the queue that it reads";
        assert_found(sends_dead_letters(&consumer), CheckOutcome::Broken, found);
    }

    #[test]
    fn its_role_may_hide_and_dead_letter() {
        let mut consumer = consumer();
        assert_found(hides(&consumer), CheckOutcome::Ok, "sqs:ChangeMessageVisibility");
        assert_found(sends_dead_letters(&consumer), CheckOutcome::Ok, "sqs:SendMessage");
        for rights in [&mut consumer.hide, &mut consumer.send] {
            rights.as_mut().unwrap()[0].verdict = Verdict::NotAllowed;
        }
        let found = "no policy of orders-role allows sqs:ChangeMessageVisibility on arn:orders";
        assert_found(hides(&consumer), CheckOutcome::Broken, found);
        let found = "no policy of orders-role allows sqs:SendMessage on arn:dead";
        assert_found(sends_dead_letters(&consumer), CheckOutcome::Broken, found);
        assert!(
            fix(hides(&consumer))
                .contains("--policy-name comeback-CB305-6ec5b0c5-0b8f-4a36-b1a4-6b1a2e2f9d10 ")
        );
        assert!(fix(sends_dead_letters(&consumer)).ends_with(" --region eu-west-1"));
        consumer.queue.as_mut().unwrap().as_mut().unwrap().settings.allows_by_itself = true;
        assert_found(hides(&consumer), CheckOutcome::Warning, "the queue's own policy may");
        consumer.dead_letter_queue = None;
        assert_found(
            sends_dead_letters(&consumer),
            CheckOutcome::Skipped,
            "no variable DEAD_LETTER_QUEUE_URL",
        );
    }

    #[test]
    fn unread_facts_are_never_ok() {
        let denied = || Failure::could_not("denied");
        let unseen = Consumer {
            queue: Err(denied()),
            dead_letter_queue: Some(Err(denied())),
            hide: Err(denied()),
            ..consumer()
        };
        let judged: [Result<Judgement, Failure>; 5] =
            [visibility, retention, receives, hides, sends_dead_letters].map(|judge| judge(&unseen));
        assert!(judged.iter().all(Result::is_err), "{judged:?}");
    }
}
