//! SQS: `SendMessageBatch`, `ChangeMessageVisibilityBatch`, `DeleteMessageBatch`.
