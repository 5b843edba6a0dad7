//! Tests of the doctor's page, with the demonstration's account.

use super::demo::{page, stopped};
use super::locally;

/// The finding about alarms that notify nobody.
async fn silent_alarms(setting: &super::Setting, query: &str) -> String {
    let page = page(setting, &format!("/doctor{query}")).await;
    let (_, finding) = page.split_once(" CB042: ").unwrap_or_else(|| panic!("{page}"));
    finding.split("<details>").next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn topic_of_silent_alarms_is_typed_into_a_field() {
    locally(async {
        let setting = stopped().await;
        let finding = silent_alarms(&setting, "").await;
        assert!(finding.contains("SNS topic to notify"), "{finding}");
        assert!(!finding.contains("AlarmTopicArn"), "a field, and no shell yet: {finding}");

        let topic = "arn:aws:sns:eu-west-1:123456789012:on-call";
        let finding = silent_alarms(&setting, &format!("?topic=%20{topic}")).await;
        assert!(finding.contains(&format!("ParameterValue=&#34;{topic}&#34;")), "{finding}");
        assert!(!finding.contains("TOPIC_ARN") && !finding.contains("role=\"alert\""), "{finding}");

        let finding = silent_alarms(&setting, "?topic=%3Cb%3E").await;
        assert!(finding.contains("&#60;b&#62; is not the ARN of a topic"), "{finding}");
        assert!(!finding.contains("AlarmTopicArn") && !finding.contains("<b>"), "{finding}");
    })
    .await;
}
