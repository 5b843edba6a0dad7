//! What the `dead` commands share: finding the letters, the plan of a redrive or discard, and both in words.

use std::cell::{Cell, OnceCell};
use std::io::{self, Write};

use comeback_engine::{Policy, Timestamp};
use indicatif::HumanCount;
use serde_json::{Value, json};

use crate::operate::account::Failure;
use crate::operate::dead::filter::Filter;
use crate::operate::dead::queue::{HIDDEN_FOR, SqsQueues};
use crate::operate::dead::scan::{End, Progress, Read, Reader};
use crate::operate::dead::survey::{Group, Survey};
use crate::operate::dead::work::{Done, Pace, Work};
use crate::operate::deployment::{Deployment, Depth};
use crate::operate::function::short_name;
use crate::operate::session::Session;
use crate::text::durations;
use crate::text::numbers::counted;
use crate::text::terminal;
use crate::text::terminal::table;

/// The two queues of a deployment.
pub(crate) struct DeadLetters {
    pub(crate) deployment: Deployment,
    /// The handler's policy.
    pub(crate) policy: Policy,
    pub(crate) queues: SqsQueues,
}

impl DeadLetters {
    /// Fails if the handler's environment is refused: nobody can say which functions it would re-invoke.
    pub(crate) async fn find(session: &Session) -> Result<Self, Failure> {
        let deployment = session.interrupt.or(session.deployment()).await?;
        let policy = deployment.policy().map_err(|errors| {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            let handler = &deployment.handler;
            Failure::CouldNot(format!("the environment of {handler} is refused: {}", errors.join("; ")))
        })?;
        let queues = SqsQueues::new(&session.account, &deployment);
        Ok(Self { deployment, policy, queues })
    }

    /// How many letters there are. SQS's counts are right only a minute after the last change.
    pub(crate) async fn depth(&self, session: &Session) -> Result<Depth, Failure> {
        session.interrupt.or(Depth::read(&session.account, &self.deployment.dead_letter_queue)).await
    }

    /// Says what reading the letters does to the queue, unless JSON is printed. Gives the bar for reading them.
    pub(crate) async fn announce(&self, session: &Session) -> Result<Bar, Failure> {
        let depth = self.depth(session).await?;
        if !session.common.json {
            let count = counted(depth.visible, "letter", "letters");
            let hidden_for = durations::text(HIDDEN_FOR);
            anstream::eprintln!(
                "reading about {count} of {}; nobody else can receive them until this ends, or for {hidden_for} at most if \
                 it is killed",
                self.deployment.dead_letter_queue.name()
            );
            if depth.in_flight > 0 {
                let hidden = HumanCount(depth.in_flight);
                anstream::eprintln!(
                    "about {hidden} more are hidden by another reader, and cannot be read now"
                );
            }
        }
        Ok(Bar::new(depth.visible))
    }

    pub(crate) fn reader<'a>(
        &'a self,
        session: &'a Session,
        progress: &'a dyn Fn(Progress),
    ) -> Reader<'a, SqsQueues> {
        Reader { queue: &self.queues, interrupt: &session.interrupt, progress }
    }
}

/// The bar while letters are read or acted on.
pub(crate) struct Bar {
    length: u64,
    /// Drawn with the first letter.
    bar: OnceCell<terminal::Progress>,
    says_hidden: Cell<bool>,
}

/// Giving back fewer letters takes no time worth mentioning.
const MANY: u64 = 2_000;

impl Bar {
    pub(crate) fn new(length: u64) -> Self {
        Self { length, bar: OnceCell::new(), says_hidden: Cell::new(true) }
    }

    pub(crate) fn show(&self, progress: Progress) {
        match progress {
            Progress::Read(letters) | Progress::Done(letters) => {
                let bar = || terminal::Progress::new(self.length, "{pos}/{len} letters");
                self.bar.get_or_init(bar).set(letters);
            }
            Progress::Hidden(letters) => {
                if letters > MANY && self.says_hidden.replace(false) {
                    anstream::eprintln!("giving back {}", counted(letters, "letter", "letters"));
                }
            }
        }
    }
}

/// A survey, and how its letters are acted on.
pub(crate) struct Plan {
    /// `redrive` or `discard`.
    pub(crate) verb: &'static str,
    pub(crate) survey: Survey,
    pub(crate) read: Read,
    pub(crate) pace: Pace,
    pub(crate) limit: Option<u64>,
    pub(crate) now: Timestamp,
}

