use std::collections::HashSet;
use std::time::Duration;

use comeback_tests::{MiniStack, Stack, eventually, log_lines};
use serde_json::Value;

/// What was shown so far.
#[derive(Default)]
pub(crate) struct Shown {
    /// How many lines: the target's, and the handler's.
    lines: [usize; 2],
    /// The idempotency keys in them. (MiniStack's change between the first invocation and the first retry.)
    keys: HashSet<String>,
}

/// Prints what the functions log, until one of them says that it is over with an event that is not among those shown
/// before.
pub(crate) async fn follow(ministack: &MiniStack, stack: &Stack, shown: &mut Shown) {
    let earlier = shown.keys.clone();
    eventually("the event to succeed or be given up", Duration::MAX, async || {
        let new = news(ministack, stack, &mut shown.lines).await;
        new.iter().for_each(|line| println!("{}", sentence(line)));
        shown.keys.extend(new.iter().filter_map(key));
        new.iter().any(|line| is_over(line, &earlier)).then_some(())
    })
    .await;
}

fn key(line: &Value) -> Option<String> {
    line["idempotency_key"].as_str().map(Into::into)
}

/// Whether a line says that it is over with an event that has none of these keys. The handler's lines have no key: a
/// dead-letter counts, whichever event it is of.
fn is_over(line: &Value, earlier: &HashSet<String>) -> bool {
    let is_new = key(line).is_some_and(|key| !earlier.contains(&key));
    line["message"] == "succeeded" && is_new || line["action"] == "dead_letter"
}

/// What both functions have said about events since we last looked, in order.
async fn news(ministack: &MiniStack, stack: &Stack, shown: &mut [usize; 2]) -> Vec<Value> {
    let logs =
        [log_lines(ministack, stack.target_logs()).await, log_lines(ministack, stack.handler_logs()).await];
    // Nothing is waited for any more: Ctrl-C comes before or after.
    let mut news = Vec::new();
    for (mut log, shown) in logs.into_iter().zip(shown) {
        let lines = log.split_off(*shown);
        *shown += lines.len();
        news.extend(lines.into_iter().filter(|line| !line["attempt"].is_null() || !line["action"].is_null()));
    }
    news.sort_by(|a, b| a["timestamp"].as_str().cmp(&b["timestamp"].as_str()));
    news
}

fn sentence(line: &Value) -> String {
    let clock = line["timestamp"].as_str().and_then(|timestamp| timestamp.get(11..23)).unwrap_or_default();
    let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let what = match (text("action").as_str(), text("message").as_str()) {
        ("defer", _) => format!("handler  retry {} waits {} s", line["retry"], line["delay"]),
        ("reinvoke", _) => format!("handler  retry {} is due: invokes the target", line["retry"]),
        ("dead_letter", _) => {
            format!("handler  dead-letters the event: {} ({})", text("reason"), text("detail"))
        }
        ("", "failed") => format!("target   attempt {} failed with {}", line["attempt"], text("error_type")),
        ("", message) => format!("target   attempt {} {message}", line["attempt"]),
        (action, _) => format!("handler  {action}"),
    };
    format!("{clock}  {what}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn another_events_success_is_not_this_ones() {
        let succeeded = |key: &str| json!({"message": "succeeded", "attempt": 2, "idempotency_key": key});
        let earlier = HashSet::from(["a".to_owned()]);
        assert!(is_over(&succeeded("b"), &earlier));
        assert!(!is_over(&succeeded("a"), &earlier));
        assert!(is_over(&json!({"action": "dead_letter"}), &earlier));
        assert!(!is_over(&json!({"action": "defer"}), &earlier));
    }
}
