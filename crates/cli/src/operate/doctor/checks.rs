//! All checks by number, which of them are made, and what they found.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::operate::doctor::diagnosis::{Diagnosis, Judged, Outcome};
use crate::operate::doctor::facts::Facts;
use crate::operate::doctor::facts::functions::{Entrance, Function};
use crate::operate::doctor::{functions, handler, queues, rights};

/// A check. Its number never changes and is never used again; docs/doctor.md has a row for each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    pub(crate) id: &'static str,
    pub(crate) group: Group,
    pub(crate) title: &'static str,
    pub(crate) of: Of,
}

/// What a check belongs to, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Group {
    Mapping,
    Queues,
    Handler,
    Role,
    Alarms,
    Pauses,
    Functions,
    Probe,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Of {
    Stack(fn(&Facts) -> Judged),
    Function(fn(&Facts, &Function) -> Judged),
    /// Each function, by each alias and version that leads to the retry queue.
    Entrance(fn(&Facts, &Function, &Entrance) -> Judged),
    Probe,
}

/// Every check, by number.
pub(crate) const CHECKS: &[Check] = &[
    stack(
        "CB001",
        Group::Mapping,
        "an enabled mapping hands the retry queue to the handler",
        queues::enabled,
    ),
    stack("CB002", Group::Mapping, "no other queue is handed to the handler", queues::no_other_queue),
    stack("CB003", Group::Mapping, "the mapping reports batch item failures", queues::partial_responses),
    stack("CB004", Group::Mapping, "batches are of ten messages", queues::batch_size),
    stack("CB005", Group::Mapping, "there is no batching window", queues::no_window),
    stack("CB006", Group::Mapping, "the mapping's MaximumConcurrency is the handler's", queues::concurrency),
    stack("CB010", Group::Queues, "the queues are two, and neither is FIFO", queues::two_standard_queues),
    stack("CB011", Group::Queues, "the retry queue's visibility timeout", queues::visibility),
    stack("CB012", Group::Queues, "SQS redrives after 1,000 receives", queues::receives),
    stack("CB013", Group::Queues, "SQS redrives to the handler's dead-letter queue", queues::redrive_target),
    stack("CB014", Group::Queues, "both queues keep messages for 14 days", queues::retention),
    stack("CB020", Group::Handler, "the handler's settings", handler::settings),
    stack("CB021", Group::Handler, "the handler's timeout is a minute", handler::timeout),
    stack("CB022", Group::Handler, "Lambda lets the handler loop", handler::recursion),
    stack("CB023", Group::Handler, "no concurrency is reserved for the handler", handler::concurrency),
    stack("CB024", Group::Handler, "ERRORs in the handler's log", handler::errors),
    stack("CB030", Group::Role, "it may receive, hide and delete retries", rights::take),
    stack("CB031", Group::Role, "it may send retries again", rights::send_again),
    stack("CB032", Group::Role, "it may send dead-letters", rights::dead_letter),
    stack("CB033", Group::Role, "it may write its log", rights::log),
    stack("CB034", Group::Role, "it may read what is paused", rights::read_pauses),
    stack("CB035", Group::Role, "it may use the queues' keys", rights::use_keys),
    stack("CB040", Group::Alarms, "there are alarms", handler::alarms_exist),
    stack("CB041", Group::Alarms, "no alarm is raised", handler::no_alarm_is_raised),
    stack("CB042", Group::Alarms, "each alarm tells somebody", handler::alarms_notify),
    stack("CB050", Group::Pauses, "no pause was forgotten", handler::no_pause_is_forgotten),
    stack("CB100", Group::Functions, "functions are attached", functions::are_attached),
    of_function("CB101", "the function exists", functions::exists),
    of_entrance("CB102", "its failures go to the retry queue", functions::leads_here),
    of_entrance("CB103", "Lambda itself does not retry it", functions::no_retries),
    of_entrance("CB104", "Lambda gives its events up soon", functions::event_age),
    of_entrance("CB105", "its role may send to the retry queue", rights::function_sends),
    of_entrance("CB106", "its role may use the queue's key", rights::function_uses_key),
    of_function("CB107", "Lambda lets it loop", functions::recursion),
    of_entrance("CB108", "it is on the allow-list", rights::is_on_allow_list),
    of_entrance("CB109", "the handler's role may invoke it", rights::handler_invokes),
    of_function("CB110", "its reserved concurrency is not 0", functions::concurrency),
    of_function("CB111", "none of its failed events was dropped", functions::nothing_dropped),
    stack("CB112", Group::Functions, "NON_RETRYABLE_ERRORS can match", functions::error_types),
    Check { id: "CB201", group: Group::Probe, title: "an event that fails once is retried", of: Of::Probe },
];

