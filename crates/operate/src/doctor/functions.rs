//! Checks on the attached functions.

use std::collections::BTreeSet;

use comeback_engine::FunctionArn;

use crate::attach::attaching::EVENT_AGE;
use crate::attach::attachment::Attachment;
use crate::attach::kept;
use crate::attach::step::{Difference, Step};
use crate::command::CommandName;
use crate::doctor::facts::Facts;
use crate::doctor::facts::functions::CheckedFunction;
use crate::doctor::judgement::{CheckOutcome, Judged, Judgement, broken, ok, skipped, warning};
use crate::doctor::{fix, rights};
use crate::failure::seen;
use crate::function::Target;
use crate::handler_setting::{TARGET_FUNCTIONS, TARGET_FUNCTIONS_PARAMETER, list_with};
use crate::text;

pub(crate) fn are_attached(facts: &Facts) -> Judged {
    facts.matched.clone()?;
    // Check CB108 reports functions that somebody removed from the handler's list by hand.
    let is_removed = |arn: FunctionArn| facts.stack_names(&arn) && !facts.deployment.retries(&arn);
    let attached = facts.functions.iter().filter(|function| !function.arn.parse().is_ok_and(is_removed));
    let names: Vec<&str> = attached.map(|function| &*function.name).collect();
    Ok(if names.is_empty() {
        warning(
            "no function is attached",
            "nothing is retried until a function is attached",
            facts.deployment.command(CommandName::Attach, ["FUNCTION"]),
        )
    } else {
        ok(names.join(", "))
    })
}

/// Checks that each entry of `NON_RETRYABLE_ERRORS` can match an error of at least one function.
pub(crate) fn error_types(facts: &Facts) -> Judged {
    facts.matched.clone()?;
    let targets = facts.functions.iter().map(|function| seen(&function.target));
    let targets: Vec<_> = targets.collect::<Result<_, _>>()?;
    let runtimes = targets.into_iter().flatten().map(|it| it.runtime.as_deref().unwrap_or("an image"));
    let runtimes = Vec::from_iter(BTreeSet::from_iter(runtimes));
    let set = facts.deployment.variables.get("NON_RETRYABLE_ERRORS").map(String::as_str).unwrap_or_default();
    let entries: Vec<&str> = set.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
    if entries.is_empty() || runtimes.is_empty() {
        return Ok(skipped("NON_RETRYABLE_ERRORS is empty, or no function is attached"));
    }
    let (matching, unmatched): (Vec<&str>, Vec<&str>) =
        entries.iter().partition(|entry| runtimes.iter().any(|runtime| can_match(entry, runtime)));
    Ok(if unmatched.is_empty() {
        ok(entries.join(", "))
    } else {
        warning(
            format!("no error of {} can match {}", runtimes.join(", "), unmatched.join(", ")),
            "errors that should go straight to the dead-letter queue are retried",
            fix::setting(facts, "NON_RETRYABLE_ERRORS", &matching.join(",")),
        )
    })
}

const NOT_FOUND: &str = "its events are dead-lettered as target_not_found";

pub(crate) fn exists(facts: &Facts, function: &CheckedFunction) -> Judged {
    if let Some(target) = seen(&function.target)? {
        return Ok(match function.gone.first() {
            Some(qualifier) => lacks(facts, target, qualifier),
            None => ok(&target.arn),
        });
    }
    let is_it = |entry: &str| entry.parse::<FunctionArn>().is_ok_and(|arn| arn.name == function.name);
    let (of_it, others): (Vec<_>, Vec<_>) =
        facts.deployment.target_functions().partition(|entry| is_it(entry));
    let is_stacks = is_of_stack(facts, function);
    let has_parameter =
        facts.parameters.as_ref().is_ok_and(|parameters| parameters.contains_key(TARGET_FUNCTIONS_PARAMETER));
    let was_by_hand = has_parameter && !is_stacks;
    let fix = if of_it.is_empty() && !is_stacks {
        "use a function that exists".into()
    } else if was_by_hand {
        fix::variables(&facts.deployment, &[(TARGET_FUNCTIONS, &others.join(","))])
    } else {
        fix::detach(facts, &function.arn)
    };
    Ok(broken("the function does not exist", NOT_FOUND, fix))
}

