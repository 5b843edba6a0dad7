//! Tests of plans that involve another deployment, another function with the same role, or a deleted function.

use super::*;
use crate::aws::Mapping;
use crate::aws::simulated::{queue_url, role_arn};

const BILLING: &str = "billing-handler";

/// The sample account with a second deployment, which has its own queues and a handler that no stack owns.
fn two_deployments() -> SimulatedAws {
    let aws = sample();
    let state = &mut *aws.state();
    let [retries, dead] = ["billing-retries", "billing-dead"].map(|name| state.add_queue(name));
    let mut handler = Function::new(BILLING);
    handler.configuration.role_arn = role_arn("billing-role");
    let variables =
        [("RETRY_QUEUE_URL", &*retries), ("DEAD_LETTER_QUEUE_URL", &dead), ("TARGET_FUNCTIONS", "")];
    handler.configuration.variables =
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    state.add_function(handler);
    state.roles.insert("billing-role".into(), crate::aws::simulated::Role::default());
    let mapping = state.mappings[0].clone();
    let (function_arn, queue_arn) = (function_arn(BILLING), queue_arn("billing-retries"));
    assert_eq!(queue_url("billing-retries"), retries);
    state.mappings.push(Mapping { uuid: "billing".into(), function_arn, queue_arn, ..mapping });
    aws.clone()
}

fn of_billing(aws: &SimulatedAws) -> Operator {
    Operator::new(aws.account(), Which::Handler(BILLING.parse().unwrap()))
}

#[tokio::test]
async fn function_is_taken_over_only_on_request() {
    let aws = two_deployments();
    attach(&aws, "orders").await;
    let attach = to_attach(&["orders"]);
    let refused = attach.plan(&of_billing(&aws)).await.unwrap_err().to_string();
    let named = "orders is attached to stack comeback, not to retry handler billing-handler; to move it here";
    assert!(refused.starts_with(named) && refused.ends_with("`comeback detach orders`"), "{refused}");
    let detach = to_detach(&["orders"]);
    let there = "it is attached to stack comeback; to detach it there: `comeback detach orders`";
    assert_eq!(notes(&detach.plan(&of_billing(&aws)).await.unwrap()), [there]);
}

#[tokio::test]
async fn move_keeps_the_settings_from_before_the_first_deployment() {
    let aws = two_deployments();
    let own = InvokeSettings { retries: Some(1), ..InvokeSettings::default() };
    aws.function_named("orders").invoke_settings.insert(None, own);
    let before = snapshot(&aws);
    attach(&aws, "orders").await;

    let change = RouteFailures { route: Route::Attach { may_move: true }, ..to_attach(&["orders"]) };
    let (plan, end) = carry_out_by(&of_billing(&aws), &change).await;
    assert_eq!(end, Ok(()));
    let note = "When none is left there, run: comeback detach orders";
    assert!(notes(&plan)[0].ends_with(note), "{:?}", notes(&plan));
    assert!(snapshot(&aws).tags.contains_key(kept::MOVED));

    // The first deployment waits for its last events, and keeps the settings that the second deployment needs.
    aws.advance(HOUR);
    let moved = snapshot(&aws);
    let (_, end) = carry_out(&aws, &to_detach(&["orders"])).await;
    assert_eq!(end, Ok(()));
    let after = snapshot(&aws);
    let mut tags = moved.tags;
    tags.remove(kept::MOVED);
    assert_eq!((&after.tags, &after.invoke_settings), (&tags, &moved.invoke_settings));
    assert!(after.recursion_allowed && !after.policies["orders-role"].contains_key("comeback-retries"));
    assert_eq!(after.parameter.as_deref(), Some(""));

    let change = to_detach(&["orders"]);
    carry_out_by(&of_billing(&aws), &change).await.1.unwrap_err();
    aws.advance(HOUR);
    assert_eq!(carry_out_by(&of_billing(&aws), &change).await.1, Ok(()));
    assert_eq!(snapshot(&aws), before, "as it was before either");
}

