//! The calls of the seven batch APIs as the services read them, with the limits the services document.

use std::collections::HashSet;

use aws_smithy_types::base64;
use serde_json::{Map, Value, json};

use crate::service::list;

/// One call, as the service sees it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) operation: String,
    /// The entries, for `BatchWriteItem` with their `Table`, in the order of the body.
    pub(crate) entries: Vec<Value>,
    bytes: usize,
}

impl Call {
    pub(crate) fn read(operation: String, bytes: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(bytes).expect("a JSON body");
        let entries = match operation.as_str() {
            "BatchWriteItem" => in_tables(&body["RequestItems"]),
            "PutRecords" | "PutRecordBatch" => list(&body["Records"]).to_vec(),
            _ => list(&body["Entries"]).to_vec(),
        };
        Self { operation, entries, bytes: bytes.len() }
    }

    /// What tells one entry from another: a text that the test gave it.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.entries.iter().map(|entry| self.text(entry)).collect()
    }

    fn text(&self, entry: &Value) -> String {
        match self.operation.as_str() {
            "SendMessageBatch" => string(&entry["MessageBody"]),
            "ChangeMessageVisibilityBatch" | "DeleteMessageBatch" => string(&entry["ReceiptHandle"]),
            "BatchWriteItem" => {
                let version = key(entry)["version"]["N"].as_str().unwrap_or_default();
                format!("{}{version}", string(&key(entry)["pk"]["S"]))
            }
            "PutRecords" | "PutRecordBatch" => {
                let data = base64::decode(string(&entry["Data"])).expect("base64");
                String::from_utf8(data).expect("a text")
            }
            "PutEvents" => string(&entry["Detail"]),
            other => panic!("no such operation: {other}"),
        }
    }

    /// The service's answer when these entries failed with these codes.
    pub(crate) fn answer(&self, codes: &[Option<&str>]) -> Value {
        let failed = codes.iter().filter(|code| code.is_some()).count();
        let results = |done: Value| -> Vec<Value> {
            let refused = |code: &&str| json!({"ErrorCode": code, "ErrorMessage": "as asked"});
            codes.iter().map(|code| code.as_ref().map_or_else(|| done.clone(), refused)).collect()
        };
        match self.operation.as_str() {
            "BatchWriteItem" => json!({"UnprocessedItems": self.unprocessed(codes)}),
            "PutRecords" => {
                let done = json!({"SequenceNumber": "1", "ShardId": "shardId-000000000000"});
                json!({"FailedRecordCount": failed, "Records": results(done)})
            }
            "PutRecordBatch" => {
                json!({"FailedPutCount": failed, "RequestResponses": results(json!({"RecordId": "r"}))})
            }
            "PutEvents" => json!({"FailedEntryCount": failed, "Entries": results(json!({"EventId": "e"}))}),
            _ => self.by_id(codes),
        }
    }

    fn by_id(&self, codes: &[Option<&str>]) -> Value {
        let (mut successful, mut refused) = (Vec::new(), Vec::new());
        for (entry, code) in self.entries.iter().zip(codes) {
            let id = &entry["Id"];
            match code {
                None => successful.push(json!({"Id": id, "MessageId": "m", "MD5OfMessageBody": "x"})),
                Some(code) => {
                    let sender_fault = *code == "InvalidMessageContents";
                    refused.push(
                        json!({"Id": id, "Code": code, "SenderFault": sender_fault, "Message": "as asked"}),
                    );
                }
            }
        }
        json!({"Successful": successful, "Failed": refused})
    }

    fn unprocessed(&self, codes: &[Option<&str>]) -> Value {
        let mut tables = Map::new();
        for (entry, _) in self.entries.iter().zip(codes).filter(|(_, code)| code.is_some()) {
            let requests = tables.entry(string(&entry["Table"])).or_insert_with(|| json!([]));
            let mut request = entry.clone();
            request.as_object_mut().expect("an object").remove("Table");
            requests.as_array_mut().expect("a list").push(request);
        }
        Value::Object(tables)
    }

    /// What the service would refuse the call for.
    pub(crate) fn violation(&self) -> Option<String> {
        let (count, bytes) = match self.operation.as_str() {
            "BatchWriteItem" => (25, 16 * 1024 * 1024),
            "PutRecords" => (500, 10 * 1024 * 1024),
            "PutRecordBatch" => (500, 4 * 1024 * 1024),
            "PutEvents" => (10, 1024 * 1024 - 1),
            _ => (10, 1024 * 1024),
        };
        let distinct = |values: Vec<String>| values.iter().collect::<HashSet<_>>().len() == values.len();
        let total = self.total();
        if self.entries.is_empty() || self.entries.len() > count {
            return Some(format!("{} with {} entries", self.operation, self.entries.len()));
        }
        if total > bytes {
            return Some(format!("{} of {total} bytes", self.operation));
        }
        let names = match self.operation.as_str() {
            "BatchWriteItem" => {
                self.entries.iter().map(|entry| format!("{}{}", entry["Table"], key(entry)["pk"])).collect()
            }
            "PutRecords" | "PutRecordBatch" | "PutEvents" => Vec::new(),
            _ => self.entries.iter().map(|entry| string(&entry["Id"])).collect(),
        };
        (!distinct(names)).then(|| format!("{} names an entry twice", self.operation))
    }

    /// Bytes as the service counts them against the limit of a call.
    fn total(&self) -> usize {
        let length = |value: &Value| value.as_str().map_or(0, str::len);
        let decoded = |value: &Value| base64::decode(string(value)).expect("base64").len();
        let of = |entry: &Value| match self.operation.as_str() {
            "SendMessageBatch" => length(&entry["MessageBody"]) + attributes(&entry["MessageAttributes"]),
            "PutRecords" => decoded(&entry["Data"]) + length(&entry["PartitionKey"]),
            "PutRecordBatch" => decoded(&entry["Data"]),
            "PutEvents" => {
                let resources: usize = list(&entry["Resources"]).iter().map(length).sum();
                let time = if entry["Time"].is_null() { 0 } else { 14 };
                length(&entry["Detail"])
                    + length(&entry["DetailType"])
                    + length(&entry["Source"])
                    + resources
                    + time
            }
            _ => 0,
        };
        match self.operation.as_str() {
            "BatchWriteItem" => self.bytes,
            _ => self.entries.iter().map(of).sum(),
        }
    }
}

fn attributes(attributes: &Value) -> usize {
    let Some(attributes) = attributes.as_object() else { return 0 };
    let value = |value: &Value| {
        string(&value["DataType"]).len()
            + value["StringValue"].as_str().map_or(0, str::len)
            + value["BinaryValue"].as_str().map_or(0, |text| base64::decode(text).expect("base64").len())
    };
    attributes.iter().map(|(name, attribute)| name.len() + value(attribute)).sum()
}

fn in_tables(tables: &Value) -> Vec<Value> {
    let tables = tables.as_object().expect("tables");
    let with_table = |(table, requests): (&String, &Value)| -> Vec<Value> {
        let mut requests = list(requests).to_vec();
        requests.iter_mut().for_each(|request| request["Table"] = json!(table));
        requests
    };
    tables.iter().flat_map(with_table).collect()
}

fn key(entry: &Value) -> &Value {
    let put = &entry["PutRequest"]["Item"];
    if put.is_null() { &entry["DeleteRequest"]["Key"] } else { put }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}")).to_owned()
}
