//! Notes below the list of waiting events: gaps in the handler's log, and reasons why events are not retried.

use std::collections::BTreeMap;

use comeback_engine::{QUEUE_VISIBILITY_TIMEOUT, Timestamp};

use crate::command::CommandName;
use crate::durations;
use crate::failure::Failure;
use crate::function::FunctionName;
use crate::log::HIDING_INFO;
use crate::numbers::{counted, grouped};
use crate::text;
use crate::text::{Text, quoted};
use crate::waiting::events::WaitingGroup;
use crate::waiting::filter::WaitingFilter;
use crate::waiting::reading::Reading;

impl Reading {
    /// Returns true if the log was read far enough back to find each waiting event's last line.
    pub(super) fn is_all_read(&self, now: Timestamp) -> bool {
        now.before(self.reach) >= self.since
    }

    /// Returns true if the log is expected to have a readable line about each message that the handler has received.
    fn has_all_lines(&self, now: Timestamp) -> bool {
        self.is_all_read(now)
            && self.has_log
            && self.kept_for.is_none()
            && self.newer == 0
            && !self.hides_lines()
    }

    /// Returns true if every waiting event that matches the filter seems to have been found in the log. A hidden
    /// message without a log line is noticed only if there is no filter.
    pub fn is_complete(&self, now: Timestamp) -> bool {
        let is_all_logged = self.retry_queue.visible == 0 && self.unlogged_messages(now) == 0;
        self.retry_queue.total() == 0 || self.has_all_lines(now) && is_all_logged
    }

    /// The number of hidden messages that have no log line, or 0 if some lines might not have been read.
    fn unlogged_messages(&self, now: Timestamp) -> u64 {
        if !self.is_everything || !self.has_all_lines(now) {
            return 0;
        }
        let hidden = self.retry_queue.in_flight + self.retry_queue.delayed;
        hidden.saturating_sub(self.waits.count() as u64)
    }

    pub(super) fn unlogged_note(&self, now: Timestamp) -> Option<Text> {
        let unlogged = Some(self.unlogged_messages(now)).filter(|unlogged| *unlogged > 0)?;
        let messages = counted(unlogged, "hidden message has", "hidden messages have");
        let note = format!(
            "About {messages} no line in the log. SQS's count may be a minute old, and lines reach the log after some \
             seconds. Messages of a handler that failed before it wrote a line return within {}.",
            durations::text(QUEUE_VISIBILITY_TIMEOUT)
        );
        Some(note.into())
    }

    fn hides_lines(&self) -> bool {
        self.deployment.log_level.as_deref().is_some_and(|level| HIDING_INFO.contains(&level))
    }

    /// The notes to show below a list of all waiting events.
    pub fn notes_on_all(&self, now: Timestamp) -> Vec<Text> {
        self.notes(&self.waits.all_groups(), now)
    }