/// Returns the judgement that the function does not have this alias or version.
fn lacks(facts: &Facts, target: &Target, qualifier: &str) -> Judgement {
    let name = target.named(Some(qualifier));
    let is_kept = kept::keys(Some(qualifier)).iter().any(|key| target.tags.contains_key(key));
    let is_set = target.invoke_settings.contains_key(&Some(qualifier.to_owned()));
    let arn = format!("{}:{qualifier}", target.arn);
    let is_attached = is_kept || is_set || facts.deployment.target_functions().any(|entry| entry == arn);
    let fix =
        if is_attached { fix::detach(facts, &arn) } else { "use an alias or version that exists".into() };
    broken(format!("alias or version {name} does not exist"), NOT_FOUND, fix)
}

/// Returns true if the handler's allow-list or the stack's parameter allows the function.
pub(crate) fn is_allowed(facts: &Facts, function: &CheckedFunction, attachment: &Attachment) -> bool {
    is_of_stack(facts, function) || facts.deployment.allows(&attachment.target.invoked_arn())
}

fn is_of_stack(facts: &Facts, function: &CheckedFunction) -> bool {
    function.arn.parse().is_ok_and(|arn| facts.stack_names(&arn))
}

/// Judges a function that is being detached or moved away. Returns `None` while its failures still go to the retry
/// queue.
pub(crate) fn leaving(facts: &Facts, function: &CheckedFunction) -> Option<Judgement> {
    let target = function.target.as_ref().ok()?.as_ref()?;
    let since = [kept::MOVED, kept::DETACHED].iter().find_map(|key| kept::time(&target.tags, key))?;
    let moved_to = function.attachments.iter().find_map(Attachment::other);
    let state = moved_to.map_or_else(|| "being detached".into(), |other| format!("moving to {other}"));
    let queue = &facts.deployment.retry_queue.arn;
    if target.invoke_settings.values().any(|settings| settings.on_failure.as_ref() == Some(queue)) {
        return None;
    }
    let is_allowed = function.arn.parse().is_ok_and(|arn| facts.deployment.retries(&arn));
    let is_stacks = is_of_stack(facts, function);
    let policies = facts.deployment.policies().ok().filter(|_| is_stacks && !is_allowed);
    if let Some(policies) = policies {
        let (why, means) = rights::not_allowed(&policies, &function.arn);
        let list = list_with(facts.deployment.allow_list(), &function.arn);
        let fix = fix::variables(&facts.deployment, &[(TARGET_FUNCTIONS, &list)]);
        return Some(broken(format!("it is {state}, but {why}"), means, fix));
    }
    Some(warning(
        format!("it is {state}: its failures have not come here since {since}"),
        if is_stacks || is_allowed {
            "it stays on the allow-list, with its permissions, until its last events leave the retry queue"
        } else {
            "the rest can be removed once its last events have left the retry queue"
        },
        fix::detach(facts, &function.arn),
    ))
}

pub(crate) fn recursion(facts: &Facts, function: &CheckedFunction) -> Judged {
    let means = "Lambda stops each of its events after 16 rounds through the queue";
    of_target(function, |_| {
        let attached = function.attachments.iter().find(|attachment| attachment.is_attached());
        match attached {
            _ if leaving(facts, function).is_some() => is_leaving(),
            None => is_not_attached(),
            Some(attachment) => match change(attachment, attachment.allow_recursion(), "recursive loops") {
                Some(found) => broken(found, means, fix::attach(attachment)),
                None => ok("RecursiveLoop is Allow"),
            },
        }
    })
}

pub(crate) fn is_leaving() -> Judgement {
    skipped("it is being detached (CB102)")
}

pub(crate) fn is_not_attached() -> Judgement {
    skipped("it is not attached (CB102)")
}

pub(crate) fn concurrency(facts: &Facts, function: &CheckedFunction) -> Judged {
    of_target(function, |target| match target.reserved_concurrency {
        None => ok("none reserved"),
        Some(0) => broken(
            "its reserved concurrency is 0",
            "it never runs: every retry fails at once and is used up; to stop it, pause it too",
            fix::concurrency(&facts.deployment, &fix::name(facts, target)),
        ),
        Some(reserved) => ok(format!("{reserved} reserved")),
    })
}

