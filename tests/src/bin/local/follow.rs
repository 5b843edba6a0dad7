use std::time::Duration;

use comeback_tests::{MiniStack, Operator, Stack, eventually, log_lines};

/// Prints what `comeback trace` has of an event, line by line as it happens, until the event has succeeded or was given up.
pub(crate) async fn follow(ministack: &MiniStack, stack: &Stack, id: &str) {
    let operator = Operator::of(ministack);
    let trace = |output: &str| operator.comeback(&format!("trace --stack {} {output} {id}", stack.name()));
    println!("$ comeback trace {id}");
    let mut shown = 0;
    eventually("the event to succeed or be given up", Duration::MAX, async || {
        let has_succeeded = has_succeeded(ministack, stack, id).await;
        let ran = trace("--json");
        if ran.stderr.contains("no line of") {
            return has_succeeded.then(|| println!("It succeeded at once: there is nothing to trace."));
        }
        let is_over = has_succeeded || ran.json(0)["end"]["end"] == "given_up";
        let text = trace("").ended(0);
        let story = text.trim_end().rsplit_once("\n\n").map_or(text.as_str(), |(story, _)| story);
        let news = if is_over { text.trim_end() } else { story }.lines();
        for line in news.skip(shown) {
            println!("{line}");
            shown += 1;
        }
        is_over.then_some(())
    })
    .await;
}

/// Only the example's own log says so: in the handler's, a success is that nothing follows.
async fn has_succeeded(ministack: &MiniStack, stack: &Stack, id: &str) -> bool {
    let lines = log_lines(ministack, stack.target_logs()).await;
    lines.iter().any(|line| line["message"] == "succeeded" && line["idempotency_key"] == id)
}
