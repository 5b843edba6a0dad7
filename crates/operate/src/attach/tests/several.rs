//! Tests of plans for several functions, and of plans that are out of date when they are performed.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::interrupt::Interrupt;
use crate::layout::Block;
use crate::operator::{Follow, Progress};
use crate::text::Text;

fn three() -> SimulatedAws {
    Sample { others: ["invoices", "refunds"].map(Into::into).into(), ..Sample::new(NOW) }.build()
}

const NAMES: [&str; 4] = ["orders", "missing", "invoices", "refunds"];

#[tokio::test]
async fn several_functions_take_one_update_of_the_stack() {
    let aws = three();
    let change = to_attach(&NAMES);
    let plan = change.plan(&operator(&aws)).await.unwrap();
    assert_eq!(plan.question().map(|it| it.text).as_deref(), Some("attach orders, invoices, refunds?"));
    let why = "missing cannot be attached: Lambda has no function missing";
    let end = Err(Failure::undone(format!("1 of 4 functions failed:\n  missing: {why}")));
    assert_eq!(plan.end().map_err(|it| it.to_string()), end.clone().map_err(|it: Failure| it.to_string()));
    assert!(plain(&plan).contains(&format!("\nmissing: {why}\nattach invoices:\n")), "{}", plain(&plan));
    let Ok(Performed::Done(attached, result)) = change.perform(&operator(&aws), &plan).await else {
        panic!("they are attached")
    };
    assert_eq!(result.map_err(|it| it.to_string()), end.map_err(|it| it.to_string()));
    let value = serde_json::to_value(&attached).unwrap();
    assert_eq!(
        value["functions"][1],
        json!({"function": "missing", "differences": [], "notes": [], "left": null, "done": false, "failure": why})
    );
    let done = value["functions"].as_array().unwrap().iter().map(|it| it["done"] == true);
    assert_eq!(done.collect::<Vec<_>>(), [true, false, true, true]);
    let updates = aws.state().stacks[Sample::STACK]
        .events
        .iter()
        .filter(|it| it.status == "UPDATE_IN_PROGRESS")
        .count();
    assert_eq!(updates, 1);
    let list = snapshot(&aws).parameter.unwrap();
    assert_eq!(list, ["orders", "invoices", "refunds"].map(function_arn).join(","));
}

#[tokio::test]
async fn a_note_names_one_of_several_functions() {
    let plan = to_attach(&["orders", "invoices"]).plan(&operator(&three())).await.unwrap();
    let notes = plan.layout().0.into_iter().filter_map(|block| match block {
        Block::Note(note) => Some(note.to_string()),
        _ => None,
    });
    let of: Vec<_> = notes.map(|note| note.split(": after").next().unwrap_or_default().to_owned()).collect();
    assert_eq!(of, ["orders", "invoices"]);
}

#[tokio::test]
async fn failure_of_one_function_does_not_stop_the_others() {
    let aws = three();
    aws.on_call(|call| {
        let is_invoices = call.action == "lambda:PutFunctionRecursionConfig" && call.of == "invoices";
        is_invoices.then_some(crate::aws::simulated::Fault::CallFails)
    });
    let (_, end) = carry_out(&aws, &to_attach(&["orders", "invoices", "refunds"])).await;
    let end = end.unwrap_err().to_string();
    assert!(
        end.starts_with(
            "1 of 3 functions failed:\n  invoices: lambda:PutFunctionRecursionConfig on invoices: "
        ),
        "{end}"
    );
    for (name, is_attached) in [("orders", true), ("invoices", false), ("refunds", true)] {
        assert_eq!(read(&aws, name).await.is_attached(), is_attached, "{name}");
    }
}

