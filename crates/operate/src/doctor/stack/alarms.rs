use crate::Alarm;
use crate::doctor::diagnosis::{Judged, ok, seen, skipped, warning};
use crate::doctor::facts::Facts;
use crate::doctor::fix;

pub(in crate::doctor) fn exist(facts: &Facts) -> Judged {
    let alarms = seen(&facts.alarms)?;
    if !alarms.is_empty() {
        return Ok(ok(names(alarms.iter())));
    }
    let dead = facts.deployment.dead_letter_queue.name();
    Ok(warning(
        "none on either queue or the handler",
        "nobody is notified when events are given up or no longer retried",
        format!(
            "aws cloudwatch put-metric-alarm --alarm-name {dead}-not-empty --namespace AWS/SQS \
             --metric-name ApproximateNumberOfMessagesVisible --dimensions Name=QueueName,Value={dead} \
             --statistic Maximum --period 300 --evaluation-periods 1 --threshold 0 \
             --comparison-operator GreaterThanThreshold --treat-missing-data notBreaching --alarm-actions TOPIC_ARN"
        ),
    ))
}

pub(in crate::doctor) fn quiet(facts: &Facts) -> Judged {
    let alarms = seen(&facts.alarms)?;
    let raised: Vec<&Alarm> = alarms.iter().filter(|alarm| alarm.state == "ALARM").collect();
    Ok(if alarms.is_empty() {
        skipped("there are no alarms (CB040)")
    } else if raised.is_empty() {
        ok("none is raised")
    } else {
        warning(
            format!("raised: {}", names(raised.iter().copied())),
            "what the alarm watches is not as it should be now",
            fix::comeback(&facts.deployment, "status"),
        )
    })
}

pub(in crate::doctor) fn heard(facts: &Facts) -> Judged {
    let alarms = seen(&facts.alarms)?;
    let silent: Vec<&Alarm> = alarms.iter().filter(|alarm| !alarm.notifies).collect();
    Ok(if alarms.is_empty() {
        skipped("there are no alarms (CB040)")
    } else if silent.is_empty() {
        ok("each tells somebody")
    } else {
        let names =
            |between| silent.iter().map(|alarm| alarm.name.as_str()).collect::<Vec<_>>().join(between);
        warning(
            format!("nobody is notified of {}", names(", ")),
            "it has no action, or its actions are disabled",
            format!(
                "add the ARN of an SNS topic to its AlarmActions where it is defined; if it has one already: \
                 aws cloudwatch enable-alarm-actions --alarm-names {}",
                names(" ")
            ),
        )
    })
}

fn names<'a>(alarms: impl Iterator<Item = &'a Alarm>) -> String {
    alarms.map(|alarm| alarm.name.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Outcome;
    use crate::doctor::sample::{assert_found, healthy};

    fn with(change: impl FnOnce(&mut Vec<Alarm>)) -> Facts {
        let mut facts = healthy();
        change(facts.alarms.as_mut().unwrap());
        facts
    }

    #[test]
    fn no_alarm_at_all_is_a_warning() {
        let none = with(Vec::clear);
        assert_found(exist(&none), Outcome::Warning, "none on either queue or the handler");
        assert_found(quiet(&none), Outcome::Skipped, "CB040");
        assert_found(heard(&none), Outcome::Skipped, "CB040");
    }

    #[test]
    fn a_raised_alarm_is_named() {
        let raised = with(|alarms| alarms[0].state = "ALARM".into());
        assert_found(quiet(&raised), Outcome::Warning, "raised: dead-letters");
    }

    #[test]
    fn an_alarm_that_tells_nobody_is_named() {
        let silent = with(|alarms| alarms[0].notifies = false);
        assert_found(heard(&silent), Outcome::Warning, "nobody is notified of dead-letters");
        assert_found(heard(&healthy()), Outcome::Ok, "each tells somebody");
    }
}
