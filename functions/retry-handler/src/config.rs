//! The handler's configuration, from environment variables.

use comeback_engine::{Policies, QueueArn, Setting};

use crate::aws::SdkSettings;
use crate::metrics::MetricsConfig;

/// The handler's configuration.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) policies: Policies,
    pub(crate) dead_letter_queue_url: String,
    /// URL of the retry queue; if `None`, each batch's own queue is the retry queue.
    pub(crate) retry_queue_url: Option<String>,
    /// Name of the SSM parameter that holds the pauses; if `None`, nothing is ever paused.
    pub(crate) pauses: Option<String>,
    pub(crate) metrics: Option<MetricsConfig>,
    /// Settings for the AWS SDK, such as the region. The handler, not the SDK, reads them from environment variables.
    pub(crate) aws: SdkSettings,
}

/// Maximum length of an SSM parameter's name. Source: "PutParameter", AWS Systems Manager API Reference.
const LONGEST_PARAMETER: usize = 1_011;

impl Config {
    /// Reads the configuration from this process's environment variables.
    ///
    /// # Errors
    ///
    /// Fails with a message that lists every invalid variable, one per line.
    pub(crate) fn from_env() -> Result<Self, String> {
        // A value that is not Unicode is refused like any other unreadable value.
        let lookup = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        let config = Self::read(lookup).map_err(|refused| refused.join("\n"))?;
        config.warn();
        Ok(config)
    }

    /// Warns about settings that work but are probably mistakes.
    fn warn(&self) {
        if self.policies.stack().keeps_everything() {
            tracing::warn!(
                "TARGET_FUNCTIONS is empty: events are kept for at most 13.5 days, until a function is \
                 attached"
            );
        }
    }

    /// Reads the configuration from the variables that `lookup` returns; fails with one message for each refused
    /// variable.
    fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Vec<String>> {
        let mut errors = Vec::new();
        let mut queue = |name: &str| {
            let url = lookup(name).filter(|url| !url.is_empty())?;
            let queue = check_queue(name, &url).map_err(|error| errors.push(error)).ok();
            Some((url, queue))
        };
        let dead_letter_queue = queue("DEAD_LETTER_QUEUE_URL");
        let retry_queue = queue("RETRY_QUEUE_URL");
        let pauses = lookup("PAUSES").filter(|name| !name.is_empty());
        if let Some(name) = pauses.as_ref().filter(|name| !is_parameter(name)) {
            errors.push(Setting::named("PAUSES").unreadable(name).to_string());
        }
        let metrics = metrics(&lookup).map_err(|error| errors.push(error));
        let aws = SdkSettings::read(&lookup).map_err(|error| errors.push(error));
        let policies = Policies::from_variables(&lookup)
            .map_err(|refused| errors.extend(refused.iter().map(ToString::to_string)));
        match (&dead_letter_queue, &retry_queue) {
            (None, _) => errors.push("DEAD_LETTER_QUEUE_URL is not set; dead-letters need a queue".into()),
            (Some((_, Some(dead))), Some((_, Some(retry)))) if dead == retry => errors.push(
                "DEAD_LETTER_QUEUE_URL is the retry queue; a dead-letter would be retried forever".into(),
            ),
            _ => {}
        }
        match (policies, dead_letter_queue, metrics, aws) {
            (Ok(policies), Some((dead_letter_queue_url, _)), Ok(metrics), Ok(aws)) if errors.is_empty() => {
                let retry_queue_url = retry_queue.map(|(url, _)| url);
                Ok(Self { policies, dead_letter_queue_url, retry_queue_url, pauses, metrics, aws })
            }
            _ => Err(errors),
        }
    }
}

/// An SQS queue in the handler's own region, identified by account and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueId {
    account: String,
    name: String,
}

impl QueueId {
    /// Parses a queue URL of the form `https://HOST/ACCOUNT/NAME`.
    pub(crate) fn from_url(url: &str) -> Option<Self> {
        let path = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
        match path.split('/').collect::<Vec<_>>().as_slice() {
            [host, account, name] if !host.is_empty() && QueueArn::is_valid(account, name) => {
                Some(Self { account: (*account).into(), name: (*name).into() })
            }
            _ => None,
        }
    }

    pub(crate) fn of(QueueArn { account, name, .. }: &QueueArn) -> Self {
        Self { account: account.clone(), name: name.clone() }
    }
}

