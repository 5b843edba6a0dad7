pub(crate) mod discarding;

use aws_sdk_sqs::types::{MessageAttributeValue, QueueAttributeName, SendMessageBatchRequestEntry};
use comeback_tests::{MiniStack, Operator, Stack, dead_letter, eventually, log_lines};
use serde_json::{Value, json};

use crate::world::World;

/// A dead-letter with a body in the handler's format, but without a `Reason` attribute.
pub(crate) fn of_handler(function_arn: &str, key: &str, error_type: &str) -> (String, Option<&'static str>) {
    let body = json!({
        "reason": "max_age", "detail": "why", "function_arn": function_arn, "retries_made": 7,
        "initial_timestamp": 1_789_400_814, "dead_lettered_at": 1_789_404_414, "origin_request_id": key,
        "error": {"type": error_type, "message": "m"}, "payload": {"customer": {"id": key}},
    });
    (body.to_string(), None)
}

/// Sends each body to the dead-letter queue, with its reason, if any, as the attribute `Reason`.
pub(crate) async fn put(ministack: &MiniStack, stack: &Stack, dead_letters: &[(String, Option<&str>)]) {
    for some in dead_letters.chunks(10) {
        let entries = some.iter().enumerate().map(|(id, (body, reason))| {
            let attribute = |reason: &&str| {
                let value = MessageAttributeValue::builder().data_type("String").string_value(*reason);
                [("Reason".to_owned(), value.build().expect("it has a type"))].into()
            };
            let entry = SendMessageBatchRequestEntry::builder().id(id.to_string()).message_body(body);
            entry.set_message_attributes(reason.as_ref().map(attribute)).build().expect("it has a body")
        });
        let call = ministack.sqs.send_message_batch().queue_url(stack.output("DeadLetterQueueUrl"));
        let sent = call.set_entries(Some(entries.collect())).send().await.expect("SQS answers");
        assert!(sent.failed.is_empty(), "{sent:?}");
    }
}

/// The number of visible messages in a queue, and the number of messages in flight.
pub(crate) async fn depth(ministack: &MiniStack, queue_url: &str) -> (u64, u64) {
    let names = [
        QueueAttributeName::ApproximateNumberOfMessages,
        QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
    ];
    let call = ministack.sqs.get_queue_attributes().queue_url(queue_url);
    let answer = call.set_attribute_names(Some(names.to_vec())).send().await.expect("SQS answers");
    let count = |name| answer.attributes().expect("it has some")[name].parse().expect("a count");
    (count(&names[0]), count(&names[1]))
}

pub(crate) async fn dead_letters_of(ministack: &MiniStack, stack: &Stack) -> (u64, u64) {
    depth(ministack, stack.output("DeadLetterQueueUrl")).await
}

fn example(stack: &Stack) -> String {
    MiniStack::function_arn(stack.output("ExampleTargetName"))
}

/// The count, reason and error of each group of dead-letters.
fn counts(groups: &Value) -> Vec<(u64, &str, Option<&str>)> {
    let groups = groups.as_array().expect("a list");
    groups
        .iter()
        .map(|group| {
            let count = group["count"].as_u64().unwrap_or_default();
            (count, group["reason"].as_str().unwrap_or_default(), group["error_type"].as_str())
        })
        .collect()
}

