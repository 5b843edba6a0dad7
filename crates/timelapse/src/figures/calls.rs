use serde::ser::{Serialize, SerializeMap, Serializer};

/// Each chunk of this many bytes that a call to SQS carries is billed as a request.
/// Source: aws.amazon.com/sqs/pricing.
const SQS_CHUNK: usize = 64 * 1_024;

/// An API call that Comeback causes and AWS bills. The target's first invocations are not among
/// them: they happen with or without retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApiCall {
    /// SQS `SendMessage`: Lambda writes an invocation record to the retry queue.
    SendMessage,
    /// SQS `ReceiveMessage`: the event source mapping polls, empty polls included.
    ReceiveMessage,
    /// SQS `ChangeMessageVisibilityBatch`: the handler defers.
    ChangeMessageVisibilityBatch,
    /// SQS `DeleteMessageBatch`: the mapping deletes the settled messages of a batch.
    DeleteMessageBatch,
    /// SQS `SendMessageBatch`: the handler dead-letters.
    SendMessageBatch,
    /// SQS `SendMessageBatch` to the retry queue: the handler moves.
    SendAgain,
    /// SQS `GetQueueAttributes` of the retry queue: the handler looks how many messages are in flight.
    Look,
    /// SSM `GetParameter`: the handler reads the pauses.
    ReadPauses,
    /// Lambda `Invoke` of the retry handler, by the mapping.
    InvokeHandler,
    /// Lambda `Invoke` of the target, by the handler.
    InvokeTarget,
}

impl ApiCall {
    /// Every call, in the order in which they are listed.
    pub const ALL: [Self; 10] = [
        Self::SendMessage,
        Self::ReceiveMessage,
        Self::ChangeMessageVisibilityBatch,
        Self::DeleteMessageBatch,
        Self::SendMessageBatch,
        Self::SendAgain,
        Self::Look,
        Self::ReadPauses,
        Self::InvokeHandler,
        Self::InvokeTarget,
    ];

    /// `service:Operation`. The two kinds of `Invoke` add the function.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SendMessage => "sqs:SendMessage",
            Self::ReceiveMessage => "sqs:ReceiveMessage",
            Self::ChangeMessageVisibilityBatch => "sqs:ChangeMessageVisibilityBatch",
            Self::DeleteMessageBatch => "sqs:DeleteMessageBatch",
            Self::SendMessageBatch => "sqs:SendMessageBatch",
            Self::SendAgain => "sqs:SendMessageBatch (retry queue)",
            Self::Look => "sqs:GetQueueAttributes",
            Self::ReadPauses => "ssm:GetParameter",
            Self::InvokeHandler => "lambda:Invoke (retry handler)",
            Self::InvokeTarget => "lambda:Invoke (target)",
        }
    }
}

/// How often each call was made, and how many requests that is on SQS's bill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    calls: [u64; ApiCall::ALL.len()],
    requests: [u64; ApiCall::ALL.len()],
}

impl CallCounts {
    /// How often this call was made.
    pub const fn of(&self, call: ApiCall) -> u64 {
        self.calls[call as usize]
    }

    /// The requests that these calls are billed as: more than one each where they carry much.
    pub const fn requests(&self, call: ApiCall) -> u64 {
        self.requests[call as usize]
    }

    /// Calls that carry little.
    pub(crate) const fn add(&mut self, call: ApiCall, calls: u64) {
        self.calls[call as usize] += calls;
        self.requests[call as usize] += calls;
    }

    /// A call that carries so many bytes.
    pub(crate) fn add_carrying(&mut self, call: ApiCall, bytes: usize) {
        self.calls[call as usize] += 1;
        self.requests[call as usize] += chunks(bytes);
    }
}

/// How many requests SQS bills for a call that carries so many bytes.
fn chunks(bytes: usize) -> u64 {
    bytes.div_ceil(SQS_CHUNK).max(1) as u64
}

/// An object from a call's name to its count, in the order of [`ApiCall::ALL`]; without the reads of pauses where
/// there is no parameter.
impl Serialize for CallCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for call in ApiCall::ALL.into_iter().filter(|&call| call != ApiCall::ReadPauses || self.of(call) > 0)
        {
            map.serialize_entry(call.name(), &self.of(call))?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_64_kib_of_a_call_are_a_request() {
        assert_eq!([0, 1, 65_536, 65_537, 1_048_576].map(chunks), [1, 1, 1, 2, 16]);
    }
}