fn check_queue(name: &str, url: &str) -> Result<QueueId, String> {
    match QueueId::from_url(url) {
        None => Err(Setting::named(name).unreadable(url).to_string()),
        Some(queue) if queue.name.ends_with(".fifo") => {
            Err(format!("{name} is {url:?}; it must be a standard queue, not a FIFO one"))
        }
        Some(queue) => Ok(queue),
    }
}

fn metrics(lookup: impl Fn(&str) -> Option<String>) -> Result<Option<MetricsConfig>, String> {
    let given = lookup("METRICS").unwrap_or_else(|| "off".into());
    let by_target = match given.trim() {
        "off" => return Ok(None),
        "stack" => false,
        "target" => true,
        _ => return Err(Setting::named("METRICS").unreadable(&given).to_string()),
    };
    let handler = lookup("AWS_LAMBDA_FUNCTION_NAME").filter(|name| !name.is_empty()).ok_or(
        "METRICS needs the handler's name, but AWS_LAMBDA_FUNCTION_NAME, which Lambda sets, is missing",
    )?;
    Ok(Some(MetricsConfig { handler, by_target }))
}

fn is_parameter(name: &str) -> bool {
    name.len() <= LONGEST_PARAMETER
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-/".contains(&byte))
}

#[cfg(test)]
mod tests {
    use comeback_engine::Unset;
    use serde_json::Value;

    use super::*;
    use crate::log::tests::logged;

    const DEAD: &str = "https://sqs.eu-west-1.amazonaws.com/123456789012/dead";
    const RETRY: &str = "https://sqs.eu-west-1.amazonaws.com/123456789012/retry";
    const TARGET: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";

    const REQUIRED: [(&str, &str); 2] = [("DEAD_LETTER_QUEUE_URL", DEAD), ("TARGET_FUNCTIONS", TARGET)];

    fn with(variables: &[(&str, &str)]) -> Result<Config, Vec<String>> {
        read(&[&REQUIRED[..], variables].concat())
    }

