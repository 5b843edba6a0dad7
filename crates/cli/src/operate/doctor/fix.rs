//! The commands that fix what was found. Each can be pasted into a shell; the operator replaces words in capitals.

use std::fmt::Display;

use aws_sdk_kms::types::KeyState;
use comeback_engine::MAXIMUM_CONCURRENCY_RANGE;
use comeback_operate::pauses::parameter::{NEWER_COMMAND, put_back};
use comeback_rehearsal::deployed::parameter;
use serde_json::json;

use crate::account::CustomerKey;
use crate::operate::deployment::Deployment;
use crate::operate::deployment::mapping::{INVOCATIONS_OF_A_POLLER, Mapping};
use crate::operate::deployment::queue::Queue;
use crate::operate::doctor::facts::log::BACK;
use crate::operate::doctor::facts::{Facts, UnreadablePauses};
use crate::operate::function::{Target, command_name, deployment_of_its_own, is_far};
use crate::operate::handler_setting::{POLICIES, TARGET_FUNCTIONS};
use crate::text::terminal::command_line;

pub(crate) fn mapping(facts: &Facts, mapping: &Mapping, flags: impl Display) -> String {
    facts.deployment.aws(format!("lambda update-event-source-mapping --uuid {} {flags}", mapping.uuid))
}

/// Has the handler assume what provisioned pollers come to, and lowers their number if it cannot.
pub(crate) fn provisioned(facts: &Facts, mapping: &Mapping, invocations: u64) -> String {
    let most = *MAXIMUM_CONCURRENCY_RANGE.end();
    let assume = setting(facts, "MAXIMUM_CONCURRENCY", &invocations.min(most).to_string());
    if invocations <= most {
        return assume;
    }
    let pollers = most / u64::from(INVOCATIONS_OF_A_POLLER);
    let fewer = format!("--provisioned-poller-config MaximumPollers={pollers}");
    format!("{}; {assume}", self::mapping(facts, mapping, fewer))
}

pub(crate) fn queue(deployment: &Deployment, url: &str, attributes: impl Display) -> String {
    deployment.aws(format!("sqs set-queue-attributes --queue-url {url} --attributes {attributes}"))
}

/// Restores a queue's key if that is possible.
pub(crate) fn key(deployment: &Deployment, queue: &Queue, key: &CustomerKey) -> String {
    let enable = deployment.aws(format!("kms enable-key --key-id {}", key.arn));
    match &key.state {
        Some(KeyState::Disabled) => enable,
        Some(KeyState::PendingDeletion | KeyState::PendingReplicaDeletion) => {
            format!("{}; {enable}", deployment.aws(format!("kms cancel-key-deletion --key-id {}", key.arn)))
        }
        _ => self::queue(deployment, &queue.url, "KmsMasterKeyId=ARN_OF_ANOTHER_KEY"),
    }
}

pub(crate) fn redrive(deployment: &Deployment) -> String {
    let dead = &deployment.dead_letter_queue.arn;
    let policy = json!({"deadLetterTargetArn": dead, "maxReceiveCount": "1000"}).to_string();
    queue(deployment, &deployment.retry_queue.url, format!("'{}'", json!({"RedrivePolicy": policy})))
}

pub(crate) fn handler(deployment: &Deployment, flags: impl Display) -> String {
    deployment
        .aws(format!("lambda update-function-configuration --function-name {} {flags}", deployment.handler))
}

/// Sets the handler's settings: by the stack's parameters where the values came from there, because the next deployment
/// undoes a change by hand. AWS refuses an update during another, so a command sets all that it can.
fn settings(facts: &Facts, values: &[(&str, &str)]) -> String {
    let deployment = &facts.deployment;
    let Some(stack) = &deployment.stack else { return variables(deployment, values) };
    let parameters = match &facts.parameters {
        Ok(parameters) => parameters,
        Err(failure) => {
            let names: Vec<String> = values.iter().map(|(name, _)| parameter(name)).collect();
            return format!(
                "if stack {stack} sets it (its parameters are unreadable: {failure}), change {} there; \
                 otherwise: {}",
                names.join(", "),
                variables(deployment, values)
            );
        }
    };
    let (of_stack, by_hand): (Vec<_>, Vec<_>) = values.iter().copied().partition(|(name, _)| {
        let set = deployment.variables.get(*name);
        set.is_some() && parameters.get(&parameter(name)) == set
    });
    let of_stack: Vec<_> = of_stack.into_iter().map(|(name, value)| (parameter(name), value)).collect();
    let mut commands = Vec::new();
    if !of_stack.is_empty() {
        commands.push(stack_parameters(deployment, stack, &of_stack));
    }
    if !of_stack.is_empty() && !by_hand.is_empty() {
        let wait = format!("cloudformation wait stack-update-complete --stack-name {stack}");
        commands.push(deployment.aws(wait));
    }
    if !by_hand.is_empty() {
        commands.push(variables(deployment, &by_hand));
    }
    commands.join("\n")
}

