//! Builds the message that a redrive sends for a dead-letter, and checks it against the handler's own rules.

use comeback_engine::{Action, Pauses, Policies, ReasonCode, Record, SQS_MESSAGE_BYTES, Timestamp, decide};
use serde_json::value::RawValue;

use crate::aws::{NewMessage, Received};
use crate::command::CommandName;
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::numbers::grouped;
use crate::text;
use crate::text::quoted;

/// A payload to send instead of a dead-letter's own payload.
#[derive(Clone, Debug)]
pub struct NewPayload(Box<RawValue>);

impl NewPayload {
    /// Parses a payload, and removes only the white space between values.
    ///
    /// # Errors
    ///
    /// Fails if the text is not JSON or is too large for a message.
    pub fn read(text: &str) -> Result<Self, String> {
        let json: &RawValue = serde_json::from_str(text).map_err(|problem| format!("not JSON: {problem}"))?;
        let json: String = compact(json.get()).map(|(character, _)| character).collect();
        if json.len() > SQS_MESSAGE_BYTES {
            let bytes = grouped(json.len() as u64);
            let most = grouped(SQS_MESSAGE_BYTES as u64);
            return Err(format!("too large: {bytes} bytes, and a message holds at most {most}"));
        }
        Ok(Self(RawValue::from_string(json).expect("BUG: it was JSON before")))
    }

    /// The payload as JSON, on one line.
    pub fn json(&self) -> &str {
        self.0.get()
    }
}

/// Returns a JSON document's characters without the white space between values. Each character has a flag, which is
/// true inside a string and at its closing quote.
pub(super) fn compact(json: &str) -> impl Iterator<Item = (char, bool)> {
    let (mut in_string, mut escaped) = (false, false);
    json.chars().filter_map(move |character| {
        let was_in_string = in_string;
        in_string = in_string != (character == '"' && !escaped);
        escaped = in_string && character == '\\' && !escaped;
        (was_in_string || !character.is_ascii_whitespace()).then_some((character, was_in_string))
    })
}

/// Predicts what a deployment's handler would do with a redriven dead-letter.
#[derive(Clone, Debug)]
pub(super) struct RedriveRules {
    policies: Policies,
    pub(super) retarget: Option<String>,
    pub(super) payload: Option<NewPayload>,
}

impl RedriveRules {
    /// Creates the rules from the handler's settings. Fails if the handler refuses these settings, or if they do not
    /// allow `retarget`.
    pub(super) fn new(
        deployment: &Deployment,
        retarget: Option<&str>,
        payload: Option<NewPayload>,
    ) -> Result<Self, Failure> {
        let policies = deployment.policies().map_err(|errors| {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            let handler = &deployment.handler;
            Failure::could_not(format!("{handler} refuses its settings: {}", errors.join("; ")))
        })?;
        match retarget.filter(|arn| !policies.stack().allows(arn)) {
            Some(name) if !name.starts_with("arn:") => Err(Failure::refused(format!(
                "--retarget {name}: give the full ARN, such as arn:aws:lambda:REGION:ACCOUNT:function:{name}"
            ))),
            Some(arn) => Err(Failure::refused(text![
                format!(
                    "--retarget {arn}: TARGET_FUNCTIONS does not allow it, so its events would be \
                     dead-lettered again; run "
                ),
                quoted(deployment.command::<&str>(CommandName::Attach, [])),
                " first, and pass the function's full ARN"
            ])),
            None => Ok(Self { policies, retarget: retarget.map(ToOwned::to_owned), payload }),
        }
    }

    /// The message that a redrive sends, or the reason why the handler would immediately dead-letter it again. The
    /// message has no attributes: the attribute `Comeback` would mark it as a copy of another message.
    pub(super) fn message(&self, received: &Received) -> Result<NewMessage, ReasonCode> {
        let payload = self.payload.as_ref().map(|payload| &*payload.0);
        let body = received.dead_letter().redriven(self.retarget.as_deref(), payload);
        let body = body.map_err(|reason| reason.code)?;
        let body = self.rehearsed(body, received.record.sent)?;
        let trace_header = received.record.trace_header.clone();
        Ok(NewMessage { body, trace_header, ..NewMessage::default() })
    }

