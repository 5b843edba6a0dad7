use comeback_engine::DeadLetter;
use comeback_timelapse::Call;
use serde::Serialize;

/// A call to AWS.
#[derive(Debug, Serialize)]
#[serde(tag = "operation")]
pub enum MadeCall {
    /// Hides messages.
    #[serde(rename = "sqs:ChangeMessageVisibilityBatch")]
    ChangeMessageVisibilityBatch {
        /// Message and seconds.
        entries: Vec<Hidden>,
    },
    /// Calls a function.
    #[serde(rename = "lambda:Invoke")]
    Invoke {
        /// `FunctionName`.
        function_name: String,
        /// What the function gets, byte for byte: JSON as text, because not every reader of this
        /// report can hold what a payload may (`1E400`, repeated keys).
        payload: String,
    },
    /// Dead-letters.
    #[serde(rename = "sqs:SendMessageBatch")]
    SendMessageBatch {
        /// What the dead-letter queue gets.
        messages: Vec<SentMessage>,
    },
    /// Moves messages.
    #[serde(rename = "sqs:SendMessageBatch (retry queue)")]
    SendAgain {
        /// What the retry queue gets beside the bodies, which do not change.
        copies: Vec<Moved>,
    },
}

/// A message that is sent again.
#[derive(Debug, Serialize)]
pub struct Moved {
    /// SQS's id of the message that the copy follows.
    pub message_id: String,
    /// Seconds.
    pub delay: u64,
    /// The copy's attribute `Comeback`, as text.
    pub comeback: String,
}

/// An entry of a `ChangeMessageVisibilityBatch`.
#[derive(Debug, Serialize)]
pub struct Hidden {
    /// SQS's id.
    pub message_id: String,
    /// Seconds.
    pub visibility_timeout: u64,
}

/// An entry of a `SendMessageBatch`.
#[derive(Debug, Serialize)]
pub struct SentMessage {
    /// Name and value of each message attribute.
    pub attributes: Vec<(&'static str, String)>,
    /// The body, as text.
    pub body: String,
}

impl MadeCall {
    pub(super) fn of(call: Call) -> Self {
        match call {
            Call::ChangeMessageVisibilityBatch { entries } => {
                let hidden = |(message_id, visibility_timeout)| Hidden { message_id, visibility_timeout };
                Self::ChangeMessageVisibilityBatch { entries: entries.into_iter().map(hidden).collect() }
            }
            Call::Invoke { function_arn, payload } => Self::Invoke { function_name: function_arn, payload },
            Call::SendMessageBatch { messages } => {
                Self::SendMessageBatch { messages: messages.into_iter().map(SentMessage::of).collect() }
            }
            Call::SendAgain { copies } => {
                let moved = |(message_id, delay, comeback)| Moved { message_id, delay, comeback };
                Self::SendAgain { copies: copies.into_iter().map(moved).collect() }
            }
        }
    }
}

impl SentMessage {
    fn of(message: DeadLetter) -> Self {
        let attributes = message.attributes.into_iter().map(|a| (a.name, a.value)).collect();
        Self { attributes, body: message.body }
    }
}