pub(crate) fn has_no_dead_letter_queue(facts: &Facts, function: &CheckedFunction) -> Judged {
    of_target(function, |target| match &target.dead_letter {
        None => ok("none set"),
        Some(arn) => warning(
            format!("its DeadLetterConfig names {arn}"),
            "Lambda sends every failed attempt there too, in addition to the retry queue",
            facts.deployment.aws(format!(
                "lambda update-function-configuration --function-name {} --dead-letter-config TargetArn=",
                fix::name(facts, target)
            )),
        ),
    })
}

pub(crate) fn nothing_dropped(facts: &Facts, function: &CheckedFunction) -> Judged {
    if matches!(function.target, Ok(None)) {
        return Ok(missing());
    }
    let dropped = function.dropped.clone()?;
    let fix = cause_of_drops(facts, function).and_then(|cause| cause.fix).unwrap_or_else(|| {
        let target = function.target.as_ref().ok().and_then(Option::as_ref);
        let group =
            target.map_or_else(|| format!("/aws/lambda/{}", function.name), |it| it.log_group.clone());
        facts.deployment.aws(format!("logs tail {group} --since 1d"))
    });
    Ok(match (dropped.in_24_hours, dropped.in_14_days) {
        (_, 0) => ok("DestinationDeliveryFailures is 0 over 14 days"),
        (0, earlier) => warning(
            format!("DestinationDeliveryFailures is {earlier} over 14 days, 0 in the last 24 h"),
            "Lambda could not send these failed events to their destination and dropped them; if CB102, CB105 \
             and CB106 find nothing, the cause is gone, or the records were over 1 MiB",
            fix,
        ),
        (recent, _) => broken(
            format!("DestinationDeliveryFailures is {recent} in the last 24 h"),
            "Lambda drops failed events that it cannot send to their destination; if CB102, CB105 and CB106 \
             find nothing, the cause is gone, or the records were over 1 MiB",
            fix,
        ),
    })
}

/// A problem that currently makes Lambda drop the function's failed events.
fn cause_of_drops(facts: &Facts, function: &CheckedFunction) -> Option<Judgement> {
    let checks = [leads_here, rights::function_sends, rights::function_uses_key];
    let ours = function.attachments.iter().filter(|attachment| attachment.other().is_none());
    let judged = ours.flat_map(|attachment| checks.map(|check| check(facts, attachment)));
    judged.filter_map(Result::ok).find(|diagnosis| diagnosis.outcome > CheckOutcome::Ok)
}

fn of_target(function: &CheckedFunction, judge: impl Fn(&Target) -> Judgement) -> Judged {
    let target = seen(&function.target)?;
    Ok(target.as_ref().map_or_else(missing, judge))
}

fn missing() -> Judgement {
    skipped("the function does not exist (CB101)")
}

pub(crate) fn leads_here(facts: &Facts, attachment: &Attachment) -> Judged {
    if let Some(other) = attachment.other() {
        return Ok(warning(
            format!("it is attached to {other}, not to {}", facts.deployment.name()),
            format!("{other} retries its failures"),
            text!["to retry it here instead: ", fix::attach(attachment)],
        ));
    }
    let means = "it is not attached, so none of its failures is retried";
    Ok(match change(attachment, attachment.redirect(), "on failure") {
        Some(found) => broken(found, means, fix::attach(attachment)),
        None => ok(facts.deployment.retry_queue.name()),
    })
}

/// The change that a step of `attach` makes to one setting, such as `retries: 1 → 0`.
fn change(attachment: &Attachment, step: Option<Step>, setting: &str) -> Option<String> {
    let differences = step?.differences(&attachment.target);
    differences.iter().find(|difference| difference.setting == setting).map(Difference::change)
}

pub(crate) fn no_retries(_: &Facts, attachment: &Attachment) -> Judged {
    let means = "Lambda adds retries of its own, so failures reach Comeback minutes late";
    Ok(match change(attachment, attachment.redirect(), "retries") {
        Some(found) => warning(found, means, fix::attach(attachment)),
        None => ok("none"),
    })
}

