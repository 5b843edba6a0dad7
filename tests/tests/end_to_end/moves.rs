use comeback_tests::{MiniStack, Shell, Stack, dead_letter, eventually, kill, log_lines};
use comeback_timelapse::Depth;
use serde_json::{Value, json};

use crate::limits::iam;
use crate::orders::{LIMIT, TARGET, deploy_for_orders};
use crate::retries::{depth, held, mapping};
use crate::world::World;

const ORDERS: u64 = 8;
/// Seconds before a retry. More than the longest delay of 900 s, so it takes two hops.
const BACKOFF: f64 = 960.0;
/// A function that is not there.
const NOBODY: &str = "nobody";
/// No parser would give it back as it is.
const PAYLOAD: &str =
    r#"{"n": 1E400, "n":-0.0,"id":123456789012345678901234567890, "text":"\u00e9é\"\ud83d\ude00"}"#;

/// With `HIDE_UP_TO` at 0, on a clock that goes 60 times as fast.
pub(crate) async fn what_may_not_be_hidden_is_delayed_and_not_lost(world: &World) {
    world.built().await;
    let ministack = world.moving().await;
    let [target, nobody] = [TARGET, NOBODY].map(MiniStack::function_arn);
    let parameters =
        format!("HideUpTo=0 BaseBackoff={BACKOFF} MaxBackoff={BACKOFF} TargetFunctions={target},{nobody}");
    let (stack, orders) = deploy_for_orders(ministack, "moves", &parameters).await;
    let [handler, queue, dead_letters] =
        ["RetryHandlerName", "RetryQueueUrl", "DeadLetterQueueUrl"].map(|name| stack.output(name));

    // The handler was deployed before its role, and may not move the first order.
    let role = Role::of(ministack, &stack);
    role.forbid_moves();
    orders.come(ministack, 0..1).await;
    let kept = eventually("the handler to keep what it may not move", LIMIT, async || {
        let result = mapping(ministack, handler).await.last_processing_result.unwrap_or_default();
        result.contains("1 partial failure").then_some(depth(ministack, queue).await)
    })
    .await;
    assert_eq!(kept, Depth { visible: 0, in_flight: 1, delayed: 0 }, "it is hidden");
    role.allow_what_it_did();

    // All else is delayed. What a handler has in its hands is in flight too, but it has nothing while all of it waits.
    orders.come(ministack, 1..ORDERS).await;
    let record = format!(r#"{{"requestContext":{{"functionArn":"{nobody}"}},"requestPayload":{PAYLOAD}}}"#);
    ministack.sqs.send_message().queue_url(queue).message_body(record).send().await.expect("SQS takes it");
    eventually("all others to be delayed, and none to be lost or doubled", LIMIT, async || {
        // On a slow machine, what nobody takes has been given up by then.
        let given_up = held(ministack, dead_letters).await;
        let Depth { visible, in_flight, delayed } = depth(ministack, queue).await;
        let all = delayed + in_flight + given_up == ORDERS as usize + 1;
        (all && visible == 0 && in_flight <= 1 && given_up <= 1).then_some(())
    })
    .await;
    let denied = eventually("the denied move in the log", LIMIT, async || {
        let lines = log_lines(ministack, stack.handler_logs()).await;
        lines.into_iter().find(|line| line["action"] == "move" && line["level"] == "ERROR")
    })
    .await;
    assert_eq!((&denied["moved"], &denied["hidden_instead"]), (&json!(0), &json!(1)), "{denied}");
    let remedy = denied["remedy"].as_str().unwrap_or_default();
    assert!(remedy.starts_with("allow sqs:SendMessage on the retry queue"), "{denied}");

    // What waits does not need the process that handled it.
    assert!(kill(ministack, handler) > 0, "the handler had run");
    orders.end_outage();
    orders.all_seen("every order to be taken", ORDERS, |seen| seen.taken && seen.attempt > 0).await;
    orders.assert_retries(BACKOFF, BACKOFF);
    let letter = dead_letter(ministack, dead_letters, "what nobody takes", |_| true).await;
    assert_is_as_it_was_sent(&letter.body);
    eventually("the retry queue to be empty", LIMIT, async || {
        (held(ministack, queue).await == 0).then_some(())
    })
    .await;
    assert_eq!(held(ministack, dead_letters).await, 1, "no order is given up");
}

/// The target was found missing when the backoff was over, and the hops have not touched the payload.
fn assert_is_as_it_was_sent(letter: &str) {
    let (context, payload) = letter.split_once(r#","payload":"#).expect("the payload is last");
    assert_eq!(payload.strip_suffix('}'), Some(PAYLOAD));
    let context: Value = serde_json::from_str(&format!("{context}}}")).expect("the letter is JSON");
    assert_eq!(context["reason"], "target_not_found");
    let at = |name: &str| context[name].as_f64().expect("a time");
    // Both in whole seconds.
    assert!(at("dead_lettered_at") + 1.0 >= at("initial_timestamp") + BACKOFF, "{context}");
}

/// The handler's role.
struct Role {
    shell: Shell,
    policy: Value,
}

impl Role {
    fn of(ministack: &MiniStack, stack: &Stack) -> Self {
        let shell = ministack.shell().with("ROLE", stack.output("RetryHandlerRoleName"));
        let policy = iam(&shell, "get-role-policy --role-name $ROLE --policy-name retry-handler");
        Self { shell, policy: policy["PolicyDocument"].clone() }
    }

    fn forbid_moves(&self) {
        let mut policy = self.policy.clone();
        let statements = policy["Statement"].as_array_mut().expect("a policy has statements");
        let all = statements.len();
        statements.retain(|statement| statement["Sid"] != "Move");
        assert_eq!(statements.len(), all - 1);
        self.put(&policy);
    }

    fn allow_what_it_did(&self) {
        self.put(&self.policy);
    }

    fn put(&self, policy: &Value) {
        let put = "aws iam put-role-policy --role-name $ROLE --policy-name retry-handler --policy-document \"$POLICY\"";
        self.shell
            .clone()
            .with("POLICY", policy.to_string())
            .run(put)
            .unwrap_or_else(|error| panic!("{error}"));
    }
}
