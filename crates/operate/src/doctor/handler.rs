//! Checks on the retry handler, its alarms and its pauses.

use comeback_engine::{
    HANDLER_TIMEOUT, LONG_PAUSE, MAXIMUM_CONCURRENCY_RANGE, Pause, PauseTarget, ReasonCode,
};

use crate::alarms::{Alarm, Watched};
use crate::aws::{Executions, INVOCATIONS_OF_A_POLLER};
use crate::command::{Command, CommandName, command_line};
use crate::doctor::facts::Facts;
use crate::doctor::fix;
use crate::doctor::judgement::{Judged, TOPIC, broken, ok, skipped, warning};
use crate::failure::seen;
use crate::numbers::counted;
use crate::pauses::parameter::nearly_full;
use crate::pauses::repair::{problem, remedy, unreadable};
use crate::text;
use crate::text::{Text, quoted};

pub(crate) fn settings(facts: &Facts) -> Judged {
    let Err(refused) = facts.deployment.policies() else { return Ok(ok("all accepted")) };
    let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
    // Each error message begins with the name of the refused variable.
    let names = each_once(refused.iter().filter_map(|text| text.split(' ').next()));
    Ok(broken(
        refused.join("; "),
        "the handler does not start: events wait, and are lost after 14 days",
        fix::refused_settings(facts, &names),
    ))
}

pub(crate) fn timeout(facts: &Facts) -> Judged {
    let seconds = facts.deployment.timeout.as_secs();
    if facts.deployment.timeout >= HANDLER_TIMEOUT {
        return Ok(ok(format!("{seconds} s")));
    }
    let wanted = HANDLER_TIMEOUT.as_secs();
    Ok(warning(
        format!("the handler's timeout is {seconds} s"),
        "the handler may time out mid-batch; the rest returns after the queue's visibility timeout",
        fix::handler(&facts.deployment, format!("--timeout {wanted}")),
    ))
}

pub(crate) fn recursion(facts: &Facts) -> Judged {
    let handler = seen(&facts.handler)?;
    if handler.recursion_allowed {
        return Ok(ok("RecursiveLoop is Allow"));
    }
    let name = fix::name(facts, handler);
    let fix = format!("lambda put-function-recursion-config --function-name {name} --recursive-loop Allow");
    let means = "Lambda stops each event after 16 rounds through the queue";
    Ok(broken("RecursiveLoop is Terminate", means, facts.deployment.aws(fix)))
}

pub(crate) fn concurrency(facts: &Facts) -> Judged {
    let fix = fix::concurrency(&facts.deployment, &facts.deployment.handler);
    let handler = seen(&facts.handler)?;
    Ok(match handler.reserved_concurrency {
        None => ok("none reserved"),
        Some(0) => broken(
            "the handler's reserved concurrency is 0",
            "the handler never runs: events wait, and are lost after 14 days",
            fix,
        ),
        Some(reserved) => warning(
            format!("the handler's reserved concurrency is {reserved}"),
            "throttled pollers raise receive counts without running the handler; limit it with the mapping's \
             MaximumConcurrency instead",
            fix,
        ),
    })
}

pub(crate) fn errors(facts: &Facts) -> Judged {
    let errors = seen(&facts.errors)?;
    let Some(newest) = &errors.newest else { return Ok(ok("none in the last 24 h")) };
    let at_least = if errors.all_were_read { "" } else { "at least " };
    let count = counted(errors.count, "ERROR", "ERRORs");
    Ok(warning(
        format!("{at_least}{count} in the last 24 h; the latest, at {}: {}", newest.at, newest.text),
        newest.remedy.as_deref().unwrap_or("an action of the handler failed"),
        fix::read_errors(facts),
    ))
}

/// Warns if the handler's log group is not of class STANDARD, the only class that CloudWatch can search.
pub(crate) fn log_is_searchable(facts: &Facts) -> Judged {
    let name = &facts.deployment.log_group;
    let Some(group) = seen(&facts.log_group)? else {
        return Ok(skipped(format!("log group {name} does not exist: the handler has not run yet")));
    };
    Ok(match group.class.as_deref() {
        None | Some("STANDARD") => ok(format!("{name} is of class STANDARD")),
        Some(class) => warning(
            format!("log group {name} is of class {class}"),
            "waiting events can be neither listed, nor traced, nor recalled; a log group's class never changes, and \
             deleting the group deletes its lines and its retention",
            text![
                "create it again with class STANDARD after this command: ",
                facts.deployment.aws(format!("logs delete-log-group --log-group-name {name}"))
            ],
        ),
    })
}

