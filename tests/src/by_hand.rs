use crate::{Shell, hide_briefly, pages};

/// Deploys queues and a handler without CloudFormation, for a function `invoices`, and returns the retry queue's ARN.
///
/// # Panics
///
/// If a command of docs/deploy-cargo-lambda.md fails, or does not do what the page says.
#[must_use]
pub fn deploy_by_hand(shell: &Shell) -> String {
    let blocks = pages::blocks("docs/deploy-cargo-lambda.md", "The stack by hand");
    let script = blocks.join("\n") + "\necho \"$RETRY_QUEUE_URL $DEAD_LETTER_QUEUE_URL $RETRY_QUEUE_ARN\"";
    let or_panic = |result: Result<String, String>| result.unwrap_or_else(|error| panic!("{error}"));
    let printed = or_panic(shell.run(&script));
    let names: Vec<&str> = printed.lines().last().expect("the names were printed last").split(' ').collect();
    let [retry_queue, dead_letter_queue, retry_queue_arn] = names[..] else { panic!("{names:?}") };
    for queue in [retry_queue, dead_letter_queue] {
        let policy = format!("aws sqs get-queue-attributes --queue-url {queue} --attribute-names Policy");
        assert!(or_panic(shell.run(&policy)).contains("aws:SecureTransport"), "{queue} is TLS only");
    }
    let retention = "aws logs describe-log-groups --log-group-name-prefix /aws/lambda/comeback-retry-handler \
        --query 'logGroups[].retentionInDays' --output text";
    assert_eq!(or_panic(shell.run(retention)).trim_end(), "30");
    hide_briefly(shell, retry_queue).unwrap_or_else(|error| panic!("{error}"));
    retry_queue_arn.to_owned()
}
