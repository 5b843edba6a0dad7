//! The calls to SQS, as a trait that the SDK's client and the tests' fake implement.

use std::array::from_fn;
use std::collections::HashMap;
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::{
    BatchResultErrorEntry, ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry,
    MessageAttributeValue, MessageSystemAttributeNameForSends, MessageSystemAttributeValue,
};
use comeback_engine::QueueArn;
use futures_util::future::BoxFuture;
use tokio::sync::OnceCell;

use crate::dead_letter::{DeadLetter, Value};

/// Maximum number of entries in a batch call to SQS.
pub(crate) const MOST_ENTRIES: usize = 10;
/// Time limit for one attempt at a call to SQS, short because the function may time out soon.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hiding {
    pub(crate) receipt_handle: String,
    pub(crate) visibility_timeout: Duration,
}

/// The failure of a call to SQS, or of one entry in a batch call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) problem: String,
    pub(crate) remedy: Option<String>,
}

pub(crate) trait Sqs: Send + Sync {
    /// Hides at most ten messages; returns the index of each message that could not be hidden, and the reason.
    fn hide<'a>(
        &'a self,
        queue_url: &'a str,
        messages: &'a [Hiding],
    ) -> BoxFuture<'a, Result<Vec<(usize, String)>, Refused>>;

    /// Deletes at most ten messages; returns the index of each message that could not be deleted, and the reason.
    fn delete<'a>(
        &'a self,
        queue_url: &'a str,
        receipt_handles: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<(usize, String)>, Refused>>;

    fn send<'a>(&'a self, queue_url: &'a str, dead_letter: DeadLetter) -> BoxFuture<'a, Result<(), Refused>>;
}

/// The SDK's client, created for the first call, so that batches without failures do not wait for it.
#[derive(Debug, Default)]
pub(crate) struct SdkSqs(OnceCell<Client>);

impl SdkSqs {
    async fn client(&self) -> &Client {
        let make = || async {
            let timeouts = TimeoutConfig::builder().operation_attempt_timeout(CALL_TIMEOUT).build();
            let retries = RetryConfig::standard().with_max_attempts(2);
            let config = aws_config::defaults(BehaviorVersion::latest())
                .timeout_config(timeouts)
                .retry_config(retries);
            Client::new(&config.load().await)
        };
        self.0.get_or_init(make).await
    }
}

impl Sqs for SdkSqs {
    fn hide<'a>(
        &'a self,
        queue_url: &'a str,
        messages: &'a [Hiding],
    ) -> BoxFuture<'a, Result<Vec<(usize, String)>, Refused>> {
        Box::pin(async move {
            let entries = messages.iter().enumerate().map(|(position, it)| {
                ChangeMessageVisibilityBatchRequestEntry::builder()
                    .id(position.to_string())
                    .receipt_handle(&it.receipt_handle)
                    .visibility_timeout(it.visibility_timeout.as_secs() as i32)
                    .build()
                    .expect("BUG: an entry has its id and its handle")
            });
            let call = self.client().await.change_message_visibility_batch().queue_url(queue_url);
            let answer = call.set_entries(Some(entries.collect())).send().await;
            let answer = answer.map_err(|error| refused(&error, "sqs:ChangeMessageVisibility", queue_url))?;
            let taken = answer.successful.iter().map(|it| it.id.as_str());
            Ok(failed("hide", messages.len(), taken, answer.failed))
        })
    }

    fn delete<'a>(
        &'a self,
        queue_url: &'a str,
        receipt_handles: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<(usize, String)>, Refused>> {
        Box::pin(async move {
            let entries = receipt_handles.iter().enumerate().map(|(position, handle)| {
                let entry = DeleteMessageBatchRequestEntry::builder().id(position.to_string());
                entry.receipt_handle(handle).build().expect("BUG: an entry has its id and its handle")
            });
            let call = self.client().await.delete_message_batch().queue_url(queue_url);
            let answer = call.set_entries(Some(entries.collect())).send().await;
            let answer = answer.map_err(|error| refused(&error, "sqs:DeleteMessage", queue_url))?;
            let taken = answer.successful.iter().map(|it| it.id.as_str());
            Ok(failed("delete", receipt_handles.len(), taken, answer.failed))
        })
    }

    fn send<'a>(&'a self, queue_url: &'a str, dead_letter: DeadLetter) -> BoxFuture<'a, Result<(), Refused>> {
        Box::pin(async move {
            let attributes = dead_letter.attributes.into_iter().map(|attribute| {
                let value = MessageAttributeValue::builder().data_type(attribute.data_type);
                let value = match attribute.value {
                    Value::Text(text) => value.string_value(text),
                    Value::Bytes(bytes) => value.binary_value(Blob::new(bytes)),
                };
                (attribute.name, value.build().expect("BUG: an attribute has its type"))
            });
            let send = self.client().await.send_message().queue_url(queue_url).message_body(dead_letter.body);
            let call = send
                .set_message_attributes(Some(attributes.collect()))
                .set_message_system_attributes(dead_letter.trace_header.map(trace))
                .set_message_group_id(dead_letter.group)
                .set_message_deduplication_id(dead_letter.deduplication_id);
            let answer = call.send().await.map_err(|error| refused(&error, "sqs:SendMessage", queue_url))?;
            let unsaid =
                || Refused { problem: "SQS did not say that it has the dead-letter".into(), remedy: None };
            answer.message_id.map(drop).ok_or_else(unsaid)
        })
    }
}