/// Lambda's minimum for `MaximumPollers`.
const FEWEST_POLLERS: u64 = 2;

/// Warns if the handler could use more than half of the account's unreserved concurrency.
pub(crate) fn executions(facts: &Facts) -> Judged {
    let Executions { all, unreserved } = *seen(&facts.executions)?;
    let mapping = facts.deployment.mapping.as_ref();
    let limit = mapping.and_then(|mapping| mapping.maximum_concurrency);
    let Some(handlers) = limit.map(|limit| u64::from(limit.unsigned_abs())) else {
        return Ok(skipped("the handler's concurrency has no limit (CB001, CB006)"));
    };
    let left = unreserved.saturating_sub(handlers);
    let found = format!(
        "{unreserved} of {all} concurrent executions are unreserved; the handler takes up to {handlers}, \
         which leaves {left} for the functions"
    );
    if left >= handlers {
        return Ok(ok(found));
    }
    let wanted = (all + 2 * handlers - unreserved).max(1_000);
    let lower = (unreserved / 2).clamp(*MAXIMUM_CONCURRENCY_RANGE.start(), *MAXIMUM_CONCURRENCY_RANGE.end());
    let lowered = if mapping.is_some_and(|it| it.maximum_pollers.is_some()) {
        let of_each = u64::from(INVOCATIONS_OF_A_POLLER);
        let pollers = (lower / of_each).max(FEWEST_POLLERS);
        format!("MaximumPollers to {pollers}, and MAXIMUM_CONCURRENCY to {}", pollers * of_each)
    } else {
        format!("MaximumConcurrency, and MAXIMUM_CONCURRENCY with it, to {lower}")
    };
    let raise = format!(
        "service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 \
         --desired-value {wanted}"
    );
    Ok(warning(
        found,
        "when many retries are due, Lambda throttles them, and every other function without reserved \
         concurrency",
        text!["raise the quota: ", facts.deployment.aws(raise), format!("; or lower {lowered}")],
    ))
}

pub(crate) fn alarms_exist(facts: &Facts) -> Judged {
    let alarms = seen(&facts.alarms)?;
    if !alarms.is_empty() {
        return Ok(ok(names(alarms).join(", ")));
    }
    let dead = facts.deployment.dead_letter_queue.name();
    Ok(warning(
        "neither queue nor the handler has an alarm",
        "nobody is notified when events are dead-lettered or retries stop",
        facts.deployment.aws(format!(
            "cloudwatch put-metric-alarm --alarm-name {dead}-not-empty --namespace AWS/SQS \
             --metric-name ApproximateNumberOfMessagesVisible --dimensions Name=QueueName,Value={dead} \
             --statistic Maximum --period 300 --evaluation-periods 1 --threshold 0 \
             --comparison-operator GreaterThanThreshold --treat-missing-data notBreaching --alarm-actions {TOPIC}"
        )),
    ))
}

pub(crate) fn no_alarm_is_raised(facts: &Facts) -> Judged {
    let alarms = seen(&facts.alarms)?;
    let raised: Vec<&Alarm> = alarms.iter().filter(|alarm| alarm.state == "ALARM").collect();
    if raised.is_empty() {
        return Ok(if alarms.is_empty() {
            skipped("there are no alarms (CB040)")
        } else {
            ok("none in state ALARM")
        });
    }
    let means = match raised.as_slice() {
        [alarm] => Text::from(&alarm.description),
        all => lines(all.iter().map(|alarm| format!("{}: {}", alarm.name, alarm.description).into())),
    };
    let fixes = each_once(raised.iter().map(|alarm| find_cause(facts, &alarm.watched)));
    let found = format!("in state ALARM: {}", names(raised).join(", "));
    Ok(warning(found, means, lines(fixes)))
}

fn each_once<T: PartialEq>(texts: impl Iterator<Item = T>) -> Vec<T> {
    texts.fold(Vec::new(), |mut once, text| {
        if !once.contains(&text) {
            once.push(text);
        }
        once
    })
}

