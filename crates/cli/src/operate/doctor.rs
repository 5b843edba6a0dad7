//! `comeback doctor`: numbered checks of a deployment, of the functions attached to it, and of functions that read SQS
//! themselves. Facts are read once, and judged by pure functions.

mod consumers;
mod diagnosis;
mod facts;
mod fix;
mod functions;
mod handler;
mod policies;
mod probe;
mod queues;
mod rights;
#[cfg(test)]
mod sample;

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use clap::Args;
use serde::Serialize;

use crate::account::Failure;
use crate::clock::now;
use crate::failure;
pub(crate) use crate::operate::doctor::diagnosis::Outcome;
use crate::operate::doctor::diagnosis::{Diagnosis, Judged, or_unseen, skipped};
use crate::operate::doctor::facts::Facts;
use crate::operate::doctor::facts::consumers::Consumer;
use crate::operate::doctor::facts::functions::{Entrance, Function};
use crate::operate::function::FunctionName;
use crate::operate::session::{Common, Session};
use crate::text::numbers::counted;
use crate::text::terminal::{shown, shown_lines};

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback doctor
  comeback doctor --short
  comeback doctor orders:live --strict
  comeback doctor --only CB012,CB013 --json
  comeback doctor --probe

docs/doctor.md says what each check looks at. Nothing is changed; --probe sends one event.";

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Check only these functions, attached or not, and show what is wrong with the deployment; of one that reads SQS itself,
    /// check what comeback-sqs needs
    #[arg(value_name = "FUNCTION")]
    functions: Vec<FunctionName>,
    /// Run only these checks
    #[arg(long, value_name = "NUMBERS", value_parser = number, value_delimiter = ',', conflicts_with = "skip")]
    only: Vec<&'static str>,
    /// Run all checks except these
    #[arg(long, value_name = "NUMBERS", value_parser = number, value_delimiter = ',')]
    skip: Vec<&'static str>,
    /// Show only what is not ok
    #[arg(long)]
    short: bool,
    /// Exit with 3 for warnings too
    #[arg(long)]
    strict: bool,
    /// Send the example function an event that fails once, and follow it until it is retried
    #[arg(long)]
    probe: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(
    arguments: &DoctorArguments,
    session: Session,
) -> Result<(), failure::CommandFailure> {
    let checks = || selected(&arguments.only, &arguments.skip);
    let work = examine(&session, &arguments.functions, checks, arguments.probe);
    let (heading, findings) = session.interrupt.or(work).await?;
    let healthy = is_healthy(&findings, arguments.strict);
    session.answer(&serde_json::json!({"healthy": healthy, "checks": findings}));
    if !session.common.json {
        let is_shown = |finding: &Finding| {
            let is_asked_for = arguments.functions.is_empty() || finding.about.is_some();
            finding.diagnosis.outcome > Outcome::Ok || !arguments.short && is_asked_for
        };
        write(&mut anstream::stdout(), &heading, &findings, is_shown)?;
    }
    if healthy {
        return Ok(());
    }
    let [broken, warnings] = [Outcome::Broken, Outcome::Warning].map(|outcome| count(&findings, outcome));
    let strictly = if arguments.strict { format!(", and {warnings} a warning") } else { String::new() };
    let all = findings.len();
    Err(Failure::Undone(format!("{broken} of {all} checks found something broken{strictly}")).into())
}

/// The findings of all checks but the probe: of these functions, or of all if none is named.
pub(crate) async fn check(session: &Session, functions: &[FunctionName]) -> Result<Vec<Finding>, Failure> {
    let (_, findings) = examine(session, functions, || selected(&[], &[]), false).await?;
    Ok(findings)
}

