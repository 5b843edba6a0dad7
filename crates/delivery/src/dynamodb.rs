//! DynamoDB: `BatchWriteItem`, with puts and deletes in several tables.
//!
//! DynamoDB refuses a call that names a key twice, so writes to one key are sent one after another, in the order of the
//! input. The last write wins, even if an earlier write was refused. Sending a write again after its response was lost
//! changes nothing, unless another client wrote to the same key in between.

mod key;
mod size;

use std::collections::{HashMap, HashSet};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{DeleteRequest, PutRequest, WriteRequest};

use crate::classify::{TokioSleep, send_once};
use crate::lanes::Lane;
use crate::limits::{DYNAMODB, Limits};
use crate::operation::{EntryAnswer, ErrorKind, Operation, ServiceError};

pub use key::Table;
pub use size::Attributes;

/// Sends puts and deletes to DynamoDB tables.
///
/// ```no_run
/// # async fn example(config: aws_config::SdkConfig) -> Result<(), Box<dyn std::error::Error>> {
/// use std::collections::HashMap;
///
/// use aws_sdk_dynamodb::types::AttributeValue::{N, S};
/// use comeback_delivery::dynamodb::{Sender, Table, Write};
///
/// let tables = [Table::new("orders", "customer").sort("number"), Table::new("customers", "customer")];
/// let deliver = Sender::new(aws_sdk_dynamodb::Client::new(&config), tables);
/// let customer = || ("customer".to_owned(), S("c-7".into()));
/// let order = HashMap::from([customer(), ("number".into(), N("42".into())), ("state".into(), S("new".into()))]);
/// deliver.send([Write::put("orders", order), Write::delete("customers", HashMap::from([customer()]))]).await?;
/// # Ok(())
/// # }
/// ```
pub type Sender = crate::Sender<BatchWriteItem, TokioSleep>;

impl Sender {
    /// Creates a sender for these tables. Each [`Table`] names its key attributes. The client's own retries are
    /// switched off.
    pub fn new(client: Client, tables: impl IntoIterator<Item = Table>) -> Self {
        let tables = tables.into_iter().collect();
        Self::over(BatchWriteItem { client, tables }, tokio::time::sleep)
    }
}

/// A put or a delete in one of the sender's tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// Name of the table. The table must be one of those given to the sender.
    pub table: String,
    /// The change to make: a put or a delete.
    pub action: Action,
}

/// The change that a [`Write`] makes: a put or a delete.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Puts this item, replacing any item with the same key.
    Put(Attributes),
    /// Deletes the item with this key. The attributes must be exactly the key attributes.
    Delete(Attributes),
}

impl Write {
    /// Creates a write that puts `item` into `table`, which must be one of the sender's tables.
    pub fn put(table: impl Into<String>, item: Attributes) -> Self {
        Self { table: table.into(), action: Action::Put(item) }
    }

    /// Creates a write that deletes an item from `table`. The attributes in `key` must be exactly the key attributes of
    /// the item.
    pub fn delete(table: impl Into<String>, key: Attributes) -> Self {
        Self { table: table.into(), action: Action::Delete(key) }
    }

    /// The attributes of the item to put, or the key attributes of the item to delete.
    pub fn attributes(&self) -> &Attributes {
        let (Action::Put(attributes) | Action::Delete(attributes)) = &self.action;
        attributes
    }

    fn request(&self) -> WriteRequest {
        match &self.action {
            Action::Put(item) => {
                let put = PutRequest::builder().set_item(Some(item.clone())).build();
                WriteRequest::builder().put_request(put.expect("BUG: the item is set")).build()
            }
            Action::Delete(key) => {
                let delete = DeleteRequest::builder().set_key(Some(key.clone())).build();
                WriteRequest::builder().delete_request(delete.expect("BUG: the key is set")).build()
            }
        }
    }
}

/// The `BatchWriteItem` API for the tables that the sender was created with.
#[derive(Debug)]
pub struct BatchWriteItem {
    client: Client,
    tables: Vec<Table>,
}