fn lines(texts: impl IntoIterator<Item = Text>) -> Text {
    Text::joined(texts, "\n")
}

fn find_cause(facts: &Facts, watched: &Watched) -> Text {
    let command = |name, words: &[&str]| facts.deployment.command(name, words.iter().copied()).into();
    let doctor = |checks| command(CommandName::Doctor, &["--only", checks]);
    match watched {
        Watched::DeadLetters => command(CommandName::DeadList, &[]),
        Watched::LostPayloads => {
            command(CommandName::DeadList, &["--reason", &ReasonCode::PayloadLost.to_string()])
        }
        Watched::Lost(function) => {
            command(CommandName::Doctor, &[function, "--only", "CB102,CB105,CB106,CB111"])
        }
        Watched::Errors => fix::read_errors(facts),
        Watched::Throttles => doctor("CB023,CB025"),
        Watched::Receives => doctor("CB001,CB006,CB020,CB023,CB030,CB031,CB035"),
        Watched::Hidden => doctor("CB006,CB031"),
        Watched::Due => {
            let raised = match facts.deployment.stack {
                Some(_) => "the stack's MaximumConcurrency",
                None => "MaximumConcurrency, and MAXIMUM_CONCURRENCY with it",
            };
            let schedule = Command::new(CommandName::Schedule, ["--rate", "RATE"], "");
            let raise = text![format!("raise {raised}; "), schedule, " prints the number needed"];
            lines([command(CommandName::Waiting, &[]), raise])
        }
    }
}

pub(crate) fn alarms_notify(facts: &Facts) -> Judged {
    let alarms = seen(&facts.alarms)?;
    let silent: Vec<&Alarm> = alarms.iter().filter(|alarm| !alarm.notifies).collect();
    Ok(match silent.as_slice() {
        [] if alarms.is_empty() => skipped("there are no alarms (CB040)"),
        [] => ok("all notify somebody"),
        _ => warning(
            format!(
                "{} of {} alarms notify nobody: {}",
                silent.len(),
                alarms.len(),
                names(silent.iter().copied()).join(", ")
            ),
            "they have no action, or their actions are disabled",
            lines(notify(facts, &silent)),
        ),
    })
}

/// The commands that make silent alarms notify somebody.
fn notify(facts: &Facts, silent: &[&Alarm]) -> Vec<Text> {
    let deployment = &facts.deployment;
    let (disabled, without_action): (Vec<&Alarm>, Vec<&Alarm>) =
        silent.iter().partition(|alarm| alarm.has_action);
    let (by_attach, others): (Vec<&Alarm>, Vec<&Alarm>) =
        without_action.iter().partition(|alarm| alarm.made_by_attach(deployment).is_some());
    let topic = facts.parameters.as_ref().ok().and_then(|parameters| parameters.get("AlarmTopicArn"));
    let mut fixes = Vec::new();
    match (&deployment.stack, topic) {
        _ if others.is_empty() => {}
        (Some(stack), Some(topic)) if topic.is_empty() => {
            let parameters = seen(&facts.parameters).cloned().unwrap_or_default();
            let changed = [("AlarmTopicArn", TOPIC)];
            fixes.push(fix::stack_parameters(deployment, stack, &parameters, &changed));
        }
        _ => fixes.push("add an SNS topic's ARN to the AlarmActions of each, where it is defined".into()),
    }
    let functions = by_attach.iter().filter_map(|alarm| alarm.made_by_attach(deployment));
    let attached = functions.filter_map(|name| {
        let function = facts.functions.iter().find(|function| function.name == name)?;
        function.attachments.iter().find(|attachment| attachment.is_attached()).map(fix::attach)
    });
    fixes.extend(attached);
    if !disabled.is_empty() {
        let names = command_line(names(disabled));
        fixes.push(deployment.aws(format!("cloudwatch enable-alarm-actions --alarm-names {names}")));
    }
    fixes
}

fn names<'a>(alarms: impl IntoIterator<Item = &'a Alarm>) -> Vec<&'a str> {
    alarms.into_iter().map(|alarm| &*alarm.name).collect()
}

