//! The commands that the doctor suggests, with words in capitals for the operator to replace.

use std::collections::BTreeMap;
use std::fmt::Display;

use comeback_engine::{MAXIMUM_CONCURRENCY_RANGE, SETTINGS};
use serde_json::json;

use crate::attach::attachment::Attachment;
use crate::aws::{INVOCATIONS_OF_A_POLLER, Mapping};
use crate::command::{CommandName, command_line};
use crate::deployment::queue::CustomerKey;
use crate::deployment::queue::Queue;
use crate::deployment::{Deployment, aws};
use crate::doctor::facts::Facts;
use crate::doctor::facts::log::BACK;
use crate::function::{Target, command_name, deployment_of_its_own, is_far};
use crate::handler_setting::{POLICIES, TARGET_FUNCTIONS, parameter_of};
use crate::text;
use crate::text::{Text, shell};

pub(crate) fn mapping(place_flags: &str, mapping: &Mapping, flags: impl Display) -> Text {
    shell(aws(place_flags, format!("lambda update-event-source-mapping --uuid {} {flags}", mapping.uuid)))
}

/// The command that sets `MAXIMUM_CONCURRENCY` to `invocations`. If `invocations` exceeds the setting's maximum, the
/// command lowers the number of pollers instead.
pub(crate) fn provisioned(facts: &Facts, mapping: &Mapping, invocations: u64) -> Text {
    let most = *MAXIMUM_CONCURRENCY_RANGE.end();
    if invocations <= most {
        return setting(facts, "MAXIMUM_CONCURRENCY", &invocations.to_string());
    }
    let pollers = most / u64::from(INVOCATIONS_OF_A_POLLER);
    self::mapping(
        facts.place_flags(),
        mapping,
        format!("--provisioned-poller-config MaximumPollers={pollers}"),
    )
}

pub(crate) fn queue(place_flags: &str, url: &str, attributes: impl Display) -> Text {
    shell(aws(place_flags, format!("sqs set-queue-attributes --queue-url {url} --attributes {attributes}")))
}

/// The command that makes a queue's key usable again, or replaces the key. If a deletion is pending, the command only
/// cancels it. The key is then still disabled, and the doctor's next run suggests enabling it.
pub(crate) fn key(deployment: &Deployment, queue: &Queue, key: &CustomerKey) -> Text {
    match key.state.as_deref() {
        Some("Disabled") => deployment.aws(format!("kms enable-key --key-id {}", key.arn)),
        Some("PendingDeletion" | "PendingReplicaDeletion") => {
            deployment.aws(format!("kms cancel-key-deletion --key-id {}", key.arn))
        }
        _ => self::queue(&deployment.place_flags, &queue.url, "KmsMasterKeyId=ARN_OF_ANOTHER_KEY"),
    }
}

/// The command that makes SQS move a message to the dead-letter queue after 1,000 receives.
pub(crate) fn redrive(place_flags: &str, url: &str, dead_letter_queue_arn: &str) -> Text {
    let policy = json!({"deadLetterTargetArn": dead_letter_queue_arn, "maxReceiveCount": "1000"}).to_string();
    queue(place_flags, url, format!("'{}'", json!({"RedrivePolicy": policy})))
}

pub(crate) fn handler(deployment: &Deployment, flags: impl Display) -> Text {
    let handler = &deployment.handler;
    deployment.aws(format!("lambda update-function-configuration --function-name {handler} {flags}"))
}

/// The command that changes the handler's settings. If stack parameters set any of them, the command changes only these
/// parameters, because the stack's next deployment would undo a change made directly to the handler. AWS refuses a
/// second update while the first is in progress, so the doctor suggests the remaining changes the next time it runs.
fn settings(facts: &Facts, values: &[(&str, &str)]) -> Text {
    let deployment = &facts.deployment;
    let Some(stack) = &deployment.stack else { return variables(deployment, values) };
    let parameters = match &facts.parameters {
        Ok(parameters) => parameters,
        Err(failure) => {
            let names: Vec<String> = values.iter().map(|(name, _)| parameter_of(name)).collect();
            return text![
                format!(
                    "if stack {stack} sets it (its parameters are unreadable: {failure}), change {} there; \
                     otherwise: ",
                    names.join(", ")
                ),
                variables(deployment, values)
            ];
        }
    };
    let (of_stack, by_hand): (Vec<_>, Vec<_>) = values.iter().copied().partition(|(name, _)| {
        let set = deployment.variables.get(*name);
        set.is_some() && parameters.get(&parameter_of(name)) == set
    });
    if of_stack.is_empty() {
        return variables(deployment, &by_hand);
    }
    let of_stack: Vec<_> = of_stack.into_iter().map(|(name, value)| (parameter_of(name), value)).collect();
    stack_parameters(deployment, stack, parameters, &of_stack)
}

