use std::io::{BufRead as _, stdin};

use serde::de::IgnoredAny;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// What was typed.
pub(crate) enum Typed {
    Event(String),
    Nothing,
    NotJson(String),
}

impl Typed {
    pub(crate) fn read(line: &str) -> Self {
        match line.trim() {
            "" => Self::Nothing,
            event => match serde_json::from_str::<IgnoredAny>(event) {
                Ok(_) => Self::Event(event.to_owned()),
                Err(error) => Self::NotJson(format!("not JSON, and not sent: {error}")),
            },
        }
    }
}

/// Lines from standard input, which only a thread of its own can wait for beside Ctrl-C.
pub(crate) fn lines() -> UnboundedReceiver<String> {
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
    use super::*;

    #[test]
    fn what_is_no_json_is_not_sent() {
        for event in [r#"{"fail_times": 1}"#, "null", "7"] {
            assert!(matches!(Typed::read(event), Typed::Event(sent) if sent == event), "{event}");
        }
        assert!(matches!(Typed::read("  "), Typed::Nothing));
        for refused in ["{fail_times: 1}", "quit", r#"{"a": 1} {"b": 2}"#] {
            let Typed::NotJson(problem) = Typed::read(refused) else { panic!("{refused} is sent") };
            assert!(problem.starts_with("not JSON, and not sent: "), "{problem}");
        }
    }
}
