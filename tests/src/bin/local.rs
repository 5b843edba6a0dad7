//! `make local`: the stack on this machine. Deploys it, sends an event that fails three times, and shows what happens
//! to it until it succeeds; then the same for each line that is typed.

use std::io::{BufRead as _, IsTerminal as _, stdin};
use std::process::ExitCode;
use std::time::Duration;

use comeback_tests::{MiniStack, Stack, build, deploy, eventually, log_lines};
use serde_json::Value;

const EVENT: &str = r#"{"fail_times": 3}"#;
/// Enough for ten retries with the default backoffs.
const PATIENCE: Duration = Duration::from_secs(20 * 60);

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), String> {
    println!("starting MiniStack");
    let ministack = MiniStack::start("local").await?;
    println!("building the functions (minutes the first time)");
    build(&ministack.shell())?;
    println!("deploying template.yaml");
    let stack = deploy(&ministack.shell(), "comeback", "")?;
    let mut shown = [0, 0];
    follow(&ministack, &stack, EVENT, &mut shown).await;
    if stdin().is_terminal() {
        println!(
            "\nanother event? {{\"fail_times\": 1}}, {{\"fail\": true, \"error_type\": \"X\"}}, … (end with Ctrl-D)"
        );
        for event in stdin().lock().lines().map_while(Result::ok).filter(|line| !line.trim().is_empty()) {
            follow(&ministack, &stack, &event, &mut shown).await;
        }
    }
    println!("stopping MiniStack");
    Ok(())
}

/// Sends an event and prints what the functions log, until one of them says that it is over with the event.
async fn follow(ministack: &MiniStack, stack: &Stack, event: &str, shown: &mut [usize; 2]) {
    println!("\nsent {event} to {}", stack.output("ExampleTargetName"));
    ministack.invoke(stack.output("ExampleTargetName"), event).await;
    eventually("the event to succeed or be given up", PATIENCE, async || {
        let new = news(ministack, stack, shown).await;
        new.iter().for_each(|line| println!("{}", sentence(line)));
        new.iter().any(|line| line["message"] == "succeeded" || line["action"] == "dead_letter").then_some(())
    })
    .await;
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
