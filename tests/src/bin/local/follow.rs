use std::time::Duration;

use comeback_tests::{MiniStack, Stack, eventually, log_lines};
use serde_json::Value;

/// Prints what the functions log, until one of them says that it is over with the event that was sent last.
pub(crate) async fn follow(ministack: &MiniStack, stack: &Stack, shown: &mut [usize; 2]) {
    let mut key = Value::Null;
    eventually("the event to succeed or be given up", Duration::MAX, async || {
        let new = news(ministack, stack, shown).await;
        for line in &new {
            println!("{}", sentence(line));
            if line["attempt"] == 0 {
                key = line["idempotency_key"].clone();
            }
        }
        new.iter().any(|line| is_over(line, &key)).then_some(())
    })
    .await;
}

/// Whether a line says that it is over with the event of this key. The handler's lines have no key: a dead-letter
/// counts, whichever event it is of.
fn is_over(line: &Value, key: &Value) -> bool {
    line["message"] == "succeeded" && line["idempotency_key"] == *key || line["action"] == "dead_letter"
}

/// What both functions have said about events since we last looked, in order.
async fn news(ministack: &MiniStack, stack: &Stack, shown: &mut [usize; 2]) -> Vec<Value> {
    let mut news = Vec::new();
    for (group, shown) in [stack.target_logs(), stack.handler_logs()].into_iter().zip(shown) {
        let lines = log_lines(ministack, group).await.split_off(*shown);
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
        assert!(is_over(&succeeded("a"), &json!("a")));
        assert!(!is_over(&succeeded("a"), &json!("b")));
        assert!(is_over(&json!({"action": "dead_letter"}), &json!("b")));
        assert!(!is_over(&json!({"action": "defer"}), &Value::Null));
    }
}
