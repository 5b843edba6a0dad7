use std::fmt;

use serde::Serialize;

use crate::doctor::attached::{OfEntrance, OfFunction, all, destination, function, permission};
use crate::doctor::diagnosis::Judged;
use crate::doctor::facts::Facts;
use crate::doctor::stack::{alarms, handler, mapping, pauses, queues, role};

/// A check. Its number never changes and is never used again; docs/doctor.md has a row for each.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Such as `CB001`.
    pub id: &'static str,
    /// What it belongs to.
    pub group: Group,
    /// What it looks at.
    pub title: &'static str,
    pub(super) of: Of,
}

/// What a check belongs to, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// What hands the retry queue to the handler.
    Mapping,
    /// The retry queue and the dead-letter queue.
    Queues,
    /// The retry handler.
    Handler,
    /// What the handler's role may do.
    Role,
    /// Who hears of a problem.
    Alarms,
    /// What is paused.
    Pauses,
    /// The functions whose failures are retried.
    Functions,
    /// An event sent to see it retried.
    Probe,
}

/// What a check is made of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    /// The deployment.
    Stack(fn(&Facts) -> Judged),
    /// Each function.
    Function(OfFunction),
    /// Each function, by each alias and version that leads to the retry queue.
    Entrance(OfEntrance),
    /// An event that is sent.
    Probe,
}

/// Every check, by number.
pub const CHECKS: &[Check] = &[
    stack(
        "CB001",
        Group::Mapping,
        "an enabled mapping hands the retry queue to the handler",
        mapping::enabled,
    ),
    stack("CB002", Group::Mapping, "no other queue is handed to the handler", mapping::no_other_queue),
    stack("CB003", Group::Mapping, "the mapping reports batch item failures", mapping::partial_responses),
    stack("CB004", Group::Mapping, "batches are of ten messages", mapping::batch_size),
    stack("CB005", Group::Mapping, "there is no batching window", mapping::no_window),
    stack("CB006", Group::Mapping, "the mapping's MaximumConcurrency is the handler's", mapping::concurrency),
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
    stack("CB030", Group::Role, "it may receive, hide and delete retries", role::take),
    stack("CB031", Group::Role, "it may send retries again", role::send_again),
    stack("CB032", Group::Role, "it may send dead-letters", role::dead_letter),
    stack("CB033", Group::Role, "it may write its log", role::log),
    stack("CB034", Group::Role, "it may read what is paused", role::read_pauses),
    stack("CB035", Group::Role, "it may use the queues' keys", role::use_keys),
    stack("CB040", Group::Alarms, "there are alarms", alarms::exist),
    stack("CB041", Group::Alarms, "no alarm is raised", alarms::quiet),
    stack("CB042", Group::Alarms, "each alarm tells somebody", alarms::heard),
    stack("CB050", Group::Pauses, "no pause was forgotten", pauses::none_is_forgotten),
    stack("CB100", Group::Functions, "functions are attached", all::exist),
    of_function("CB101", "the function exists", function::exists),
    of_entrance("CB102", "its failures go to the retry queue", destination::leads_here),
    of_entrance("CB103", "Lambda itself does not retry it", destination::no_retries),
    of_entrance("CB104", "Lambda gives its events up soon", destination::event_age),
    of_entrance("CB105", "its role may send to the retry queue", permission::send),
    of_entrance("CB106", "its role may use the queue's key", permission::use_key),
    of_function("CB107", "Lambda lets it loop", function::recursion),
    of_entrance("CB108", "it is on the allow-list", permission::allowed),
    of_entrance("CB109", "the handler's role may invoke it", permission::invoke),
    of_function("CB110", "its reserved concurrency is not 0", function::concurrency),
    of_function("CB111", "none of its failed events was dropped", function::nothing_dropped),
    stack("CB112", Group::Functions, "NON_RETRYABLE_ERRORS can match", all::error_types),
    Check { id: "CB201", group: Group::Probe, title: "an event that fails once is retried", of: Of::Probe },
];

const fn stack(id: &'static str, group: Group, title: &'static str, judge: fn(&Facts) -> Judged) -> Check {
    Check { id, group, title, of: Of::Stack(judge) }
}

const fn of_function(id: &'static str, title: &'static str, judge: OfFunction) -> Check {
    Check { id, group: Group::Functions, title, of: Of::Function(judge) }
}

const fn of_entrance(id: &'static str, title: &'static str, judge: OfEntrance) -> Check {
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
}
