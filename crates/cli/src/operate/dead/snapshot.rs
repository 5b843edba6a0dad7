//! What one scan of the dead-letter queue found: a row for each dead-letter, without its payload. Whoever acts on
//! dead-letters of a snapshot reads the queue again, and touches no others.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};

use comeback_engine::{Reason, ReasonCode, ReceivedDeadLetter, Timestamp};

use crate::failure::CommandFailure;
use crate::operate::dead::dead_letters::DeadLetters;
use crate::operate::dead::filter::Filter;
use crate::operate::dead::queue::{CallFailure, QueueCalls, Received};
use crate::operate::dead::scan::{End, Read};
use crate::operate::dead::survey::{Alike, Group, LONGEST_ERROR, MOST_GROUPS, Survey, cut};
use crate::operate::dead::work::DeadLetterAction;
use crate::text::numbers::counted;

/// Bytes of a dead-letter's key that a row keeps.
const MOST_OF_A_KEY: usize = 120;
/// Bytes of an error's message that a row keeps.
const MOST_OF_A_MESSAGE: usize = 140;

/// The dead-letters that a scan found.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// When the scan began.
    pub(crate) at: Timestamp,
    /// The filter, as flags of a command.
    pub(crate) flags: Vec<String>,
    pub(crate) read: Read,
    /// When the last of all dead-letters was sent, by SQS's clock.
    pub(crate) newest: Timestamp,
    /// The oldest first.
    rows: Vec<Row>,
    kinds: Vec<Kind>,
    /// Message ids of dead-letters that this process has sent back or discarded since.
    gone: RefCell<HashSet<Box<str>>>,
}

/// A dead-letter, in at most 500 bytes.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) message_id: Box<str>,
    /// The event's key, or its beginning.
    pub(crate) key: Option<Box<str>>,
    /// The last error's message or, of a dead-letter that was not understood, why; or its beginning.
    pub(crate) message: Option<Box<str>>,
    pub(crate) dead_lettered_at: Timestamp,
    pub(crate) sent: Timestamp,
    pub(crate) retries: Option<u32>,
    /// Its place in [`Snapshot::kinds`].
    kind: u32,
    /// Why it would be dead-lettered again at once.
    refused: Option<ReasonCode>,
}

/// What the dead-letters of a group have in common, and the message of the first.
#[derive(Debug)]
struct Kind {
    alike: Alike,
    message: Option<String>,
}

/// Dead-letters of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    All,
    /// A group, by its number.
    Group(usize),
    /// A dead-letter, by its message id.
    DeadLetter(String),
}

#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    kinds: Vec<Kind>,
    by_alike: BTreeMap<Alike, u32>,
}

impl Rows {
    fn add(
        &mut self,
        received: &Received,
        dead_letter: &ReceivedDeadLetter<'_>,
        refused: Option<ReasonCode>,
    ) {
        let alike = Alike::of(dead_letter);
        let is_other = self.kinds.len() >= MOST_GROUPS && !self.by_alike.contains_key(&alike);
        let alike = if is_other { Alike::OTHER } else { alike };
        let next = self.kinds.len() as u32;
        let kind = *self.by_alike.entry(alike).or_insert_with_key(|alike| {
            let message = dead_letter.error_message.as_ref().map(|text| cut(text, LONGEST_ERROR));
            self.kinds.push(Kind { alike: alike.clone(), message });
            next
        });
        let message = dead_letter.error_message.as_ref().or(dead_letter.detail.as_ref());
        self.rows.push(Row {
            message_id: received.record.message_id.as_str().into(),
            key: dead_letter.key.as_ref().map(|key| beginning(key, MOST_OF_A_KEY).into()),
            message: message.map(|message| beginning(message, MOST_OF_A_MESSAGE).into()),
            dead_lettered_at: dead_letter.dead_lettered_at,
            sent: received.record.sent,
            retries: dead_letter.retries_made.map(|retries| u32::try_from(retries).unwrap_or(u32::MAX)),
            kind,
            refused,
        });
    }
}

/// `Read 9 dead-letters (2 match the filter); they are visible to everybody again.`
fn said(chosen: u64, read: &Read) -> String {
    let all = counted(read.dead_letters, "dead-letter", "dead-letters");
    let matching = if chosen == read.dead_letters {
        String::new()
    } else {
        format!(" ({})", counted(chosen, "matches the filter", "match the filter"))
    };
    let visible = if read.dead_letters > 0 && read.still_hidden.is_none() {
        "; they are visible to everybody again"
    } else {
        ""
    };
    format!("Read {all}{matching}{visible}.\n")
}