impl Operation for BatchWriteItem {
    type Entry = Write;
    type Receipt = ();

    fn limits(&self) -> Limits {
        DYNAMODB
    }

    /// Size of the item in bytes, as DynamoDB stores it.
    fn size(&self, write: &Write) -> usize {
        size::stored(write.attributes())
    }

    /// Number of bytes that the write takes up in a call, as JSON.
    fn size_in_call(&self, write: &Write) -> usize {
        size::sent(&write.table, write.attributes())
    }

    fn lane(&self, write: &Write) -> Option<Lane> {
        self.key(write).ok().map(Lane::last_wins)
    }

    /// Refuses a write without a valid key, because one such write makes DynamoDB refuse the whole call.
    fn check(&self, write: &Write) -> Result<(), ServiceError> {
        self.key(write).map(drop)
    }

    async fn call(&self, writes: &[&Write]) -> Result<Vec<EntryAnswer>, ServiceError> {
        let keys: Vec<Lane> =
            writes.iter().map(|write| self.key(write).expect("BUG: its key was checked")).collect();
        let mut requests: HashMap<String, Vec<WriteRequest>> = HashMap::new();
        for write in writes {
            requests.entry(write.table.clone()).or_default().push(write.request());
        }
        let one_table = requests.len() == 1;
        match self.send(requests).await {
            Ok(unprocessed) => Ok(keys.iter().map(|key| taken(key, &unprocessed)).collect()),
            // The error does not name the missing or forbidden table. The call is sent again in halves, so that writes
            // to the other tables get through.
            Err(mut error) if error.kind.is_of_every_call() && !one_table => {
                (error.kind, error.is_of_some) = (ErrorKind::Refused, true);
                Err(error)
            }
            // Writes to the sender's other tables may succeed, so only this call's writes fail.
            Err(error) if error.kind.is_of_every_call() && self.tables.len() > 1 => {
                Ok(writes.iter().map(|_| Err(error.clone())).collect())
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns the result for one write. DynamoDB gives no reason for an unprocessed write. The usual reason is throttling,
/// so the write counts as throttled.
fn taken(key: &Lane, unprocessed: &HashSet<Lane>) -> EntryAnswer {
    if unprocessed.contains(key) {
        return Err(ServiceError::new(ErrorKind::Throttled, "", "DynamoDB left it unprocessed"));
    }
    Ok(())
}

impl BatchWriteItem {
    /// Sends the write requests, and returns the keys that DynamoDB left unprocessed. A response without a list of
    /// unprocessed items means that all items were processed.
    async fn send(
        &self,
        requests: HashMap<String, Vec<WriteRequest>>,
    ) -> Result<HashSet<Lane>, ServiceError> {
        let asked: HashSet<Lane> = self.keys(&requests).collect::<Option<_>>().expect("BUG: each has a key");
        let call = self.client.batch_write_item().set_request_items(Some(requests));
        let output = send_once!(aws_sdk_dynamodb, call)?;
        let unprocessed = output.unprocessed_items.unwrap_or_default();
        // If the response names a key that was not in the call, it is unclear which writes are unprocessed.
        let unprocessed: Option<HashSet<Lane>> = self.keys(&unprocessed).collect();
        unprocessed.filter(|unprocessed| unprocessed.is_subset(&asked)).ok_or_else(ServiceError::no_answer)
    }

    fn keys(&self, requests: &HashMap<String, Vec<WriteRequest>>) -> impl Iterator<Item = Option<Lane>> {
        let each = requests.iter().flat_map(|(table, requests)| requests.iter().map(move |it| (table, it)));
        each.map(|(table, request)| {
            let put = request.put_request().map(PutRequest::item);
            let attributes = put.or(request.delete_request().map(DeleteRequest::key))?;
            self.table(table).ok()?.key(attributes).ok()
        })
    }

    fn key(&self, write: &Write) -> Result<Lane, ServiceError> {
        let table = self.table(&write.table)?;
        match &write.action {
            Action::Put(item) => table.key(item),
            Action::Delete(key) => table.key_alone(key),
        }
    }

    fn table(&self, name: &str) -> Result<&Table, ServiceError> {
        self.tables.iter().find(|table| table.name == name).ok_or_else(|| {
            let message = format!("this sender does not know table `{name}`; pass it to `Sender::new`");
            ServiceError::new(ErrorKind::Refused, "", message)
        })
    }
}

#[cfg(test)]
mod tests {
    //! Tests with the SDK's own client and canned HTTP responses. Further tests are in `tests/faults`.

    use std::sync::{Arc, Mutex};

    use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
    use aws_sdk_dynamodb::types::AttributeValue::{self, B, Bool, L, M, N, Null, S, Ss};
    use aws_smithy_http_client::test_util::infallible_client_fn;
    use proptest::collection::{hash_map, vec};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    type Bodies = Arc<Mutex<Vec<String>>>;

    /// Creates an operation whose calls all get this HTTP response. Also returns a list that collects the bodies of its
    /// requests.
    fn answering(status: u16, answer: &Value) -> (BatchWriteItem, Bodies) {
        let bodies = Bodies::default();
        let (seen, answer) = (bodies.clone(), answer.to_string());
        let http_client = infallible_client_fn(move |request: http::Request<_>| {
            let body = request.body().bytes().unwrap_or_default().to_vec();
            seen.lock().unwrap().push(String::from_utf8(body).unwrap());
            http::Response::builder().status(status).body(answer.clone()).unwrap()
        });
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-west-1"))
            .credentials_provider(Credentials::new("id", "key", None, None, "test"))
            .http_client(http_client)
            .build();
        let tables = [Table::new("orders", "pk").sort("sk"), Table::new("customers", "pk")];
        let (client, tables) = (Client::from_conf(config), tables.into_iter().collect());
        (BatchWriteItem { client, tables }, bodies)
    }

    fn key(pk: &str, sk: &str) -> Attributes {
        Attributes::from([("pk".into(), S(pk.into())), ("sk".into(), N(sk.into()))])
    }

    fn customer(pk: &str) -> Write {
        Write::put("customers", Attributes::from([("pk".into(), S(pk.into()))]))
    }

    #[tokio::test]
    async fn a_call_holds_puts_and_deletes_of_all_tables() {
        let (operation, bodies) = answering(200, &json!({"UnprocessedItems": {}}));
        let writes =
            [Write::put("orders", key("a", "1")), Write::delete("orders", key("a", "2")), customer("a")];
        let answers = operation.call(&writes.each_ref()).await;
        assert_eq!(answers, Ok(vec![Ok(()); 3]));
        let body: Value = serde_json::from_str(&bodies.lock().unwrap()[0]).unwrap();
        let order = |number| json!({"pk": {"S": "a"}, "sk": {"N": number}});
        assert_eq!(
            body,
            json!({"RequestItems": {
                "orders": [{"PutRequest": {"Item": order("1")}}, {"DeleteRequest": {"Key": order("2")}}],
                "customers": [{"PutRequest": {"Item": {"pk": {"S": "a"}}}}],
            }})
        );
    }

    #[tokio::test]
    async fn unprocessed_writes_are_matched_by_key() {
        let order =
            json!({"PutRequest": {"Item": {"pk": {"S": "a"}, "sk": {"N": "1"}, "more": {"BOOL": true}}}});
        let gone = json!({"DeleteRequest": {"Key": {"sk": {"N": "2.0"}, "pk": {"S": "a"}}}});
        let (operation, _) = answering(200, &json!({"UnprocessedItems": {"orders": [gone, order]}}));
        let writes = [
            Write::put("orders", key("a", "1.0")),
            customer("a"),
            Write::delete("orders", key("a", "2")),
            Write::put("orders", key("b", "1")),
        ];
        let answers = operation.call(&writes.each_ref()).await.unwrap();
        let left = ServiceError::new(ErrorKind::Throttled, "", "DynamoDB left it unprocessed");
        assert_eq!(answers, [Err(left.clone()), Ok(()), Err(left), Ok(())]);
    }

    #[tokio::test]
    async fn unknown_unprocessed_item_leaves_all_unanswered() {
        let of = |key: &str| json!([{"PutRequest": {"Item": {"pk": {"S": key}}}}]);
        for unprocessed in
            [json!({"customers": of("z")}), json!({"others": of("a")}), json!({"customers": [{}]})]
        {
            let (operation, _) = answering(200, &json!({"UnprocessedItems": unprocessed}));
            let answers = operation.call(&[&customer("a"), &customer("b")]).await;
            assert_eq!(answers, Err(ServiceError::no_answer()), "{unprocessed}");
        }
    }

    #[tokio::test]
    async fn write_without_proper_key_is_not_sent() {
        let (operation, bodies) = answering(200, &json!({"UnprocessedItems": {}}));
        let bad = [
            Write::put("nowhere", key("a", "1")),
            Write::put("orders", Attributes::from([("pk".into(), S("a".into()))])),
            Write::delete("customers", key("a", "1")),
        ];
        assert!(bad.iter().all(|write| operation.lane(write).is_none()));
        let writes = bad.into_iter().chain([customer("a")]);
        let sender = crate::Sender::over(operation, |_| std::future::ready(()));
        let undelivered = sender.send(writes).await.unwrap_err();
        let texts: Vec<String> = undelivered.entries.iter().map(|left| left.cause.to_string()).collect();
        assert_eq!(
            texts,
            [
                "refused: this sender does not know table `nowhere`; pass it to `Sender::new`",
                "refused: the key of a write to table `orders` has no `sk`",
                "refused: the key of a write to table `customers` has `sk`, which is not part of the key",
            ]
        );
        assert!(undelivered.entries.iter().all(|left| left.calls == 0));
        let body: Value = serde_json::from_str(&bodies.lock().unwrap()[0]).unwrap();
        let items = json!([{"PutRequest": {"Item": {"pk": {"S": "a"}}}}]);
        assert_eq!((undelivered.calls, body), (1, json!({"RequestItems": {"customers": items}})));
    }

    fn value() -> impl Strategy<Value = AttributeValue> {
        let leaf = prop_oneof![
            any::<String>().prop_map(S),
            vec(any::<u8>(), 0..600).prop_map(|bytes| B(bytes.into())),
            any::<i64>().prop_map(|number| N(number.to_string())),
            any::<bool>().prop_map(Bool),
            Just(Null(true)),
            vec(any::<String>(), 1..4).prop_map(Ss),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(L),
                hash_map(any::<String>(), inner, 0..4).prop_map(M),
            ]
        })
    }

    proptest! {
        /// The size that the sender computes for a call must be at least the size of the call's JSON body, or calls
        /// could exceed the service's limit. It must not be much larger, or calls would be half empty.
        #[test]
        fn size_in_a_call_is_its_json(values in vec(value(), 1..12)) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let (operation, bodies) = answering(200, &json!({"UnprocessedItems": {}}));
            let writes: Vec<Write> = values.into_iter().enumerate().map(|(index, value)| {
                let attributes = [("pk".into(), S(index.to_string())), ("\u{1}\"né".into(), value)];
                Write::put("customers", Attributes::from(attributes))
            }).collect();
            runtime.block_on(operation.call(&writes.iter().collect::<Vec<_>>())).unwrap();
            let body = bodies.lock().unwrap()[0].len() - r#"{"RequestItems":{}}"#.len();
            let counted: usize = writes.iter().map(|write| operation.size_in_call(write)).sum();
            prop_assert!(counted >= body, "{counted} for {body}");
            let values: usize = writes.iter().map(|write| operation.size(write)).sum();
            prop_assert!(counted <= body + writes.len() * 20 + values * 10, "{counted} for {body}");
        }
    }
}