    /// Returns the body, or the reason why the handler's rules would dead-letter the event before its first retry.
    fn rehearsed(&self, body: String, sent: Timestamp) -> Result<String, ReasonCode> {
        let mut record = Record {
            message_id: "rehearsed".into(),
            receipt_handle: String::new(),
            body,
            receive_count: 1,
            sent,
            first_receive: sent,
            moved: None,
            trace_header: None,
            attributes: Vec::new(),
        };
        let mut now = sent;
        for receive in 1..=2 {
            record.receive_count = receive;
            // A pause only holds an event, and never dead-letters it. `Redrive` checks the cancel requests.
            now = match decide(&record, &self.policies, &Pauses::default(), now) {
                Action::Defer { due, .. } | Action::Hold { due, .. } | Action::Reinvoke { due, .. } => due,
                Action::DeadLetter { reason, .. } => return Err(reason.code),
            };
        }
        Ok(record.body)
    }
}

#[cfg(test)]
mod tests {
    use comeback_engine::FailedEvent;

    use super::*;
    use crate::dead::testing::{ORDERS, deployment, event, received, record};

    #[test]
    fn retargeted_dead_letter_names_the_new_function() {
        let live = format!("{ORDERS}:live");
        let rules = RedriveRules::new(&deployment(), Some(&live), None).unwrap();
        for received in [event("Timeout"), record("Timeout")].map(|dead_letter| received(&dead_letter)) {
            let message = rules.message(&received).unwrap();
            assert!(message.attributes.is_empty());
            let record = Record { body: message.body, ..received.record.clone() };
            let event = FailedEvent::read(&record).unwrap();
            assert_eq!((event.function_arn.as_ref(), event.retry), (live.as_str(), 1));
            assert_eq!(Some(event.origin_request_id), received.dead_letter().key);
        }
    }

    #[test]
    fn a_new_payload_keeps_every_digit() {
        let written =
            "\r\n{ \"n\" : 1E400,\r\n\t\"s\": \"a \\\" b\\\\\", \"l\": [ -0.0, 12345678901234567890 ] } ";
        let payload = NewPayload::read(written).unwrap();
        assert_eq!(payload.json(), r#"{"n":1E400,"s":"a \" b\\","l":[-0.0,12345678901234567890]}"#);
        for (bad, why) in [
            ("{\n  \"n\": 1,\n  oops\n}", "not JSON: key must be a string at line 3 column 3"),
            ("1 2", "not JSON: trailing characters at line 1 column 3"),
            ("", "not JSON: EOF while parsing a value at line 1 column 0"),
        ] {
            assert_eq!(NewPayload::read(bad).unwrap_err(), why);
        }
        let spaced = |bytes: usize| format!("[{}\"{}\"]", " ".repeat(100), "x".repeat(bytes - 4));
        assert_eq!(NewPayload::read(&spaced(SQS_MESSAGE_BYTES)).unwrap().json().len(), SQS_MESSAGE_BYTES);
        let large = "too large: 1,048,577 bytes, and a message holds at most 1,048,576";
        assert_eq!(NewPayload::read(&spaced(SQS_MESSAGE_BYTES + 1)).unwrap_err(), large);
    }

    #[test]
    fn a_dead_letter_with_a_new_payload_keeps_its_key() {
        let payload = NewPayload::read(r#"{"fixed":1E400}"#).unwrap();
        let rules = RedriveRules::new(&deployment(), None, Some(payload)).unwrap();
        for received in [event("Timeout"), record("Timeout")].map(|dead_letter| received(&dead_letter)) {
            let message = rules.message(&received).unwrap();
            let record = Record { body: message.body, ..received.record.clone() };
            let event = FailedEvent::read(&record).unwrap();
            assert_eq!((event.payload.get(), event.retry), (r#"{"fixed":1E400}"#, 1));
            assert_eq!(Some(event.origin_request_id), received.dead_letter().key);
        }
        let bytes = SQS_MESSAGE_BYTES - 100;
        let large = NewPayload::read(&format!("\"{}\"", "x".repeat(bytes))).unwrap();
        let rules = RedriveRules::new(&deployment(), None, Some(large)).unwrap();
        assert_eq!(rules.message(&received(&event("Timeout"))).unwrap_err(), ReasonCode::PayloadTooLarge);
    }

    #[test]
    fn a_function_that_is_not_allowed_gets_nothing() {
        let refused = |name: &str| RedriveRules::new(&deployment(), Some(name), None).unwrap_err();
        let other = "arn:aws:lambda:eu-west-1:123456789012:function:payments";
        let expected = format!(
            "--retarget {other}: TARGET_FUNCTIONS does not allow it, so its events would be dead-lettered again; \
             run `comeback attach` first, and pass the function's full ARN"
        );
        assert_eq!((refused(other).to_string(), refused(other).exit_code()), (expected, 2));
        assert!(refused("payments").to_string().starts_with("--retarget payments: give the full ARN"));
    }
}
