//! EventBridge: `PutEvents`.
//!
//! If a response is lost, the events in the call are sent again, and the bus may receive them twice.

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;

use crate::classify::{TokioSleep, answer, send_once};
use crate::limits::{EVENTBRIDGE, Limits};
use crate::operation::{EntryAnswer, Operation, ServiceError};

/// Sends events to event buses. Each event names its bus.
///
/// ```no_run
/// # async fn example(config: aws_config::SdkConfig) -> Result<(), Box<dyn std::error::Error>> {
/// use aws_sdk_eventbridge::types::PutEventsRequestEntry;
/// use comeback_delivery::eventbridge;
///
/// let deliver = eventbridge::Sender::new(aws_sdk_eventbridge::Client::new(&config));
/// let event = PutEventsRequestEntry::builder()
///     .event_bus_name("orders")
///     .source("shop")
///     .detail_type("OrderPlaced")
///     .detail("{}")
///     .build();
/// deliver.send([event]).await?;
/// # Ok(())
/// # }
/// ```
pub type Sender = crate::Sender<PutEvents, TokioSleep>;

impl Sender {
    /// Creates a sender. Each event goes to the bus that it names, or to the default bus if it names none. The client's
    /// own retries are switched off.
    pub fn new(client: Client) -> Self {
        Self::over(PutEvents { client }, tokio::time::sleep)
    }
}

/// The `PutEvents` API.
#[derive(Debug)]
pub struct PutEvents {
    client: Client,
}

/// Size of an event's time in bytes, as EventBridge counts it. The time's format does not matter.
const TIME: usize = 14;

/// EventBridge's receipt for an accepted event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventBridgeReceipt {
    /// The id that EventBridge gave the event.
    pub event_id: String,
}

impl Operation for PutEvents {
    type Entry = PutEventsRequestEntry;
    type Receipt = EventBridgeReceipt;

    fn limits(&self) -> Limits {
        EVENTBRIDGE
    }

    /// Size of an event in bytes: its source, detail type, detail and resources, plus 14 bytes if it has a time.
    /// Source: EventBridge User Guide, "Calculating PutEvents event entry size".
    fn size(&self, event: &PutEventsRequestEntry) -> usize {
        let texts = [event.source(), event.detail_type(), event.detail()];
        let texts: usize = texts.into_iter().flatten().map(str::len).sum();
        let resources: usize = event.resources().iter().map(String::len).sum();
        texts + resources + event.time().map_or(0, |_| TIME)
    }

    async fn call(
        &self,
        events: &[&PutEventsRequestEntry],
    ) -> Result<Vec<EntryAnswer<EventBridgeReceipt>>, ServiceError> {
        let events = events.iter().map(|&event| event.clone()).collect();
        let call = self.client.put_events().set_entries(Some(events));
        let output = send_once!(aws_sdk_eventbridge, call)?;
        let answers = output.entries().iter().map(|result| {
            let receipt = result.event_id().map(|event_id| EventBridgeReceipt { event_id: event_id.into() });
            answer(receipt, result.error_code(), result.error_message())
        });
        Ok(answers.collect())
    }
}