pub(crate) fn no_pause_is_forgotten(facts: &Facts) -> Judged {
    let pauses = match seen(&facts.pauses)? {
        Some(Ok(pauses)) => pauses,
        Some(Err(garbled)) => {
            return Ok(broken(
                problem(&facts.deployment, garbled),
                "a running handler keeps using the last pauses it read; a new instance holds every event that is \
                 due",
                remedy(&facts.deployment, garbled).map_or_else(Text::from, Text::from),
            ));
        }
        None => return Ok(skipped("the handler reads no pauses, because PAUSES is not set")),
    };
    let is_long = |pause: &&Pause| pause.is_active(facts.now) && facts.now.since(pause.from) > LONG_PAUSE;
    let long: Vec<&Pause> = pauses.iter().filter(is_long).collect();
    let Some(first) = long.first() else { return Ok(ok("none open for more than 24 h")) };
    let each: Vec<String> = long.iter().map(|pause| in_words(pause)).collect();
    Ok(warning(
        format!("paused for more than 24 h: {}", each.join("; ")),
        "its events are held, and dead-lettered after 13 days and 12 hours",
        facts.deployment.command(CommandName::Resume, [resumed(&first.target)]),
    ))
}

pub(crate) fn pauses_have_room(facts: &Facts) -> Judged {
    let pauses = match seen(&facts.pauses)? {
        Some(Ok(pauses)) => pauses,
        Some(Err(garbled)) => return Err(unreadable(&facts.deployment, garbled)),
        None => return Ok(skipped("the handler reads no pauses, because PAUSES is not set")),
    };
    let Some(found) = nearly_full(pauses) else { return Ok(ok("the parameter has room")) };
    Ok(warning(
        found,
        "when it is full, ended pauses are dropped, oldest first, and their time counts towards MAX_AGE \
         again; with none left to drop, nothing more can be paused",
        text![
            "resume functions that need no pause; requests leave it when they end: ",
            quoted(facts.deployment.command(CommandName::Pause, ["--list"])),
            " lists both"
        ],
    ))
}

/// Describes a pause in words, such as `orders since 2026-11-28T10:00:00Z by alice: deploy 4711`.
fn in_words(pause: &Pause) -> String {
    let target = match &pause.target {
        PauseTarget::All => "every function".to_owned(),
        PauseTarget::Functions(pattern) => pattern.to_string(),
    };
    let by = pause.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let why = pause.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("{target} since {}{by}{why}", pause.from)
}