/// What was checked, and the findings.
async fn examine<C: Iterator<Item = &'static Check>>(
    session: &Session,
    functions: &[FunctionName],
    checks: impl Fn() -> C,
    probe: bool,
) -> Result<(String, Vec<Finding>), Failure> {
    let mut consumers = Consumer::all(&session.account, functions).await?;
    let deployment = match session.deployment().await {
        Ok(deployment) => deployment,
        // Such functions need no deployment.
        Err(_) if all_read_sqs(functions, &consumers) => {
            return Ok((WITHOUT_DEPLOYMENT.to_owned(), of_consumers(&consumers, checks())));
        }
        Err(failure) => return Err(failure),
    };
    let handler = deployment.handler_arn.to_string();
    consumers.retain(|consumer| consumer.arn != handler);
    let mut facts = Facts::read(&session.account, deployment, functions, now()).await;
    facts.leave_out(&consumers);
    let mut findings = findings(&facts, functions, checks());
    let unsent = findings.iter_mut().find(|finding| finding.check.id == PROBE);
    if let Some(finding) = unsent.filter(|_| probe) {
        finding.diagnosis = or_unseen(probe::probe(&session.account, &facts.deployment, now()).await);
    }
    findings.extend(of_consumers(&consumers, checks()));
    Ok((heading(&facts), findings))
}

const WITHOUT_DEPLOYMENT: &str = "no deployment was found; a function that reads SQS itself needs none";

fn all_read_sqs(named: &[FunctionName], consumers: &[Consumer]) -> bool {
    let reads_sqs = |name: &FunctionName| consumers.iter().any(|it| name.any_version().names(&it.arn));
    !named.is_empty() && named.iter().all(reads_sqs)
}

fn heading(facts: &Facts) -> String {
    let of_stack = facts.deployment.stack.iter().map(|stack| format!(" of stack {stack}"));
    format!("{}{}", facts.deployment.handler, of_stack.collect::<String>())
}

type Text = &'static str;

/// A check. Its number never changes and is never used again; docs/doctor.md has a row for each.
#[derive(Debug, Serialize)]
pub(crate) struct Check {
    id: Text,
    pub(crate) group: Text,
    title: Text,
    #[serde(skip)]
    judge: Judge,
}

#[derive(Debug)]
enum Judge {
    Stack(fn(&Facts) -> Judged),
    Function(fn(&Facts, &Function) -> Judged),
    /// Judges a function by each alias and version that leads to the retry queue.
    Entrance(fn(&Facts, &Entrance) -> Judged),
    Consumer(fn(&Consumer) -> Judged),
}

const DESTINATION: &str = "CB102";
/// The handler also re-invokes a function that is being detached, until its last events are gone. `attach` refers to this check
/// before a function is attached.
const INVOKES: &str = "CB109";
const PROBE: &str = "CB201";

