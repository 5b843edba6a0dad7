//! `make local`: the stack on this machine. Deploys it, sends an event that fails three times, and shows what happens
//! to it until it succeeds; then the same for each line that is typed. Ctrl-C leaves an event and goes back to the
//! prompt, and ends everything at the prompt.
//!
//! | file | holds |
//! |---|---|
//! | `follow` | `comeback trace` of an event, as it grows |
//! | `typed` | what was typed |

mod follow;
mod typed;

use std::io::{IsTerminal as _, Write as _, stdin, stdout};
use std::process::ExitCode;

use comeback_tests::{MiniStack, Stack, build, deploy};
use tokio::signal::unix::{Signal, SignalKind, signal};

use follow::follow;
use typed::{Typed, lines};

const EVENT: &str = r#"{"fail_times": 3}"#;
/// Each of these ends within a minute or so.
const SUGGESTED: &str = r#"{"fail_times": 1}, {"fail_times": 5}, {"order": 17}"#;

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
    println!("{}", addresses(&ministack, &stack));
    let interrupts = signal(SignalKind::interrupt()).map_err(|error| format!("Ctrl-C: {error}"))?;
    let mut watch = Watch { ministack, stack, interrupts };
    watch.send(EVENT).await;
    if stdin().is_terminal() {
        watch.converse().await;
    }
    println!("\nstopping MiniStack");
    Ok(())
}

fn addresses(ministack: &MiniStack, stack: &Stack) -> String {
    format!(
        "\nendpoint           {}\nretry queue        {}\ndead-letter queue  {}\n\naws in another terminal:\n{}",
        ministack.endpoint(),
        stack.output("RetryQueueUrl"),
        stack.output("DeadLetterQueueUrl"),
        ministack.shell().exports()
    )
}

/// The stack, and what ends an event's timeline early.
struct Watch {
    ministack: MiniStack,
    stack: Stack,
    interrupts: Signal,
}

impl Watch {
    /// Sends what is typed, until there is no more or Ctrl-C.
    async fn converse(&mut self) {
        println!("\nAnother event? {SUGGESTED}, … Ctrl-C leaves an event; here it ends, as Ctrl-D does.");
        let mut lines = lines();
        loop {
            print!("> ");
            // A prompt that cannot be shown is not missed.
            let _ = stdout().flush();
            let line = tokio::select! {
                line = lines.recv() => line,
                _ = self.interrupts.recv() => None,
            };
            match line.as_deref().map(Typed::read) {
                None => return,
                Some(Typed::Nothing) => {}
                Some(Typed::NotJson(problem)) => println!("{problem}"),
                Some(Typed::Event(event)) => self.send(&event).await,
            }
        }
    }

    /// Sends an event and prints its timeline, until it is over with the event or Ctrl-C.
    async fn send(&mut self, event: &str) {
        let Self { ministack, stack, interrupts } = self;
        let target = stack.output("ExampleTargetName");
        println!("\nsent {event} to {target}");
        let id = ministack.invoke(target, event).await;
        tokio::select! {
            () = follow(ministack, stack, &id) => {}
            _ = interrupts.recv() => println!("\nleft it: it is retried all the same"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_suggested_event_ends() {
        for event in SUGGESTED.split(", ").chain([EVENT]) {
            let event: Value = serde_json::from_str(event).expect("JSON");
            assert!(event["fail"].is_null() && event["fail_times"].as_u64().unwrap_or(0) <= 5, "{event}");
        }
    }
}
