//! Runs the checks, and collects their findings.

use serde::Serialize;

use crate::attach::attachment::Attachment;
use crate::doctor::checks::{Check, DESTINATION, INVOKES, Judge};
use crate::doctor::facts::Facts;
use crate::doctor::facts::consumers::Consumer;
use crate::doctor::judgement::{CheckOutcome, Judgement, or_unseen};
use crate::doctor::{functions, rights};
use crate::function::FunctionName;
use crate::text;
use crate::text::Text;

/// The result of one check on one subject: the deployment, a function, or an alias or version.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// The check that ran.
    #[serde(flatten)]
    pub check: &'static Check,
    /// The name of the function, alias or version, or `None` for the deployment.
    pub about: Option<String>,
    /// The outcome of the check, with the facts behind it.
    #[serde(flatten)]
    pub judgement: Judgement,
}

impl Finding {
    /// The check's number and, if the check is about a function, the function's name, as in `CB102 orders`.
    pub fn name(&self) -> String {
        self.about.iter().fold(self.check.id.to_owned(), |id, about| format!("{id} {about}"))
    }

    /// Returns true if the outcome is a warning or `broken`.
    pub fn is_problem(&self) -> bool {
        self.judgement.outcome > CheckOutcome::Ok
    }

    /// The outcome, the finding's name, and the facts that the check found. If there is no problem, the check's title
    /// comes before the facts.
    pub fn headline(&self) -> Text {
        let Judgement { outcome, found, .. } = &self.judgement;
        let title = if self.is_problem() { String::new() } else { format!("{}: ", self.check.title) };
        text![outcome.mark(), format!(" {}: {title}", self.name()), found]
    }
}

/// Runs checks on the deployment, the functions in `named` (all if empty), and the functions that read SQS directly.
///
/// `facts` is `None` if there is no deployment.
pub(super) fn findings(
    facts: Option<&Facts>,
    named: &[FunctionName],
    consumers: &[Consumer],
    checks: impl IntoIterator<Item = &'static Check>,
) -> Vec<Finding> {
    let functions = facts.into_iter().flat_map(|facts| &facts.functions).filter(|function| {
        let is_it = |name: &FunctionName| name.any_version().names(&function.arn);
        named.is_empty() || named.iter().any(is_it)
    });
    let is_asked_for = |attachment: &Attachment| {
        let arn = attachment.target.invoked_arn();
        named.is_empty() || named.iter().any(|name| name.names(&arn))
    };
    let mut findings = Vec::new();
    for check in checks {
        let mut add = |about: Option<String>, judged| {
            findings.push(Finding { check, about, judgement: or_unseen(judged) });
        };
        let functions = functions.clone();
        match (&check.judge, facts) {
            (Judge::Consumer(judge), _) => {
                consumers.iter().for_each(|it| add(Some(it.name.clone()), judge(it)));
            }
            (_, None) => {}
            (Judge::Stack(judge), Some(facts)) => add(None, judge(facts)),
            (Judge::Role, Some(facts)) => add(None, rights::of_handler(facts, check.id)),
            (Judge::Function(judge), Some(facts)) => {
                functions.for_each(|it| add(Some(it.name.clone()), judge(facts, it)));
            }
            (Judge::QualifiedFunction(judge), Some(facts)) => functions.for_each(|function| {
                let leaving = functions::leaving(facts, function);
                for attachment in function.attachments.iter().filter(|it| is_asked_for(it)) {
                    let is_destination = check.id == DESTINATION;
                    let is_allowed =
                        check.id == INVOKES && functions::is_allowed(facts, function, attachment);
                    let judged = match &leaving {
                        Some(leaving) if is_destination => Ok(leaving.clone()),
                        _ if is_destination || is_allowed => judge(facts, attachment),
                        Some(_) => Ok(functions::is_leaving()),
                        None if attachment.is_attached() => judge(facts, attachment),
                        None => Ok(functions::is_not_attached()),
                    };
                    add(Some(attachment.name()), judged);
                }
            }),
        }
    }
    findings
}

pub(super) fn count(findings: &[Finding], outcome: CheckOutcome) -> u64 {
    findings.iter().filter(|finding| finding.judgement.outcome == outcome).count() as u64
}