/// The same for one setting.
pub(crate) fn setting(facts: &Facts, name: &str, value: &str) -> String {
    settings(facts, &[(name, value)])
}

/// Replaces settings that the handler refuses: by the stack's values, if somebody changed the handler by hand.
pub(crate) fn refused_settings(facts: &Facts, names: &[&str]) -> String {
    let Facts { deployment, parameters, .. } = facts;
    let values = names.iter().map(|&name| {
        let of_stack = parameters.as_ref().ok().and_then(|parameters| parameters.get(&parameter(name)));
        // The template adds its example to TARGET_FUNCTIONS, and leaves these two out where BACKOFFS is set.
        let is_left_out =
            ["BASE_BACKOFF", "MAX_BACKOFF"].contains(&name) && deployment.variables.contains_key("BACKOFFS");
        let differs = name == TARGET_FUNCTIONS.variable || is_left_out;
        let by_hand = of_stack.filter(|value| !differs && deployment.variables.get(name) != Some(*value));
        // One refused entry must not cost the others.
        let edited = if name == POLICIES.variable { deployment.policies_text() } else { "VALUE" };
        (name, by_hand.map_or(edited, String::as_str))
    });
    let values: Vec<_> = values.collect();
    let is_unchanged = values.contains(&(POLICIES.variable, deployment.policies_text()));
    let correct = if is_unchanged { "correct the entry of POLICIES in this command: " } else { "" };
    format!("{correct}{}", settings(facts, &values))
}

/// Sets parameters of a stack and keeps the others.
pub(crate) fn stack_parameters(
    deployment: &Deployment,
    stack: &str,
    changed: &[(impl Display, &str)],
) -> String {
    let is_other = changed.iter().map(|(parameter, _)| format!("ParameterKey!='{parameter}'"));
    let others = deployment.aws(format!(
        "cloudformation describe-stacks --stack-name {stack} --output text --query \
         \"Stacks[0].Parameters[?{}].[join('', ['ParameterKey=', ParameterKey, ',UsePreviousValue=true'])]\"",
        is_other.collect::<Vec<_>>().join(" && ")
    ));
    let changed = changed.iter().map(|(parameter, value)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        format!("ParameterKey={parameter},ParameterValue=\"{value}\"")
    });
    let changed: Vec<String> = changed.collect();
    deployment.aws(format!(
        "cloudformation update-stack --stack-name {stack} --use-previous-template \
         --capabilities CAPABILITY_IAM CAPABILITY_AUTO_EXPAND --parameters {} $({others})",
        command_line(changed.iter().map(String::as_str))
    ))
}

/// Sets variables of the handler and keeps the others.
pub(crate) fn variables(deployment: &Deployment, changed: &[(&str, &str)]) -> String {
    let function = &deployment.handler;
    let changed = changed.iter().map(|(name, value)| {
        // JMESPath's backquotes hold JSON, where every value can be written.
        let value = json!(value).to_string().replace('`', "\\u0060");
        format!("{name}: `{value}`")
    });
    let changed = changed.collect::<Vec<_>>().join(", ");
    let merged = format!("{{Variables: merge(Environment.Variables, {{{changed}}})}}");
    let environment = deployment.aws(format!(
        "lambda get-function-configuration --function-name {function} --output json --query {}",
        command_line([&*merged])
    ));
    handler(deployment, format!("--environment \"$({environment})\""))
}

pub(crate) fn concurrency(deployment: &Deployment, function: &str) -> String {
    deployment.aws(format!("lambda delete-function-concurrency --function-name {function}"))
}

/// Writes the last readable pauses again, or none.
pub(crate) fn restore_pauses(deployment: &Deployment, unreadable: &UnreadablePauses) -> String {
    if unreadable.is_newer {
        return NEWER_COMMAND.to_owned();
    }
    put_back(&unreadable.parameter, unreadable.last_readable, &deployment.place_flags)
}