fn beginning(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

impl Snapshot {
    /// Reads the dead-letters that a filter takes. `judge` says whether a redrive would have a dead-letter
    /// dead-lettered again.
    pub(crate) async fn read<Q: QueueCalls>(
        flags: Vec<String>,
        now: Timestamp,
        judge: impl Fn(&Received) -> Result<(), Reason>,
        dead_letters: &DeadLetters<Q>,
    ) -> Result<Self, CommandFailure> {
        let filter = Filter::read(&flags)?;
        let (mut survey, mut rows) = (Survey::default(), Rows::default());
        let show = |received: &Received| {
            if survey.count(received, &filter, |_| Ok(()), now) {
                let refused = judge(received).err().map(|reason| reason.code);
                rows.add(received, &received.dead_letter(), refused);
            }
            false
        };
        let read = dead_letters.show_each(now, show).await?;
        match &read.end {
            End::Interrupted => read.result("nothing was changed")?,
            End::Failed(failure) => return Err(failure.clone().into()),
            End::All | End::Enough | End::TooManyHidden => {}
        }
        dead_letters.check_target(&survey, &filter, &read)?;
        dead_letters.session.say(&said(survey.chosen, &read))?;
        let Rows { mut rows, kinds, .. } = rows;
        rows.sort_by_key(|row| row.sent);
        rows.shrink_to_fit();
        let newest = survey.newest.unwrap_or(now);
        Ok(Self { at: now, flags, read, newest, rows, kinds, gone: RefCell::default() })
    }

    /// The dead-letters that are left, the oldest first.
    pub(crate) fn rows(&self, selection: &Selection) -> Vec<&Row> {
        let gone = self.gone.borrow();
        let is_left = |row: &&Row| gone.is_empty() || !gone.contains(&row.message_id);
        self.rows.iter().filter(|row| selection.has(row)).filter(is_left).collect()
    }

    /// The newest dead-letter of an event.
    pub(crate) fn dead_letter_of(&self, key: &str) -> Option<&Row> {
        let key = Some(beginning(key, MOST_OF_A_KEY));
        self.rows(&Selection::All).into_iter().rfind(|row| row.key.as_deref() == key)
    }

    /// The groups that have dead-letters left, with their numbers, the largest first.
    pub(crate) fn groups(&self) -> Vec<(usize, Group)> {
        let mut groups = self.counted(&self.rows(&Selection::All));
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
        groups
    }

    fn counted(&self, rows: &[&Row]) -> Vec<(usize, Group)> {
        let mut groups: Vec<Option<Group>> = self.kinds.iter().map(|_| None).collect();
        for row in rows {
            let Kind { alike, message } = &self.kinds[row.kind as usize];
            let first = || Group::of(alike, message.clone(), row.dead_lettered_at, row.sent);
            groups[row.kind as usize].get_or_insert_with(first).add(row.dead_lettered_at, row.sent);
        }
        groups.into_iter().enumerate().filter_map(|(number, group)| Some((number, group?))).collect()
    }

    /// What the dead-letters of a row's group have in common.
    pub(crate) fn alike(&self, row: &Row) -> &Alike {
        &self.kinds[row.kind as usize].alike
    }

    /// What the dead-letters of a group have in common.
    pub(crate) fn group(&self, number: usize) -> Option<&Alike> {
        self.kinds.get(number).map(|kind| &kind.alike)
    }
}

impl Selection {
    fn has(&self, row: &Row) -> bool {
        match self {
            Self::All => true,
            Self::Group(number) => row.kind as usize == *number,
            Self::DeadLetter(id) => *row.message_id == **id,
        }
    }
}

/// Dead-letters of a snapshot to act on.
pub(crate) struct Selected<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) selection: Selection,
    pub(crate) acting: Acting,
}

/// What is done with dead-letters. It says which are left, because they would be dead-lettered again at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acting {
    Redrive,
    /// To a function that is allowed, whichever a dead-letter names.
    Retarget,
    Discard,
}