/// Returns the argument to pass to `comeback resume` to end a pause with this target.
fn resumed(target: &PauseTarget) -> String {
    match target {
        PauseTarget::All => "--all".to_owned(),
        PauseTarget::Functions(pattern) => pattern.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use comeback_engine::{Pauses, Timestamp};

    use crate::aws::LogGroup;
    use crate::doctor::facts::log::{LoggedError, LoggedErrors};
    use crate::doctor::judgement::CheckOutcome;
    use crate::doctor::tests::{assert_found, healthy, pause};

    use super::*;

    #[test]
    fn every_refused_setting_is_named() {
        let mut facts = healthy();
        facts.deployment.variables.insert("MAX_AGE".into(), "30".into());
        facts.deployment.variables.insert("JITTER".into(), "some".into());
        assert_found(settings(&facts), CheckOutcome::Broken, r#"JITTER is "some""#);
        assert_found(settings(&facts), CheckOutcome::Broken, "MAX_AGE is 30 s");
        let fix = settings(&facts).unwrap().fix.unwrap().to_string();
        assert!(fix.contains(r#""JITTER":"VALUE","MAX_AGE":"VALUE""#), "{fix}");
        assert_eq!(fix.matches("update-function-configuration").count(), 1, "{fix}");
    }

    #[test]
    fn the_handler_must_not_be_its_own_target() {
        let mut facts = healthy();
        let itself = facts.deployment.handler_arn.to_string();
        facts.deployment.variables.insert("TARGET_FUNCTIONS".into(), format!("EXAMPLE,{itself}"));
        facts.parameters = Ok([("TargetFunctions".to_owned(), itself)].into());
        assert_found(settings(&facts), CheckOutcome::Broken, "is the retry handler itself");
        let fix = settings(&facts).unwrap().fix.unwrap().to_string();
        assert!(
            fix.contains(r#""TARGET_FUNCTIONS":"VALUE""#),
            "the stack's own list is the refused one: {fix}"
        );
    }

    #[test]
    fn handler_timeout_is_at_least_a_minute() {
        for (seconds, outcome) in
            [(59, CheckOutcome::Warning), (60, CheckOutcome::Ok), (61, CheckOutcome::Ok)]
        {
            let mut facts = healthy();
            facts.deployment.timeout = Duration::from_secs(seconds);
            assert_found(timeout(&facts), outcome, &format!("{seconds} s"));
        }
    }

    #[test]
    fn lambda_must_not_stop_the_loop() {
        let mut facts = healthy();
        facts.handler.as_mut().unwrap().recursion_allowed = false;
        assert_found(recursion(&facts), CheckOutcome::Broken, "Terminate");
    }

    #[test]
    fn concurrency_is_not_reserved() {
        for (reserved, outcome) in [(0, CheckOutcome::Broken), (5, CheckOutcome::Warning)] {
            let mut facts = healthy();
            facts.handler.as_mut().unwrap().reserved_concurrency = Some(reserved);
            assert_found(concurrency(&facts), outcome, &format!("reserved concurrency is {reserved}"));
        }
    }

    #[test]
    fn the_newest_error_is_shown_with_its_remedy() {
        let mut facts = healthy();
        let newest = LoggedError {
            at: Timestamp::from_secs(1_700_000_000),
            text: "denied".into(),
            remedy: Some("allow it".into()),
        };
        facts.errors = Ok(LoggedErrors { count: 7, newest: Some(newest), all_were_read: false });
        let expected = "at least 7 ERRORs in the last 24 h; the latest, at 2023-11-14T22:13:20.000Z: denied";
        assert_found(errors(&facts), CheckOutcome::Warning, expected);
        let found = errors(&facts).unwrap();
        assert_eq!(found.means.clone().map(|it| it.to_string()).as_deref(), Some("allow it"));
        assert!(found.fix.unwrap().to_string().contains("--start-time 1699913600000"));
    }

    #[test]
    fn log_group_of_another_class_is_deleted() {
        let judged = |log_group| log_is_searchable(&Facts { log_group, ..healthy() });
        let of_class =
            |class: Option<&str>| Ok(Some(LogGroup { retention: None, class: class.map(Into::into) }));
        for class in [None, Some("STANDARD")] {
            assert_found(judged(of_class(class)), CheckOutcome::Ok, "of class STANDARD");
        }
        assert_found(judged(Ok(None)), CheckOutcome::Skipped, "/aws/lambda/retry-handler does not exist");
        let rare = judged(of_class(Some("INFREQUENT_ACCESS")));
        let fix = "create it again with class STANDARD after this command: \
                   aws logs delete-log-group --log-group-name /aws/lambda/retry-handler";
        assert_eq!(rare.as_ref().unwrap().fix.as_ref().unwrap().to_string(), fix);
        assert_found(rare, CheckOutcome::Warning, "of class INFREQUENT_ACCESS");
    }

    #[test]
    fn the_account_has_room_for_the_handler_and_its_functions() {
        let judged = |all, unreserved| {
            executions(&Facts { executions: Ok(Executions { all, unreserved }), ..healthy() })
        };
        assert_found(judged(1_000, 20), CheckOutcome::Ok, "20 of 1000 concurrent executions are unreserved");
        assert_found(judged(1_000, 19), CheckOutcome::Warning, "up to 10, which leaves 9 for the functions");
        assert_found(judged(10, 10), CheckOutcome::Warning, "leaves 0");
        let fix = judged(10, 10).unwrap().fix.unwrap().to_string();
        assert!(fix.contains("--desired-value 1000; or lower") && fix.ends_with("to 5"), "{fix}");
        let fix = judged(2_000, 3).unwrap().fix.unwrap().to_string();
        assert!(fix.contains("--desired-value 2017;") && fix.ends_with("to 2"), "{fix}");
        let mut provisioned = healthy();
        let mapping = provisioned.deployment.mapping.as_mut().unwrap();
        (mapping.maximum_pollers, mapping.maximum_concurrency) = (Some(80), Some(800));
        let fix = executions(&provisioned).unwrap().fix.unwrap().to_string();
        assert!(fix.ends_with("or lower MaximumPollers to 50, and MAXIMUM_CONCURRENCY to 500"), "{fix}");
        let mut unlimited = healthy();
        unlimited.deployment.mapping.as_mut().unwrap().maximum_concurrency = None;
        assert_found(executions(&unlimited), CheckOutcome::Skipped, "CB006");
    }

    fn with(change: impl FnOnce(&mut Vec<Alarm>)) -> Facts {
        let mut facts = healthy();
        change(facts.alarms.as_mut().unwrap());
        facts
    }

    #[test]
    fn no_alarm_at_all_is_a_warning() {
        let none = with(Vec::clear);
        assert_found(
            alarms_exist(&none),
            CheckOutcome::Warning,
            "neither queue nor the handler has an alarm",
        );
        assert_found(no_alarm_is_raised(&none), CheckOutcome::Skipped, "CB040");
        assert_found(alarms_notify(&none), CheckOutcome::Skipped, "CB040");
    }

    #[test]
    fn a_raised_alarm_is_named() {
        let raised = with(|alarms| alarms[0].state = "ALARM".into());
        assert_found(no_alarm_is_raised(&raised), CheckOutcome::Warning, "in state ALARM: dead-letters");
    }

    #[test]
    fn a_raised_alarm_leads_to_its_cause() {
        let fix = |watched: &[Watched]| {
            let raised = with(|alarms| {
                *alarms = watched.iter().map(|it| Alarm::sample("an-alarm", it.clone())).collect();
                alarms.iter_mut().for_each(|alarm| alarm.state = "ALARM".into());
            });
            no_alarm_is_raised(&raised).unwrap()
        };
        let dead = fix(&[Watched::DeadLetters]);
        assert_eq!(dead.fix.clone().map(|it| it.to_string()).as_deref(), Some("comeback dead list"));
        assert_eq!(dead.means.map(|it| it.to_string()).as_deref(), Some("an-alarm should be empty."));
        let payloads = fix(&[Watched::LostPayloads]);
        assert_eq!(
            payloads.fix.map(|it| it.to_string()).as_deref(),
            Some("comeback dead list --reason payload_lost")
        );
        let lost = Watched::Lost("orders".into());
        let checks = "comeback doctor orders --only CB102,CB105,CB106,CB111";
        assert_eq!(fix(std::slice::from_ref(&lost)).fix.map(|it| it.to_string()).as_deref(), Some(checks));
        assert_eq!(
            fix(&[lost.clone(), Watched::DeadLetters, lost]).fix.unwrap().to_string(),
            format!("{checks}\ncomeback dead list"),
            "in the alarms' order, each once"
        );
        let raise = "raise the stack's MaximumConcurrency; comeback schedule --rate RATE prints the number \
                     needed";
        assert_eq!(fix(&[Watched::Due]).fix.unwrap().to_string(), format!("comeback waiting\n{raise}"));
        let both = fix(&[Watched::Due, Watched::Hidden]);
        let means = "an-alarm: an-alarm should be empty.\nan-alarm: an-alarm should be empty.";
        assert_eq!(both.means.clone().map(|it| it.to_string()).as_deref(), Some(means), "a line for each");
        let log = "--filter-pattern '{ $.level = \"ERROR\" }'";
        assert!(fix(&[Watched::Errors]).fix.unwrap().to_string().ends_with(log));
        for watched in [Watched::Throttles, Watched::Receives, Watched::Hidden, Watched::Due] {
            assert!(!fix(&[watched]).fix.unwrap().to_string().contains("status"));
        }
    }

    #[test]
    fn an_alarm_that_tells_nobody_is_named() {
        let silent = with(|alarms| {
            alarms.push(Alarm::sample("errors", Watched::Errors));
            alarms[0].notifies = false;
        });
        let found = "1 of 2 alarms notify nobody: dead-letters";
        assert_found(alarms_notify(&silent), CheckOutcome::Warning, found);
        assert_found(alarms_notify(&healthy()), CheckOutcome::Ok, "all notify somebody");
    }

    #[test]
    fn disabled_actions_are_enabled() {
        let silent = with(|alarms| {
            alarms.push(Alarm::sample("dead $1", Watched::DeadLetters));
            alarms.push(Alarm::sample("retries-lost-orders", Watched::Lost("orders".into())));
            alarms.iter_mut().for_each(|alarm| alarm.notifies = false);
            alarms[2].has_action = false;
        });
        let fix = alarms_notify(&silent).unwrap().fix.unwrap().to_string();
        let enable = "aws cloudwatch enable-alarm-actions --alarm-names dead-letters 'dead $1'";
        assert_eq!(fix, format!("comeback attach orders\n{enable}"));
    }

    #[test]
    fn an_alarm_gets_a_topic_where_it_was_made() {
        let fixes = |facts: &Facts| alarms_notify(facts).unwrap().fix.unwrap().to_string();
        let mut facts = with(|alarms| {
            alarms.push(Alarm::sample("retries-lost-orders", Watched::Lost("orders".into())));
            alarms.iter_mut().for_each(|alarm| (alarm.notifies, alarm.has_action) = (false, false));
        });
        facts.parameters = Ok([("AlarmTopicArn".to_owned(), String::new())].into());
        let both = fixes(&facts);
        let [by_parameter, attach] = both.lines().collect::<Vec<_>>()[..] else { panic!("{both}") };
        assert!(by_parameter.contains("ParameterKey=AlarmTopicArn,ParameterValue=\"TOPIC_ARN\""), "{both}");
        assert!(attach.starts_with("comeback attach orders"), "{both}");
        facts.parameters = Ok([("AlarmTopicArn".to_owned(), "arn:topic".to_owned())].into());
        assert!(fixes(&facts).starts_with("add an SNS topic's ARN"), "the stack has one");
        facts.alarms.as_mut().unwrap().remove(0);
        assert!(fixes(&facts).starts_with("comeback attach orders"), "only ours is silent");
        facts.alarms.as_mut().unwrap()[0].name = "shop-OrdersLost".into();
        assert!(fixes(&facts).starts_with("add an SNS topic's ARN"), "somebody else's");
    }

    #[test]
    fn forgotten_pause_is_named() {
        let paused = |hours: u64| {
            let mut facts = healthy();
            facts.pauses = Ok(Some(Ok(pause(facts.now.as_secs() - hours * 3_600))));
            facts
        };
        assert_found(no_pause_is_forgotten(&paused(24)), CheckOutcome::Ok, "none");
        let forgotten = no_pause_is_forgotten(&paused(25));
        let fix = forgotten.clone().unwrap().fix.unwrap().to_string();
        assert_eq!(fix, "comeback resume arn:aws:lambda:eu-west-1:123456789012:function:orders");
        assert_found(
            forgotten,
            CheckOutcome::Warning,
            "function:orders since 2023-11-13T21:13:20.000Z by ops: it broke",
        );
    }

    #[test]
    fn unreadable_pauses_are_replaced_by_resume() {
        let mut facts = healthy();
        facts.deployment.variables.insert("PAUSES".into(), "/pauses".into());
        let mut fix = |text: &str| {
            facts.pauses = Ok(Some(Pauses::read(text)));
            let found = no_pause_is_forgotten(&facts);
            assert_found(found.clone(), CheckOutcome::Broken, "parameter /pauses: the pauses are unreadable");
            let unknown = pauses_have_room(&facts).unwrap_err().to_string();
            (found.unwrap().fix.unwrap().to_string(), unknown)
        };
        let (resume, unknown) = fix("by hand");
        assert_eq!(resume, "comeback resume --all");
        assert!(
            unknown.ends_with("; `comeback resume --all` puts back the last readable version"),
            "{unknown}"
        );
        let (newer, unknown) = fix(r#"{"v":2}"#);
        assert_eq!(newer, "a newer version of Comeback wrote it; use that version's command");
        assert!(unknown.ends_with(&newer), "{unknown}");
    }

    #[test]
    fn a_parameter_that_is_nearly_full_is_a_warning() {
        let mut facts = healthy();
        let mut judge = |reason: usize| {
            let why = "x".repeat(reason);
            let pause = format!(r#"{{"target":"*","from":1,"until":null,"spread":0,"why":"{why}"}}"#);
            facts.pauses = Ok(Some(Pauses::read(&format!(r#"{{"v":1,"pauses":[{pause}]}}"#))));
            pauses_have_room(&facts)
        };
        assert_found(judge(2_900), CheckOutcome::Ok, "has room");
        assert_found(judge(3_000), CheckOutcome::Warning, "of at most 4096 bytes");
    }

    #[test]
    fn a_handler_that_reads_no_pauses_has_none() {
        let mut facts = healthy();
        facts.pauses = Ok(None);
        assert_found(no_pause_is_forgotten(&facts), CheckOutcome::Skipped, "PAUSES is not set");
    }
}
