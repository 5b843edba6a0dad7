//! The log line that records a change: who changed what, when and why, and with what result.
//!
//! The line lacks `key`, `level` and `reason`, so neither metric filters nor searches for events match it.

use comeback_engine::{NotALine, Timestamp, logged};
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::failure::Failure;
use crate::operator::Operator;

/// The operators' log stream in the handler's log group.
pub const STREAM: &str = "operators";

/// The `action` of an operator's log line, which the handler's lines never have.
const ACTION: &str = "operator";
const VERSION: u64 = 1;
/// The maximum number of entries in each list of an operator's log line: its flags, its functions and its keys.
const MOST_NAMED: usize = 20;

/// A change, as an operator's log line describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// The subcommand of `comeback` that makes the change, such as `pause` or `dead redrive`.
    pub what: String,
    /// The flags that selected events or set times, such as `--error=Timeout*`. The value of `--payload` is omitted.
    #[serde(default)]
    pub flags: Vec<String>,
    /// The functions that the change affected: ARNs or names, or `*` for every function. The log line has at most
    /// twenty.
    pub functions: Vec<String>,
    /// The keys of the events that the operator named, if any.
    pub keys: Vec<String>,
    /// The number of events, dead-letters or functions that the change affected, if this kind of change has a count.
    pub count: Option<u64>,
    /// The reason that the operator gave, if any.
    pub why: Option<String>,
}

/// Formats a flag for [`Activity::flags`].
pub fn flag(name: &str, value: &str) -> String {
    format!("--{name}={value}")
}

/// A log line about a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorLine {
    /// The time when the change ended.
    pub at: Timestamp,
    /// The user name or role session name of the operator.
    pub by: String,
    /// The subcommand that made the change, with its flags and what it affected.
    #[serde(flatten)]
    pub activity: Activity,
    /// The outcome of the change.
    pub result: Completion,
    /// The problem that ended the change or remains after it.
    pub problem: Option<String>,
}

/// The outcome of a change: success, or the kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// Everything was done.
    Done,
    /// Something was left undone.
    Undone,
    /// The operator stopped the change.
    Interrupted,
    /// A failure ended the change midway.
    Failed,
}

/// The part of a log line about an operator's change that is the same in every version of the format.
#[derive(Deserialize)]
struct Head {
    v: u64,
    action: String,
}

#[derive(Serialize)]
struct Line<'a> {
    v: u64,
    action: &'static str,
    #[serde(flatten)]
    entry: &'a OperatorLine,
}

impl OperatorLine {
    fn new(at: Timestamp, by: &str, activity: &Activity, result: &Result<(), Failure>) -> Self {
        let cut = |text: &String| logged(text).to_owned();
        let problem = result.as_ref().err();
        Self {
            at,
            by: by.to_owned(),
            activity: Activity {
                what: activity.what.clone(),
                flags: activity.flags.iter().take(MOST_NAMED).map(cut).collect(),
                functions: activity.functions.iter().take(MOST_NAMED).map(cut).collect(),
                keys: activity.keys.iter().take(MOST_NAMED).map(cut).collect(),
                count: activity.count,
                why: activity.why.as_ref().map(cut),
            },
            result: match problem {
                None => Completion::Done,
                Some(Failure::Undone(_)) => Completion::Undone,
                Some(Failure::Interrupted(_)) => Completion::Interrupted,
                Some(_) => Completion::Failed,
            },
            problem: problem.map(|failure| cut(&failure.text().to_string())),
        }
    }

    fn line(&self) -> String {
        let line = Line { v: VERSION, action: ACTION, entry: self };
        serde_json::to_string(&line).expect("BUG: a line is plain JSON")
    }

    /// Parses a log line about a change.
    ///
    /// # Errors
    ///
    /// Fails if the text is not a line about a change, or is in a later version of the format.
    pub fn read(text: &str) -> Result<Self, NotALine> {
        let read = |_| NotALine::Other;
        let head: Head = serde_json::from_str(text).map_err(read)?;
        match head.v {
            _ if head.action != ACTION => Err(NotALine::Other),
            VERSION => serde_json::from_str(text).map_err(read),
            _ => Err(NotALine::Newer),
        }
    }
}

