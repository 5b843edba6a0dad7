//! What a reading cannot show, and why: gaps in the log, and what keeps events from being retried.

use comeback_engine::{QUEUE_VISIBILITY_TIMEOUT, Timestamp};
use indicatif::HumanCount;

use crate::account::Failure;
use crate::operate::function::{FunctionName, attach_commands};
use crate::operate::log::HIDING_INFO;
use crate::operate::waiting::events::Group;
use crate::operate::waiting::reading::Reading;
use crate::operate::waiting::wanted::Wanted;
use crate::text::durations;
use crate::text::numbers::counted;

impl Reading {
    pub(super) fn is_all_read(&self, now: Timestamp) -> bool {
        now.before(self.reach) >= self.since
    }

    /// Whether the log keeps and shows a line of each message that the handler has received.
    fn has_all_lines(&self, now: Timestamp) -> bool {
        self.is_all_read(now)
            && self.has_log
            && self.kept_for.is_none()
            && self.newer == 0
            && !self.hides_lines()
    }

    /// Whether the log has a line of everything that waits. With a filter, hidden messages without a line are not noticed.
    pub(crate) fn is_complete(&self, now: Timestamp) -> bool {
        let is_all_logged = self.retry_queue.visible == 0 && self.unlogged_messages(now) == 0;
        self.retry_queue.total() == 0 || self.has_all_lines(now) && is_all_logged
    }

    /// How many messages are hidden beside those found, if the log should have a line of each.
    fn unlogged_messages(&self, now: Timestamp) -> u64 {
        if !self.is_everything || !self.has_all_lines(now) {
            return 0;
        }
        let hidden = self.retry_queue.in_flight + self.retry_queue.delayed;
        hidden.saturating_sub(self.waits.count() as u64)
    }

    pub(super) fn unlogged_note(&self, now: Timestamp) -> Option<String> {
        let unlogged = Some(self.unlogged_messages(now)).filter(|unlogged| *unlogged > 0)?;
        Some(format!(
            "About {} hidden messages have no line in the log. SQS's count may be a minute old, and lines \
             reach the log after some seconds. Messages of a handler that failed before it wrote a line \
             return within {}.",
            HumanCount(unlogged),
            durations::text(QUEUE_VISIBILITY_TIMEOUT)
        ))
    }

    fn hides_lines(&self) -> bool {
        self.deployment.log_level.as_deref().is_some_and(|level| HIDING_INFO.contains(&level))
    }

    /// What the log does not show of everything that waits.
    pub(crate) fn notes_on_all(&self, now: Timestamp) -> Vec<String> {
        self.notes(&self.waits.all_groups(), now)
    }