pub(crate) async fn dead_letters_are_listed_shown_and_redriven_to_success(world: &World) {
    let stack = world.deploy("dead", "NonRetryableErrors=Broken* BaseBackoff=1 MaxBackoff=2").await;
    let ministack = world.ministack().await;
    let operator = |command: &str| Operator::of_command(ministack, command, &stack, "none");
    let (list, show, redrive) = (operator("dead list"), operator("dead show"), operator("dead redrive"));

    // The handler itself dead-letters one event; the test sends the other dead-letters to the queue.
    let payload = r#"{"fail_times": 1, "error_type": "BrokenPipe", "order": 7}"#;
    ministack.invoke(stack.output("ExampleTargetName"), payload).await;
    let url = stack.output("DeadLetterQueueUrl");
    dead_letter(ministack, url, "the broken event", |dead_letter| dead_letter.body.contains("BrokenPipe"))
        .await;
    let mut dead_letters: Vec<_> =
        (0..60).map(|n| of_handler(&example(&stack), &format!("key-{n}"), "Timeout")).collect();
    dead_letters.extend((0..3).map(|n| (format!("{{\"odd\":{n}}}"), Some("malformed_record"))));
    dead_letters.push(("hello".into(), None));
    dead_letters.push(of_handler(&MiniStack::function_arn("payments"), "key-payments", "Declined"));
    put(ministack, &stack, &dead_letters).await;

    let groups = list.comeback("dead list --stack dead --json").json(0)["groups"].take();
    let expected = [
        (60, "max_age", Some("Timeout")),
        (3, "malformed_record", None),
        (1, "max_age", Some("Declined")),
        (1, "non_retryable_error", Some("BrokenPipe")),
        (1, "unknown", None),
    ];
    assert_eq!(counts(&groups), expected);
    let text = list.comeback("dead list --stack dead --target payments").ended(0);
    assert!(text.starts_with("1 of about 66 dead-letters\n") && text.contains("key-payments"), "{text}");
    let filter = "--payload /customer/id=key-7 --retries '>5' --older 1s --json";
    let found = list.comeback(&format!("dead list --stack dead {filter}")).json(0);
    assert_eq!((&found["chosen"], &found["dead_letters"][0]["key"]), (&json!(1), &json!("key-7")), "{found}");
    let misspelt = list.comeback("dead list --stack dead --target payment --json").json(3);
    let error = misspelt["error"].as_str().expect("why");
    assert!(error.starts_with("--target payment: no dead-letter belongs to this function"), "{error}");

    let broken = list.comeback("dead list --stack dead --error 'Broken*' --json").json(0);
    let key = broken["dead_letters"][0]["key"].as_str().expect("the event has a key");
    let whole = show.comeback(&format!("dead show {key} --stack dead --json")).json(0);
    assert_eq!((&whole["payload"]["order"], &whole["retries"]), (&json!(7), &json!(0)));
    let text = show.comeback(&format!("dead show {key} --stack dead")).ended(0);
    assert!(text.contains("\n  \"order\": 7\n}") || text.contains("\n  \"order\": 7,"), "{text}");
    let nowhere = show.comeback("dead show no-such-key --stack dead");
    assert!(nowhere.stderr.contains("has key \"no-such-key\""), "{}", nowhere.stderr);
    assert_eq!(nowhere.code, 1);

    refusals(&redrive);
    assert_eq!(dead_letters_of(ministack, &stack).await, (66, 0), "everything was given back");

    let dry = redrive.comeback("dead redrive --stack dead --error 'Broken*' --dry-run").ended(0);
    assert!(dry.starts_with("to redrive: about 1 dead-letter of 66, in about 0s\n"), "{dry}");
    let redriven = redrive.comeback("dead redrive --stack dead --error 'Broken*' --yes").ended(0);
    assert!(redriven.ends_with("redrove 1 dead-letter\n"), "{redriven}");
    let succeeded = eventually("the redriven event to succeed", async || {
        let lines = log_lines(ministack, stack.target_logs()).await;
        let is_it = |line: &Value| line["message"] == "succeeded" && line["idempotency_key"] == key;
        lines.into_iter().find(is_it)
    });
    assert_eq!(succeeded.await["attempt"], 1, "it started anew");

    let some = "dead redrive --stack dead --error Timeout --limit 5 --json --yes --rate 1000/s";
    let report = redrive.comeback(some).json(0);
    assert_eq!((&report["redriven"], &report["plan"]["chosen"]), (&json!(5), &json!(60)), "{report}");
    assert_eq!(dead_letters_of(ministack, &stack).await, (60, 0));
    after_a_kill(ministack, &stack, &list).await;
}

/// Asserts that the commands say how many dead-letters a killed command left hidden, and until when.
async fn after_a_kill(ministack: &MiniStack, stack: &Stack, list: &Operator) {
    let hide = format!(
        "aws sqs receive-message --queue-url {} --max-number-of-messages 10 --visibility-timeout 900",
        stack.output("DeadLetterQueueUrl")
    );
    while dead_letters_of(ministack, stack).await.0 > 0 {
        ministack.shell().run(&hide).unwrap_or_else(|error| panic!("{error}"));
    }
    let listed = list.comeback("dead list --stack dead --json").json(3);
    assert_eq!((&listed["read"], &listed["locked"]["dead_letters"]), (&json!(0), &json!(60)), "{listed}");
    assert!(listed["locked"]["until"].is_string(), "{listed}");
    let text = list.comeback("dead list --stack dead");
    assert_eq!((text.code, &*text.stdout), (3, "0 of about 60 dead-letters\n"));
    assert!(text.stderr.contains("60 more are hidden by another command"), "{}", text.stderr);
    let shown = list.comeback("dead show key-7 --stack dead --json").json(3);
    assert!(
        shown["error"].as_str().is_some_and(|error| error.contains("60 more are hidden by another command")),
        "{shown}"
    );
    // Dead-letters can be read even if the handler's settings are invalid.
    let refuse = format!(
        "aws lambda update-function-configuration --function-name {} --environment \
         'Variables={{RETRY_QUEUE_URL={},DEAD_LETTER_QUEUE_URL={},TARGET_FUNCTIONS=,BASE_BACKOFF=0}}'",
        stack.output("RetryHandlerName"),
        stack.output("RetryQueueUrl"),
        stack.output("DeadLetterQueueUrl")
    );
    ministack.shell().run(&refuse).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(list.comeback("dead list --stack dead --json").json(3)["locked"]["dead_letters"], 60);
}

/// Asserts that redrives with wrong arguments are refused, with the right exit code, before anything is sent.
fn refusals(redrive: &Operator) {
    for (arguments, code, problem) in [
        (
            "--yes",
            2,
            "which dead-letters? Choose with --reason, --target, --error, --older, --newer, --retries, --key",
        ),
        ("--all --error x", 2, "cannot be used with"),
        ("--reason old --yes", 2, "is not a reason; the reasons are max_retries,"),
        (
            "--error Timeout --retarget arn:aws:lambda:eu-south-2:000000000000:function:x",
            2,
            "TARGET_FUNCTIONS",
        ),
        ("--error Timeout", 4, "pass --yes"),
        (
            "--all --yes",
            1,
            "TARGET_FUNCTIONS does not allow arn:aws:lambda:eu-south-2:000000000000:function:payments",
        ),
    ] {
        let refused = redrive.comeback(&format!("dead redrive --stack dead {arguments}"));
        assert!(refused.stderr.contains(problem), "{arguments}: {}", refused.stderr);
        assert_eq!(refused.code, code, "{arguments}");
    }
}