pub(crate) fn setting(facts: &Facts, name: &str, value: &str) -> Text {
    settings(facts, &[(name, value)])
}

/// The command that replaces settings that the handler refuses, or restores the stack's values if they were changed
/// by hand.
pub(crate) fn refused_settings(facts: &Facts, names: &[&str]) -> Text {
    let Facts { deployment, parameters, .. } = facts;
    let values = names.iter().map(|&name| {
        let of_stack = parameters.as_ref().ok().and_then(|parameters| parameters.get(&parameter_of(name)));
        // The template adds its example function to TARGET_FUNCTIONS, and omits BASE_BACKOFF and MAX_BACKOFF if
        // BACKOFFS is set. They can differ from the stack's parameters although nobody changed them by hand.
        let is_left_out =
            ["BASE_BACKOFF", "MAX_BACKOFF"].contains(&name) && deployment.variables.contains_key("BACKOFFS");
        let differs = name == TARGET_FUNCTIONS || is_left_out;
        let by_hand = of_stack.filter(|value| !differs && deployment.variables.get(name) != Some(*value));
        // The text of POLICIES is shown in full, so that the operator keeps its other entries.
        let edited = if name == POLICIES { deployment.policies_text() } else { "VALUE" };
        (name, by_hand.map_or(edited, String::as_str))
    });
    let values: Vec<_> = values.collect();
    let is_unchanged = values.contains(&(POLICIES, deployment.policies_text()));
    let correct = if is_unchanged { "correct the entry of POLICIES in this command: " } else { "" };
    text![correct, settings(facts, &values)]
}

/// The command that changes some parameters of a stack, and keeps the others.
pub(crate) fn stack_parameters(
    deployment: &Deployment,
    stack: &str,
    parameters: &BTreeMap<String, String>,
    changed: &[(impl AsRef<str>, &str)],
) -> Text {
    let values = changed.iter().map(|(parameter, value)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        format!("ParameterKey={},ParameterValue=\"{value}\"", parameter.as_ref())
    });
    let is_other = |name: &&String| changed.iter().all(|(parameter, _)| parameter.as_ref() != **name);
    let others = parameters.keys().filter(is_other);
    let others = others.map(|parameter| format!("ParameterKey={parameter},UsePreviousValue=true"));
    let all: Vec<String> = values.chain(others).collect();
    deployment.aws(format!(
        "cloudformation update-stack --stack-name {stack} --use-previous-template \
         --capabilities CAPABILITY_IAM CAPABILITY_AUTO_EXPAND --parameters {}",
        command_line(all.iter().map(String::as_str))
    ))
}