impl Plan {
    /// Letters to act on.
    pub(crate) fn letters(&self) -> u64 {
        self.survey.chosen.min(self.limit.unwrap_or(u64::MAX))
    }

    /// The work; `None` if there is nothing to do.
    pub(crate) fn work(&self, filter: &Filter) -> Option<Work> {
        let until = self.survey.newest.filter(|_| self.letters() > 0)?;
        Some(Work { filter: filter.clone(), now: self.now, until, pace: self.pace, limit: self.limit })
    }

    /// Whether the plan can be carried out. It can if there were too many letters to read all.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match &self.read.end {
            End::Interrupted => self.read.result("nothing was changed"),
            End::Failed(failure) => Err(failure.clone()),
            End::All | End::Enough | End::TooManyHidden => Ok(()),
        }
    }

    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { verb, survey, read, pace, now, .. } = self;
        let (letters, all) = (self.letters(), HumanCount(read.letters));
        let time = durations::short(pace.time_for(letters).as_secs_f64());
        let count = counted(letters, "letter", "letters");
        writeln!(out, "to {verb}: about {count} of {all}, in about {time}")?;
        if letters < survey.chosen {
            writeln!(out, "(--limit: the filter takes {} letters)", HumanCount(survey.chosen))?;
        }
        if survey.chosen > 0 {
            writeln!(out, "{}", groups_table(&survey.groups(), *now))?;
        }
        for (reason, count) in &survey.left {
            writeln!(out, "left: {}, which would be dead-lettered again as {reason}", HumanCount(*count))?;
        }
        match read.incomplete() {
            Some(why) => writeln!(out, "these are not all: {why}"),
            None => Ok(()),
        }
    }

    pub(crate) fn json(&self) -> Value {
        let Survey { chosen, left, not_allowed, .. } = &self.survey;
        json!({
            "letters": self.letters(),
            "chosen": chosen,
            "read": self.read.letters,
            "groups": self.survey.groups(),
            "left": left,
            "not_allowed": not_allowed,
            "incomplete": self.read.incomplete(),
        })
    }

    /// How the command ends: badly if something was left that the plan did not say.
    pub(crate) fn result(&self, done: &Done, read: &Read, summary: &str) -> Result<(), Failure> {
        read.result(summary)?;
        let surprises = done.left.keys().any(|why| !self.survey.left.contains_key(why.as_str()));
        if surprises || done.not_deleted.is_some() {
            return Err(Failure::Undone(format!("{summary}; repeat the command for what was left")));
        }
        Ok(())
    }
}

impl Done {
    /// `redrove 812 letters; …`
    pub(crate) fn summary(&self, did: &str) -> String {
        let mut parts = vec![format!("{did} {}", counted(self.letters, "letter", "letters"))];
        if let Some((count, why)) = &self.not_deleted {
            let letters = counted(*count, "letter was", "letters were");
            parts.push(format!("{letters} not deleted, and the next run would do them again: {why}"));
        }
        parts.extend(self.left.iter().map(|(why, count)| format!("left {}: {why}", HumanCount(*count))));
        parts.join("; ")
    }

    pub(crate) fn json(&self, read: &Read) -> Value {
        let not_deleted = self.not_deleted.as_ref();
        json!({
            "done": self.letters,
            "left": self.left,
            "not_deleted": not_deleted.map(|(count, why)| json!({"count": count, "why": why})),
            "incomplete": read.incomplete(),
        })
    }
}

pub(crate) fn groups_table(groups: &[Group<'_>], now: Timestamp) -> comfy_table::Table {
    let mut table = table();
    table.set_header(["letters", "reason", "function", "error", "oldest", "newest"]);
    for group in groups {
        table.add_row([
            HumanCount(group.count).to_string().as_str(),
            group.reason,
            short_name(group.target.unwrap_or_default()),
            group.error_type.unwrap_or_default(),
            &age(group.oldest, now),
            &age(group.newest, now),
        ]);
    }
    table
}

pub(crate) fn age(moment: Timestamp, now: Timestamp) -> String {
    durations::short(now.since(moment).as_secs_f64().floor())
}