/// Every check, by number.
const CHECKS: &[Check] = &[
    stack(
        "CB001",
        "mapping",
        "an enabled event source mapping feeds the handler from the retry queue",
        queues::enabled,
    ),
    stack("CB002", "mapping", "no other queue feeds the handler", queues::no_other_queue),
    stack("CB003", "mapping", "the mapping reports batch item failures", queues::partial_responses),
    stack("CB004", "mapping", "the batch size is 10", queues::batch_size),
    stack("CB005", "mapping", "no batching window is set", queues::no_window),
    stack(
        "CB006",
        "mapping",
        "the mapping's MaximumConcurrency equals the handler's setting",
        queues::concurrency,
    ),
    stack("CB010", "queues", "the two queues differ, and neither is FIFO", queues::two_standard_queues),
    stack("CB011", "queues", "the retry queue's visibility timeout is long enough", queues::visibility),
    stack("CB012", "queues", "SQS redrives after 1,000 receives", queues::receives),
    stack("CB013", "queues", "SQS redrives to the handler's dead-letter queue", queues::redrive_target),
    stack("CB014", "queues", "both queues keep messages for 14 days", queues::retention),
    stack("CB015", "queues", "both queues accept messages of 1 MiB", queues::largest_message),
    stack("CB020", "handler", "the handler accepts its settings", handler::settings),
    stack("CB021", "handler", "the handler's timeout is a minute", handler::timeout),
    stack("CB022", "handler", "the handler's RecursiveLoop is Allow", handler::recursion),
    stack("CB023", "handler", "no concurrency is reserved for the handler", handler::concurrency),
    stack("CB024", "handler", "the handler's log has no ERROR of the last day", handler::errors),
    stack(
        "CB025",
        "handler",
        "the account has enough concurrency for it and its functions",
        handler::executions,
    ),
    stack("CB030", "role", "it may receive, hide and delete messages of the retry queue", rights::take),
    stack("CB031", "role", "it may send to the retry queue", rights::send_again),
    stack("CB032", "role", "it may send to the dead-letter queue", rights::dead_letter),
    stack("CB033", "role", "it may write its log", rights::log),
    stack("CB034", "role", "it may read the pauses", rights::read_pauses),
    stack("CB035", "role", "it may use the queues' keys", rights::use_keys),
    stack("CB040", "alarms", "alarms exist", handler::alarms_exist),
    stack("CB041", "alarms", "no alarm is in state ALARM", handler::no_alarm_is_raised),
    stack("CB042", "alarms", "each alarm notifies somebody", handler::alarms_notify),
    stack("CB050", "pauses", "no pause was forgotten", handler::no_pause_is_forgotten),
    stack("CB051", "pauses", "the parameter of the pauses has room", handler::pauses_have_room),
    stack("CB100", "functions", "functions are attached", functions::are_attached),
    of_function("CB101", "the function exists", functions::exists),
    of_entrance(DESTINATION, "its failures go to the retry queue", functions::leads_here),
    of_entrance("CB103", "Lambda's own retries are off", functions::no_retries),
    of_entrance("CB104", "its throttled events reach the retry queue soon", functions::event_age),
    of_entrance("CB105", "its role may send to the retry queue", rights::function_sends),
    of_entrance("CB106", "its role may use the queue's key", rights::function_uses_key),
    of_function("CB107", "its RecursiveLoop is Allow", functions::recursion),
    of_entrance("CB108", "it is on the allow-list", rights::is_on_allow_list),
    of_entrance("CB109", "the handler may invoke it", rights::handler_invokes),
    of_function("CB110", "its reserved concurrency is not 0", functions::concurrency),
    of_function("CB111", "none of its failed events was dropped", functions::nothing_dropped),
    stack(
        "CB112",
        "functions",
        "each entry of NON_RETRYABLE_ERRORS can match an error",
        functions::error_types,
    ),
    stack(
        "CB113",
        "functions",
        "each entry of POLICIES matches an allowed function",
        policies::match_functions,
    ),
    of_function("CB115", "it has no dead-letter queue of its own", functions::has_no_dead_letter_queue),
    stack(PROBE, "probe", "an event that fails once is retried", |_| Ok(skipped("--probe sends one"))),
    of_consumer("CB301", "its mapping reports batch item failures", consumers::partial_responses),
    of_consumer("CB302", "its queue's visibility timeout is long enough", consumers::visibility),
    of_consumer("CB303", "its queue keeps messages for max_age", consumers::retention),
    of_consumer("CB304", "SQS does not end its retries", consumers::receives),
    of_consumer("CB305", "its role may hide messages", consumers::hides),
    of_consumer("CB306", "its role may send dead-letters", consumers::sends_dead_letters),
];

const fn stack(id: Text, group: Text, title: Text, judge: fn(&Facts) -> Judged) -> Check {
    Check { id, group, title, judge: Judge::Stack(judge) }
}

const fn of_function(id: Text, title: Text, judge: fn(&Facts, &Function) -> Judged) -> Check {
    Check { id, group: "functions", title, judge: Judge::Function(judge) }
}

const fn of_entrance(id: Text, title: Text, judge: fn(&Facts, &Entrance) -> Judged) -> Check {
    Check { id, group: "functions", title, judge: Judge::Entrance(judge) }
}