    fn read(variables: &[(&str, &str)]) -> Result<Config, Vec<String>> {
        let lookup = |name: &str| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
        };
        Config::read(lookup)
    }

    #[test]
    fn the_two_required_variables_are_enough() {
        let config = with(&[]).unwrap();
        assert_eq!(config.dead_letter_queue_url, DEAD);
        assert!(config.policies.stack().allows(TARGET));
        assert_eq!(read(&[("DEAD_LETTER_QUEUE_URL", ""), REQUIRED[1]]).unwrap_err().len(), 1);
        for (url, expected) in [(RETRY, Some(RETRY)), ("", None)] {
            let config = with(&[("RETRY_QUEUE_URL", url)]).unwrap();
            assert_eq!(config.retry_queue_url.as_deref(), expected);
        }
        assert_eq!(
            with(&[("RETRY_QUEUE_URL", DEAD)]).unwrap_err(),
            ["DEAD_LETTER_QUEUE_URL is the retry queue; a dead-letter would be retried forever"]
        );
    }

    #[test]
    fn empty_target_list_warns_once() {
        let of = |targets| read(&[("DEAD_LETTER_QUEUE_URL", DEAD), ("TARGET_FUNCTIONS", targets)]).unwrap();
        let warned = logged(|| of("").warn());
        assert!(warned.contains(r#""level":"WARN","message":"TARGET_FUNCTIONS is empty: events are kept"#));
        assert_eq!(warned.lines().count(), 1, "{warned}");
        assert_eq!(logged(|| of(TARGET).warn()), "");
    }

    #[test]
    fn every_bad_variable_is_reported_at_once() {
        let errors =
            read(&[("MAX_AGE", "30s"), ("JITTER", "some"), ("RETRY_QUEUE_URL", "retry")]).unwrap_err();
        assert_eq!(
            errors,
            [
                r#"RETRY_QUEUE_URL is "retry"; it must be a queue's URL (https://sqs.REGION.amazonaws.com/ACCOUNT/NAME)"#,
                r#"JITTER is "some"; it must be full, equal, decorrelated or none"#,
                "TARGET_FUNCTIONS is not set; list the ARNs of the functions to retry, or set it empty to \
                 keep what arrives",
                "MAX_AGE is 30 s; it must be 60 s to 1209600 s (14 days)",
                "DEAD_LETTER_QUEUE_URL is not set; dead-letters need a queue",
            ]
        );
    }

    #[test]
    fn pauses_are_read_from_the_named_parameter() {
        let with = |name| with(&[("PAUSES", name)]).map(|config| config.pauses);
        assert_eq!(with(""), Ok(None));
        let longest = format!("/{}", "x".repeat(1_010));
        for name in ["/comeback/orders-1/pauses", "Pauses_2.a", &longest] {
            assert_eq!(with(name), Ok(Some(name.into())));
        }
        let too_long = format!("{longest}x");
        for name in [
            " ",
            "/comeback/pauses ",
            "arn:aws:ssm:eu-west-1:123456789012:parameter/p",
            "p:3",
            "p\u{e9}",
            &too_long,
        ] {
            let words = "it must be the name of an SSM parameter: letters, digits and _ . - /, 1011 at most";
            assert_eq!(with(name), Err(vec![format!("PAUSES is {name:?}; {words}")]));
        }
    }

    #[test]
    fn metrics_are_off_by_default() {
        let with = |variables: &[_]| with(variables).map(|config| config.metrics);
        assert_eq!(Setting::named("METRICS").default, Unset::Is("off"));
        let (handler, named) = ("retries".to_owned(), ("AWS_LAMBDA_FUNCTION_NAME", "retries"));
        assert_eq!((with(&[]), with(&[("METRICS", "off")])), (Ok(None), Ok(None)));
        let of = |metrics| with(&[("METRICS", metrics), named, ("AWS_REGION", "eu-west-1")]);
        assert_eq!(of("stack"), Ok(Some(MetricsConfig { handler: handler.clone(), by_target: false })));
        assert_eq!(of("target"), Ok(Some(MetricsConfig { handler, by_target: true })));
        for unnamed in
            [&[("METRICS", "stack")][..], &[("METRICS", "target"), ("AWS_LAMBDA_FUNCTION_NAME", "")]]
        {
            let errors = with(unnamed).unwrap_err();
            assert!(errors[0].starts_with("METRICS needs the handler's name"), "{errors:?}");
        }
    }

    /// The handler and the CDK construct in `infra` must refuse the same settings. Their tests share a golden file.
    #[test]
    fn golden_refusals() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/refusals.json");
        let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let read = |given: &Value| {
            let mut variables = vec![("DEAD_LETTER_QUEUE_URL", DEAD), ("TARGET_FUNCTIONS", TARGET)];
            let given = given.as_object().unwrap();
            variables.retain(|(name, _)| !given.contains_key(*name));
            variables.extend(given.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())));
            read(&variables)
        };
        let accepted = golden["accepted"].as_array().unwrap();
        let refused = golden["refused"].as_array().unwrap();
        assert!(accepted.len() > 10 && refused.len() > 20);
        for variables in accepted {
            assert!(read(variables).is_ok(), "{variables}: {:?}", read(variables));
        }
        for case in refused {
            let errors = read(&case["variables"]).unwrap_err();
            assert_eq!(Value::from(errors), case["refusals"], "{}", case["variables"]);
        }
    }

    #[test]
    fn a_url_and_an_arn_name_the_same_queue() {
        let arn: QueueArn = "arn:aws:sqs:eu-west-1:123456789012:retries".parse().unwrap();
        let queue = Some(QueueId::of(&arn));
        assert_eq!(QueueId::from_url("https://sqs.eu-west-1.amazonaws.com/123456789012/retries"), queue);
        assert_eq!(QueueId::from_url("http://127.0.0.1:4566/123456789012/retries"), queue);
        assert_ne!(QueueId::from_url("https://sqs.eu-west-1.amazonaws.com/123456789012/other"), queue);
        assert_eq!(QueueId::from_url(&arn.url()), queue);
    }

    #[test]
    fn anything_else_is_not_a_queues_url() {
        for url in [
            "",
            "retries",
            "ftp://host/123456789012/q",
            "https://host/q",
            "https://host/1/q",
            "https://host/123456789012/",
            "https://host/123456789012/q?x",
            "https://host/123456789012/q.fifo ",
            "https:///123456789012/q",
            "https://host/123456789012/q/",
        ] {
            assert_eq!(QueueId::from_url(url), None, "{url}");
        }
    }
}