/// Sets whatever of an attachment is not as it should be. `arn` may have a qualifier.
pub(crate) fn attach(facts: &Facts, arn: &str) -> String {
    attach_with(facts, arn, "")
}

/// The same for a function that another deployment retries.
pub(crate) fn take_over(facts: &Facts, arn: &str) -> String {
    attach_with(facts, arn, " --move")
}

fn attach_with(facts: &Facts, arn: &str, flags: &str) -> String {
    let home = &facts.deployment.handler_arn;
    if is_far(arn, home) {
        return deployment_of_its_own(arn);
    }
    facts.deployment.command(format!("attach {}{flags}", command_name(arn, home)))
}

/// A function's name for the AWS CLI.
pub(crate) fn name(facts: &Facts, target: &Target) -> String {
    command_name(&target.arn, &facts.deployment.handler_arn)
}

/// `arn` may have a qualifier.
pub(crate) fn detach(facts: &Facts, arn: &str) -> String {
    facts.deployment.command(format!("detach {}", command_name(arn, &facts.deployment.handler_arn)))
}

/// The lines of the handler's log with level ERROR, from the last 24 hours.
pub(crate) fn read_errors(facts: &Facts) -> String {
    facts.deployment.aws(format!(
        "logs filter-log-events --log-group-name {} --start-time {} --filter-pattern '{{ $.level = \"ERROR\" }}'",
        facts.deployment.log_group,
        facts.now.before(BACK).as_millis()
    ))
}

#[cfg(test)]
mod tests {
    use crate::account::Failure;
    use crate::operate::doctor::sample::healthy;

    use super::*;

    #[test]
    fn a_setting_is_changed_where_it_came_from() {
        let mut facts = healthy();
        facts.deployment.variables.insert("BASE_BACKOFF".into(), "60".into());
        let by_hand = |fix: &str| fix.starts_with("aws lambda update-function-configuration");
        let fix = setting(&facts, "BASE_BACKOFF", "VALUE");
        assert!(by_hand(&fix) && fix.contains("{BASE_BACKOFF: `\"VALUE\"`}"), "{fix}");
        facts.parameters = Ok([("BaseBackoff".to_owned(), "1".to_owned())].into());
        let fix = refused_settings(&facts, &["BASE_BACKOFF"]);
        assert!(by_hand(&fix) && fix.contains("{BASE_BACKOFF: `\"1\"`}"), "the stack's value: {fix}");
        facts.parameters = Ok([("BaseBackoff".to_owned(), "60".to_owned())].into());
        assert_eq!(refused_settings(&facts, &["BASE_BACKOFF"]), setting(&facts, "BASE_BACKOFF", "VALUE"));
        let fix = setting(&facts, "BASE_BACKOFF", "VALUE");
        assert!(fix.starts_with("aws cloudformation update-stack --stack-name comeback "), "{fix}");
        assert!(fix.contains("ParameterKey=BaseBackoff,ParameterValue=\"VALUE\""), "{fix}");
        facts.parameters.as_mut().unwrap().insert("BaseBackoff".into(), "1".into());
        assert!(by_hand(&setting(&facts, "BASE_BACKOFF", "VALUE")), "somebody changed it by hand");
        facts.parameters = Err(Failure::CouldNot("denied".into()));
        let fix = setting(&facts, "BASE_BACKOFF", "VALUE");
        let named = "if stack comeback sets it (its parameters are unreadable: denied), change BaseBackoff \
                     there; otherwise: aws";
        assert!(fix.starts_with(named), "{fix}");
        facts.deployment.stack = None;
        assert!(by_hand(&setting(&facts, "BASE_BACKOFF", "VALUE")));
    }