/// Writes the line about a finished change, and creates the log stream if it does not exist.
///
/// # Errors
///
/// Fails if the operator is not allowed to write to the log, or if the handler has no log group yet.
pub async fn record(
    operator: &Operator,
    log_group: &str,
    activity: &Activity,
    result: &Result<(), Failure>,
) -> Result<(), Failure> {
    let Account { aws, place } = &operator.account;
    let at = operator.now();
    let line = OperatorLine::new(at, place.user(), activity, result).line();
    if aws.put_log_line(log_group, STREAM, at, &line).await? {
        return Ok(());
    }
    aws.create_log_stream(log_group, STREAM).await?;
    match aws.put_log_line(log_group, STREAM, at, &line).await? {
        true => Ok(()),
        false => Err(Failure::could_not(format!("log group {log_group} has no log stream {STREAM}"))),
    }
}

#[cfg(test)]
mod tests {
    use comeback_engine::LogLine;

    use super::*;

    fn entry() -> OperatorLine {
        let activity = Activity {
            what: "retry".into(),
            flags: vec!["--within=10m".into()],
            functions: vec!["arn:aws:lambda:eu-west-1:123456789012:function:orders".into()],
            keys: vec!["k-1".into()],
            count: Some(1),
            why: Some("ERROR payload_lost".into()),
        };
        OperatorLine::new(Timestamp::from_secs(100), "anna", &activity, &Err(Failure::undone("1 is left")))
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let line = entry().line();
        let expected = r#"{"v":1,"action":"operator","at":"1970-01-01T00:01:40.000Z","by":"anna","what":"retry",\
            "flags":["--within=10m"],"functions":["arn:aws:lambda:eu-west-1:123456789012:function:orders"],"keys":["k-1"],"count":1,\
            "why":"ERROR payload_lost","result":"undone","problem":"1 is left"}"#;
        assert_eq!(line, expected.replace("\\\n            ", ""));
        assert_eq!(OperatorLine::read(&line), Ok(entry()));
        let earlier = OperatorLine::read(&line.replace(r#""flags":["--within=10m"],"#, "")).unwrap();
        assert_eq!(earlier.activity.flags, Vec::<String>::new());
        assert_eq!(OperatorLine::read(&line.replace("\"v\":1", "\"v\":2")), Err(NotALine::Newer));
        assert_eq!(OperatorLine::read(&line.replace("\"operator\"", "\"hold\"")), Err(NotALine::Other));
        assert_eq!(OperatorLine::read("START RequestId: k-1"), Err(NotALine::Other));
    }

    #[test]
    fn readers_of_the_handlers_log_skip_it() {
        let line = entry().line();
        assert_eq!(LogLine::read(&line), Err(NotALine::Other));
        assert_eq!(crate::log::event_line(&line), None);
        // Metric filters, queries and searches of the handler's log look for these members.
        let members: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&line).unwrap();
        for member in ["key", "level", "reason", "remedy", "message_id", "target"] {
            assert!(!members.contains_key(member), "{member}");
        }
    }

    /// CloudWatch refuses lines that are too long.
    #[test]
    fn a_line_names_the_first_functions_and_counts_all() {
        let functions = (0..5_000).map(|n| format!("f-{n}")).collect();
        let activity = Activity { functions, count: Some(5_000), ..Activity::default() };
        let entry = OperatorLine::new(Timestamp::from_secs(1), "a", &activity, &Ok(()));
        assert_eq!((entry.activity.functions.len(), entry.activity.count), (MOST_NAMED, Some(5_000)));
    }

    #[test]
    fn the_kind_of_a_failure_is_the_result() {
        let of =
            |result| OperatorLine::new(Timestamp::from_secs(1), "a", &Activity::default(), &result).result;
        assert_eq!(of(Ok(())), Completion::Done);
        assert_eq!(of(Err(Failure::undone("x"))), Completion::Undone);
        assert_eq!(of(Err(Failure::interrupted("x"))), Completion::Interrupted);
        assert_eq!(of(Err(Failure::could_not("x"))), Completion::Failed);
    }
}
