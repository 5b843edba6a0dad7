//! DynamoDB: `BatchWriteItem`, puts and deletes over several tables.
//!
//! DynamoDB refuses a call that names a key twice, so writes of one key go out one after another, in
//! the order of input, and the last one stands. Repeating a write changes nothing, so a lost answer does
//! no harm, unless someone else writes the same key in between.
//!
//! | file | holds |
//! |---|---|
//! | `attributes` | [`Attributes`]: an item, or its key |
//! | `key` | [`Table`], and which writes have the same key |
//! | `size` | an item's bytes as DynamoDB counts them, and in a call |

mod attributes;
mod key;
mod size;

use std::collections::{HashMap, HashSet};

use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::types::{DeleteRequest, PutRequest, WriteRequest};
use aws_sdk_dynamodb::{Client, Config};

use crate::limits::{DYNAMODB, Limits};
use crate::sdk::TokioSleep;
use crate::{Answer, ErrorKind, Lane, Operation, ServiceError, classify};

pub use attributes::Attributes;
pub use key::Table;

/// Writes into tables.
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
    /// A sender to these tables. It must know their keys. The client's own retries are switched off.
    pub fn new(client: Client, tables: impl IntoIterator<Item = Table>) -> Self {
        Self::over(BatchWriteItem { client, tables: tables.into_iter().collect() }, tokio::time::sleep)
    }
}

/// A put or a delete.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The name of its table, which is one of the sender's.
    pub table: String,
    /// What it does there.
    pub action: Action,
}

/// What a [`Write`] does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Puts this item in place of the one that has its key.
    Put(Attributes),
    /// Deletes the item of this key, the key's attributes and no others.
    Delete(Attributes),
}

impl Write {
    /// Puts this item into the table of this name, which is one of the sender's.
    pub fn put(table: impl Into<String>, item: Attributes) -> Self {
        Self { table: table.into(), action: Action::Put(item) }
    }

    /// Deletes the item that has this key, the key's attributes and no others.
    pub fn delete(table: impl Into<String>, key: Attributes) -> Self {
        Self { table: table.into(), action: Action::Delete(key) }
    }

    /// The item that is put, or the key of the one that is deleted.
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

/// `BatchWriteItem` into some tables.
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

    /// The bytes of the item once it is stored.
    fn size(&self, write: &Write) -> usize {
        size::stored(write.attributes())
    }

    /// The bytes of the write in the JSON of a call.
    fn size_in_call(&self, write: &Write) -> usize {
        size::sent(&write.table, write.attributes())
    }

    fn lane(&self, write: &Write) -> Option<Lane> {
        self.key(write).ok().map(Lane::last_wins)
    }

    /// DynamoDB would refuse the whole call for one write without a proper key, so that write is refused
    /// here. A call that DynamoDB refuses for another reason goes again in halves, with such writes.
    async fn call(&self, writes: &[&Write]) -> Result<Vec<Answer>, ServiceError> {
        let keys: Vec<Result<Lane, ServiceError>> = writes.iter().map(|write| self.key(write)).collect();
        let mut requests: HashMap<String, Vec<WriteRequest>> = HashMap::new();
        for (write, _) in writes.iter().zip(&keys).filter(|(_, key)| key.is_ok()) {
            requests.entry(write.table.clone()).or_default().push(write.request());
        }
        let one_table = requests.len() == 1;
        let sent = if requests.is_empty() { Ok(HashSet::new()) } else { self.send(requests).await };
        // Of several tables, the one that is missing or not permitted is not named: the others go without it.
        let sent = sent.map_err(|mut error| {
            if error.kind.is_of_every_call() && !one_table {
                error.kind = ErrorKind::Refused;
            }
            error
        });
        if let Err(error) = &sent
            && (error.kind.may_be_of_one_entry()
                || keys.iter().all(Result::is_ok) && !self.spares_tables(error))
        {
            return Err(error.clone());
        }
        let of_sent = |key: Lane| match &sent {
            Ok(unprocessed) if unprocessed.contains(&key) => Err(unprocessed_error()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.clone()),
        };
        Ok(keys.into_iter().map(|key| key.and_then(of_sent)).collect())
    }
}

impl BatchWriteItem {
    /// Whether other tables may be written to nevertheless.
    fn spares_tables(&self, error: &ServiceError) -> bool {
        error.kind.is_of_every_call() && self.tables.len() > 1
    }

    /// The keys that were not processed. An absent list counts as empty.
    async fn send(
        &self,
        requests: HashMap<String, Vec<WriteRequest>>,
    ) -> Result<HashSet<Lane>, ServiceError> {
        let asked: HashSet<Lane> = self.keys(&requests).collect::<Option<_>>().expect("BUG: each has a key");
        let call = self.client.batch_write_item().set_request_items(Some(requests));
        let call = call.customize().config_override(Config::builder().retry_config(RetryConfig::disabled()));
        let output = call.send().await.map_err(|error| classify(&error))?;
        let unprocessed = output.unprocessed_items.unwrap_or_default();
        // A key that was not in the call leaves open which was meant.
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
            let message = format!("table `{name}` is not one of this sender's: give it to `Sender::new`");
            ServiceError::new(ErrorKind::Refused, "", message)
        })
    }
}

/// DynamoDB gives no reason; most often the table's throughput is exceeded.
fn unprocessed_error() -> ServiceError {
    ServiceError::new(ErrorKind::Throttled, "", "DynamoDB left it unprocessed")
}

#[cfg(test)]
mod tests;