#[tokio::test]
async fn shared_role_keeps_its_permission() {
    let aws = Sample { others: BTreeSet::from(["invoices".to_owned()]), ..Sample::new(NOW) }.build();
    aws.function_named("invoices").configuration.role_arn = role_arn("orders-role");
    attach(&aws, "orders").await;
    attach(&aws, "invoices").await;
    let plan = detach(&aws, "orders").await;
    let note = "role orders-role keeps its permission to send, because these functions use it: invoices";
    assert!(notes(&plan).iter().any(|it| it == note), "{:?}", notes(&plan));
    let detached = read(&aws, "orders").await;
    assert!(detached.send_policy && !detached.deployment.allows(ARN));
    let again = to_detach(&["orders"]).plan(&operator(&aws)).await.unwrap();
    assert_eq!((again.question(), again.end()), (None, Ok(())));
    detach(&aws, "invoices").await;
    assert!(!read(&aws, "orders").await.send_policy);
}

#[tokio::test]
async fn remains_of_a_deleted_function_are_cleared_away() {
    let aws = sample();
    attach(&aws, "orders").await;
    let deleted = aws.state().functions.remove("orders").unwrap();
    let refused = to_attach(&["orders"]).plan(&operator(&aws)).await.unwrap_err();
    assert!(matches!(refused, Failure::CouldNot(_)), "{refused}");
    let (plan, end) = carry_out(&aws, &to_detach(&["orders"])).await;
    assert_eq!(end, Ok(()));
    let notes = notes(&plan);
    assert_eq!(notes[0], "Lambda has no function orders");
    assert!(notes[1].contains("comeback dead redrive --retarget ARN"), "{notes:?}");
    assert!(notes[2].contains("if no other function uses that role: aws iam"), "{notes:?}");
    let again = to_detach(&["orders"]).plan(&operator(&aws)).await.unwrap();
    assert_eq!(again.end().unwrap_err().exit_code(), 1, "a typo is told from it");
    aws.state().add_function(deleted);
    let after = snapshot(&aws);
    assert_eq!((after.parameter.as_deref(), after.alarms.len()), (Some(""), 1));
}

#[tokio::test]
async fn entry_of_an_alias_is_not_widened() {
    let aws = sample();
    aws.function_named("orders").publish("live");
    let arn = format!("{ARN}:live");
    {
        let mut state = aws.state();
        state
            .stacks
            .get_mut(Sample::STACK)
            .unwrap()
            .stack
            .parameters
            .insert("TargetFunctions".into(), arn.clone());
        let handler = state.functions.get_mut(Sample::HANDLER).unwrap();
        handler.configuration.variables.insert("TARGET_FUNCTIONS".into(), arn.clone());
        let role = state.roles.get_mut(Sample::HANDLER_ROLE).unwrap();
        role.policies.insert("invoke".into(), policy(&["lambda:InvokeFunction"], &[&arn]));
    }
    let before = snapshot(&aws);
    attach(&aws, "orders:live").await;
    let after = snapshot(&aws);
    let of_handler = |it: &Snapshot| (it.parameter.clone(), it.policies[Sample::HANDLER_ROLE].clone());
    assert_eq!(of_handler(&after), of_handler(&before), "the handler may invoke only the alias");
}

#[tokio::test]
async fn deleted_alias_is_detached_and_never_attached() {
    let aws = sample();
    aws.function_named("orders").publish("live");
    let own = InvokeSettings { retries: Some(1), ..InvokeSettings::default() };
    aws.function_named("orders").invoke_settings.insert(Some("live".into()), own);
    attach(&aws, "orders:live").await;
    aws.function_named("orders").qualifiers.clear();
    let refused = to_attach(&["orders:live"]).plan(&operator(&aws)).await.unwrap_err();
    assert!(matches!(refused, Failure::CouldNot(_)), "{refused}");
    let plan = to_detach(&["orders:live"]).plan(&operator(&aws)).await.unwrap();
    assert_eq!(notes(&plan), ["Lambda has no alias or version orders:live"]);
    detach(&aws, "orders:live").await;
    let after = snapshot(&aws);
    assert_eq!((after.tags.len(), after.invoke_settings.len(), after.parameter.as_deref()), (0, 0, Some("")));
}
