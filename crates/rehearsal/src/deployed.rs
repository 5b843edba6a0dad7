//! Policy settings in the two forms that deployments accept: parameters of the CloudFormation stack, and properties of
//! the CDK construct.

use comeback_engine::{Kind, Setting};
use serde::Serialize;

use comeback_operate::durations;
use comeback_operate::handler_setting::parameter_of;

/// A setting as a parameter of the stack and as a property of the CDK construct.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeployedSetting {
    parameter: String,
    value: String,
    property: String,
    property_value: String,
}

impl DeployedSetting {
    /// Converts a valid value of one of the handler's environment variables to a stack parameter and a CDK property.
    pub fn of(variable: &str, value: &str) -> Self {
        let seconds = |text: &str| {
            durations::read(text).map_or_else(|_| text.to_owned(), |it| it.as_secs().to_string())
        };
        let duration = |text: &str| format!("Duration.seconds({})", seconds(text.trim()));
        let (value, property_value) = match Setting::named(variable).kind {
            Kind::Seconds { .. } | Kind::SecondsUpTo { .. } => (seconds(value), duration(value)),
            Kind::SecondsList { .. } => {
                let durations: Vec<String> = value.split(',').map(duration).collect();
                (value.replace(' ', ""), format!("[{}]", durations.join(", ")))
            }
            Kind::Choice(["on", "off"]) => (value.to_owned(), (value == "on").to_string()),
            Kind::Choice(_) => (value.to_owned(), format!("Jitter.{}", value.to_uppercase())),
            _ => (value.to_owned(), value.to_owned()),
        };
        let (property, property_value) = match (variable, &*value) {
            ("HIDE_UP_TO", "always") => ("alwaysHide".to_owned(), "true".to_owned()),
            ("MAXIMUM_CONCURRENCY", _) => ("maxConcurrency".to_owned(), property_value),
            _ => (property(variable), property_value),
        };
        Self { parameter: parameter_of(variable), value, property, property_value }
    }
}

/// The CDK construct's property for a variable: `maxAge` for `MAX_AGE`.
fn property(variable: &str) -> String {
    let name = parameter_of(variable);
    name[..1].to_lowercase() + &name[1..]
}

/// Formats the settings twice: as SAM and CloudFormation parameters on one line, and as CDK properties on separate
/// lines.
pub fn lines(settings: &[DeployedSetting]) -> (String, String) {
    let parameters: Vec<String> =
        settings.iter().map(|setting| format!("{}={}", setting.parameter, setting.value)).collect();
    let properties: Vec<String> =
        settings.iter().map(|setting| format!("{}: {},", setting.property, setting.property_value)).collect();
    (parameters.join(" "), properties.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_the_form_deployments_use() {
        let of = |variable: &str, value: &str| lines(&[DeployedSetting::of(variable, value)]);
        for (variable, value, parameter, property) in [
            ("MAX_AGE", "2h", "MaxAge=7200", "maxAge: Duration.seconds(7200),"),
            ("BASE_BACKOFF", "60", "BaseBackoff=60", "baseBackoff: Duration.seconds(60),"),
            (
                "BACKOFFS",
                "20s, 5m",
                "Backoffs=20s,5m",
                "backoffs: [Duration.seconds(20), Duration.seconds(300)],",
            ),
            ("JITTER", "none", "Jitter=none", "jitter: Jitter.NONE,"),
            ("HIDE_UP_TO", "100", "HideUpTo=100", "hideUpTo: 100,"),
            ("HIDE_UP_TO", "always", "HideUpTo=always", "alwaysHide: true,"),
            ("MAXIMUM_CONCURRENCY", "20", "MaximumConcurrency=20", "maxConcurrency: 20,"),
            ("DIRECTIVES", "off", "Directives=off", "directives: false,"),
        ] {
            assert_eq!(of(variable, value), (parameter.to_owned(), property.to_owned()));
        }
        assert_eq!(parameter_of("POLICIES"), "FunctionPolicies");
        assert_eq!(parameter_of("NON_RETRYABLE_ERRORS"), "NonRetryableErrors");
    }
}