/// Lists the entries that SQS's response to a batch call does not confirm, each with its index and the reason.
fn failed<'a>(
    verb: &str,
    entries: usize,
    taken: impl Iterator<Item = &'a str>,
    refused: Vec<BatchResultErrorEntry>,
) -> Vec<(usize, String)> {
    let taken: Vec<&str> = taken.collect();
    let failed =
        (0..entries).map(|position| (position, position.to_string())).filter_map(|(position, id)| {
            let problem = match refused.iter().find(|entry| entry.id == id) {
                Some(BatchResultErrorEntry { code, message, .. }) => {
                    format!("SQS refused to {verb} it: {code}: {}", message.as_deref().unwrap_or_default())
                }
                None if taken.contains(&id.as_str()) => return None,
                None => format!("SQS did not say that it would {verb} it"),
            };
            Some((position, problem))
        });
    failed.collect()
}

fn trace(header: String) -> HashMap<MessageSystemAttributeNameForSends, MessageSystemAttributeValue> {
    let value = MessageSystemAttributeValue::builder().data_type("String").string_value(header);
    let value = value.build().expect("BUG: an attribute has its type");
    HashMap::from([(MessageSystemAttributeNameForSends::AwsTraceHeader, value)])
}

fn refused<E: ProvideErrorMetadata>(error: &SdkError<E>, action: &str, queue: &str) -> Refused {
    let code = error.code().map_or_else(|| error.to_string(), Into::into);
    Refused { problem: format!("{action} on {queue}: {code}"), remedy: remedy(&code, action) }
}

fn remedy(code: &str, action: &str) -> Option<String> {
    // For an encrypted queue, SQS passes on errors from KMS.
    let is_of_kms = code.get(..3).is_some_and(|service| service.eq_ignore_ascii_case("kms"));
    let needed = if is_of_kms { "kms:GenerateDataKey and kms:Decrypt" } else { action };
    code.contains("AccessDenied").then(|| format!("allow {needed} in the function's role"))
}

