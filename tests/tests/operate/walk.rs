use comeback_tests::{MiniStack, Operator, eventually, example_target, log_lines, pages};
use serde_json::{Value, json};

use crate::world::World;

const FUNCTION: &str = "orders";

/// Runs all the commands of the rehearsal in docs/operate.md, in the order of the page.
pub(crate) async fn commands_of_the_page_work_from_attach_to_detach(world: &World) {
    world.deploy_sped_up("comeback", "NonRetryableErrors=OrderRefused").await;
    let ministack = world.sped_up().await;
    example_target(ministack, FUNCTION).await;
    let operator = Operator::on_clock_of(ministack);
    let shell = operator.shell().clone().with("FUNCTION", FUNCTION);
    let blocks = pages::blocks("docs/operate.md", "Rehearse a broken deployment");
    let [attach, refuse, fail, status, waiting, trace, pause, resume, waiting_after, redrive, detach] =
        <[String; 11]>::try_from(blocks).unwrap_or_else(|blocks| panic!("not eleven blocks: {blocks:#?}"));
    let functions: String =
        refuse.lines().filter(|line| line.contains("() {")).map(|line| format!("{line}\n")).collect();
    let run = |block: &str| {
        // Two failures are accepted: on MiniStack, `doctor` may find faults, as its tests explain, and a first `detach`
        // exits with 3, because it must be run again later.
        let comeback = "comeback() { \"$COMEBACK\" \"$@\" || { code=$?; [ \"$1\" = doctor ] || [ \"$1$code\" = detach3 ]; }; }";
        let script = format!("{comeback}\n{functions}{block}");
        shell.run(&script).unwrap_or_else(|error| panic!("{error}"))
    };
    let now = || operator.comeback("status --json").json(0);

    run(&attach);
    run(&refuse);
    let dead_lettered = async || (now()["dead_letters"]["visible"] == 1).then_some(());
    eventually("the first order to be dead-lettered", dead_lettered).await;
    run(&fail);
    let waits = async || (now()["retry_queue"]["in_flight"] == 1).then_some(());
    eventually("the second order to wait", waits).await;
    let status = run(&status);
    assert!(status.contains("Dead-letters  1, the oldest"), "{status}");
    // Between a re-invocation and its failure, the event is not waiting. On a busy machine, it may be waiting because a
    // call failed, not for its backoff.
    let found = async || {
        let said = run(&waiting);
        (said.matches("1 waiting event (").count() == 2 && said.contains(" backoff\n")).then_some(said)
    };
    let waiting = eventually("the log to show the second order waiting", found).await;
    for expected in ["┆ orders   ┆ TargetDown ┆", "Found in the log: 1 of about "] {
        assert!(waiting.contains(expected), "{waiting}");
    }

    let trace = run(&trace);
    assert!(trace.contains("failed with TargetDown"), "{trace}");
    let key = trace.lines().next().and_then(|line| line.split_whitespace().nth(1)).expect("an event's key");
    let pauses = run(&pause);
    assert!(pauses.contains("a deploy broke it"), "{pauses}");
    let held = async || {
        (operator.comeback(&format!("trace --json {key}")).json(0)["end"]["end"] == "held").then_some(())
    };
    eventually("the second order to be held", held).await;
    run(&resume);
    taken(ministack, 1).await;
    let is_gone = async || run(&waiting_after).contains("No waiting event matches").then_some(());
    eventually("the log to show that nothing waits", is_gone).await;

    let redriven = run(&redrive);
    assert!(redriven.contains("OrderRefused"), "{redriven}");
    taken(ministack, 2).await;
    assert_eq!(now()["dead_letters"], json!({"visible": 0, "in_flight": 0, "delayed": 0}));
    for block in pages::blocks("docs/operate.md", "At three in the morning") {
        run(&format!("cd \"$(mktemp -d)\"\nREQUEST_ID={key}\n{block}"));
    }
    run(&detach);
    let left = shell.run("aws lambda get-function-event-invoke-config --function-name \"$FUNCTION\"");
    assert!(left.is_err_and(|error| error.contains("ResourceNotFoundException")), "no failure destination");
}

/// Waits until the function has succeeded with this many orders, each on a retry.
async fn taken(ministack: &MiniStack, orders: usize) {
    eventually(&format!("{orders} orders to be taken"), async || {
        let lines = log_lines(ministack, &format!("/aws/lambda/{FUNCTION}")).await;
        let is_taken = |line: &&Value| line["message"] == "succeeded" && line["attempt"].as_u64() > Some(0);
        (lines.iter().filter(is_taken).count() == orders).then_some(())
    })
    .await;
}