    #[test]
    fn refused_settings_are_set_by_one_command_each_for_stack_and_handler() {
        let mut facts = healthy();
        let refused =
            [("MAX_AGE", "30"), ("JITTER", "some"), ("ENVELOPE", "x"), ("POLICIES", "a A=1; b JITTER=none")];
        for (name, value) in refused {
            facts.deployment.variables.insert(name.into(), value.into());
        }
        let names = refused.map(|(name, _)| name);
        let by_hand = refused_settings(&facts, &names);
        let merged = "MAX_AGE: `\"VALUE\"`, JITTER: `\"VALUE\"`, ENVELOPE: `\"VALUE\"`, POLICIES: `\"a A=1; b JITTER=none\"`";
        assert!(by_hand.contains(merged) && by_hand.lines().count() == 1, "{by_hand}");
        assert!(
            by_hand.starts_with("correct the entry of POLICIES in this command: aws lambda "),
            "{by_hand}"
        );

        let parameters = [("MaxAge", "30"), ("Jitter", "some"), ("Envelope", "wrap")];
        facts.parameters = Ok(parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        let both = refused_settings(&facts, &names[..3]);
        let [of_stack, wait, by_hand] = both.lines().collect::<Vec<_>>()[..] else { panic!("{both}") };
        for part in [
            "'ParameterKey=MaxAge,ParameterValue=\"VALUE\"' 'ParameterKey=Jitter,ParameterValue=\"VALUE\"' $(aws ",
            "[?ParameterKey!='MaxAge' && ParameterKey!='Jitter'].",
        ] {
            assert!(of_stack.contains(part), "{of_stack}");
        }
        assert_eq!(wait, "aws cloudformation wait stack-update-complete --stack-name comeback");
        assert!(by_hand.contains(" {ENVELOPE: `\"wrap\"`}"), "the stack's value: {by_hand}");
    }

    /// The arguments that a shell gives to `aws`, each on a line, with those of the nested call in the place of its answer.
    #[cfg(unix)]
    fn arguments(fix: &str) -> String {
        let script = format!("aws() {{ printf '%s\\n' \"$@\"; }}; {fix}");
        let ran = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
        String::from_utf8(ran.stdout).unwrap()
    }

    #[cfg(unix)]
    #[test]
    fn a_value_reaches_aws_as_it_is() {
        let mut facts = healthy();
        let list = "arn:aws:lambda:eu-west-1:123456789012:function:orders:$LATEST";
        for value in [list, "A$B", "it's", r#"a"b"#, "`id`", r"a\", r#"\`"'$(id)"#] {
            let given = arguments(&variables(&facts.deployment, &[("NAME", value)]));
            let literal = given.split_once(" {NAME: `").unwrap().1.strip_suffix("`})}\n").unwrap();
            assert!(!literal.contains('`'), "{literal}");
            assert_eq!(serde_json::from_str::<String>(literal).unwrap(), value);

            facts.deployment.variables.insert("NAME".into(), value.into());
            facts.parameters = Ok([("Name".to_owned(), value.to_owned())].into());
            let given = arguments(&setting(&facts, "NAME", value));
            let mut lines = given.lines();
            let parameter = lines.find_map(|line| line.strip_prefix("ParameterKey=Name,ParameterValue=\""));
            let escaped = parameter.unwrap().strip_suffix('"').unwrap();
            assert_eq!(escaped.replace("\\\"", "\"").replace(r"\\", r"\"), value, "as the AWS CLI reads it");
        }
    }

    #[test]
    fn a_function_elsewhere_is_not_to_be_attached() {
        let facts = healthy();
        let arn = &facts.functions[0].arn;
        assert_eq!(attach(&facts, &format!("{arn}:live")), "comeback attach orders:live");
        let far = arn.replace("eu-west-1", "eu-west-2");
        assert_eq!(attach(&facts, &far), format!("use a deployment in the account and region of {far}"));
        assert_eq!(
            detach(&facts, &far),
            format!("comeback detach {far}"),
            "its name alone would be another function's"
        );
    }

    #[test]
    fn each_command_works_in_the_same_account_and_region() {
        let mut facts = healthy();
        facts.deployment.place_flags = " --region eu-west-1 --profile ops".into();
        facts.parameters =
            Ok([("TargetFunctions".to_owned(), facts.deployment.allow_list().to_owned())].into());
        let key = CustomerKey { arn: "arn:key".into(), state: Some(KeyState::PendingDeletion) };
        for fix in [
            setting(&facts, "BASE_BACKOFF", "VALUE"),
            setting(&facts, "TARGET_FUNCTIONS", "VALUE"),
            self::key(&facts.deployment, &facts.deployment.retry_queue, &key),
            redrive(&facts.deployment),
            attach(&facts, &facts.functions[0].arn),
        ] {
            let commands = fix.matches("aws ").count() + fix.matches("comeback attach").count();
            assert_eq!(fix.matches(&facts.deployment.place_flags).count(), commands, "{fix}");
        }
    }
}