    pub(super) fn notes(&self, groups: &[WaitingGroup<'_>], now: Timestamp) -> Vec<Text> {
        let Self { deployment, pauses, .. } = self;
        let unknown =
            pauses.as_ref().err().map(|why| text!["Unknown which functions are paused now: ", why.text()]);
        // The groups come in order of size. If several of a function have a text, the largest group's is shown.
        let ignored = groups.iter().rev().filter_map(|group| group.target.zip(group.retry_after_ignored));
        let ignored = ignored.collect::<BTreeMap<_, _>>().into_iter().map(|(target, ignored)| {
            text![
                "A RetryAfter of ",
                deployment.function(target, target),
                format!(" was ignored, so its events get the ordinary backoff: {ignored}"),
            ]
        });
        let keeps_everything =
            deployment.policies().is_ok_and(|policies| policies.stack().keeps_everything());
        let is_empty = keeps_everything.then_some(
            "The allow-list is empty: the handler keeps waiting events, but retries none until a function is attached.",
        );
        let notes = unknown.into_iter().chain(deployment.stopped_note()).chain(ignored).chain(self.gaps(now));
        let notes = notes.chain(is_empty.map(Text::from)).chain(self.not_allowed_note(groups));
        notes.chain(self.held_note(groups)).collect()
    }

    /// The notes on lines that may be missing from the log.
    fn gaps(&self, now: Timestamp) -> Vec<Text> {
        let Self { deployment, retry_queue, since, reach, .. } = self;
        let (group, longest) = (&deployment.log_group, durations::text(*reach));
        let mut notes: Vec<Text> = Vec::new();
        if !self.has_log {
            let why = "the handler has never run, or the log was deleted";
            notes.push(format!("Log group {group} does not exist: {why}.").into());
        }
        if let Some(level) = deployment.log_level.as_deref().filter(|_| self.hides_lines()) {
            let hides = "which hides most waiting events: set it to INFO";
            notes.push(format!("The handler's log level is {level}, {hides}.").into());
        }
        if self.newer > 0 {
            let newer = counted(self.newer, "line was", "lines were");
            let unreadable = "written by a newer handler and unreadable to this command: update the command";
            notes.push(format!("{newer} {unreadable}.").into());
        }
        if retry_queue.visible > 0 {
            notes.push(text![
                format!("Due but not yet received by the handler: about {}. ", grouped(retry_queue.visible)),
                quoted(deployment.command(CommandName::Status, [""; 0])),
                " says whether it runs."
            ]);
        }
        if *since > now.before(*reach) {
            notes.push(text![
                format!("An event may wait {longest} without a new log line, so events last logged before "),
                *since,
                " may be missing."
            ]);
        }
        if let Some(kept_for) = self.kept_for.map(durations::text) {
            let but = format!("but an event may wait {longest} between two lines, so some may be missing");
            notes.push(format!("{group} keeps lines for only {kept_for}, {but}.").into());
        }
        notes
    }

    fn held_note(&self, groups: &[WaitingGroup<'_>]) -> Option<Text> {
        let held = Some(groups.iter().map(|group| group.held).sum()).filter(|held| *held > 0)?;
        let events = counted(held, "event is", "events are");
        let list = quoted(self.deployment.command(CommandName::Pause, ["--list"]));
        Some(text![format!("{events} held by a pause until it ends: "), list, "."])
    }

    fn not_allowed_note(&self, groups: &[WaitingGroup<'_>]) -> Option<Text> {
        let unlisted = || groups.iter().filter(|group| group.not_allowed > 0);
        let count = Some(unlisted().map(|group| group.not_allowed).sum()).filter(|count| *count > 0)?;
        let what = counted(
            count,
            "event will be dead-lettered (target_not_allowed), because its function is",
            "events will be dead-lettered (target_not_allowed), because their functions are",
        );
        let commands = self.deployment.attach_commands(unlisted().filter_map(|group| group.target));
        Some(text![format!("{what} not on the allow-list. To stop that: "), commands, "."])
    }

    /// The functions that the filter names but no log line mentions. Each comes with `true` if the handler retries its
    /// events.
    fn unlogged<'w>(&self, wanted: &'w WaitingFilter) -> impl Iterator<Item = (&'w FunctionName, bool)> {
        let unlogged = wanted.functions.iter().enumerate().filter(|(index, _)| !self.logged.contains(index));
        unlogged.map(|(_, function)| (function, self.deployment.retries(&self.deployment.arn_of(function))))
    }

    /// A note on each alias or version that the filter names but no log line mentions.
    pub(super) fn unlogged_qualifiers(&self, wanted: &WaitingFilter) -> impl Iterator<Item = Text> {
        let unlogged =
            self.unlogged(wanted).filter(|(function, is_known)| *is_known && function.qualifier.is_some());
        unlogged.map(|(function, _)| {
            let unlogged = format!(" mentions {function}; its alias or version may be misspelled.");
            text!["No log line since ", self.since, unlogged]
        })
    }

    /// Fails if the filter names functions that the handler does not retry and that no log line mentions.
    pub(super) fn unknown_functions(&self, wanted: &WaitingFilter) -> Result<(), Failure> {
        let name = |function: &FunctionName| match function.place {
            Some(_) => self.deployment.arn_of(function).to_string(),
            None => function.to_string(),
        };
        let unknown = self.unlogged(wanted).filter(|(_, is_known)| !is_known);
        let unknown: Vec<_> = unknown.map(|(function, _)| name(function)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        Err(Failure::undone(format!(
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
    use crate::deployment::queue::Depth;
    use crate::log::test_line;
    use crate::waiting::reading::DAY;
    use crate::waiting::reading::tests::{NOW, ORDERS, reading};

    fn said(notes: Vec<Text>) -> Vec<String> {
        notes.iter().map(Text::to_string).collect()
    }

    #[test]
    fn a_log_without_gaps_shows_everything() {
        let hidden = Depth { in_flight: 2, ..Depth::default() };
        let complete = |change: &dyn Fn(&mut Reading)| {
            // With a filter, messages that do not match the filter need no lines.
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
    fn each_unknown_is_noted() {
        let notes = |change: &dyn Fn(&mut Reading)| {
            let mut reading = reading(Depth::default());
            change(&mut reading);
            said(reading.notes(&[], NOW))
        };
        assert_eq!(notes(&|_| ()), [] as [&str; 0]);
        let log = "/aws/lambda/retry-handler";
        type Change<'c> = &'c dyn Fn(&mut Reading);
        let denied = Failure::could_not("ssm:GetParameter of p: denied");
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
    fn ignored_retry_after_of_the_most_events_is_noted() {
        let mut reading = reading(Depth::default());
        for (n, (error, why)) in
            [("A", "why a"), ("B", "why b"), ("B", "why b"), ("C", "why c")].iter().enumerate()
        {
            reading.waits.take(&test_line(json!({
                "timestamp": NOW, "action": "hold", "due": NOW, "delay": 60, "key": format!("k-{n}"), "target": ORDERS,
                "error_type": error, "retry_after_ignored": why,
            })));
        }
        let note =
            format!("A RetryAfter of {ORDERS} was ignored, so its events get the ordinary backoff: why b");
        assert_eq!(said(reading.notes_on_all(NOW))[0], note);
    }

    #[test]
    fn unlogged_hidden_messages_are_counted() {
        let note = |change: &dyn Fn(&mut Reading)| {
            let mut reading = reading(Depth { visible: 5, in_flight: 8, delayed: 1 });
            change(&mut reading);
            reading.unlogged_note(NOW).map(|note| note.to_string())
        };
        assert!(note(&|_| ()).unwrap().starts_with("About 9 hidden messages have no line in the log."));
        let one = note(&|it| it.retry_queue = Depth { in_flight: 1, ..Depth::default() });
        assert!(one.unwrap().starts_with("About 1 hidden message has no line in the log."));
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
            reading.apply_allow_list();
            reading.apply_pauses(NOW);
            said(reading.notes_on_all(NOW))
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
    fn unknown_function_is_an_error() {
        let reading = reading(Depth::default());
        let unknown = |names: &[&str]| {
            let functions = names.iter().map(|name| name.parse().unwrap()).collect();
            reading.unknown_functions(&WaitingFilter { functions, ..WaitingFilter::default() })
        };
        assert_eq!(unknown(&["orders"]), Ok(()));
        let elsewhere = ORDERS.replace("eu-west-1", "eu-west-2");
        let error = unknown(&[&elsewhere]).unwrap_err().to_string();
        assert!(error.contains(&format!("does not retry {elsewhere},")), "{error}");
        let functions = ["orders", "orders:lvie"].map(|name| name.parse().unwrap()).into();
        let notes = said(
            reading.unlogged_qualifiers(&WaitingFilter { functions, ..WaitingFilter::default() }).collect(),
        );
        let note = "No log line since 2026-09-14T03:12:50.000Z mentions orders:lvie; its alias or version may be \
             misspelled.";
        assert_eq!(notes, [note]);
        let error = unknown(&["orders", "order"]).unwrap_err();
        assert!(
            matches!(&error, Failure::Undone(text) if text.to_string().contains("does not retry order,")),
            "{error}"
        );
    }
}