pub(crate) fn event_age(_: &Facts, attachment: &Attachment) -> Judged {
    let means = format!(
        "a throttled event waits this long in Lambda before it reaches Comeback, six hours by default; {EVENT_AGE} s is \
         enough (to keep a time that you chose: --skip CB104)"
    );
    Ok(match change(attachment, attachment.redirect(), "event age") {
        Some(found) => warning(found, means, fix::attach(attachment)),
        None => ok(format!("{EVENT_AGE} s")),
    })
}

/// The prefixes of error types that Lambda itself reports for every runtime, such as `Sandbox.Timedout` and
/// `Runtime.ExitError`.
const OF_LAMBDA: [&str; 4] = ["Sandbox.", "Runtime.", "Extension.", "Lambda."];

/// Returns true if an entry of `NON_RETRYABLE_ERRORS` can match an error type that this runtime reports.
pub(crate) fn can_match(entry: &str, runtime: &str) -> bool {
    let is_written: fn(char) -> bool =
        match runtime.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
            // Python reports the name of the class without its module.
            "python" => is_name,
            // Java reports the name of the class with its package, such as `com.acme.Orders$RetryAfter`.
            "java" => |c| is_name(c) || matches!(c, '.' | '$'),
            // Ruby reports `Function<Acme::RetryAfter>`. An entry may also be just `Acme::RetryAfter`.
            "ruby" => |c| is_name(c) || matches!(c, '<' | '>' | ':'),
            _ => return true,
        };
    let is_wildcard = |c: char| matches!(c, '*' | '?');
    let begins = entry.split(is_wildcard).next().unwrap_or_default();
    let may_begin = |prefix: &str| begins.starts_with(prefix) || prefix.starts_with(begins);
    let may_be_simple = entry.chars().all(|c| is_name(c) || is_wildcard(c));
    let may_be_whole = entry.chars().all(|c| is_written(c) || is_wildcard(c));
    may_be_simple || may_be_whole || OF_LAMBDA.into_iter().any(may_begin)
}