pub(super) fn is_healthy(findings: &[Finding], strict: bool) -> bool {
    let worst = findings.iter().map(|finding| finding.judgement.outcome).max();
    worst <= Some(if strict { CheckOutcome::Ok } else { CheckOutcome::Warning })
}

#[cfg(test)]
mod tests {
    use crate::aws::InvokeSettings;
    use crate::aws::Verdict;
    use crate::deployment::DeploymentName;
    use crate::doctor::checks::{CHECKS, selected};
    use crate::doctor::tests::{assert_found, consumer, healthy};
    use crate::failure::Failure;

    use super::*;

    fn ids(findings: &[Finding], is_it: impl Fn(CheckOutcome) -> bool) -> Vec<&str> {
        let found = findings.iter().filter(|finding| is_it(finding.judgement.outcome));
        found.map(|finding| finding.check.id).collect()
    }

    #[test]
    fn nothing_is_found_on_a_healthy_deployment() {
        let findings = findings(Some(&healthy()), &[], &[], CHECKS);
        assert_eq!(ids(&findings, |outcome| outcome != CheckOutcome::Ok), ["CB112", "CB113", "CB201"]);
        assert_eq!(count(&findings, CheckOutcome::Skipped), 3);
        assert!(is_healthy(&findings, true));
        let of_deployment = CHECKS.iter().filter(|check| check.group != "consumers");
        assert_eq!(findings.len(), of_deployment.count());
    }

    #[test]
    fn warning_is_unhealthy_only_if_strict() {
        let mut facts = healthy();
        facts.alarms = Err(Failure::could_not("cloudwatch:DescribeAlarms denied"));
        let warned = findings(Some(&facts), &[], &[], CHECKS);
        assert_eq!(count(&warned, CheckOutcome::Warning), 3, "each check of the alarms");
        assert_eq!((is_healthy(&warned, false), is_healthy(&warned, true)), (true, false));
        facts.deployment.mapping = None;
        assert!(!is_healthy(&findings(Some(&facts), &[], &[], CHECKS), false));
    }

    #[test]
    fn unread_facts_are_never_ok() {
        let unseen = || Failure::could_not("denied");
        let mut facts = healthy();
        facts.mappings = Err(unseen());
        facts.handler = Err(unseen());
        facts.retry_queue = Err(unseen());
        facts.dead_letter_queue = Err(unseen());
        facts.errors = Err(unseen());
        let function = &mut facts.functions[0];
        function.target = Err(unseen());
        function.dropped = Err(unseen());
        let good = findings(Some(&facts), &[], &[], CHECKS);
        let good = ids(&good, |outcome| outcome == CheckOutcome::Ok);
        let expected = [
            "CB001", "CB003", "CB004", "CB005", "CB006", "CB010", "CB020", "CB021", "CB025", "CB026",
            "CB030", "CB031", "CB032", "CB033", "CB034", "CB040",
        ];
        assert_eq!(
            good[..expected.len()],
            expected,
            "a check that needs none of these facts belongs in this list"
        );
    }

    #[test]
    fn finding_names_its_alias() {
        let mut facts = healthy();
        let target = &mut facts.attachment().target;
        target.qualifier = Some("live".into());
        target.invoke_settings.insert(Some("live".into()), target.invoke_settings[&None].clone());
        let found = findings(Some(&facts), &[], &[], selected(&["CB102"], &[]));
        let expected = serde_json::json!([{
            "id": "CB102", "group": "functions", "title": "its failures go to the retry queue",
            "about": "orders:live", "outcome": "ok", "found": "retries", "means": null, "fix": null,
        }]);
        assert_eq!(serde_json::json!(found), expected);
    }

