use serde::ser::{Serialize, SerializeMap, Serializer};

/// An API operation that Comeback causes and AWS bills. The target's first invocations are not
/// among them: they happen with or without retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// SQS `SendMessage`: Lambda writes an invocation record to the retry queue.
    SendMessage,
    /// SQS `ReceiveMessage`: the event source mapping polls, empty polls included.
    ReceiveMessage,
    /// SQS `ChangeMessageVisibilityBatch`: the handler defers.
    ChangeMessageVisibilityBatch,
    /// SQS `DeleteMessageBatch`: the mapping deletes what a batch has settled.
    DeleteMessageBatch,
    /// SQS `SendMessageBatch`: the handler dead-letters.
    SendMessageBatch,
    /// Lambda `Invoke` of the retry handler, by the mapping.
    InvokeHandler,
    /// Lambda `Invoke` of the target, by the handler.
    InvokeTarget,
}

impl Operation {
    /// Every operation, in the order in which they are listed.
    pub const ALL: [Self; 7] = [
        Self::SendMessage,
        Self::ReceiveMessage,
        Self::ChangeMessageVisibilityBatch,
        Self::DeleteMessageBatch,
        Self::SendMessageBatch,
        Self::InvokeHandler,
        Self::InvokeTarget,
    ];

    /// `service:Operation`; the two kinds of `Invoke` name their function behind it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SendMessage => "sqs:SendMessage",
            Self::ReceiveMessage => "sqs:ReceiveMessage",
            Self::ChangeMessageVisibilityBatch => "sqs:ChangeMessageVisibilityBatch",
            Self::DeleteMessageBatch => "sqs:DeleteMessageBatch",
            Self::SendMessageBatch => "sqs:SendMessageBatch",
            Self::InvokeHandler => "lambda:Invoke (retry handler)",
            Self::InvokeTarget => "lambda:Invoke (target)",
        }
    }
}

/// How often each operation was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls([u64; Operation::ALL.len()]);

impl Calls {
    /// How often this one was.
    pub const fn of(&self, operation: Operation) -> u64 {
        self.0[operation as usize]
    }

    pub(crate) const fn add(&mut self, operation: Operation, calls: u64) {
        self.0[operation as usize] += calls;
    }
}

/// An object from operation name to count, in the order of [`Operation::ALL`].
impl Serialize for Calls {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Operation::ALL.len()))?;
        for operation in Operation::ALL {
            map.serialize_entry(operation.name(), &self.of(operation))?;
        }
        map.end()
    }
}