#[tokio::test]
async fn missing_function_alone_is_the_failure() {
    let aws = sample();
    let failure = to_attach(&["missing"]).plan(&operator(&aws)).await.unwrap_err();
    assert_eq!(failure.exit_code(), 1);
    let plan = to_detach(&["missing"]).plan(&operator(&aws)).await.unwrap();
    let end = plan.end().unwrap_err();
    let said = "Lambda has no function missing, and nothing is left to remove; check its name";
    assert_eq!((end.to_string(), end.exit_code()), (said.into(), 1));
}

#[tokio::test]
async fn plan_that_somebody_else_changed_is_outdated() {
    let aws = sample();
    let change = to_attach(&["orders"]);
    let plan = change.plan(&operator(&aws)).await.unwrap();
    aws.advance(HOUR);
    assert_eq!(
        change.plan(&operator(&aws)).await.unwrap().identity(),
        plan.identity(),
        "time alone changes nothing"
    );
    aws.function_named("orders").recursion_allowed = true;
    let Ok(Performed::Outdated(now)) = change.perform(&operator(&aws), &plan).await else {
        panic!("it has changed")
    };
    assert_ne!(now.identity(), plan.identity());
    assert!(!read(&aws, "orders").await.is_attached());
}

/// Keeps the command's reports, and interrupts the command when it first reports a step.
#[derive(Debug)]
struct Stopping(Interrupt, RefCell<Vec<String>>);

impl Follow for Stopping {
    fn progress(&self, _: Progress) {}

    fn remark(&self, text: &Text) {
        self.1.borrow_mut().push(text.to_string());
        self.0.raise();
    }
}

#[tokio::test]
async fn interrupted_run_reports_and_can_be_repeated() {
    let aws = sample();
    let interrupt = Interrupt::default();
    let follow = Rc::new(Stopping(interrupt.clone(), RefCell::default()));
    let change = to_attach(&["orders"]);
    let operator = Operator { interrupt, follow: follow.clone(), ..operator(&aws) };
    let plan = change.plan(&operator).await.unwrap();
    let Ok(Performed::Done(attached, Err(Failure::Interrupted(why)))) =
        change.perform(&operator, &plan).await
    else {
        panic!("it was interrupted")
    };
    assert_eq!(why.to_string(), "not every change was made; run the command again for the others");
    assert_eq!(follow.1.borrow()[0], "  function orders: tag comeback:retries");
    assert_eq!(plain(&attached), "");
    assert_eq!(serde_json::to_value(&attached).unwrap()["functions"][0]["done"], false);
    assert_eq!(snapshot(&aws).tags["comeback:retries"], "default");
    attach(&aws, "orders").await;
}

#[tokio::test]
async fn function_with_a_pause_of_its_own_is_not_detached() {
    let aws = sample();
    attach(&aws, "orders").await;
    let paused = |target: &str| {
        let text = json!({"v": 1, "pauses": [{"target": target, "from": 0, "until": null, "spread": 0}]});
        let mut parameter = crate::aws::simulated::Parameter::default();
        parameter.versions.push(crate::aws::ParameterVersion {
            number: 1,
            text: text.to_string(),
            at: None,
            by: None,
        });
        aws.state().parameters.insert(Sample::PAUSES.into(), parameter);
    };
    let refused = async |function: &str| {
        let plan = to_detach(&[function]).plan(&operator(&aws)).await;
        plan.err().map(|failure| failure.to_string())
    };
    paused(ARN);
    let said = "orders has been paused since 1970-01-01T00:00:00.000Z; end the pause first: `comeback resume orders`";
    assert_eq!(refused("orders").await.as_deref(), Some(said));
    aws.function_named("orders").publish("live");
    assert_eq!(refused("orders:live").await.as_deref(), Some(said));
    paused(&format!("{ARN}:live"));
    let said = said.replace("orders", "orders:live");
    assert_eq!(refused("orders:live").await, Some(said));
    for other in ["*", &format!("{ARN}:next"), &format!("{ARN}-v2")] {
        paused(other);
        assert_eq!(refused("orders:live").await, None, "{other}");
    }
}
