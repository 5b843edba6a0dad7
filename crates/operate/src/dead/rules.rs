//! The message that a redrive sends for a dead-letter, checked by the handler's own rules.

use comeback_engine::{Action, Pauses, Policies, ReasonCode, Record, Timestamp, decide};

use crate::aws::NewMessage;
use crate::command::CommandName;
use crate::dead::received::Received;
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::text;
use crate::text::quoted;

/// The policies and pauses of a deployment's handler, which it would apply to redriven dead-letters.
#[derive(Clone, Debug)]
pub struct RedriveRules {
    policies: Policies,
    retarget: Option<String>,
}

impl RedriveRules {
    /// The rules of a deployment, for redriving to the original functions or to `retarget`.
    ///
    /// # Errors
    ///
    /// Fails if the handler refuses its settings, because then nobody can tell which functions it would re-invoke. Also
    /// fails if it would not re-invoke `retarget`.
    pub fn new(deployment: &Deployment, retarget: Option<&str>) -> Result<Self, Failure> {
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
            None => Ok(Self { policies, retarget: retarget.map(ToOwned::to_owned) }),
        }
    }

    /// The function to invoke instead of the original one; `None` if the original is kept.
    pub fn retarget(&self) -> Option<&str> {
        self.retarget.as_deref()
    }

    /// The message to send so that the dead-letter's event starts anew. It has none of the dead-letter's attributes:
    /// the attribute `Comeback` would mark it as a moved message.
    ///
    /// # Errors
    ///
    /// Fails with the reason why the handler would dead-letter the message again immediately.
    pub fn message(&self, received: &Received) -> Result<NewMessage, ReasonCode> {
        let body = received.dead_letter().redriven(self.retarget()).map_err(|reason| reason.code)?;
        let body = self.rehearsed(body, received.record.sent)?;
        let trace_header = received.record.trace_header.clone();
        Ok(NewMessage { body, trace_header, ..NewMessage::default() })
    }

    /// Runs the handler's rules to find out whether they would dead-letter the event, on its first receive or when its
    /// first retry is due. The event starts anew, so the result does not depend on the time when its message is sent.
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
            // A pause only holds events, and dead-letters none.
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
    use crate::dead::samples::{ORDERS, deployment, event, received, record};

    #[test]
    fn retargeted_dead_letter_names_the_new_function() {
        let live = format!("{ORDERS}:live");
        let rules = RedriveRules::new(&deployment(), Some(&live)).unwrap();
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
    fn a_function_that_is_not_allowed_gets_nothing() {
        let refused = |name: &str| RedriveRules::new(&deployment(), Some(name)).unwrap_err();
        let other = "arn:aws:lambda:eu-west-1:123456789012:function:payments";
        let expected = format!(
            "--retarget {other}: TARGET_FUNCTIONS does not allow it, so its events would be dead-lettered again; \
             run `comeback attach` first, and pass the function's full ARN"
        );
        assert_eq!((refused(other).to_string(), refused(other).exit_code()), (expected, 2));
        assert!(refused("payments").to_string().starts_with("--retarget payments: give the full ARN"));
    }
}
