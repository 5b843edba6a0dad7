//! The requests from `comeback retry` and `comeback cancel` that are in force.

use comeback_engine::{Pauses, Request, RequestKind, Timestamp};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::pauses::target_name;
use crate::text;
use crate::text::Text;

/// A request from `comeback retry` or `comeback cancel`, as stored in the SSM parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestInForce(pub Request);

impl RequestInForce {
    /// The requests in force at `now`: retry requests first, then cancel requests.
    pub fn all_of(pauses: &Pauses, now: Timestamp) -> Vec<Self> {
        let in_force = |request: &&Request| !request.withdrawn && now <= request.last_moment();
        pauses.requests().filter(in_force).cloned().map(Self).collect()
    }

    /// The title of the request, such as `retry now` in `retry now: orders`.
    pub const fn title(&self) -> &'static str {
        match self.0.kind {
            RequestKind::Retry => "retry now",
            RequestKind::Cancel => "cancel",
        }
    }

    /// The request in words, such as `orders (Timeout*), requested at … by anna, ends at …: deploy 4712`.
    pub fn line(&self) -> Text {
        let Request { target, at, errors, keys, by, why, .. } = &self.0;
        let target = target.to_string();
        let events = [&errors[..], &keys[..]].concat().join(", ");
        let events = Some(events).filter(|events| !events.is_empty());
        let part = |part: Option<String>| part.unwrap_or_default();
        text![
            target_name(&target),
            format!("{}, requested at ", part(events.map(|events| format!(" ({events})")))),
            *at,
            format!("{}, ends at ", part(by.as_ref().map(|by| format!(" by {by}")))),
            self.0.last_moment(),
            part(why.as_ref().map(|why| format!(": {why}")))
        ]
    }
}

impl Serialize for RequestInForce {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Request { kind, target, at, within, errors, keys, by, why, .. } = &self.0;
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("ask", kind.name())?;
        if *kind == RequestKind::Retry {
            members.serialize_entry("within_seconds", &within.as_secs())?;
        }
        members.serialize_entry("target", &target.to_string())?;
        members.serialize_entry("at", at)?;
        members.serialize_entry("errors", errors)?;
        members.serialize_entry("keys", keys)?;
        members.serialize_entry("until", &self.0.last_moment())?;
        members.serialize_entry("by", by)?;
        members.serialize_entry("why", why)?;
        members.end()
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
