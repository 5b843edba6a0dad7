//! The requests from `comeback retry` and `comeback cancel` that are in force.

use std::time::Duration;

use comeback_engine::{Pauses, Request, Timestamp};
use serde::{Serialize, Serializer};

use crate::pauses::target_name;
use crate::text;
use crate::text::Text;

/// The action that a request directs the handler to perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// Retry the events now.
    Retry {
        /// The time over which the handler spreads the retries, in whole seconds.
        #[serde(rename = "within_seconds", serialize_with = "whole_seconds")]
        within: Duration,
    },
    /// Dead-letter the events.
    Cancel,
}

impl Ask {
    /// The title of a request with this action, such as `retry now` in `retry now: orders`.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Retry { .. } => "retry now",
            Self::Cancel => "cancel",
        }
    }

    /// The kind of request with this action.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Retry { .. } => Kind::Retry,
            Self::Cancel => Kind::Cancel,
        }
    }
}

/// A kind of request, without its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Retries waiting events now.
    Retry,
    /// Cancels waiting events, which dead-letters the events.
    Cancel,
}

impl Kind {
    /// The subcommand of `comeback` that makes a request of this kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Cancel => "cancel",
        }
    }
}

fn whole_seconds<S: Serializer>(within: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(within.as_secs())
}

/// A request from `comeback retry` or `comeback cancel`, which the handler applies to the waiting events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestInForce {
    /// The requested action.
    #[serde(flatten)]
    pub ask: Ask,
    /// The ARN of the events' function, or `*` for every function.
    pub target: String,
    /// The time when the request was made.
    pub at: Timestamp,
    /// Globs for the event's error type. The list is empty if the request covers events with any error.
    pub errors: Vec<String>,
    /// The keys of the events. The list is empty if the request covers all events of the function.
    pub keys: Vec<String>,
    /// The time when the request ends.
    pub until: Timestamp,
    /// The operator who made the request, if known.
    pub by: Option<String>,
    /// The reason that the operator gave, if any.
    pub why: Option<String>,
}

impl RequestInForce {
    /// The requests in force at `now`: first the requests to retry events, then the requests to cancel events.
    pub fn all_of(pauses: &Pauses, now: Timestamp) -> Vec<Self> {
        let retries = pauses.retries().map(|it| (it, Ask::Retry { within: it.within }));
        let all = retries.chain(pauses.cancels().map(|it| (it, Ask::Cancel)));
        let in_force = all.filter(|(request, _)| !request.withdrawn && now <= request.last_moment());
        in_force.map(|(request, ask)| Self::of(request, ask)).collect()
    }

    /// Converts a request from the SSM parameter. `ask` is the request's action.
    pub fn of(request: &Request, ask: Ask) -> Self {
        Self {
            ask,
            target: request.target.to_string(),
            at: request.at,
            errors: request.errors.clone(),
            keys: request.keys.clone(),
            until: request.last_moment(),
            by: request.by.clone(),
            why: request.why.clone(),
        }
    }

    /// The target of the request, as a person writes it: `name`, `name:qualifier` or `every function`.
    pub fn name(&self) -> &str {
        target_name(&self.target)
    }

    /// Describes the request, as in `orders (Timeout*), requested at … by anna, ends at …: deploy 4712`.
    pub fn line(&self) -> Text {
        let events = [&self.errors[..], &self.keys[..]].concat().join(", ");
        let errors = Some(events).filter(|events| !events.is_empty());
        let part = |part: Option<String>| part.unwrap_or_default();
        text![
            format!("{}{}, requested at ", self.name(), part(errors.map(|errors| format!(" ({errors})")))),
            self.at,
            format!("{}, ends at ", part(self.by.as_ref().map(|by| format!(" by {by}")))),
            self.until,
            part(self.why.as_ref().map(|why| format!(": {why}")))
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_in_force_are_named_with_their_end() {
        let text = r#"{"v":1,"pauses":[],"retries":[
            {"target":"arn:aws:lambda:eu-west-1:123456789012:function:orders:live","at":1700000000,"within":300,
             "errors":["Time*","Down"],"by":"anna","why":"deploy 4712","until":1700002100}],
            "cancels":[{"target":"*","at":1700003600,"keys":["k-1"]}]}"#;
        let pauses = Pauses::read(text).unwrap();
        let lines = |seconds: u64| {
            let now = Timestamp::from_secs(1_700_000_000 + seconds);
            let requests = RequestInForce::all_of(&pauses, now);
            requests.iter().map(|request| request.line().to_string()).collect::<Vec<_>>()
        };
        let all =
            "every function (k-1), requested at 2023-11-14T23:13:20.000Z, ends at 2023-11-16T00:13:20.000Z";
        let requests = "orders:live (Time*, Down), requested at 2023-11-14T22:13:20.000Z by anna, ends at \
                      2023-11-14T22:48:20.000Z: deploy 4712";
        assert_eq!(lines(2_100), [requests, all]);
        assert_eq!(lines(2_101), [all]);
    }
}