/// Returns true for a character of a class name: a letter or digit of any alphabet, or an underscore.
fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use crate::aws::InvokeSettings;
    use crate::deployment::DeploymentName;
    use crate::doctor::tests::{assert_found, healthy};
    use crate::failure::Failure;
    use crate::metrics::Dropped;

    use super::*;

    #[test]
    fn something_is_attached() {
        assert_found(are_attached(&healthy()), CheckOutcome::Ok, "orders");
        let mut none = healthy();
        none.functions.clear();
        assert_found(are_attached(&none), CheckOutcome::Warning, "no function is attached");
        let mut removed = healthy();
        removed.parameters = Ok([("TargetFunctions".to_owned(), removed.functions[0].arn.clone())].into());
        assert_found(are_attached(&removed), CheckOutcome::Ok, "orders");
        removed.deployment.variables.insert("TARGET_FUNCTIONS".into(), String::new());
        assert_found(are_attached(&removed), CheckOutcome::Warning, "no function is attached");
        none.matched = Err(Failure::could_not("lambda:ListFunctions denied"));
        assert!(are_attached(&none).is_err());
    }

    #[test]
    fn an_entry_that_no_runtime_writes_is_named() {
        let mut facts = healthy();
        assert_found(error_types(&facts), CheckOutcome::Skipped, "empty");
        let list = "OrderRefused, com.acme.Refused";
        facts.deployment.variables.insert("NON_RETRYABLE_ERRORS".into(), list.into());
        let found = "no error of python3.12 can match com.acme.Refused";
        assert_found(error_types(&facts), CheckOutcome::Warning, found);
        let fix = error_types(&facts).unwrap().fix.unwrap().to_string();
        assert!(fix.contains(r#""NON_RETRYABLE_ERRORS":"OrderRefused""#), "{fix}");
        let mut java = facts.functions[0].clone();
        java.target.as_mut().unwrap().as_mut().unwrap().runtime = Some("java21".into());
        facts.functions.push(java);
        assert_found(error_types(&facts), CheckOutcome::Ok, list);
    }

    fn of_function(
        check: fn(&Facts, &CheckedFunction) -> Judged,
        change: impl FnOnce(&mut CheckedFunction),
    ) -> Judged {
        let mut facts = healthy();
        change(&mut facts.functions[0]);
        check(&facts, &facts.functions[0])
    }

    #[test]
    fn a_function_that_is_gone_is_named() {
        let gone = |function: &mut CheckedFunction| function.target = Ok(None);
        assert_found(of_function(exists, gone), CheckOutcome::Broken, "the function does not exist");
        for check in [recursion, concurrency, has_no_dead_letter_queue, nothing_dropped] {
            assert_found(of_function(check, gone), CheckOutcome::Skipped, "CB101");
        }
        assert_found(of_function(exists, |_| ()), CheckOutcome::Ok, ":function:orders");
        let unseen = |function: &mut CheckedFunction| function.target = Err(Failure::could_not("denied"));
        assert!(of_function(exists, unseen).is_err());
    }

    #[test]
    fn an_alias_that_is_gone_is_named() {
        let of = |tag: Option<&str>| {
            of_function(exists, |function| {
                function.gone.push("live".into());
                let target = function.target.as_mut().unwrap().as_mut().unwrap();
                target.tags.extend(tag.map(|tag| (tag.to_owned(), "none".to_owned())));
            })
        };
        let attached = of(Some("comeback:live:on-failure"));
        assert_eq!(
            attached.clone().unwrap().fix.map(|it| it.to_string()).as_deref(),
            Some("comeback detach orders:live")
        );
        assert_found(attached, CheckOutcome::Broken, "alias or version orders:live does not exist");
        assert_eq!(
            of(None).unwrap().fix.map(|it| it.to_string()).as_deref(),
            Some("use an alias or version that exists")
        );
    }

    #[test]
    fn deleted_function_is_taken_off_the_list() {
        let mut facts = healthy();
        let arn = |name: &str| format!("arn:aws:lambda:eu-west-1:123456789012:function:{name}");
        let list = format!("{},{}", arn("orders"), arn("payments"));
        facts.deployment.variables.insert("TARGET_FUNCTIONS".into(), list);
        facts.functions[0].target = Ok(None);
        let fix = |facts: &Facts| exists(facts, &facts.functions[0]).unwrap().fix.unwrap().to_string();
        assert_eq!(fix(&facts), "comeback detach orders");
        facts.parameters = Ok([(TARGET_FUNCTIONS_PARAMETER.to_owned(), arn("payments"))].into());
        let by_hand = fix(&facts);
        assert!(by_hand.contains(&format!("\"TARGET_FUNCTIONS\":\"{}\"", arn("payments"))), "{by_hand}");
        facts.functions[0].name = "misspelt".into();
        assert_eq!(fix(&facts), "use a function that exists");
    }

    fn of_changed(check: fn(&Facts, &CheckedFunction) -> Judged, change: impl FnOnce(&mut Target)) -> Judged {
        of_function(check, |function| {
            let target = function.target.as_mut().unwrap().as_mut().unwrap();
            change(target);
            function.attachments[0].target.clone_from(target);
        })
    }

    #[test]
    fn lambda_must_not_stop_its_loop() {
        assert_found(of_changed(recursion, |_| ()), CheckOutcome::Ok, "Allow");
        let stopped = of_changed(recursion, |target| target.recursion_allowed = false);
        assert_found(stopped, CheckOutcome::Broken, "Terminate");
    }

    #[test]
    fn own_dead_letter_queue_is_named_with_a_fix() {
        assert_found(of_changed(has_no_dead_letter_queue, |_| ()), CheckOutcome::Ok, "none set");
        let of = |change: fn(&mut Target)| {
            of_changed(has_no_dead_letter_queue, |target| {
                target.dead_letter = Some("arn:own".into());
                change(target);
            })
        };
        assert_found(of(|_| ()), CheckOutcome::Warning, "its DeadLetterConfig names arn:own");
        let command = "aws lambda update-function-configuration --function-name";
        let fix = |change| of(change).unwrap().fix.unwrap().to_string();
        assert_eq!(fix(|_| ()), format!("{command} orders --dead-letter-config TargetArn="));
        let far = fix(|target| target.arn = "arn:aws:lambda:eu-west-2:123456789012:function:orders".into());
        assert!(far.starts_with(&format!("{command} arn:aws:lambda:eu-west-2:")), "{far}");
    }

    #[test]
    fn concurrency_must_not_be_zero() {
        for (reserved, outcome) in
            [(None, CheckOutcome::Ok), (Some(1), CheckOutcome::Ok), (Some(0), CheckOutcome::Broken)]
        {
            let found = of_changed(concurrency, |target| target.reserved_concurrency = reserved);
            assert_found(found, outcome, "");
        }
    }

    #[test]
    fn dropped_events_are_counted() {
        for (in_24_hours, in_14_days, outcome, words) in [
            (0, 0, CheckOutcome::Ok, "0 over 14 days"),
            (0, 4, CheckOutcome::Warning, "4 over 14 days"),
            (2, 4, CheckOutcome::Broken, "2 in the last 24 h"),
        ] {
            let dropped = Dropped { in_24_hours, in_14_days };
            let found = of_function(nothing_dropped, |function| function.dropped = Ok(dropped));
            assert_found(found, outcome, words);
        }
    }

    fn of_qualified(
        check: fn(&Facts, &Attachment) -> Judged,
        change: impl FnOnce(&mut InvokeSettings),
    ) -> Judged {
        let mut facts = healthy();
        change(facts.settings());
        check(&facts, &facts.functions[0].attachments[0])
    }

    #[test]
    fn failures_go_to_the_retry_queue() {
        assert_found(of_qualified(leads_here, |_| ()), CheckOutcome::Ok, "retries");
        let none = of_qualified(leads_here, |settings| settings.on_failure = None);
        assert_eq!(
            none.clone().unwrap().fix.map(|it| it.to_string()).as_deref(),
            Some("comeback attach orders")
        );
        let here = "arn:aws:sqs:eu-west-1:123456789012:retries";
        assert_found(none, CheckOutcome::Broken, &format!("on failure: not set → {here}"));
        let other = of_qualified(leads_here, |settings| settings.on_failure = Some("arn:topic".into()));
        assert_found(other, CheckOutcome::Broken, &format!("on failure: arn:topic → {here}"));
    }

    #[test]
    fn a_function_that_is_being_detached_is_not_half_attached() {
        let mut facts = healthy();
        let target = facts.functions[0].target.as_mut().unwrap().as_mut().unwrap();
        target.tags.insert(kept::DETACHED.into(), "2023-11-14T22:13:20.000Z".into());
        assert_eq!(leaving(&facts, &facts.functions[0]), None, "it was attached again");
        let target = facts.functions[0].target.as_mut().unwrap().as_mut().unwrap();
        target.invoke_settings.clear();
        let found = leaving(&facts, &facts.functions[0]).unwrap();
        assert_eq!(found.fix.clone().map(|it| it.to_string()).as_deref(), Some("comeback detach orders"));
        assert_found(
            Ok(found),
            CheckOutcome::Warning,
            "being detached: its failures have not come here since \
                                                   2023-11-14T22:13:20.000Z",
        );
        facts.attachment().elsewhere.insert(None, DeploymentName::Stack("billing".into()));
        let moved = leaving(&facts, &facts.functions[0]).unwrap();
        assert_found(
            Ok(moved),
            CheckOutcome::Warning,
            "it is moving to stack billing: its failures have not come \
                                                   here since 2023",
        );
        assert_found(recursion(&facts, &facts.functions[0]), CheckOutcome::Skipped, "CB102");
    }

    #[test]
    fn a_function_that_is_being_detached_stays_on_the_handlers_list() {
        let mut facts = healthy();
        let function = &mut facts.functions[0];
        let (arn, target) = (function.arn.clone(), function.target.as_mut().unwrap().as_mut().unwrap());
        target.tags.insert(kept::DETACHED.into(), "2023-11-14T22:13:20.000Z".into());
        target.invoke_settings.clear();
        let leaving = |facts: &Facts| leaving(facts, &facts.functions[0]).unwrap();
        let means = |facts: &Facts| leaving(facts).means.unwrap().to_string();
        assert!(means(&facts).starts_with("it stays on the allow-list"));
        let others = arn.replace("orders", "others");
        facts.deployment.variables.insert("TARGET_FUNCTIONS".into(), others.clone());
        let off_both = leaving(&facts);
        assert!(!off_both.means.as_ref().unwrap().to_string().contains("allow-list"), "{off_both:?}");
        assert_eq!(off_both.outcome, CheckOutcome::Warning);

        facts.parameters = Ok([(TARGET_FUNCTIONS_PARAMETER.to_owned(), arn.clone())].into());
        let found = format!("it is being detached, but TARGET_FUNCTIONS does not allow {arn}");
        assert_found(Ok(leaving(&facts)), CheckOutcome::Broken, &found);
        assert!(means(&facts).ends_with("as target_not_allowed"), "{}", means(&facts));
        let fix = leaving(&facts).fix.unwrap().to_string();
        assert!(fix.contains(&format!("\"TARGET_FUNCTIONS\":\"{others},{arn}\"")), "{fix}");
        facts.deployment.variables.insert("TARGET_FUNCTIONS".into(), String::new());
        assert!(means(&facts).ends_with("but not retried"), "the handler keeps what arrives");
    }

    #[test]
    fn dropped_events_lead_to_their_cause() {
        let fix = |change: fn(&mut Attachment)| {
            let dropped = Dropped { in_24_hours: 1, in_14_days: 1 };
            let judged = of_function(nothing_dropped, |function| {
                function.dropped = Ok(dropped);
                change(&mut function.attachments[0]);
            });
            judged.unwrap().fix.unwrap().to_string()
        };
        assert_eq!(fix(|attachment| attachment.target.invoke_settings.clear()), "comeback attach orders");
        assert_eq!(fix(|_| ()), "aws logs tail /aws/lambda/orders --since 1d");
        let judged = of_function(nothing_dropped, |function| {
            function.dropped = Ok(Dropped { in_24_hours: 1, in_14_days: 1 });
            function.target.as_mut().unwrap().as_mut().unwrap().log_group = "shop".into();
        });
        assert_eq!(judged.unwrap().fix.unwrap().to_string(), "aws logs tail shop --since 1d");
    }

    #[test]
    fn lambda_itself_does_not_retry() {
        for (retries, words) in [(None, "retries: not set → 0"), (Some(1), "retries: 1 → 0")] {
            let found = of_qualified(no_retries, |settings| settings.retries = retries);
            assert_found(found, CheckOutcome::Warning, words);
        }
        assert_found(of_qualified(no_retries, |_| ()), CheckOutcome::Ok, "none");
    }

    #[test]
    fn events_are_not_kept_long_by_lambda() {
        for (age, outcome, words) in [
            (Some(60), CheckOutcome::Ok, "60 s"),
            (Some(61), CheckOutcome::Warning, "event age: 61s → 60s"),
            (None, CheckOutcome::Warning, "event age: not set → 60s"),
        ] {
            assert_found(of_qualified(event_age, |settings| settings.event_age = age), outcome, words);
        }
        let chosen = of_qualified(event_age, |settings| settings.event_age = Some(600)).unwrap();
        assert!(chosen.means.unwrap().to_string().contains("--skip CB104"));
    }

    #[test]
    fn python_writes_no_module() {
        for entry in
            ["OrderRefused", "Order*", "*", "Größe", "Sandbox.Timedout", "Runtime.*", "*.Timeout", "Run*.x"]
        {
            assert!(can_match(entry, "python3.12"), "{entry}");
        }
        for entry in
            ["com.acme.OrderRefused", "orders.OrderRefused", "Orders$Refused", "Acme::Refused", "Order-*"]
        {
            assert!(!can_match(entry, "python3.12"), "{entry}");
        }
    }

    #[test]
    fn java_and_ruby_write_their_own_marks() {
        assert!(can_match("com.acme.Orders$RetryAfter", "java21"));
        assert!(!can_match("Acme::RetryAfter", "java21"));
        assert!(can_match("Function<Acme::RetryAfter>", "ruby3.4"));
        assert!(can_match("*::RetryAfter>", "ruby3.4"));
        assert!(can_match("Acme::RetryAfter", "ruby3.4"));
        assert!(!can_match("com.acme.RetryAfter", "ruby3.4"));
    }

    #[test]
    fn every_runtimes_types_have_simple_names() {
        for runtime in ["python3.12", "java21", "ruby3.4"] {
            assert!(can_match("OrderRefused", runtime) && can_match("Order*", runtime), "{runtime}");
        }
    }

    #[test]
    fn a_runtime_that_writes_anything_is_not_judged() {
        for runtime in ["nodejs22.x", "provided.al2023", "dotnet8", "an image"] {
            assert!(can_match("com.acme::Any-thing", runtime), "{runtime}");
        }
    }
}