const fn stack(id: &'static str, group: Group, title: &'static str, judge: fn(&Facts) -> Judged) -> Check {
    Check { id, group, title, of: Of::Stack(judge) }
}

const fn of_function(id: &'static str, title: &'static str, judge: fn(&Facts, &Function) -> Judged) -> Check {
    Check { id, group: Group::Functions, title, of: Of::Function(judge) }
}

const fn of_entrance(
    id: &'static str,
    title: &'static str,
    judge: fn(&Facts, &Function, &Entrance) -> Judged,
) -> Check {
    Check { id, group: Group::Functions, title, of: Of::Entrance(judge) }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mapping => "event source mapping",
            Self::Queues => "queues",
            Self::Handler => "retry handler",
            Self::Role => "handler's role",
            Self::Alarms => "alarms",
            Self::Pauses => "pauses",
            Self::Functions => "attached functions",
            Self::Probe => "probe",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckNumber(&'static str);

impl FromStr for CheckNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let check = CHECKS.iter().find(|check| check.id.eq_ignore_ascii_case(text.trim()));
        check
            .map(|check| Self(check.id))
            .ok_or_else(|| format!("{text:?} is not a check; docs/doctor.md lists them, from CB001 to CB201"))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Selection {
    #[default]
    All,
    Only(Vec<CheckNumber>),
    Without(Vec<CheckNumber>),
}

impl Selection {
    pub(crate) fn has(&self, check: &Check) -> bool {
        let is_in = |numbers: &[CheckNumber]| numbers.contains(&CheckNumber(check.id));
        match self {
            Self::All => true,
            Self::Only(numbers) => is_in(numbers),
            Self::Without(numbers) => !is_in(numbers),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) id: &'static str,
    pub(crate) group: Group,
    pub(crate) title: &'static str,
    /// The function, and the alias or version of it; `None` for a check of the deployment.
    pub(crate) about: Option<String>,
    pub(crate) outcome: Outcome,
    pub(crate) found: String,
    /// What follows from that; `None` if nothing is wrong.
    pub(crate) means: Option<String>,
    pub(crate) fix: Option<String>,
}

impl Finding {
    pub(crate) fn of(check: &Check, about: Option<String>, diagnosis: Diagnosis) -> Self {
        let Diagnosis { outcome, found, remedy } = diagnosis;
        let (means, fix) = remedy.map(|remedy| (remedy.means, remedy.fix)).unzip();
        let &Check { id, group, title, .. } = check;
        Self { id, group, title, about, outcome, found, means, fix }
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor.md");

    #[test]
    fn numbers_ascend_by_group() {
        assert!(CHECKS.is_sorted_by(|one, next| one.id < next.id));
        assert!(CHECKS.is_sorted_by_key(|check| check.group));
        let is_number = |id: &str| id.len() == 5 && id[2..].bytes().all(|byte| byte.is_ascii_digit());
        assert!(CHECKS.iter().all(|check| check.id.starts_with("CB") && is_number(check.id)));
    }

    /// The first two columns of the page's table.
    #[test]
    fn the_page_has_a_row_for_each_check() {
        let page = std::fs::read_to_string(PAGE).unwrap();
        let rows = page.lines().filter_map(|line| line.strip_prefix("| CB")?.strip_suffix(" |"));
        let rows: Vec<Vec<&str>> = rows.map(|row| row.split(" | ").collect()).collect();
        let documented: Vec<_> = rows.iter().map(|row| (format!("CB{}", row[0]), row[1])).collect();
        let checks: Vec<_> = CHECKS.iter().map(|check| (check.id.to_owned(), check.title)).collect();
        assert_eq!(documented, checks);
        assert!(rows.iter().all(|row| row.len() == 3 && row[2].len() > 20), "each says what it means");
    }

    #[test]
    fn a_number_that_no_check_has_is_refused() {
        assert_eq!("cb001".parse(), Ok(CheckNumber("CB001")));
        let refused = "CB999".parse::<CheckNumber>().unwrap_err();
        assert_eq!(refused, r#""CB999" is not a check; docs/doctor.md lists them, from CB001 to CB201"#);
        let (first, last) = (CHECKS[0].id, CHECKS[CHECKS.len() - 1].id);
        assert!(refused.ends_with(&format!("from {first} to {last}")));
    }

    #[test]
    fn a_selection_has_some_or_all_others() {
        let selected = |selection: Selection| CHECKS.iter().filter(|check| selection.has(check)).count();
        let numbers = || vec![CheckNumber("CB001"), CheckNumber("CB201")];
        assert_eq!(selected(Selection::All), CHECKS.len());
        assert_eq!(selected(Selection::Only(numbers())), 2);
        assert_eq!(selected(Selection::Without(numbers())), CHECKS.len() - 2);
    }
}
