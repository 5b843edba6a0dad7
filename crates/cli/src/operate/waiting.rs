//! `comeback waiting`: lists waiting events, with the reason for each wait and the due time.

use std::time::Duration;

use clap::Args;
use comeback_engine::Timestamp;
use comeback_operate::durations;
use comeback_operate::function::FunctionName;
use comeback_operate::waiting::events::DueRange;
use comeback_operate::waiting::filter::WaitingFilter;
use comeback_operate::waiting::report::ReportQuery;
use comeback_operate::waiting::waiting;

use crate::failure::CommandFailure;
use crate::operate::session::Session;
use crate::terminal;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback waiting
  comeback waiting orders --error 'Timeout*' --each
  comeback waiting --due-within 1h --each --limit 20
  comeback waiting --json";

#[derive(Debug, Args)]
pub(crate) struct WaitingArguments {
    /// Only events of these functions; a name without a qualifier covers every version and alias
    #[arg(value_name = "FUNCTION")]
    functions: Vec<FunctionName>,
    /// Only events whose error type, class name or simple name matches this glob
    #[arg(long, value_name = "GLOB")]
    error: Option<String>,
    /// Only the event with this key; may be repeated
    #[arg(long, value_name = "KEY")]
    key: Vec<String>,
    /// Only events whose next retry is due within this time
    #[arg(long, value_name = "DURATION", value_parser = durations::read)]
    due_within: Option<Duration>,
    /// Also list the individual events, in the order in which they are due
    #[arg(long)]
    each: bool,
    /// Maximum number of events that --each lists
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// How far back to read the log [default: the longest time that an event can wait]
    #[arg(long, value_name = "DURATION", value_parser = durations::read)]
    since: Option<Duration>,
}

pub(crate) async fn run(arguments: WaitingArguments, session: Session) -> Result<(), CommandFailure> {
    let since = arguments.since;
    let waiting = waiting(&session.operator(), |now| arguments.listing(now), since).await?;
    terminal::answer(&waiting.report(), &session)
}

impl WaitingArguments {
    fn listing(self, now: Timestamp) -> ReportQuery {
        let Self { functions, error, key, due_within, each, limit, .. } = self;
        let wanted = WaitingFilter { functions, error, keys: key };
        let due = DueRange { from: None, by: due_within.map(|within| now.saturating_add(within)) };
        ReportQuery { wanted, due, events: each.then_some(0..limit as usize) }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};
    use comeback_operate::aws::NewMessage;
    use comeback_operate::aws::Receive;
    use comeback_operate::aws::simulated::{Sample, function_arn, queue_url};
    use comeback_operate::{Operator, Which};
    use serde_json::json;

    use super::*;
    use crate::terminal::tests::plain;

    #[tokio::test]
    async fn the_page_shows_what_is_printed() {
        let page =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operate.md")).unwrap();
        let (_, shown) = page.split_once("$ comeback waiting ").unwrap();
        let (flags, shown) = shown.split_once('\n').unwrap();
        let (shown, _) = shown.split_once("```").unwrap();
        let command = WaitingArguments::augment_args(clap::Command::new("waiting").no_binary_name(true));
        let arguments = command.get_matches_from(flags.split(' '));
        let arguments = WaitingArguments::from_arg_matches(&arguments).unwrap();
        let now = Timestamp::from_rfc3339("2026-11-23T19:00:00Z").unwrap();
        let aws = Sample { is_attached: true, others: ["billing".into()].into(), ..Sample::new(now) }.build();
        let both = [function_arn("orders"), function_arn("billing")].join(",");
        let variable = ("TARGET_FUNCTIONS".to_owned(), both);
        aws.function_named(Sample::HANDLER).configuration.variables.extend([variable]);
        let wait = |key: &str, function: &str, retry: u64, error: &str, failed: u64, due: u64| {
            let line = json!({
                "timestamp": now, "level": "INFO", "v": 1, "message_id": "m-1", "key": key, "request_id": "r-0",
                "target": function_arn(function), "retry": retry,
                "error_type": error, "first_failure": now.before(Duration::from_secs(60 * failed)), "action": "defer",
                "due": now.saturating_add(Duration::from_secs(due)), "due_by": "policy", "delay": due,
            });
            aws.state().log_groups.get_mut(Sample::LOG_GROUP).unwrap().write(now, "s", line.to_string());
        };
        wait("155e5584-c6b0-4854-95ed-b368c65838d0", "orders", 9, "TargetDown", 187, 12);
        wait("8f0e21c4-0b5d-4c7e-9f65-2d4f6b0d7c11", "orders", 8, "TargetDown", 179, 17);
        (3..=1_180).for_each(|n| wait(&format!("k-{n}"), "orders", 8, "TargetDown", 60, 10_260));
        wait("k-1181", "billing", 3, "Throttled", 41, 182);
        (1_182..=1_187).for_each(|n| wait(&format!("k-{n}"), "billing", 3, "Throttled", 41, 848));
        // The queue has a few more hidden messages than the log has waiting events.
        let account = aws.account();
        let url = queue_url(Sample::RETRY_QUEUE);
        let messages = vec![NewMessage { body: "{}".into(), ..NewMessage::default() }; 1_204];
        account.aws.send(&url, messages, &|_, _| ()).await;
        let receive = Receive { visibility: Duration::from_secs(3_600), wait: Duration::ZERO };
        while !account.aws.receive(&url, 10, receive).await.unwrap().is_empty() {}
        let operator = Operator::new(account, Which::Stack(Sample::STACK.into()));
        let since = arguments.since;
        let waiting = waiting(&operator, |now| arguments.listing(now), since).await.unwrap();
        assert_eq!(plain(&waiting.report()), shown);
    }
}