const fn of_consumer(id: Text, title: Text, judge: fn(&Consumer) -> Judged) -> Check {
    Check { id, group: "consumers", title, judge: Judge::Consumer(judge) }
}

/// Reads the number of a check.
fn number(text: &str) -> Result<&'static str, String> {
    let check = CHECKS.iter().find(|check| check.id.eq_ignore_ascii_case(text.trim()));
    check
        .map(|check| check.id)
        .ok_or_else(|| format!("{text:?} is not a check; docs/doctor.md lists all, from CB001 to CB306"))
}

/// `only` these checks, or all if there are none, without those to `skip`.
fn selected(only: &[&str], skip: &[&str]) -> impl Iterator<Item = &'static Check> {
    CHECKS.iter().filter(|check| (only.is_empty() || only.contains(&check.id)) && !skip.contains(&check.id))
}

#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    #[serde(flatten)]
    pub(crate) check: &'static Check,
    /// The function, and the alias or version of it; `None` for a check of the deployment.
    pub(crate) about: Option<String>,
    #[serde(flatten)]
    pub(crate) diagnosis: Diagnosis,
}

/// Makes these checks, of functions only for those that are `named`, or for all if none is. What could not be read is a
/// warning of each check that is about it.
fn findings(
    facts: &Facts,
    named: &[FunctionName],
    checks: impl IntoIterator<Item = &'static Check>,
) -> Vec<Finding> {
    let functions = facts.functions.iter().filter(|function| {
        let is_it = |name: &FunctionName| name.any_version().names(&function.arn);
        named.is_empty() || named.iter().any(is_it)
    });
    let is_asked_for =
        |entrance: &Entrance| named.is_empty() || named.iter().any(|name| name.names(&entrance.invoked_arn));
    let mut findings = Vec::new();
    for check in checks {
        let mut add = |about: Option<&String>, judged| {
            findings.push(Finding { check, about: about.cloned(), diagnosis: or_unseen(judged) });
        };
        let functions = functions.clone();
        match check.judge {
            Judge::Stack(judge) => add(None, judge(facts)),
            Judge::Function(judge) => functions.for_each(|it| add(Some(&it.name), judge(facts, it))),
            Judge::Entrance(judge) => functions.for_each(|function| {
                let leaving = functions::leaving(facts, function);
                for entrance in function.entrances.iter().filter(|it| is_asked_for(it)) {
                    let is_destination = check.id == DESTINATION;
                    let is_allowed = check.id == INVOKES && functions::is_allowed(facts, function, entrance);
                    let judged = match &leaving {
                        Some(leaving) if is_destination => Ok(leaving.clone()),
                        _ if is_destination || is_allowed => judge(facts, entrance),
                        Some(_) => Ok(functions::is_leaving()),
                        None if entrance.is_attached(facts) => judge(facts, entrance),
                        None => Ok(functions::is_not_attached()),
                    };
                    add(Some(&entrance.name), judged);
                }
            }),
            Judge::Consumer(_) => {}
        }
    }
    findings
}

/// Makes the checks that are about functions that read SQS themselves.
fn of_consumers(consumers: &[Consumer], checks: impl IntoIterator<Item = &'static Check>) -> Vec<Finding> {
    let judges = checks.into_iter().filter_map(|check| match check.judge {
        Judge::Consumer(judge) => Some((check, judge)),
        _ => None,
    });
    let of = |(check, judge): (&'static Check, fn(&Consumer) -> Judged)| {
        consumers.iter().map(move |consumer| Finding {
            check,
            about: Some(consumer.name.clone()),
            diagnosis: or_unseen(judge(consumer)),
        })
    };
    judges.flat_map(of).collect()
}

fn count(findings: &[Finding], outcome: Outcome) -> u64 {
    findings.iter().filter(|finding| finding.diagnosis.outcome == outcome).count() as u64
}

/// Whether nothing is broken; if `strict`, nothing is a warning either.
fn is_healthy(findings: &[Finding], strict: bool) -> bool {
    let worst = findings.iter().map(|finding| finding.diagnosis.outcome).max();
    worst <= Some(if strict { Outcome::Ok } else { Outcome::Warning })
}