/// Returns the command that changes these environment variables of the handler and keeps the others. The command
/// contains the values of all the variables. If one of them is not a setting, its value may be secret, so the function
/// returns an instruction instead.
pub(crate) fn variables(deployment: &Deployment, changed: &[(&str, &str)]) -> Text {
    let is_setting = |name: &String| SETTINGS.iter().any(|setting| setting.name == name);
    if !deployment.variables.keys().all(is_setting) {
        let set: Vec<String> = changed.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let handler = &deployment.handler;
        return format!(
            "set {} among the environment variables of {handler}, and keep the others",
            set.join(", ")
        )
        .into();
    }
    let mut variables = deployment.variables.clone();
    variables.extend(changed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let environment = json!({"Variables": variables}).to_string();
    handler(deployment, format!("--environment {}", command_line([&*environment])))
}

pub(crate) fn concurrency(deployment: &Deployment, function: &str) -> Text {
    deployment.aws(format!("lambda delete-function-concurrency --function-name {function}"))
}

/// The command that attaches a function, repairs its attachment, or moves it here from another deployment.
pub(crate) fn attach(attachment: &Attachment) -> Text {
    let Attachment { deployment, target, .. } = attachment;
    let (arn, home) = (target.invoked_arn(), &deployment.handler_arn);
    if is_far(&arn, home) {
        return deployment_of_its_own(&arn).into();
    }
    let flag = attachment.other().map(|_| "--move".to_owned());
    deployment.command(CommandName::Attach, std::iter::once(command_name(&arn, home)).chain(flag)).into()
}

/// A function's name for an AWS CLI command, or its ARN if it is in another account or region.
pub(crate) fn name(facts: &Facts, target: &Target) -> String {
    command_name(&target.arn, &facts.deployment.handler_arn)
}

/// The command that detaches a function, alias or version from the deployment.
pub(crate) fn detach(facts: &Facts, arn: &str) -> Text {
    let name = command_name(arn, &facts.deployment.handler_arn);
    facts.deployment.command(CommandName::Detach, [name]).into()
}

pub(crate) fn read_errors(facts: &Facts) -> Text {
    facts.deployment.aws(format!(
        "logs filter-log-events --log-group-name {} --start-time {} --filter-pattern '{{ $.level = \"ERROR\" }}'",
        facts.deployment.log_group,
        facts.now.before(BACK).as_millis()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::queues::receives;
    use crate::doctor::tests::healthy;
    use crate::failure::Failure;

    fn setting(facts: &Facts, name: &str, value: &str) -> String {
        super::setting(facts, name, value).to_string()
    }

    fn refused_settings(facts: &Facts, names: &[&str]) -> String {
        super::refused_settings(facts, names).to_string()
    }

    #[test]
    fn setting_is_changed_where_it_came_from() {
        let mut facts = healthy();
        facts.deployment.variables.insert("BASE_BACKOFF".into(), "60".into());
        let by_hand = |fix: &str| fix.starts_with("aws lambda update-function-configuration");
        let fix = setting(&facts, "BASE_BACKOFF", "VALUE");
        assert!(by_hand(&fix) && fix.contains(r#""BASE_BACKOFF":"VALUE""#), "{fix}");
        assert!(fix.contains(r#""TARGET_FUNCTIONS":"arn:"#), "the others stay: {fix}");
        facts.parameters = Ok([("BaseBackoff".to_owned(), "1".to_owned())].into());
        let fix = refused_settings(&facts, &["BASE_BACKOFF"]);
        assert!(by_hand(&fix) && fix.contains(r#""BASE_BACKOFF":"1""#), "the stack's value: {fix}");
        let parameters = [("BaseBackoff", "60"), ("Jitter", "full")];
        facts.parameters = Ok(parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        assert_eq!(refused_settings(&facts, &["BASE_BACKOFF"]), setting(&facts, "BASE_BACKOFF", "VALUE"));
        let fix = setting(&facts, "BASE_BACKOFF", "VALUE");
        assert!(fix.starts_with("aws cloudformation update-stack --stack-name comeback "), "{fix}");
        assert!(fix.contains("ParameterKey=BaseBackoff,ParameterValue=\"VALUE\""), "{fix}");
        assert!(fix.ends_with(" ParameterKey=Jitter,UsePreviousValue=true"), "{fix}");
        facts.parameters.as_mut().unwrap().insert("BaseBackoff".into(), "1".into());
        assert!(by_hand(&setting(&facts, "BASE_BACKOFF", "VALUE")), "somebody changed it by hand");
        facts.parameters = Err(Failure::could_not("denied"));
        let fix = setting(&facts, "BASE_BACKOFF", "VALUE");
        let named = "if stack comeback sets it (its parameters are unreadable: denied), change BaseBackoff \
                     there; otherwise: aws";
        assert!(fix.starts_with(named), "{fix}");
        facts.deployment.stack = None;
        assert!(by_hand(&setting(&facts, "BASE_BACKOFF", "VALUE")));
    }

    #[test]
    fn refused_settings_are_set_by_one_command() {
        let mut facts = healthy();
        let refused =
            [("MAX_AGE", "30"), ("JITTER", "some"), ("ENVELOPE", "x"), ("POLICIES", "a A=1; b JITTER=none")];
        for (name, value) in refused {
            facts.deployment.variables.insert(name.into(), value.into());
        }
        let names = refused.map(|(name, _)| name);
        let by_hand = refused_settings(&facts, &names);
        for set in [r#""MAX_AGE":"VALUE""#, r#""JITTER":"VALUE""#, r#""POLICIES":"a A=1; b JITTER=none""#] {
            assert!(by_hand.contains(set), "{by_hand}");
        }
        let correct = "correct the entry of POLICIES in this command: aws lambda ";
        assert!(by_hand.starts_with(correct) && by_hand.lines().count() == 1, "{by_hand}");

        // The fix first changes the settings that come from stack parameters.
        let parameters = [("MaxAge", "30"), ("Jitter", "some"), ("Envelope", "wrap")];
        facts.parameters = Ok(parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        let of_stack = refused_settings(&facts, &names[..3]);
        let set = "'ParameterKey=MaxAge,ParameterValue=\"VALUE\"' 'ParameterKey=Jitter,ParameterValue=\"VALUE\"' \
                   ParameterKey=Envelope,UsePreviousValue=true";
        assert!(of_stack.ends_with(set) && of_stack.lines().count() == 1, "{of_stack}");
    }

    #[test]
    fn variable_that_is_not_a_setting_is_never_shown() {
        let mut facts = healthy();
        facts.deployment.variables.insert("API_KEY".into(), "secret".into());
        let fix = setting(&facts, "MAX_AGE", "60");
        let expected = "set MAX_AGE=60 among the environment variables of retry-handler, and keep the others";
        assert_eq!(fix, expected);
    }

    #[test]
    fn value_reaches_aws_as_it_is() {
        let mut facts = healthy();
        let list = "arn:aws:lambda:eu-west-1:123456789012:function:orders:$LATEST";
        for value in [list, "A$B", "it's", r#"a"b"#, "`id`", r"a\", r#"\`"'$(id)"#] {
            let given =
                shlex::split(&variables(&facts.deployment, &[("JITTER", value)]).to_string()).unwrap();
            let environment: serde_json::Value = serde_json::from_str(given.last().unwrap()).unwrap();
            assert_eq!(environment["Variables"]["JITTER"], value);

            facts.deployment.variables.insert("JITTER".into(), value.into());
            facts.parameters = Ok([("Jitter".to_owned(), value.to_owned())].into());
            let given = shlex::split(&setting(&facts, "JITTER", value)).unwrap();
            let parameter =
                given.last().unwrap().strip_prefix("ParameterKey=Jitter,ParameterValue=\"").unwrap();
            let escaped = parameter.strip_suffix('"').unwrap();
            assert_eq!(escaped.replace("\\\"", "\"").replace(r"\\", r"\"), value, "as the AWS CLI reads it");
        }
    }

    #[test]
    fn far_function_is_not_to_be_attached() {
        let mut facts = healthy();
        let attachment = facts.attachment();
        attachment.target.qualifier = Some("live".into());
        assert_eq!(attach(attachment).to_string(), "comeback attach orders:live");
        attachment.target.arn = attachment.target.arn.replace("eu-west-1", "eu-west-2");
        let far = attachment.target.invoked_arn();
        let elsewhere = format!("use a deployment in the account and region of {far}");
        assert_eq!(attach(attachment).to_string(), elsewhere);
        assert_eq!(
            detach(&facts, &far).to_string(),
            format!("comeback detach {far}"),
            "its name alone would be another function's"
        );
    }

    #[test]
    fn each_command_works_in_the_same_account_and_region() {
        let mut facts = healthy();
        facts.deployment.place_flags = " --region eu-west-1 --profile ops".into();
        facts.attachment().deployment.place_flags = facts.deployment.place_flags.clone();
        facts.parameters =
            Ok([("TargetFunctions".to_owned(), facts.deployment.allow_list().to_owned())].into());
        let key = CustomerKey { arn: "arn:key".into(), state: Some("PendingDeletion".into()) };
        facts.retry_queue.as_mut().unwrap().redrive = None;
        for fix in [
            super::setting(&facts, "BASE_BACKOFF", "VALUE"),
            super::setting(&facts, "TARGET_FUNCTIONS", "VALUE"),
            self::key(&facts.deployment, &facts.deployment.retry_queue, &key),
            receives(&facts).unwrap().fix.unwrap(),
            attach(&facts.functions[0].attachments[0]),
        ] {
            let fix = fix.to_string();
            assert!(fix.ends_with(&facts.deployment.place_flags), "{fix}");
        }
    }
}