impl Acting {
    fn leaves(self, row: &Row) -> Option<ReasonCode> {
        match self {
            Self::Redrive => row.refused,
            Self::Retarget => row.refused.filter(|code| *code != ReasonCode::TargetNotAllowed),
            Self::Discard => None,
        }
    }
}

impl Selected<'_> {
    pub(crate) fn survey(&self) -> Survey {
        let mut survey = Survey::default();
        let mut rows = self.snapshot.rows(&self.selection);
        rows.retain(|row| {
            let left = self.acting.leaves(row);
            let target = self.snapshot.alike(row).target.as_deref();
            left.into_iter().for_each(|code| survey.leave(code, target));
            left.is_none()
        });
        for (number, mut group) in self.snapshot.counted(&rows) {
            // A group has the message of its first, which need not be this one.
            if let (Selection::DeadLetter(_), [row]) = (&self.selection, &*rows) {
                group.error_message = row.message.as_ref().map(ToString::to_string);
            }
            survey.take_group(&self.snapshot.kinds[number].alike, group);
        }
        survey
    }

    /// Message ids of the dead-letters that are not left.
    pub(crate) fn ids(&self) -> HashSet<String> {
        let rows = self.snapshot.rows(&self.selection).into_iter();
        rows.filter(|row| self.acting.leaves(row).is_none()).map(|row| row.message_id.to_string()).collect()
    }
}

/// An action on dead-letters, of a snapshot or not. The snapshot forgets those that are gone.
pub(crate) struct Forgetting<'a, A> {
    pub(crate) action: &'a A,
    pub(crate) snapshot: Option<&'a Snapshot>,
}

