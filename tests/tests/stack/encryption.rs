//! Runs the commands in docs/encryption.md. MiniStack stores a queue's key, but requires no permission to use it.

use aws_sdk_sqs::types::QueueAttributeName;
use comeback_tests::{MiniStack, Shell, Stack, example_target, pages};

use crate::attach::{is_retried, send_failures_to};
use crate::world::World;

const FUNCTION: &str = "sealed-orders";

pub(crate) async fn stack_is_given_a_key_and_then_another(world: &World) {
    let ministack = world.ministack().await;
    world.built().await;
    let first = pages::blocks("docs/encryption.md", "A key of your own");
    let [create, allow, by_hand, deploy] =
        <[String; 4]>::try_from(first).unwrap_or_else(|it| panic!("{it:#?}"));
    let [keep_old] = <[String; 1]>::try_from(pages::blocks("docs/encryption.md", "Change the key"))
        .unwrap_or_else(|it| panic!("{it:#?}"));
    let ours = |block: &str| block.replace("--stack-name comeback", "--stack-name encrypted");
    let shell = ministack.shell().with("FUNCTION", FUNCTION);
    let run = |script: &str| shell.run(script).unwrap_or_else(|error| panic!("{error}"));
    let last = |printed: String| printed.trim_end().lines().last().expect("it was printed last").to_owned();

    let any = MiniStack::function_arn("*");
    let stack = ministack.deploy("encrypted", &format!("Example=no TargetFunctions={any}")).await;
    let before = stack.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(keys(ministack, &before).await, [None, None]);
    example_target(ministack, FUNCTION).await;
    send_failures_to(&shell, before.output("RetryQueueArn"), FUNCTION);

    let key = last(run(&format!("{create}\n{allow}\n{}\necho \"$KEY_ARN\"", ours(&deploy))));
    let stack = ministack.stack("encrypted").await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(keys(ministack, &stack).await, [Some(key.clone()), Some(key.clone())]);
    let handler = stack.output("RetryHandlerRoleName");
    for role in [handler, FUNCTION] {
        assert_eq!(allowed(&shell, role, &key), ["kms:Decrypt", "kms:GenerateDataKey"], "{role}");
    }
    is_retried(ministack, FUNCTION).await;

    // The first step of the output `AttachCommands` grants the same permissions, as does the page's command for a
    // handler without a stack.
    let (permission, _) = stack.output("AttachCommands").split_once("# 2.").expect("steps");
    let by_hand = by_hand.replace("comeback-retry-handler", FUNCTION);
    for command in [&format!("KEY_ARN={key}\n{by_hand}"), permission] {
        run("aws iam delete-role-policy --role-name \"$FUNCTION\" --policy-name \"$(
            aws iam list-role-policies --role-name \"$FUNCTION\" --output text \
            --query \"PolicyNames[?starts_with(@, 'comeback-key-')]\")\"");
        assert!(allowed(&shell, FUNCTION, &key).is_empty());
        run(command);
        assert_eq!(allowed(&shell, FUNCTION, &key), ["kms:Decrypt", "kms:GenerateDataKey"]);
    }

    let change = format!(
        "OLD_KEY_ARN={key}\n{create}\n{allow}\n{}\n{}\necho \"$KEY_ARN\"",
        ours(&keep_old),
        ours(&deploy)
    );
    let new = last(run(&change));
    assert_ne!(new, key);
    assert_eq!(keys(ministack, &stack).await, [Some(new.clone()), Some(new.clone())]);
    assert_eq!(allowed(&shell, handler, &new), ["kms:Decrypt", "kms:GenerateDataKey"]);
    assert_eq!(allowed(&shell, handler, &key), ["kms:Decrypt"], "for what waits under the old key");
}

/// KMS keys of the retry queue and the dead-letter queue, or `None` for a queue without a key.
async fn keys(ministack: &MiniStack, stack: &Stack) -> [Option<String>; 2] {
    let key = async |url: &str| {
        let queue = ministack.sqs.get_queue_attributes().queue_url(url);
        let queue = queue.attribute_names(QueueAttributeName::All).send().await.expect("SQS answers");
        let attributes = queue.attributes.unwrap_or_default();
        let managed = attributes.get(&QueueAttributeName::SqsManagedSseEnabled).map(String::as_str);
        let key = attributes.get(&QueueAttributeName::KmsMasterKeyId).filter(|key| !key.is_empty());
        assert_eq!(key.is_none(), managed == Some("true"), "{attributes:?}");
        if key.is_some() {
            assert_eq!(attributes[&QueueAttributeName::KmsDataKeyReusePeriodSeconds], "3600");
        }
        key.cloned()
    };
    [key(stack.output("RetryQueueUrl")).await, key(stack.output("DeadLetterQueueUrl")).await]
}

fn allowed(shell: &Shell, role: &str, key: &str) -> Vec<String> {
    let simulated = shell.run(&format!(
        "aws iam simulate-principal-policy \
         --policy-source-arn \"$(aws iam get-role --role-name {role} --query Role.Arn --output text)\" \
         --action-names kms:Decrypt kms:GenerateDataKey kms:Encrypt --resource-arns {key} --output text \
         --context-entries ContextKeyName=kms:ViaService,ContextKeyType=string,\
         ContextKeyValues=sqs.$AWS_REGION.amazonaws.com \
         --query \"EvaluationResults[?EvalDecision=='allowed'].EvalActionName\""
    ));
    let simulated = simulated.unwrap_or_else(|error| panic!("{error}"));
    simulated.split_whitespace().map(str::to_owned).collect()
}
