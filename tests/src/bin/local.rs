//! `make local`: runs the shipped stack on this machine, in MiniStack.
//!
//! It sends an event that fails three times, and traces the event until it succeeds. It then does the same with each
//! line of input. Ctrl-C ends a trace or, at the prompt, stops MiniStack. Without a terminal, only a signal stops
//! MiniStack.
//!
//! `local build` only builds the functions, so that no compiler slows a server down during the tests.

use std::io::{BufRead as _, IsTerminal as _, Write as _, stdin, stdout};
use std::process::ExitCode;

use comeback_tests::{MiniStack, Operator, Shell, Stack, build, log_lines, until};
use serde::de::IgnoredAny;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Folder for the built functions, separate from `.aws-sam/build`, which tests may be reading.
const BUILD: &str = "target/end-to-end/local-build";
const EVENT: &str = r#"{"fail_times": 3}"#;
/// Events to suggest at the prompt, each of which is settled within about a minute.
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
    if std::env::args().nth(1).as_deref() == Some("build") {
        return build(&Shell::default(), BUILD);
    }
    println!("starting MiniStack");
    let ministack = MiniStack::start("local").await?;
    println!("building the functions (minutes the first time)");
    build(&ministack.shell(), BUILD)?;
    println!("deploying template.yaml");
    let stack = ministack.deploy("comeback", "").await?;
    make_healthy(&ministack, &stack)?;
    println!("{}", addresses(&ministack, &stack));
    let listen = |kind, name| signal(kind).map_err(|error| format!("{name}: {error}"));
    let interrupts = listen(SignalKind::interrupt(), "Ctrl-C")?;
    let mut ended = listen(SignalKind::terminate(), "SIGTERM")?;
    let mut watch = Watch { ministack, stack, interrupts };
    tokio::select! {
        () = watch.serve() => {}
        _ = ended.recv() => {}
    }
    println!("\nstopping MiniStack");
    Ok(())
}

/// Fixes the problems that `comeback doctor` would report for the local stack.
///
/// MiniStack ignores `RecursiveLoop` in a template, and [`MiniStack::stack`] shortens the queue's visibility timeout.
fn make_healthy(ministack: &MiniStack, stack: &Stack) -> Result<(), String> {
    let allow = |output: &str| {
        let function = stack.output(output);
        format!("aws lambda put-function-recursion-config --function-name {function} --recursive-loop Allow")
    };
    let url = stack.output("RetryQueueUrl");
    let hide = format!("aws sqs set-queue-attributes --queue-url {url} --attributes VisibilityTimeout=1230");
    [allow("RetryHandlerName"), allow("ExampleTargetName"), hide]
        .iter()
        .try_for_each(|command| ministack.shell().run(command).map(drop))
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

struct Watch {
    ministack: MiniStack,
    stack: Stack,
    interrupts: Signal,
}

impl Watch {
    /// Sends a first event and then each line of input. At the end of a file or pipe, waits for a signal.
    async fn serve(&mut self) {
        self.send(EVENT).await;
        let exports = self.ministack.shell().exports();
        println!("\nthe console, in another terminal:\n{exports}; {} ui", Operator::program().display());
        let is_terminal = stdin().is_terminal();
        if is_terminal {
            println!(
                "\nAnother event? {SUGGESTED}, …\nCtrl-C stops following an event. At this prompt, Ctrl-C or Ctrl-D stops \
                 MiniStack."
            );
        }
        let is_stopped = self.send_lines(is_terminal).await;
        if !is_terminal && !is_stopped {
            println!("\nMiniStack serves until a signal stops it");
            self.interrupts.recv().await;
        }
    }

    /// Sends each line of input as an event, and returns true if Ctrl-C ended the input.
    async fn send_lines(&mut self, is_terminal: bool) -> bool {
        let mut lines = lines();
        loop {
            if is_terminal {
                print!("> ");
                // It does not matter if the prompt cannot be printed.
                let _ = stdout().flush();
            }
            let line = tokio::select! {
                line = lines.recv() => line,
                _ = self.interrupts.recv() => return true,
            };
            match line.as_deref().map(read) {
                None => return false,
                Some(Ok(None)) => {}
                Some(Ok(Some(event))) => self.send(&event).await,
                Some(Err(problem)) => println!("{problem}"),
            }
        }
    }

    /// Sends an event, and prints its trace until the event succeeds or is dead-lettered, or until Ctrl-C is pressed.
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

/// Prints the output of `comeback trace`, line by line as it appears, until the event succeeds or is dead-lettered.
async fn follow(ministack: &MiniStack, stack: &Stack, id: &str) {
    let operator = Operator::of(ministack);
    let trace = |output: &str| operator.comeback(&format!("trace --stack {} {output} {id}", stack.name()));
    println!("$ comeback trace {id}");
    let mut shown = 0;
    until(async || {
        let has_succeeded = has_succeeded(ministack, stack, id).await;
        let ran = trace("--json");
        if ran.stderr.contains("no line of") {
            return has_succeeded.then(|| println!("It succeeded at once: there is nothing to trace."));
        }
        let is_over = has_succeeded || ran.json(0)["end"]["end"] == "dead_lettered";
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

/// Returns true if the example target's log says that the event succeeded.
async fn has_succeeded(ministack: &MiniStack, stack: &Stack, id: &str) -> bool {
    let lines = log_lines(ministack, stack.target_logs()).await;
    lines.iter().any(|line| line["message"] == "succeeded" && line["idempotency_key"] == id)
}

/// Reads an event from a line of input, or returns `None` for an empty line.
fn read(line: &str) -> Result<Option<String>, String> {
    match line.trim() {
        "" => Ok(None),
        event => match serde_json::from_str::<IgnoredAny>(event) {
            Ok(_) => Ok(Some(event.to_owned())),
            Err(error) => Err(format!("not JSON, and not sent: {error}")),
        },
    }
}

/// Returns the lines of standard input, read by a separate thread so that the caller can also wait for Ctrl-C.
fn lines() -> UnboundedReceiver<String> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        for line in stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn suggested_events_end() {
        for event in SUGGESTED.split(", ").chain([EVENT]) {
            let event: Value = serde_json::from_str(event).expect("JSON");
            assert!(event["fail"].is_null() && event["fail_times"].as_u64().unwrap_or(0) <= 5, "{event}");
        }
    }

    #[test]
    fn only_json_is_sent() {
        for event in [r#"{"fail_times": 1}"#, "null", "7"] {
            assert_eq!(read(event), Ok(Some(event.to_owned())));
        }
        assert_eq!(read("  "), Ok(None));
        for refused in ["{fail_times: 1}", "quit", r#"{"a": 1} {"b": 2}"#] {
            let problem = read(refused).expect_err(refused);
            assert!(problem.starts_with("not JSON, and not sent: "), "{problem}");
        }
    }
}