/// Writes the checks that are shown, by group; for a problem, what it means and what fixes it. The last line counts all
/// checks, and names what is broken.
fn write(
    out: &mut impl Write,
    heading: &str,
    findings: &[Finding],
    is_shown: impl Fn(&Finding) -> bool,
) -> io::Result<()> {
    let bold = Style::new().bold();
    writeln!(out, "{heading}")?;
    let shown: Vec<&Finding> = findings.iter().filter(|finding| is_shown(finding)).collect();
    for group in shown.chunk_by(|one, next| one.check.group == next.check.group) {
        let heading = area(group[0].check.group);
        writeln!(out, "\n{bold}{heading}{bold:#}")?;
        group.iter().try_for_each(|finding| write_finding(out, finding))?;
    }
    writeln!(out, "\n{}", summary(findings))
}

pub(crate) fn area(group: &str) -> &str {
    match group {
        "mapping" => "event source mapping",
        "handler" => "retry handler",
        "role" => "handler's role",
        "functions" => "attached functions",
        "consumers" => "functions that read SQS",
        name => name,
    }
}

/// How many checks ended how, and what is broken.
pub(crate) fn summary(findings: &[Finding]) -> String {
    let count = |outcome| count(findings, outcome);
    let warnings = counted(count(Outcome::Warning), "warning", "warnings");
    let (ok, broken, skipped) = (count(Outcome::Ok), count(Outcome::Broken), count(Outcome::Skipped));
    let named: Vec<String> = findings
        .iter()
        .filter(|finding| finding.diagnosis.outcome == Outcome::Broken)
        .map(Finding::name)
        .collect();
    let named = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
    format!("{ok} ok, {skipped} skipped, {warnings}, {broken} broken{named}")
}

impl Finding {
    /// `CB102 orders`, or `CB012` of the deployment.
    pub(crate) fn name(&self) -> String {
        self.about.iter().fold(self.check.id.to_owned(), |id, about| format!("{id} {about}"))
    }

    /// What was found, after what should be. Beside what is wrong, that would contradict it.
    pub(crate) fn found(&self) -> String {
        let title = if self.diagnosis.outcome > Outcome::Ok { "" } else { self.check.title };
        let colon = if title.is_empty() { "" } else { ": " };
        format!("{title}{colon}{}", self.diagnosis.found)
    }
}

