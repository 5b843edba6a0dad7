//! The table of the doctor's checks.

use serde::Serialize;

use crate::attach::attachment::Attachment;
use crate::doctor::facts::Facts;
use crate::doctor::facts::consumers::Consumer;
use crate::doctor::facts::functions::CheckedFunction;
use crate::doctor::judgement::{Judged, skipped};
use crate::doctor::{consumers, functions, handler, policies, queues, rights};

type Text = &'static str;

/// A check that the doctor runs. Its number is never reused for another check.
#[derive(Debug, Serialize)]
pub struct Check {
    /// The check's number, such as `CB012`.
    pub id: Text,
    /// The key of the check's area, such as `mapping` or `queues`.
    pub group: Text,
    /// The required state, such as "the batch size is 10".
    pub title: Text,
    #[serde(skip)]
    pub(super) judge: Judge,
}

/// The function that judges the facts. Each variant is for one kind of subject.
#[derive(Debug)]
pub(super) enum Judge {
    Stack(fn(&Facts) -> Judged),
    /// Judges one permission of the handler's role.
    Role,
    Function(fn(&Facts, &CheckedFunction) -> Judged),
    /// The check runs for each alias, version or unqualified function.
    QualifiedFunction(fn(&Facts, &Attachment) -> Judged),
    Consumer(fn(&Consumer) -> Judged),
}

pub(super) const DESTINATION: &str = "CB102";
/// The check that the handler may invoke a function. It also runs for a function that is allowed but not attached.
pub(super) const INVOKES: &str = "CB109";
pub(super) const PROBE: &str = "CB201";

/// All checks, ordered by number.
pub(super) const CHECKS: &[Check] = &[
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
    stack("CB026", "handler", "the handler's log can be searched", handler::log_is_searchable),
    of_role("CB030", "it may receive, hide and delete messages of the retry queue"),
    of_role("CB031", "it may send to the retry queue"),
    of_role("CB032", "it may send to the dead-letter queue"),
    of_role("CB033", "it may write its log"),
    of_role("CB034", "it may read the pauses"),
    of_role("CB035", "it may use the queues' keys"),
    stack("CB040", "alarms", "alarms exist", handler::alarms_exist),
    stack("CB041", "alarms", "no alarm is in state ALARM", handler::no_alarm_is_raised),
    stack("CB042", "alarms", "each alarm notifies somebody", handler::alarms_notify),
    stack("CB050", "pauses", "no pause was forgotten", handler::no_pause_is_forgotten),
    stack("CB051", "pauses", "the parameter of the pauses has room", handler::pauses_have_room),
    stack("CB100", "functions", "functions are attached", functions::are_attached),
    of_function("CB101", "the function exists", functions::exists),
    of_qualified(DESTINATION, "its failures go to the retry queue", functions::leads_here),
    of_qualified("CB103", "Lambda's own retries are off", functions::no_retries),
    of_qualified("CB104", "its throttled events reach the retry queue soon", functions::event_age),
    of_qualified("CB105", "its role may send to the retry queue", rights::function_sends),
    of_qualified("CB106", "its role may use the queue's key", rights::function_uses_key),
    of_function("CB107", "its RecursiveLoop is Allow", functions::recursion),
    of_qualified("CB108", "it is on the allow-list", rights::is_on_allow_list),
    of_qualified(INVOKES, "the handler may invoke it", rights::handler_invokes),
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

const fn of_role(id: Text, title: Text) -> Check {
    Check { id, group: "role", title, judge: Judge::Role }
}

const fn of_function(id: Text, title: Text, judge: fn(&Facts, &CheckedFunction) -> Judged) -> Check {
    Check { id, group: "functions", title, judge: Judge::Function(judge) }
}

const fn of_qualified(id: Text, title: Text, judge: fn(&Facts, &Attachment) -> Judged) -> Check {
    Check { id, group: "functions", title, judge: Judge::QualifiedFunction(judge) }
}

const fn of_consumer(id: Text, title: Text, judge: fn(&Consumer) -> Judged) -> Check {
    Check { id, group: "consumers", title, judge: Judge::Consumer(judge) }
}

/// Parses a check's number.
///
/// # Errors
///
/// Fails if no check has this number.
pub fn number(text: &str) -> Result<&'static str, String> {
    let check = CHECKS.iter().find(|check| check.id.eq_ignore_ascii_case(text.trim()));
    check
        .map(|check| check.id)
        .ok_or_else(|| format!("{text:?} is not a check; docs/doctor.md lists all, from CB001 to CB306"))
}

/// Returns the checks named in `only`, without those named in `skip`. An empty `only` stands for all checks.
pub(super) fn selected(only: &[&str], skip: &[&str]) -> impl Iterator<Item = &'static Check> {
    CHECKS.iter().filter(|check| (only.is_empty() || only.contains(&check.id)) && !skip.contains(&check.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor.md");

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
