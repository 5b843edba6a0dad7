/// Which SQS queue it is. The client can send only within its own region, so account and name are
/// enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    account: String,
    name: String,
}

impl Queue {
    /// From `https://HOST/ACCOUNT/NAME`.
    pub(crate) fn from_url(url: &str) -> Option<Self> {
        let path = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
        match path.split('/').collect::<Vec<_>>().as_slice() {
            [host, account, name] => Self::named(account, name).filter(|_| !host.is_empty()),
            _ => None,
        }
    }

    /// From `arn:PARTITION:sqs:REGION:ACCOUNT:NAME`.
    pub(crate) fn from_arn(arn: &str) -> Option<Self> {
        match arn.split(':').collect::<Vec<_>>().as_slice() {
            ["arn", _, "sqs", _, account, name] => Self::named(account, name),
            _ => None,
        }
    }

    fn named(account: &str, name: &str) -> Option<Self> {
        // As SQS has it: up to 80 letters, digits, - and _, and .fifo of a FIFO queue.
        let plain = name.strip_suffix(".fifo").unwrap_or(name);
        let valid = account.len() == 12
            && account.bytes().all(|byte| byte.is_ascii_digit())
            && (1..=80).contains(&name.len())
            && plain.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        valid.then(|| Self { account: account.into(), name: name.into() })
    }

    pub(crate) fn is_fifo(&self) -> bool {
        self.name.ends_with(".fifo")
    }
}

/// The URL of the queue that an ARN names, at its partition's own domain (`partitions.json` of AWS's SDKs).
pub(crate) fn url_of(arn: &str) -> Option<String> {
    Queue::from_arn(arn)?;
    let fields: Vec<&str> = arn.split(':').collect();
    let (partition, region, account, name) = (fields[1], fields[3], fields[4], fields[5]);
    let suffix = match partition {
        "aws-cn" => "amazonaws.com.cn",
        "aws-eusc" => "amazonaws.eu",
        "aws-iso" => "c2s.ic.gov",
        "aws-iso-b" => "sc2s.sgov.gov",
        "aws-iso-e" => "cloud.adc-e.uk",
        "aws-iso-f" => "csp.hci.ic.gov",
        _ => "amazonaws.com",
    };
    Some(format!("https://sqs.{region}.{suffix}/{account}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARN: &str = "arn:aws:sqs:eu-west-1:123456789012:retries";

    #[test]
    fn a_url_and_an_arn_name_the_same_queue() {
        let queue = Queue::from_arn(ARN);
        assert!(queue.is_some());
        assert_eq!(Queue::from_url("https://sqs.eu-west-1.amazonaws.com/123456789012/retries"), queue);
        assert_eq!(Queue::from_url("http://127.0.0.1:4566/123456789012/retries"), queue);
        assert_ne!(Queue::from_url("https://sqs.eu-west-1.amazonaws.com/123456789012/other"), queue);
        assert_eq!(url_of(ARN).as_deref().and_then(Queue::from_url), queue);
    }

    #[test]
    fn a_partition_has_its_own_suffix() {
        for (partition, region, suffix) in [
            ("aws", "eu-west-1", "amazonaws.com"),
            ("aws-us-gov", "us-gov-west-1", "amazonaws.com"),
            ("aws-cn", "cn-north-1", "amazonaws.com.cn"),
            ("aws-eusc", "eusc-de-east-1", "amazonaws.eu"),
            ("aws-iso", "us-iso-east-1", "c2s.ic.gov"),
            ("aws-iso-b", "us-isob-east-1", "sc2s.sgov.gov"),
            ("aws-iso-e", "eu-isoe-west-1", "cloud.adc-e.uk"),
            ("aws-iso-f", "us-isof-east-1", "csp.hci.ic.gov"),
        ] {
            let url = url_of(&format!("arn:{partition}:sqs:{region}:123456789012:retries"));
            let expected = format!("https://sqs.{region}.{suffix}/123456789012/retries");
            assert_eq!(url, Some(expected), "{partition}");
        }
    }

    #[test]
    fn anything_else_is_no_queue() {
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
            assert_eq!(Queue::from_url(url), None, "{url}");
        }
        for arn in ["", "arn:aws:sns:eu-west-1:123456789012:topic", "arn:aws:sqs:eu-west-1:123456789012"] {
            assert_eq!(Queue::from_arn(arn), None, "{arn}");
        }
    }
}
