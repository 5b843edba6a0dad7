//! `comeback trace ID`: the timeline of one event.

use std::time::Duration;

use clap::Args;
use comeback_operate::durations;
use comeback_operate::trace::{LinesOf, TraceOptions, trace};

use crate::failure::CommandFailure;
use crate::operate::session::Session;
use crate::terminal;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback trace 5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11
  comeback trace 5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11 --logs --since 2d
  comeback trace 5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11 --json";

#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// The event's key (origin_request_id), or the request id of any of its invocations
    #[arg(value_name = "KEY|REQUEST_ID")]
    id: String,
    /// Include the lines that the function itself logged during each invocation
    #[arg(long)]
    logs: bool,
    /// How far back to search
    #[arg(long, value_name = "DURATION", default_value = "14d", value_parser = durations::read)]
    since: Duration,
}

pub(crate) async fn run(arguments: TraceArguments, session: Session) -> Result<(), CommandFailure> {
    let TraceArguments { id, logs, since } = arguments;
    let options = TraceOptions { id, lines: if logs { LinesOf::All } else { LinesOf::None }, since };
    terminal::answer(&trace(&session.operator(), &options).await?, &session)
}

#[cfg(test)]
mod tests {
    use comeback_engine::Timestamp;
    use comeback_operate::aws::simulated::{Sample, function_arn};
    use comeback_operate::{Operator, Which};
    use serde_json::json;

    use super::*;
    use crate::terminal::tests::plain;

    #[tokio::test]
    async fn the_readme_shows_what_is_printed() {
        let readme =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
        let (_, shown) = readme.split_once("$ comeback trace ").unwrap();
        let (key, shown) = shown.split_once('\n').unwrap();
        let (shown, _) = shown.split_once("```").unwrap();
        let moment = |clock: &str| Timestamp::from_rfc3339(&format!("2026-11-22T{clock}Z")).unwrap();
        let [failed, due, invoked, ended, now] =
            ["09:12:09.309", "09:12:10.221", "09:12:10.431", "09:12:10.944", "09:12:22.944"].map(moment);
        let retry = "b0a9dfa4-8ed0-4ad3-83eb-a40ffd73509f";
        let aws = Sample { is_attached: true, ..Sample::new(now) }.build();
        let logs = |group: &str, at: Timestamp, line: String| {
            aws.state().log_groups.get_mut(group).unwrap().write(at, "s", line);
        };
        for (at, action) in [
            (failed, json!({"action": "defer", "due": due, "due_by": "policy", "delay": 1})),
            (invoked, json!({"action": "reinvoke", "due": due, "invoke_request_id": retry})),
        ] {
            let mut line = json!({
                "timestamp": at, "level": "INFO", "v": 1, "message_id": "m-1", "key": key, "request_id": key,
                "target": function_arn("orders"), "retry": 1, "error_type": "TargetDown",
                "first_failure": "1970-01-01T00:01:40Z",
            });
            line.as_object_mut().unwrap().extend(action.as_object().unwrap().clone());
            logs(Sample::LOG_GROUP, at, line.to_string());
        }
        logs("/aws/lambda/orders", ended, format!("REPORT RequestId: {retry}\tDuration: 2 ms"));
        let operator = Operator::new(aws.account(), Which::Stack(Sample::STACK.into()));
        let day = Duration::from_secs(86_400);
        let options = TraceOptions { id: key.into(), lines: LinesOf::None, since: day };
        assert_eq!(plain(&trace(&operator, &options).await.unwrap()), shown);
    }
}