    #[test]
    fn a_named_function_is_checked_alone() {
        let mut facts = healthy();
        let mut other = facts.functions[0].clone();
        (other.name, other.arn) = ("invoices".into(), facts.functions[0].arn.replace("orders", "invoices"));
        facts.functions.push(other);
        let mut live = facts.attachment().clone();
        live.target.qualifier = Some("live".into());
        facts.functions[0].attachments.push(live);
        let about = |names: &[&str]| {
            let named: Vec<FunctionName> = names.iter().map(|name| name.parse().unwrap()).collect();
            let found = findings(Some(&facts), &named, &[], selected(&["CB001", "CB101", "CB102"], &[]));
            found.into_iter().map(|finding| finding.name()).collect::<Vec<_>>()
        };
        assert_eq!(about(&["orders"]), ["CB001", "CB101 orders", "CB102 orders", "CB102 orders:live"]);
        assert_eq!(about(&["orders:live"]), ["CB001", "CB101 orders", "CB102 orders:live"]);
        assert_eq!(about(&["invoices"])[1], "CB101 invoices");
        assert_eq!(about(&[]).len(), 6);
    }

    #[test]
    fn a_function_that_reads_sqs_has_checks_of_its_own() {
        let consumers = [consumer()];
        let found = findings(None, &[], &consumers, CHECKS);
        let numbers = ["CB301", "CB302", "CB303", "CB304", "CB305", "CB306"];
        assert_eq!(ids(&found, |outcome| outcome == CheckOutcome::Ok), numbers);
        assert_eq!(found[0].name(), "CB301 orders");
    }

    #[test]
    fn a_function_that_is_being_detached_has_one_warning() {
        let mut facts = healthy();
        let target = facts.functions[0].target.as_mut().unwrap().as_mut().unwrap();
        target.tags.insert("comeback:detached".into(), facts.now.to_string());
        target.invoke_settings.clear();
        *facts.settings() = InvokeSettings::default();
        let found = findings(Some(&facts), &[], &[], CHECKS);
        assert_eq!(ids(&found, |outcome| outcome > CheckOutcome::Ok), ["CB102"]);
        assert!(is_healthy(&found, false));
        facts.attachment().invoke.as_mut().unwrap()[0].verdict = Verdict::NotAllowed;
        let found = findings(Some(&facts), &[], &[], CHECKS);
        assert_eq!(
            ids(&found, |outcome| outcome == CheckOutcome::Broken),
            ["CB109"],
            "what waits is not retried"
        );
        facts.list("");
        let found = findings(Some(&facts), &[], &[], CHECKS);
        assert_eq!(
            ids(&found, |outcome| outcome == CheckOutcome::Broken),
            [""; 0],
            "detach has taken away the right"
        );
    }

    #[test]
    fn attach_names_the_check_of_a_missing_right() {
        let mut facts = healthy();
        *facts.settings() = InvokeSettings::default();
        facts.attachment().invoke.as_mut().unwrap()[0].verdict = Verdict::NotAllowed;
        let found = findings(Some(&facts), &[], &[], selected(&["CB109"], &[]));
        assert_eq!(ids(&found, |outcome| outcome == CheckOutcome::Broken), ["CB109"]);
    }

    #[test]
    fn a_function_that_is_not_attached_has_one_finding() {
        let billing = Some(DeploymentName::Stack("billing".into()));
        for (elsewhere, outcome, found, fix) in [
            (
                None,
                CheckOutcome::Broken,
                "on failure: not set → arn:aws:sqs:eu-west-1:123456789012:retries",
                "comeback attach orders",
            ),
            (
                billing,
                CheckOutcome::Warning,
                "it is attached to stack billing",
                "to retry it here instead: comeback attach orders --move",
            ),
        ] {
            let mut facts = healthy();
            facts.list("");
            *facts.settings() = InvokeSettings::default();
            let attachment = facts.attachment();
            attachment.target.recursion_allowed = false;
            attachment.elsewhere = elsewhere.map(|other| (None, other)).into_iter().collect();
            for rights in [&mut attachment.send, &mut attachment.invoke] {
                rights.as_mut().unwrap()[0].verdict = Verdict::NotAllowed;
            }
            let findings = findings(Some(&facts), &[], &[], CHECKS);
            assert_eq!(ids(&findings, |outcome| outcome > CheckOutcome::Ok), [DESTINATION]);
            let finding = findings.into_iter().find(|finding| finding.check.id == DESTINATION).unwrap();
            assert_eq!(finding.judgement.fix.as_ref().map(ToString::to_string).as_deref(), Some(fix));
            assert_found(Ok(finding.judgement), outcome, found);
        }
    }
}