    /// What the log does not show, and why.
    pub(super) fn notes(&self, groups: &[Group<'_>], now: Timestamp) -> Vec<String> {
        let unknown = |failure: &Failure| format!("Unknown which functions are paused now: {failure}");
        let mut notes: Vec<String> = self.pauses.as_ref().err().map(unknown).into_iter().collect();
        notes.extend(self.deployment.stopped_note(&self.place));
        notes.extend(self.waits.ignored().into_iter().map(|(target, ignored)| {
            format!("A RetryAfter of {target} was ignored, so its events get the ordinary backoff: {ignored}")
        }));
        let mut note = |is_so: bool, text: String| notes.extend(is_so.then_some(text));
        let Self { deployment, place, retry_queue, since, reach, .. } = self;
        let group = &deployment.log_group;
        note(
            !self.has_log,
            format!("Log group {group} does not exist: the handler has never run, or the log was deleted."),
        );
        let level = deployment.log_level.as_deref().unwrap_or_default();
        note(
            self.hides_lines(),
            format!("The handler's log level is {level}, which hides most waiting events: set it to INFO."),
        );
        note(
            self.newer > 0,
            format!(
                "{} written by a newer handler and unreadable to this command: update the command.",
                counted(self.newer, "line was", "lines were")
            ),
        );
        let visible = retry_queue.visible;
        note(
            visible > 0,
            format!(
                "Due but not yet received by the handler: about {}. `comeback status{place}` says whether it \
                 runs.",
                HumanCount(visible)
            ),
        );
        note(
            *since > now.before(*reach),
            format!(
                "An event may wait {} without a new log line, so events last logged before {since} may be \
                 missing.",
                durations::text(*reach)
            ),
        );
        note(
            self.kept_for.is_some(),
            format!(
                "{group} keeps lines for only {}, but an event may wait {} between two lines, so some may be \
                 missing.",
                durations::text(self.kept_for.unwrap_or_default()),
                durations::text(*reach)
            ),
        );
        note(
            deployment.policies().is_ok_and(|policies| policies.stack().keeps_everything()),
            "The allow-list is empty: the handler keeps waiting events, but retries none until a function is \
             attached.".into(),
        );
        notes.extend(self.not_allowed_note(groups));
        let mut note = |is_so: bool, text: String| notes.extend(is_so.then_some(text));
        let held: u64 = groups.iter().map(|group| group.held).sum();
        note(
            held > 0,
            format!(
                "{} held by a pause until it ends: `comeback pause --list{place}`.",
                if held == 1 { "1 event is".into() } else { format!("{} events are", HumanCount(held)) }
            ),
        );
        notes
    }

    /// Which events the handler will dead-letter, because the allow-list lacks their functions, and how to keep them.
    fn not_allowed_note(&self, groups: &[Group<'_>]) -> Option<String> {
        let unlisted = || groups.iter().filter(|group| group.not_allowed > 0);
        let count: u64 = unlisted().map(|group| group.not_allowed).sum();
        let what = match count {
            0 => return None,
            1 => "1 event will be dead-lettered (target_not_allowed), because its function is".into(),
            _ => format!(
                "{} events will be dead-lettered (target_not_allowed), because their functions are",
                HumanCount(count)
            ),
        };
        let targets = unlisted().filter_map(|group| group.target);
        let commands = attach_commands(targets, &self.deployment.handler_arn, &self.place);
        Some(format!("{what} not on the allow-list. To stop that: {commands}."))
    }

    /// The filter's functions that the log does not mention, and whether the handler retries each.
    fn unlogged<'w>(&self, wanted: &'w Wanted) -> impl Iterator<Item = (&'w FunctionName, bool)> {
        let unlogged = wanted.functions.iter().enumerate().filter(|(index, _)| !self.logged.contains(index));
        unlogged.map(|(_, function)| (function, self.deployment.retries(&self.deployment.arn_of(function))))
    }

    /// The allow-list usually allows every alias, also one that does not exist.
    pub(super) fn unlogged_qualifiers(&self, wanted: &Wanted) -> impl Iterator<Item = String> {
        let unlogged =
            self.unlogged(wanted).filter(|(function, is_known)| *is_known && function.qualifier.is_some());
        unlogged.map(|(function, _)| {
            format!(
                "No log line since {} mentions {function}; its alias or version may be misspelled.",
                self.since
            )
        })
    }

    /// Fails if the filter names functions that the handler does not retry and the log does not mention.
    pub(super) fn unknown_functions(&self, wanted: &Wanted) -> Result<(), Failure> {
        let name = |function: &FunctionName| match function.place {
            Some(_) => self.deployment.arn_of(function).to_string(),
            None => function.to_string(),
        };
        let unknown = self.unlogged(wanted).filter(|(_, is_known)| !is_known);
        let unknown: Vec<_> = unknown.map(|(function, _)| name(function)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        Err(Failure::Undone(format!(
            "{} does not retry {}, and has logged none of its events since {}; check the name, or attach the \
             function",
            self.deployment.handler,
            unknown.join(", "),
            self.since
        )))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use comeback_engine::RETENTION;
    use serde_json::json;

    use super::*;
    use crate::operate::deployment::queue::Depth;
    use crate::operate::log::tests::test_line;
    use crate::operate::waiting::reading::DAY;
    use crate::operate::waiting::reading::tests::{NOW, ORDERS, reading};

    #[test]
    fn a_log_without_gaps_shows_everything() {
        let hidden = Depth { in_flight: 2, ..Depth::default() };
        let complete = |change: &dyn Fn(&mut Reading)| {
            // With a filter, the other messages need no lines here.
            let mut reading = Reading { is_everything: false, ..reading(hidden) };
            change(&mut reading);
            reading.is_complete(NOW)
        };
        assert!(complete(&|_| ()));
        assert!(!complete(&|it| it.is_everything = true), "two messages have no line");
        assert!(!complete(&|it| it.has_log = false));
        assert!(!complete(&|it| it.since = NOW.before(DAY / 24)));
        assert!(!complete(&|it| it.kept_for = Some(DAY)));
        assert!(!complete(&|it| it.retry_queue.visible = 1));
        assert!(!complete(&|it| it.newer = 1));
        assert!(!complete(&|it| it.deployment.log_level = Some("WARN".into())));
        assert!(complete(&|it| (it.has_log, it.retry_queue) = (false, Depth::default())), "nothing waits");
    }

    #[test]
    fn each_thing_that_is_not_known_is_said() {
        let notes = |change: &dyn Fn(&mut Reading)| {
            let mut reading = reading(Depth::default());
            change(&mut reading);
            reading.notes(&[], NOW)
        };
        assert_eq!(notes(&|_| ()), [] as [&str; 0]);
        let log = "/aws/lambda/retry-handler";
        type Change<'c> = &'c dyn Fn(&mut Reading);
        let denied = Failure::CouldNot("ssm:GetParameter of p: denied".into());
        let cases: [(Change<'_>, String); 8] = [
            (&|it| it.newer = 2, "2 lines were written by a newer handler and unreadable to this command: \
                                  update the command.".into()),
            (
                &|it| it.deployment.never_runs = true,
                "Now the handler's reserved concurrency is 0, so nothing is retried: `comeback doctor --short --stack shop` names the fix.".into(),
            ),
            (
                &|it| it.pauses = Err(denied.clone()),
                "Unknown which functions are paused now: ssm:GetParameter of p: denied".into(),
            ),
            (&|it| it.has_log = false, format!("Log group {log} does not exist: the handler has never run, or \
                                                the log was deleted.")),
            (
                &|it| it.deployment.log_level = Some("WARN".into()),
                "The handler's log level is WARN, which hides most waiting events: set it to INFO.".into(),
            ),
            (
                &|it| it.retry_queue.visible = 2,
                "Due but not yet received by the handler: about 2. `comeback status --stack shop` says \
                 whether it runs.".into(),
            ),
            (
                &|it| it.since = NOW.before(Duration::from_secs(3_600)),
                "An event may wait 12h 20m 30s without a new log line, so events last logged before \
                 2026-09-14T14:33:20.000Z may be missing.".into(),
            ),
            (
                &|it| (it.reach, it.kept_for) = (RETENTION, Some(DAY)),
                format!("{log} keeps lines for only 24h, but an event may wait 14d between two lines, so some \
                         may be missing."),
            ),
        ];
        for (change, note) in cases {
            assert!(notes(change).contains(&note), "{note}: {:?}", notes(change));
        }
    }

    #[test]
    fn hidden_messages_without_a_line_are_counted_where_the_log_should_have_one() {
        let note = |change: &dyn Fn(&mut Reading)| {
            let mut reading = reading(Depth { visible: 5, in_flight: 8, delayed: 1 });
            change(&mut reading);
            reading.unlogged_note(NOW)
        };
        assert!(note(&|_| ()).unwrap().starts_with("About 9 hidden messages have no line in the log."));
        assert_eq!(note(&|it| it.retry_queue = Depth { visible: 5, ..Depth::default() }), None);
        assert_eq!(note(&|it| it.is_everything = false), None);
        assert_eq!(note(&|it| it.deployment.log_level = Some("WARN".into())), None);
    }

    #[test]
    fn events_that_the_allow_list_dead_letters_have_a_note() {
        let notes = |list: &str, targets: &[&str]| {
            let mut reading = reading(Depth::default());
            reading.deployment.variables.insert("TARGET_FUNCTIONS".into(), list.into());
            for (n, target) in targets.iter().enumerate() {
                let key = format!("k-{n}");
                let fields = json!({"timestamp": NOW, "action": "hold", "due": NOW, "delay": 60, "key": key, "target": target});
                reading.waits.take(&test_line(fields));
            }
            reading.heed_allow_list();
            reading.heed_pauses(NOW);
            reading.notes_on_all(NOW)
        };
        let (orders, live) = (format!("{ORDERS}:$LATEST"), format!("{ORDERS}:live"));
        let other = ORDERS.replace("orders", "invoices");
        let one = "1 event will be dead-lettered (target_not_allowed), because its function is not on the allow-list. \
                   To stop that: `comeback attach orders --stack shop` (if the function moved to another stack, see \
                   docs/attach.md).";
        assert_eq!(notes(&other, &[&orders, &other]), [one]);
        let three = "3 events will be dead-lettered (target_not_allowed), because their functions are not on the \
                     allow-list. To stop that: `comeback attach orders --stack shop`, `comeback attach \
                     orders:live --stack shop` (if the function moved to another stack, see docs/attach.md).";
        assert_eq!(notes(&other, &[&orders, &orders, &live]), [three]);
        assert_eq!(notes(ORDERS, &[&orders, &live]), [] as [&str; 0]);
        let empty = "The allow-list is empty: the handler keeps waiting events, but retries none until a \
                     function is attached.";
        assert_eq!(notes("", &[&orders]), [empty]);
        assert!(notes("not an ARN", &[&orders])[0].starts_with("Now the handler does not start"));
    }

    #[test]
    fn a_function_that_nobody_knows_is_an_error() {
        let reading = reading(Depth::default());
        let unknown = |names: &[&str]| {
            let functions = names.iter().map(|name| name.parse().unwrap()).collect();
            reading.unknown_functions(&Wanted { functions, ..Wanted::default() })
        };
        assert_eq!(unknown(&["orders"]), Ok(()));
        let elsewhere = ORDERS.replace("eu-west-1", "eu-west-2");
        let error = unknown(&[&elsewhere]).unwrap_err().to_string();
        assert!(error.contains(&format!("does not retry {elsewhere},")), "{error}");
        let functions = ["orders", "orders:lvie"].map(|name| name.parse().unwrap()).into();
        let notes: Vec<String> =
            reading.unlogged_qualifiers(&Wanted { functions, ..Wanted::default() }).collect();
        let note = "No log line since 2026-09-14T03:12:50.000Z mentions orders:lvie; its alias or version may be \
             misspelled.";
        assert_eq!(notes, [note]);
        let error = unknown(&["orders", "order"]).unwrap_err();
        assert!(matches!(&error, Failure::Undone(text) if text.contains("does not retry order,")), "{error}");
    }
}
