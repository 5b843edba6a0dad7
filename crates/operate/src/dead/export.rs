//! A letter as a line of JSON.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::MessageAttributeValue;
use aws_smithy_types::base64;
use comeback_delivery::sqs::Message;
use serde::{Deserialize, Serialize};

use super::queue::Received;
use crate::Failure;

/// All that SQS knows of a letter and takes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    pub(super) message_id: String,
    /// Milliseconds since the epoch. For the reader: a message that is sent again is sent now.
    pub(super) sent_timestamp: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) trace_header: Option<String>,
    pub(super) attributes: BTreeMap<String, Attribute>,
    /// As it was received, to the byte.
    pub(super) body: String,
}

/// A message attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Attribute {
    /// `String`, `Number` or `Binary`, and perhaps a label: `Number.int`.
    r#type: String,
    /// Text; of a `Binary`, in Base64.
    value: String,
}

const BINARY: &str = "Binary";

impl Line {
    pub(super) fn of(received: &Received) -> Self {
        let attribute = |(name, value): &(String, MessageAttributeValue)| {
            let text = match value.binary_value() {
                Some(bytes) => base64::encode(bytes),
                None => value.string_value().unwrap_or_default().to_owned(),
            };
            (name.clone(), Attribute { r#type: value.data_type().to_owned(), value: text })
        };
        let record = &received.record;
        Self {
            message_id: record.message_id.clone(),
            sent_timestamp: record.sent.as_millis(),
            trace_header: record.trace_header.clone(),
            attributes: received.attributes.iter().map(attribute).collect(),
            body: record.body.clone(),
        }
    }

    /// The message that it was.
    pub(super) fn message(self) -> Result<Message, String> {
        let attributes = self.attributes.into_iter().map(|(name, attribute)| {
            let value = attribute.value().map_err(|problem| format!("attribute {name:?}: {problem}"))?;
            Ok((name, value))
        });
        let attributes = attributes.collect::<Result<_, String>>()?;
        Ok(Message { attributes, trace_header: self.trace_header, ..Message::new(self.body) })
    }
}

impl Attribute {
    fn value(self) -> Result<MessageAttributeValue, String> {
        let is_binary = self.r#type.split('.').next() == Some(BINARY);
        let value = MessageAttributeValue::builder().data_type(self.r#type);
        let value = if is_binary {
            let bytes = base64::decode(&self.value).map_err(|_| "its value is not Base64".to_owned())?;
            value.binary_value(Blob::new(bytes))
        } else {
            value.string_value(self.value)
        };
        value.build().map_err(|error| error.to_string())
    }
}

/// A file that lines are written to.
#[derive(Debug)]
pub(super) struct Export {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Export {
    /// Makes the file, which must not be there yet.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        // It holds payloads, which are nobody else's business.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.write(true).create_new(true).open(path);
        let file = file.and_then(|file| sync_folder_of(path).map(|()| file)).map_err(|error| {
            let remedy = match error.kind() {
                io::ErrorKind::AlreadyExists => "; it is not overwritten: name another file",
                _ => "",
            };
            Failure::CouldNot(format!("--export {}: {error}{remedy}", path.display()))
        })?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file) })
    }

    /// Writes lines, and waits until they are on disk.
    pub(super) fn write(&mut self, lines: &[Line]) -> Result<(), String> {
        self.try_write(lines).map_err(|error| format!("{}: {error}", self.path.display()))
    }

    fn try_write(&mut self, lines: &[Line]) -> io::Result<()> {
        for line in lines {
            serde_json::to_writer(&mut self.file, line)?;
            self.file.write_all(b"\n")?;
        }
        self.file.flush()?;
        self.file.get_ref().sync_all()
    }
}

/// A new file is there after a crash only if its folder is on disk too.
#[cfg(unix)]
fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Where a folder cannot be synced.
#[cfg(not(unix))]
fn sync_folder_of(_: &Path) -> io::Result<()> {
    Ok(())
}