/// Returns the URL of the queue with this ARN, which Lambda wrote, so it is not checked. The URL only identifies the
/// queue: the SDK decides where to send the call.
pub(crate) fn queue_url(arn: &str) -> String {
    let mut fields = arn.split(':').map(Into::into);
    let [_, partition, _, region, account, name] = from_fn(|_| fields.next().unwrap_or_default());
    QueueArn { partition, region, account, name }.url()
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use aws_sdk_sqs::config::Region;

    use super::*;

    #[test]
    fn queue_urls_are_those_of_all_consumers() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/queue-urls.json");
        let urls: HashMap<String, String> =
            serde_json::from_slice(&std::fs::read(path).unwrap()).expect("URLs by ARN");
        for (arn, url) in urls {
            assert_eq!(queue_url(&arn), url);
        }
    }

    #[test]
    fn denied_action_is_named() {
        for (code, needed) in [
            ("AccessDenied", Some("sqs:SendMessage")),
            ("AccessDeniedException", Some("sqs:SendMessage")),
            ("KmsAccessDenied", Some("kms:GenerateDataKey and kms:Decrypt")),
            ("KMS.AccessDeniedException", Some("kms:GenerateDataKey and kms:Decrypt")),
            ("KmsThrottled", None),
            ("RequestThrottled", None),
        ] {
            let expected = needed.map(|needed| format!("allow {needed} in the function's role"));
            assert_eq!(remedy(code, "sqs:SendMessage"), expected, "{code}");
        }
    }

    #[test]
    fn unnamed_entries_count_as_failed() {
        let refused = || {
            let entry =
                BatchResultErrorEntry::builder().id("1").sender_fault(true).code("Busy").message("later");
            vec![entry.build().unwrap()]
        };
        let (busy, unsaid) = ("SQS refused to hide it: Busy: later", "SQS did not say that it would hide it");
        for (taken, refused, expected) in [
            (&["0", "1"][..], vec![], vec![]),
            (&["0"], refused(), vec![(1, busy)]),
            (&["0"], vec![], vec![(1, unsaid)]),
            (&[], refused(), vec![(0, unsaid), (1, busy)]),
            (&[], vec![], vec![(0, unsaid), (1, unsaid)]),
            (&["7", ""], vec![], vec![(0, unsaid), (1, unsaid)]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(it, text)| (it, text.to_owned())).collect();
            assert_eq!(failed("hide", 2, taken.iter().copied(), refused), expected, "{taken:?}");
        }
    }

    /// Starts a local server that responds to every call with `answer`, and returns a client for that server.
    fn answering(answer: &'static str) -> SdkSqs {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", server.local_addr().unwrap());
        std::thread::spawn(move || {
            for connection in server.incoming() {
                let mut connection = connection.unwrap();
                let _ = connection.read(&mut [0; 65_536]);
                let _ = connection.write_all(answer.as_bytes());
            }
        });
        let config =
            aws_sdk_sqs::Config::builder().behavior_version(BehaviorVersion::latest()).allow_no_auth();
        let config = config.region(Region::new("eu-west-1")).endpoint_url(endpoint);
        let config = config.retry_config(RetryConfig::disabled());
        SdkSqs(OnceCell::new_with(Some(Client::from_conf(config.build()))))
    }

    #[tokio::test]
    async fn truncated_answer_settles_nothing() {
        let url = queue_url("arn:aws:sqs:eu-west-1:123456789012:orders"); // calls go to the test's endpoint
        for (answer, unsaid) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{", false),
            ("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbad", false),
            ("", false),
        ] {
            let aws = answering(answer);
            let hiding = Hiding { receipt_handle: "h".into(), visibility_timeout: Duration::ZERO };
            let hidden = aws.hide(&url, &[hiding]).await;
            let deleted = aws.delete(&url, &["h".into()]).await;
            let sent = aws.send(&url, DeadLetter::default()).await.unwrap_err().problem;
            if unsaid {
                assert_eq!(hidden.unwrap(), [(0, "SQS did not say that it would hide it".to_owned())]);
                assert_eq!(deleted.unwrap(), [(0, "SQS did not say that it would delete it".to_owned())]);
                assert_eq!(sent, "SQS did not say that it has the dead-letter");
            } else {
                assert!(hidden.unwrap_err().problem.starts_with("sqs:ChangeMessageVisibility"), "{answer}");
                assert!(deleted.unwrap_err().problem.starts_with("sqs:DeleteMessage"), "{answer}");
                assert!(sent.starts_with("sqs:SendMessage"), "{answer}");
            }
        }
    }
}