fn write_finding(out: &mut impl Write, finding: &Finding) -> io::Result<()> {
    let diagnosis = &finding.diagnosis;
    let (mark, style) = match diagnosis.outcome {
        Outcome::Ok => ("ok     ", AnsiColor::Green.on_default()),
        Outcome::Skipped => ("skipped", Style::new().dimmed()),
        Outcome::Warning => ("WARNING", AnsiColor::Yellow.on_default()),
        Outcome::Broken => ("BROKEN ", AnsiColor::Red.on_default()),
    };
    writeln!(out, "{style}{mark}{style:#} {}: {}", finding.name(), shown(&finding.found()))?;
    let indented = |text: &str| shown_lines(text).replace('\n', &format!("\n{:15}", ""));
    if let Some(means) = &diagnosis.means {
        writeln!(out, "        means: {}", indented(means))?;
    }
    if let Some(fix) = &diagnosis.fix {
        writeln!(out, "        fix:   {}", indented(fix))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::account::Verdict;
    use crate::operate::deployment::DeploymentName;
    use crate::operate::doctor::facts::log::{LoggedError, LoggedErrors};
    use crate::operate::doctor::sample::{assert_found, healthy};
    use crate::operate::function::InvokeSettings;
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

    use super::*;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor.md");

    fn ids(findings: &[Finding], is_it: impl Fn(Outcome) -> bool) -> Vec<&str> {
        let found = findings.iter().filter(|finding| is_it(finding.diagnosis.outcome));
        found.map(|finding| finding.check.id).collect()
    }

    #[test]
    fn nothing_is_found_on_a_healthy_deployment() {
        let findings = findings(&healthy(), &[], CHECKS);
        assert_eq!(ids(&findings, |outcome| outcome != Outcome::Ok), ["CB112", "CB113", "CB201"]);
        assert_eq!(count(&findings, Outcome::Skipped), 3);
        assert!(is_healthy(&findings, true));
        let of_deployment = CHECKS.iter().filter(|check| check.group != "consumers");
        assert_eq!(findings.len(), of_deployment.count());
    }

    #[test]
    fn a_warning_is_unhealthy_only_if_it_is_strict() {
        let mut facts = healthy();
        facts.alarms = Err(Failure::CouldNot("cloudwatch:DescribeAlarms denied".into()));
        let warned = findings(&facts, &[], CHECKS);
        assert_eq!(count(&warned, Outcome::Warning), 3, "each check of the alarms");
        assert_eq!((is_healthy(&warned, false), is_healthy(&warned, true)), (true, false));
        facts.deployment.mapping = None;
        assert!(!is_healthy(&findings(&facts, &[], CHECKS), false));
    }

    #[test]
    fn what_was_not_read_is_never_taken_for_good() {
        let unseen = || Failure::CouldNot("denied".into());
        let mut facts = healthy();
        facts.mappings = Err(unseen());
        facts.handler = Err(unseen());
        facts.retry_queue = Err(unseen());
        facts.dead_letter_queue = Err(unseen());
        facts.errors = Err(unseen());
        let function = &mut facts.functions[0];
        function.target = Err(unseen());
        function.dropped = Err(unseen());
        let good = findings(&facts, &[], CHECKS);
        let good = ids(&good, |outcome| outcome == Outcome::Ok);
        let expected = [
            "CB001", "CB003", "CB004", "CB005", "CB006", "CB010", "CB020", "CB021", "CB025", "CB030",
            "CB031", "CB032", "CB033", "CB034", "CB040",
        ];
        assert_eq!(
            good[..expected.len()],
            expected,
            "a check that needs none of these facts belongs in this list"
        );
    }

    #[test]
    fn a_finding_is_about_the_alias_it_was_made_of() {
        let mut facts = healthy();
        facts.functions[0].entrances[0].name = "orders:live".into();
        let found = findings(&facts, &[], selected(&["CB102"], &[]));
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
        let live = &mut facts.functions[0].entrances;
        live.push(Entrance {
            name: "orders:live".into(),
            invoked_arn: live[0].invoked_arn.replace("$LATEST", "live"),
            ..live[0].clone()
        });
        let about = |names: &[&str]| {
            let named: Vec<FunctionName> = names.iter().map(|name| name.parse().unwrap()).collect();
            let found = findings(&facts, &named, selected(&["CB001", "CB101", "CB102"], &[]));
            found.into_iter().map(|finding| finding.name()).collect::<Vec<_>>()
        };
        assert_eq!(about(&["orders"]), ["CB001", "CB101 orders", "CB102 orders", "CB102 orders:live"]);
        assert_eq!(about(&["orders:live"]), ["CB001", "CB101 orders", "CB102 orders:live"]);
        assert_eq!(about(&["invoices"])[1], "CB101 invoices");
        assert_eq!(about(&[]).len(), 6);
    }

    #[test]
    fn a_function_that_reads_sqs_need_not_be_attached() {
        let consumers = [sample::consumer()];
        let found = of_consumers(&consumers, CHECKS);
        let numbers = ["CB301", "CB302", "CB303", "CB304", "CB305", "CB306"];
        assert_eq!(ids(&found, |outcome| outcome == Outcome::Ok), numbers);
        assert_eq!(found[0].name(), "CB301 orders");
        let named = |names: &[&str]| {
            let names: Vec<FunctionName> = names.iter().map(|name| name.parse().unwrap()).collect();
            all_read_sqs(&names, &consumers)
        };
        assert_eq!(["orders", "orders:live", &consumers[0].arn].map(|it| named(&[it])), [true; 3]);
        assert_eq!([named(&[]), named(&["orders", "invoices"])], [false; 2]);

        let mut facts = healthy();
        facts.leave_out(&consumers);
        assert_eq!(facts.functions.len(), 1, "it is attached too");
        facts.functions[0].entrances[0].settings = InvokeSettings::default();
        facts.leave_out(&consumers);
        assert_eq!(facts.functions.len(), 1, "the list has it");
        facts.deployment.variables.insert("TARGET_FUNCTIONS".into(), String::new());
        facts.leave_out(&consumers);
        assert!(facts.functions.is_empty());
    }

    #[test]
    fn a_function_that_is_being_detached_has_one_warning() {
        let mut facts = healthy();
        let target = facts.functions[0].target.as_mut().unwrap().as_mut().unwrap();
        target.tags.insert("comeback:detached".into(), facts.now.to_string());
        target.invoke_settings.clear();
        facts.functions[0].entrances[0].settings = InvokeSettings::default();
        let found = findings(&facts, &[], CHECKS);
        assert_eq!(ids(&found, |outcome| outcome > Outcome::Ok), ["CB102"]);
        assert!(is_healthy(&found, false));
        facts.functions[0].entrances[0].invoke.as_mut().unwrap()[0].verdict = Verdict::NotAllowed;
        let found = findings(&facts, &[], CHECKS);
        assert_eq!(ids(&found, |outcome| outcome == Outcome::Broken), ["CB109"], "what waits is not retried");
        facts.deployment.variables.insert("TARGET_FUNCTIONS".into(), String::new());
        let found = findings(&facts, &[], CHECKS);
        assert_eq!(
            ids(&found, |outcome| outcome == Outcome::Broken),
            [""; 0],
            "detach has taken away the right"
        );
    }

    #[test]
    fn attach_refers_to_the_check_of_a_right_that_the_handler_lacks() {
        let mut facts = healthy();
        let entrance = &mut facts.functions[0].entrances[0];
        entrance.settings = InvokeSettings::default();
        entrance.invoke.as_mut().unwrap()[0].verdict = Verdict::NotAllowed;
        let found = findings(&facts, &[], selected(&["CB109"], &[]));
        assert_eq!(ids(&found, |outcome| outcome == Outcome::Broken), ["CB109"]);
    }

    #[test]
    fn a_function_that_is_not_attached_has_one_finding() {
        let billing = Some(DeploymentName::Stack("billing".into()));
        for (elsewhere, outcome, found, fix) in [
            (
                None,
                Outcome::Broken,
                "it is not attached: it has no failure destination",
                "comeback attach orders",
            ),
            (
                billing,
                Outcome::Warning,
                "it is attached to stack billing",
                "to retry it here instead: comeback attach orders --move",
            ),
        ] {
            let mut facts = healthy();
            facts.deployment.variables.insert("TARGET_FUNCTIONS".into(), String::new());
            let function = &mut facts.functions[0];
            let target = function.target.as_mut().unwrap().as_mut().unwrap();
            target.recursion_allowed = false;
            target.invoke_settings.clear();
            let entrance = &mut function.entrances[0];
            (entrance.settings, entrance.elsewhere) = (InvokeSettings::default(), elsewhere);
            for rights in [&mut entrance.send, &mut entrance.invoke] {
                rights.as_mut().unwrap()[0].verdict = Verdict::NotAllowed;
            }
            let findings = findings(&facts, &[], CHECKS);
            assert_eq!(ids(&findings, |outcome| outcome > Outcome::Ok), [DESTINATION]);
            let finding = findings.into_iter().find(|finding| finding.check.id == DESTINATION).unwrap();
            assert_eq!(finding.diagnosis.fix.as_deref(), Some(fix));
            assert_found(Ok(finding.diagnosis), outcome, found);
        }
    }

    #[test]
    fn the_last_line_names_what_is_broken() {
        let mut facts = healthy();
        facts.functions[0].target = Ok(None);
        facts.functions[0].entrances.clear();
        let found = findings(&facts, &[], selected(&["CB001", "CB101"], &[]));
        let mut written = Vec::new();
        write(&mut written, &heading(&facts), &found, |finding| finding.diagnosis.outcome > Outcome::Ok)
            .unwrap();
        let written = anstream::adapter::strip_bytes(&written).into_vec();
        let expected = "\
retry-handler of stack comeback

attached functions
BROKEN  CB101 orders: the function does not exist
        means: its events are dead-lettered as target_not_found
        fix:   comeback detach orders

1 ok, 0 skipped, 0 warnings, 1 broken: CB101 orders
";
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }

    #[test]
    fn a_logged_error_cannot_command_the_terminal() {
        let mut facts = healthy();
        let text = HOSTILE.to_owned();
        let newest = Some(LoggedError { at: facts.now, remedy: Some(text.clone()), text });
        facts.errors = Ok(LoggedErrors { count: 1, newest, all_were_read: true });
        let mut written = Vec::new();
        write(&mut written, &heading(&facts), &findings(&facts, &[], selected(&["CB024"], &[])), |_| true)
            .unwrap();
        let written = String::from_utf8(written).unwrap();
        assert!(written.contains("means: a\\u{1b}]") && !is_obeyed_anywhere(&written), "{written}");
    }

    #[test]
    fn numbers_ascend_by_group() {
        assert!(CHECKS.is_sorted_by(|one, next| one.id < next.id));
        let groups: Vec<&str> =
            CHECKS.chunk_by(|one, next| one.group == next.group).map(|it| it[0].group).collect();
        let expected =
            ["mapping", "queues", "handler", "role", "alarms", "pauses", "functions", "probe", "consumers"];
        assert_eq!(groups, expected);
        let is_number = |id: &str| id.len() == 5 && id[2..].bytes().all(|byte| byte.is_ascii_digit());
        assert!(CHECKS.iter().all(|check| check.id.starts_with("CB") && is_number(check.id)));
    }

    /// The first two columns of the page's table.
    #[test]
    fn the_page_has_a_row_for_each_check() {
        let page = std::fs::read_to_string(PAGE).unwrap();
        let rows = page.lines().filter_map(|line| line.strip_prefix("| CB")?.strip_suffix(" |"));
        let rows: Vec<Vec<&str>> = rows.map(|row| row.split(" | ").collect()).collect();
        for (index, Check { id, title, .. }) in CHECKS.iter().enumerate() {
            let said = rows.get(index).map(|row| format!("| CB{} | {} |", row[0], row[1]));
            assert_eq!(
                said,
                Some(format!("| {id} | {title} |")),
                "docs/doctor.md needs the latter row there"
            );
        }
        assert_eq!(rows.len(), CHECKS.len());
        assert!(rows.iter().all(|row| row.len() == 3 && row[2].len() > 15), "each says what it means");
    }

    #[test]
    fn a_number_that_no_check_has_is_refused() {
        assert_eq!(number("cb001"), Ok("CB001"));
        let refused = number("CB999").unwrap_err();
        assert_eq!(refused, r#""CB999" is not a check; docs/doctor.md lists all, from CB001 to CB306"#);
        let (first, last) = (CHECKS[0].id, CHECKS[CHECKS.len() - 1].id);
        assert!(refused.ends_with(&format!("from {first} to {last}")));
    }

    #[test]
    fn a_selection_has_some_or_all_others() {
        let count = |only: &[&str], skip: &[&str]| selected(only, skip).count();
        let numbers = ["CB001", "CB201"];
        assert_eq!(count(&[], &[]), CHECKS.len());
        assert_eq!(count(&numbers, &[]), 2);
        assert_eq!(count(&[], &numbers), CHECKS.len() - 2);
    }
}