impl<A: DeadLetterAction> DeadLetterAction for Forgetting<'_, A> {
    type Prepared = A::Prepared;

    fn prepare(&self, received: &Received) -> Result<A::Prepared, Reason> {
        self.action.prepare(received)
    }

    async fn perform(
        &self,
        queue: &impl QueueCalls,
        prepared: Vec<A::Prepared>,
    ) -> Vec<Result<(), CallFailure>> {
        self.action.perform(queue, prepared).await
    }

    fn take_back(&self, dead_letters: usize) -> bool {
        self.action.take_back(dead_letters)
    }

    fn is_gone(&self, message_id: &str) {
        if let Some(snapshot) = self.snapshot {
            snapshot.gone.borrow_mut().insert(message_id.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use indicatif::ProgressBar;
    use serde_json::json;

    use super::*;
    use crate::account::{Account, Failure};
    use crate::operate::dead::discard::{discard_selected, export_selected};
    use crate::operate::dead::import::{Importing, ask_and_import};
    use crate::operate::dead::redrive::{redrive_selected, scan};
    use crate::operate::dead::simulated::{NOW, ORDERS, Put, Simulated, event, malformed, unknown};
    use crate::operate::dead::work::Pace;
    use crate::operate::deployment::Deployment;
    use crate::operate::session::{Common, DeploymentFlags, Interrupt, Screen, Session};

    /// A screen whose operator agrees to one plan.
    #[derive(Debug, Default)]
    struct Asked {
        agreed: RefCell<Option<String>>,
        plan: RefCell<Option<String>>,
        text: RefCell<String>,
        notes: RefCell<Vec<String>>,
        /// Raised when there is progress.
        stop: RefCell<Option<tokio::sync::watch::Sender<bool>>>,
    }

    impl Screen for Asked {
        fn print(&self, text: &str) {
            self.text.borrow_mut().push_str(text);
        }

        fn note(&self, text: &str) {
            self.notes.borrow_mut().push(text.to_owned());
        }

        fn follow(&self, _: ProgressBar, _: &str) {
            self.stop.take().into_iter().for_each(|stop| assert!(stop.send(true).is_ok()));
        }

        fn confirm(&self, question: &str, plan: Option<&str>) -> Result<(), Failure> {
            let plan = format!("{question} {}", plan.unwrap_or_default());
            self.plan.replace(Some(plan.clone()));
            let is_agreed = self.agreed.borrow().as_ref() == Some(&plan);
            if is_agreed { Ok(()) } else { Err(Failure::NotConfirmed("nothing was changed".into())) }
        }
    }

    struct Console {
        dead_letters: DeadLetters<Simulated>,
        screen: Rc<Asked>,
        folder: tempfile::TempDir,
    }

    impl Console {
        async fn with(dead_letters: impl IntoIterator<Item = Put>) -> Self {
            let attributes = json!({"Attributes": {
                "ApproximateNumberOfMessages": "9", "ApproximateNumberOfMessagesNotVisible": "0",
                "ApproximateNumberOfMessagesDelayed": "0",
            }});
            let account = Account::answering(move |_, _| attributes.clone()).await;
            let common = Common { deployment: DeploymentFlags::sample(), json: false, yes: false };
            let screen = Rc::new(Asked::default());
            let (_, interrupt) = Interrupt::new();
            let session =
                Session::on_screen(account, interrupt, common, Rc::clone(&screen) as Rc<dyn Screen>);
            let queues = Simulated::with(dead_letters);
            let dead_letters = DeadLetters { session, deployment: Deployment::sample(), queues };
            Self { dead_letters, screen, folder: tempfile::tempdir().unwrap() }
        }

        async fn scan(&self, flags: &[&str]) -> Snapshot {
            let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
            scan(flags, NOW, &self.dead_letters).await.unwrap()
        }

        /// Plans, and agrees to the plan if there is a question.
        async fn agree(&self, mut run: impl AsyncFnMut() -> Result<(), CommandFailure>) -> String {
            self.screen.plan.take();
            let planned = run().await;
            self.screen.agreed.replace(self.screen.plan.take());
            self.screen.text.take();
            match self.screen.agreed.borrow().is_some() {
                false => return planned.map_or_else(|failure| failure.to_string(), |()| "nothing".into()),
                true => assert_eq!(planned.unwrap_err().to_string(), "nothing was changed"),
            }
            run().await.map_or_else(|failure| failure.to_string(), |()| "done".into())
        }

        async fn redrive(&self, snapshot: &Snapshot, selection: Selection, retarget: Option<&str>) -> String {
            let acting = if retarget.is_some() { Acting::Retarget } else { Acting::Redrive };
            let selected = Selected { snapshot, selection, acting };
            self.agree(async || redrive_selected(&selected, retarget, Pace(500.0), &self.dead_letters).await)
                .await
        }

        fn said(&self) -> String {
            self.screen.text.borrow().lines().last().unwrap_or_default().to_owned()
        }
    }

    impl Snapshot {
        pub(crate) async fn sample(dead_letters: impl IntoIterator<Item = Put>) -> Self {
            Console::with(dead_letters).await.scan(&[]).await
        }
    }

    fn of_payments(dead_letter: Put) -> Put {
        Put { body: dead_letter.body.replace("function:orders", "function:payments"), ..dead_letter }
    }

    #[tokio::test(start_paused = true)]
    async fn a_row_is_small_and_has_no_payload() {
        let mut dead_letter = event("Timeout");
        dead_letter.body = dead_letter.body.replace("\"m\"", &format!("{:?}", "é".repeat(100_000)));
        dead_letter.body = dead_letter.body.replace(
            &format!("\"origin_request_id\":\"{}\"", dead_letter.key),
            &format!("\"origin_request_id\":\"{}\"", "k".repeat(1_000)),
        );
        let snapshot = Console::with([dead_letter, event("Timeout")]).await.scan(&[]).await;
        let texts = |row: &Row| {
            let texts = [Some(&row.message_id), row.key.as_ref(), row.message.as_ref()];
            texts.into_iter().flatten().map(|text| text.len()).sum::<usize>()
        };
        let largest = snapshot.rows.iter().map(texts).max().unwrap();
        // Each of the texts is an allocation, of at most 16 bytes more.
        assert!(size_of::<Row>() + largest.max(100 + MOST_OF_A_KEY + MOST_OF_A_MESSAGE) + 3 * 16 <= 500);
        assert!(largest > 36 + 119 + 138 && !format!("{snapshot:?}").contains("1E400"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_scan_groups_what_it_gives_back() {
        let console = Console::with([event("Timeout"), malformed(), event("Timeout"), unknown()]).await;
        let snapshot = console.scan(&[]).await;
        assert_eq!(
            (console.dead_letters.queues.depth().in_flight, console.said()),
            (0, "Read 4 dead-letters; they are visible to everybody again.".into())
        );
        let groups = snapshot.groups();
        let counts: Vec<_> = groups.iter().map(|(_, group)| (group.reason, group.count)).collect();
        assert_eq!(counts[0], ("max_age", 2));
        assert!(counts.contains(&("malformed_record", 1)) && counts.contains(&("unknown", 1)), "{counts:?}");
        for (number, group) in &groups {
            assert_eq!(snapshot.rows(&Selection::Group(*number)).len() as u64, group.count);
        }
        let rows = snapshot.rows(&Selection::All);
        let expires = rows.iter().map(|row| row.sent).min().unwrap().as_secs() + 14 * 86_400;
        assert!(groups.iter().any(|(_, group)| group.expires.as_secs() == expires));
        let some = console.scan(&["--error=Time*"]).await;
        assert_eq!((some.rows(&Selection::All).len(), some.read.dead_letters), (2, 4));
        let refused = scan(vec!["--retries=many".into()], NOW, &console.dead_letters).await.unwrap_err();
        assert!(refused.to_string().starts_with("invalid value 'many' for '--retries <TEST>'"), "{refused}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_plan_for_one_has_its_own_message() {
        let mut other = event("Timeout");
        other.body = other.body.replace("\"m\"", "\"order 4001\"");
        let snapshot = Snapshot::sample([event("Timeout"), other]).await;
        for row in snapshot.rows(&Selection::All) {
            let selection = Selection::DeadLetter(row.message_id.to_string());
            let survey = Selected { snapshot: &snapshot, selection, acting: Acting::Redrive }.survey();
            assert_eq!(survey.groups()[0].error_message.as_deref(), row.message.as_deref());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_plan_reads_nothing_and_newer_dead_letters_do_not_change_it() {
        let console = Console::with([event("Timeout"), event("Fatal")]).await;
        let snapshot = console.scan(&[]).await;
        console.dead_letters.queues.denied.set("receive");
        let acting = Acting::Redrive;
        let selected = Selected { snapshot: &snapshot, selection: Selection::All, acting };
        let plan = async || {
            let failure =
                redrive_selected(&selected, None, Pace(50.0), &console.dead_letters).await.unwrap_err();
            assert_eq!(failure.to_string(), "nothing was changed");
            console.screen.plan.take().unwrap()
        };
        let before = plan().await;
        assert!(before.starts_with("send 2 dead-letters to retries?"), "{before}");
        console.dead_letters.queues.put(&event("Timeout"));
        assert_eq!(plan().await, before);
    }

    #[tokio::test(start_paused = true)]
    async fn an_action_touches_only_its_dead_letters_of_the_snapshot() {
        let console = Console::with((0..10).map(|n| event(if n < 3 { "Fatal" } else { "Timeout" }))).await;
        let snapshot = console.scan(&[]).await;
        (0..5).for_each(|_| drop(console.dead_letters.queues.put(&event("Fatal"))));
        let (group, _) = snapshot.groups().remove(1);
        let done = console.redrive(&snapshot, Selection::Group(group), None).await;
        assert_eq!((&*done, console.said()), ("done", "redrove 3 dead-letters".into()));
        assert_eq!(
            (console.dead_letters.queues.retried().len(), console.dead_letters.queues.depth().visible),
            (3, 12)
        );
        assert_eq!(snapshot.groups().len(), 1, "the snapshot forgets them");
        assert_eq!(console.redrive(&snapshot, Selection::Group(group), None).await, "nothing");
        let dead_letter = snapshot.rows(&Selection::All)[0].message_id.to_string();
        let done = console.redrive(&snapshot, Selection::DeadLetter(dead_letter), None).await;
        assert_eq!((&*done, console.dead_letters.queues.retried().len()), ("done", 4));
        assert!(console.screen.notes.borrow().iter().all(|note| !note.contains("not found")));
    }

    #[tokio::test(start_paused = true)]
    async fn dead_letters_that_somebody_else_took_are_told() {
        let console = Console::with([event("Timeout"), event("Timeout"), event("Timeout")]).await;
        let (snapshot, other) = (console.scan(&[]).await, console.scan(&[]).await);
        let dead_letter = other.rows(&Selection::All)[1].message_id.to_string();
        console.redrive(&other, Selection::DeadLetter(dead_letter), None).await;
        console.redrive(&snapshot, Selection::All, None).await;
        assert_eq!(
            (console.said(), console.dead_letters.queues.retried().len()),
            ("redrove 2 dead-letters".into(), 3)
        );
        let told = "1 dead-letter was not found again: sent back, discarded or hidden by somebody else since the scan";
        assert_eq!(console.screen.notes.borrow().last().unwrap(), told);
    }

    #[tokio::test(start_paused = true)]
    async fn a_plan_that_has_changed_is_not_performed() {
        let console = Console::with([event("Timeout"), event("Timeout")]).await;
        let snapshot = console.scan(&[]).await;
        let acting = Acting::Redrive;
        let all = Selected { snapshot: &snapshot, selection: Selection::All, acting };
        let run = async || redrive_selected(&all, None, Pace(50.0), &console.dead_letters).await;
        run().await.unwrap_err();
        let shown = console.screen.plan.take();
        let dead_letter = snapshot.rows(&Selection::All)[0].message_id.to_string();
        console.redrive(&snapshot, Selection::DeadLetter(dead_letter), None).await;
        console.screen.agreed.replace(shown);
        assert_eq!(run().await.unwrap_err().to_string(), "nothing was changed");
        assert_eq!(console.dead_letters.queues.retried().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn dead_letters_of_a_function_that_is_not_allowed_go_to_another() {
        let console = Console::with([of_payments(event("Timeout")), event("Timeout"), malformed()]).await;
        let snapshot = console.scan(&[]).await;
        let refused = console.redrive(&snapshot, Selection::All, None).await;
        assert!(refused.starts_with("nothing was sent: TARGET_FUNCTIONS does not allow arn:"), "{refused}");
        let done = console.redrive(&snapshot, Selection::All, Some(ORDERS)).await;
        assert_eq!((&*done, console.dead_letters.queues.retried().len()), ("done", 2));
        assert!(
            console
                .dead_letters
                .queues
                .retried()
                .iter()
                .all(|record| record.body.contains("function:orders"))
        );
        let left = snapshot.rows(&Selection::All);
        assert_eq!(
            left.iter().map(|row| snapshot.alike(row).reason).collect::<Vec<_>>(),
            ["malformed_record"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_discarded_can_be_imported() {
        let console = Console::with([event("Timeout"), unknown(), event("Fatal")]).await;
        let snapshot = console.scan(&[]).await;
        let path = console.folder.path().join("discarded.jsonl");
        let acting = Acting::Discard;
        let selected = Selected { snapshot: &snapshot, selection: Selection::All, acting };
        let discard = async || discard_selected(&selected, &path, Pace(500.0), &console.dead_letters).await;
        assert_eq!(console.agree(discard).await, "done");
        assert!(
            console.said().starts_with("discarded 3 dead-letters; `comeback dead import "),
            "{}",
            console.said()
        );
        assert_eq!((console.dead_letters.queues.depth().visible, snapshot.groups().len()), (0, 0));
        let import = async || {
            ask_and_import(Importing::read(&path).unwrap(), Pace(500.0), false, &console.dead_letters).await
        };
        assert_eq!(console.agree(import).await, "done");
        assert_eq!(
            (console.said(), console.dead_letters.queues.depth().visible),
            ("imported 3 dead-letters".into(), 3)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_export_leaves_the_dead_letters() {
        let console = Console::with((0..9).map(|n| event(if n < 4 { "Fatal" } else { "Timeout" }))).await;
        let snapshot = console.scan(&["--error=Fatal"]).await;
        let path = console.folder.path().join("exported.jsonl");
        let acting = Acting::Discard;
        let selected = Selected { snapshot: &snapshot, selection: Selection::All, acting };
        export_selected(&selected, &path, &console.dead_letters).await.unwrap();
        assert!(console.said().starts_with("wrote 4 dead-letters to "), "{}", console.said());
        let depth = console.dead_letters.queues.depth();
        assert_eq!((depth.visible, depth.in_flight), (9, 0));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!((text.matches("Fatal").count(), text.lines().count()), (4, 4));
        assert!(Importing::read(&path).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_scan_that_is_stopped_gives_back_what_it_holds() {
        let mut console = Console::with((0..200).map(|_| event("Timeout"))).await;
        let (stop, interrupt) = Interrupt::new();
        console.dead_letters.session.interrupt = interrupt;
        console.screen.stop.replace(Some(stop));
        let stopped = scan(Vec::new(), NOW, &console.dead_letters).await.unwrap_err();
        assert_eq!(stopped.to_string(), "interrupted: nothing was changed");
        assert_eq!(console.dead_letters.queues.depth().in_flight, 0);
    }
}
