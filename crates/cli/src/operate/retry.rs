//! `comeback retry`: after a fix, retry now what waits.
//!
//! A hidden message cannot be recalled. The handler checks it when its present hiding ends, and then finds the request, which
//! is in the pauses' parameter.

mod cancel;
mod follow;
mod reach;

use std::time::Duration;

use clap::{ArgGroup, Args};
use comeback_engine::{
    FunctionArn, LONGEST_REQUEST, LONGEST_WITHIN, PauseTarget, Pauses, Policies, PolicyEntry, RetryNow,
    Timestamp,
};
use serde::Serialize;

use comeback_operate::deployment::Deployment;
use comeback_operate::function::{FunctionName, command_name};
use comeback_operate::pauses::parameter::Parameter;
use comeback_operate::pauses::requests::RetryRequest;
use comeback_operate::pauses::{self, forgotten_note, named, noticed_within, target_name};
use comeback_operate::waiting::reading::{Reading, Scope};
use comeback_operate::waiting::wanted::Wanted;
use comeback_operate::{Failure, Text};

use crate::clock::now;
use crate::failure;
use crate::operate::retry::cancel::cancel;
use crate::operate::retry::follow::{Watched, follow};
use crate::operate::retry::reach::{Reach, Window};
use crate::operate::session::{Common, Session, confirm_plan};
use crate::text::durations;
use crate::text::numbers::counted;
use crate::text::terminal::shown;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback retry orders --dry-run
  comeback retry orders --within 5m --why 'deploy 4712 fixes it' --watch
  comeback retry orders --error 'Timeout*' --yes
  comeback retry --all --within 2h --yes
  comeback retry orders --cancel";

/// An unanswered call is repeated after one to two hours.
const LONGEST_UNANSWERED: Duration = Duration::from_secs(7_200);

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["function", "all"])))]
pub(crate) struct RetryArguments {
    /// Function as NAME, NAME:ALIAS, NAME:VERSION or ARN
    #[arg(value_name = "FUNCTION")]
    function: Option<FunctionName>,
    /// Every function
    #[arg(long)]
    all: bool,
    /// Spread the retries over this time; at most 11h
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = read_within)]
    within: Duration,
    /// Only events whose error type, class name or simple name matches this glob
    #[arg(long, value_name = "GLOB", value_parser = read_glob)]
    error: Option<String>,
    /// Show what would be retried and by when, without requesting it
    #[arg(long)]
    dry_run: bool,
    /// Follow the retries until all are made; Ctrl-C stops watching, not the retries
    #[arg(long, conflicts_with_all = ["dry_run", "json"])]
    watch: bool,
    /// Reason, stored with the request
    #[arg(long, value_name = "TEXT", value_parser = pauses::read_text)]
    why: Option<String>,
    /// Cancel this function's retry requests; with --all, those made with --all
    #[arg(long, conflicts_with_all = ["within", "error", "dry_run", "watch", "why"])]
    cancel: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

fn read_within(text: &str) -> Result<Duration, String> {
    let within = durations::read(text)?;
    if within <= LONGEST_WITHIN {
        return Ok(within);
    }
    Err("must be at most 11h, so that the handler has checked every event before the request ends".into())
}

fn read_glob(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("must be an error type such as Timeout*; omit --error for every error".into());
    }
    pauses::read_text(text)
}

/// What the command answers.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    /// `None` if nothing was requested.
    requested: Option<RetryRequest>,
    dry_run: bool,
    #[serde(flatten)]
    reach: &'a Reach,
    /// Every message that the request can reach is checked within this time.
    checked_within_seconds: u64,
    noticed_within_seconds: Option<u64>,
    notes: &'a [Text],
}

pub(crate) async fn run(arguments: &RetryArguments, session: Session) -> Result<(), failure::CommandFailure> {
    let begin = now();
    let operator = session.operator();
    let deployment = operator.deployment().await?;
    if arguments.cancel {
        return cancel(arguments.function.as_ref(), &session, &deployment).await;
    }
    let parameter = Parameter::of(&operator.account, &operator.interrupt, &deployment)?;
    let policies = policies(&deployment)?;
    let pollers = policies.stack().settings().maximum_concurrency;
    let target = pauses::retried_target(&deployment, arguments.function.as_ref())?;
    let wanted = arguments.wanted();
    let work = async {
        // Refuse what would be refused before reading the log.
        let pauses = parameter.read().await?.0;
        let request = arguments.request(target.clone(), begin, &session).with_end(LONGEST_REQUEST, pollers);
        fits(&pauses, request, begin)?;
        let scope = Scope { wanted: &wanted, since: None };
        let reading = Reading::read(&operator, deployment.clone(), scope, begin).await?;
        let has_text = !session.common.json;
        let errors = if has_text { reading.unmatched(&operator, scope, begin).await } else { None };
        let reach = Reach::of(&reading.waits, &deployment, &pauses, arguments.window(begin));
        Ok::<_, Failure>((pauses, reading, Reach { unmatched: arguments.error.clone().zip(errors), ..reach }))
    };
    let (pauses, reading, reach) = session.interrupt.or(work).await?;
    let is_complete = reading.is_complete(begin);
    let unknown = if is_complete { Duration::ZERO } else { longest_hiding(&policies, &target) };
    let hidden = reach.hidden.max(unknown);
    let mut notes = reading.notes_on_all(begin);
    let flags = session.common.place_flags();
    let paused = holding(&pauses, &target, begin);
    notes.extend(paused.map(|pause| paused_note(pause, &deployment.handler_arn, &flags).into()));
    let answer = |requested| Answer {
        requested,
        dry_run: arguments.dry_run,
        reach: &reach,
        checked_within_seconds: hidden.as_secs(),
        noticed_within_seconds: noticed_within(&deployment).map(|noticed| noticed.as_secs()),
        notes: &notes,
    };
    session.answer(&answer(None));
    let name = named(arguments.function.as_ref());
    session.say(&(text(&name, &reach, arguments.within, hidden) + &lines(&notes)))?;
    let is_useless = !reach.brings_forward && is_complete;
    if is_useless {
        session.say("No retry was scheduled.\n")?;
    }
    if arguments.dry_run || is_useless {
        return Ok(());
    }
    let question = format!("retry these within {}?", durations::text(arguments.within));
    // The request is for whatever has failed so far, so how many that is does not change it.
    confirm_plan(&question, &(target.to_string(), &arguments.error), &session).await?;
    // The request counts from here: what has failed while the question stood is reached too.
    let request = arguments.request(target, now(), &session).with_end(hidden, pollers);
    let is_in = |pauses: &Pauses| pauses.retries().any(|other| *other == request);
    let make = |pauses: &Pauses| Ok(pauses.with_retry(request.clone()));
    let forgotten = parameter.edit(request.at, make, is_in).await?;
    forgotten_note(&forgotten).iter().for_each(|note| session.note(note));
    session.answer(&answer(Some(RetryRequest::of(&request))));
    session.say(&format!("Scheduled at {}. `comeback waiting{flags}` shows what is left.\n", request.at))?;
    if arguments.watch && reach.retries.is_empty() {
        // With a log of everything that waits, nothing would have been requested.
        session.say("Nothing to watch: the handler's log does not say which events wait.\n")?;
    } else if arguments.watch {
        let time = begin..request.end(hidden, pollers);
        let (session, deployment, wanted) = (&session, &deployment, &wanted);
        follow(&Watched { session, deployment, wanted, awaited: &reach.retries, time }).await?;
    }
    Ok(())
}

impl RetryArguments {
    fn window(&self, from: Timestamp) -> Window {
        Window { from, within: self.within }
    }

    fn wanted(&self) -> Wanted {
        let functions = self.function.iter().cloned().collect();
        Wanted { functions, error: self.error.clone(), key: None }
    }

    fn request(&self, target: PauseTarget, at: Timestamp, session: &Session) -> RetryNow {
        RetryNow {
            target,
            at: at.rounded_up_to_secs(),
            within: Duration::from_secs(self.within.as_secs()),
            errors: self.error.iter().cloned().collect(),
            by: Some(session.account.place.user().to_owned()),
            why: self.why.clone(),
            until: None,
        }
    }
}

/// Fails if the parameter cannot hold the request beside what it holds.
fn fits(pauses: &Pauses, request: RetryNow, now: Timestamp) -> Result<(), Failure> {
    Ok(pauses.with_retry(request).fitted(now).map(drop)?)
}

/// The handler's policies.
fn policies(deployment: &Deployment) -> Result<Policies, Failure> {
    let policies = deployment.policies().map_err(|refused| {
        let refused = refused.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        Failure::undone(format!("handler {} does not start: {refused}", deployment.handler))
    })?;
    if policies.stack().keeps_everything() {
        let what = "the allow-list is empty, so the handler retries nothing; attach a function first";
        return Err(Failure::undone(what));
    }
    Ok(policies)
}

/// The longest that a message of these functions may be hidden, where the log does not show it: the longest ceiling of a
/// policy that can be theirs, or the two hours of an unanswered call.
fn longest_hiding(policies: &Policies, target: &PauseTarget) -> Duration {
    let is_theirs = |entry: &&PolicyEntry| match target {
        PauseTarget::All => true,
        PauseTarget::Functions(function) => {
            let arn = function.to_string();
            // The entry of a qualifier is about a part of the function.
            let qualifier = entry.pattern().rsplit(':').next().unwrap_or_default();
            entry.is_about(&arn) || entry.is_about(&format!("{arn}:{qualifier}"))
        }
    };
    let entries = policies.entries().iter().filter(is_theirs).map(PolicyEntry::policy);
    let ceilings = entries.chain([policies.stack()]).map(|policy| policy.backoff().cap());
    ceilings.fold(LONGEST_UNANSWERED, Duration::max)
}

/// The pause that holds what is retried.
fn holding<'p>(
    pauses: &'p Pauses,
    target: &PauseTarget,
    now: Timestamp,
) -> Option<&'p comeback_engine::Pause> {
    let holds = |pause: &&comeback_engine::Pause| match target {
        PauseTarget::All => pause.is_active(now),
        PauseTarget::Functions(function) => {
            pause.is_active(now) && pause.target.covers(&function.to_string())
        }
    };
    pauses.iter().find(holds)
}

fn paused_note(pause: &comeback_engine::Pause, home: &FunctionArn, place: &str) -> String {
    let target = pause.target.to_string();
    let name = target_name(&target);
    let which = if pause.target == PauseTarget::All { "--all".into() } else { command_name(&target, home) };
    let from = pause.from;
    format!("{name} has been paused since {from}; end that first: comeback resume {which}{place}")
}

fn text(name: &str, reach: &Reach, within: Duration, hidden: Duration) -> String {
    let mut text = format!("{name}: {}\n", shown(&reach.in_words()));
    for (count, why) in reach.left_alone() {
        text += &format!("  skipped: {}, {why}\n", counted(count, "event", "events"));
    }
    if reach.brings_forward {
        text += &format!(
            "The handler finds the request when it next checks each message, all of them within {}. The event \
             is then due at a\nrandom moment within {} of the request (at once, if that has passed), and \
             never later than without it.\n",
            durations::text(hidden),
            durations::text(within)
        );
    }
    text
}

fn lines(notes: &[Text]) -> String {
    notes.iter().map(|note| shown(&note.to_string()).into_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use comeback_operate::aws::simulated::Sample;
    use comeback_operate::{Operator, Which};

    use super::*;

    /// The simulated deployment, to which `orders` is attached.
    pub(super) fn sample() -> Deployment {
        let aws = Sample { is_attached: true, ..Sample::new(Timestamp::from_secs(0)) }.build();
        let operator = Operator::new(aws.account(), Which::Stack(Sample::STACK.into()));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(operator.deployment()).unwrap()
    }

    #[test]
    fn a_handler_that_retries_nothing_is_refused_with_what_to_do() {
        let mut deployment = sample();
        assert!(policies(&deployment).is_ok());
        deployment.variables.insert("TARGET_FUNCTIONS".into(), String::new());
        let refused = policies(&deployment).unwrap_err().to_string();
        assert!(refused.starts_with("the allow-list is empty"), "{refused}");
        deployment.variables.insert("MAX_AGE".into(), "30".into());
        let refused = policies(&deployment).unwrap_err().to_string();
        assert!(refused.starts_with("handler retry-handler does not start: MAX_AGE is 30 s"), "{refused}");
    }

    #[test]
    fn without_the_log_the_longest_policy_that_can_match_is_assumed() {
        let hours = |policies: &str, target: &str| {
            let mut deployment = sample();
            deployment.variables.insert("POLICIES".into(), policies.into());
            let target = target.replace("orders", "arn:aws:lambda:eu-west-1:123456789012:function:orders");
            longest_hiding(&deployment.policies().unwrap(), &target.parse().unwrap()).as_secs() / 3_600
        };
        let policies = "export BACKOFFS=20s,9h; orders:live MAX_BACKOFF=5h; o* MAX_BACKOFF=4h";
        assert_eq!(hours("", "orders"), 2, "an unanswered call");
        assert_eq!(hours(policies, "orders"), 5);
        assert_eq!(hours(policies, "orders:live"), 5);
        assert_eq!(hours(policies, "orders:dev"), 4);
        assert_eq!(hours(policies, "*"), 9);
    }

    #[test]
    fn the_answer_is_how_many_and_by_when() {
        let reach = Reach {
            found: 1_210,
            reached: 1_204,
            half_within_seconds: Some(2_100),
            all_within_seconds: Some(4_200),
            retry_after: 4,
            last_retry: 2,
            brings_forward: true,
            ..Reach::default()
        };
        let (within, hidden) = (Duration::from_secs(600), Duration::from_secs(3_600));
        let expected = "\
orders: 1,204 of 1,210 waiting events will be retried, all within 1h 10m, half within 35m
  skipped: 4 events, which wait because their function asked for it (RetryAfter)
  skipped: 2 events, with only one retry left (MAX_RETRIES)
The handler finds the request when it next checks each message, all of them within 1h. The event is then due at a
random moment within 10m of the request (at once, if that has passed), and never later than without it.
a note
";
        assert_eq!(text("orders", &reach, within, hidden) + &lines(&["a note".into()]), expected);
    }

    #[test]
    fn an_order_that_reaches_nothing_says_why() {
        let said =
            |reach: &Reach| text("orders", reach, Duration::from_secs(600), Duration::from_secs(3_600));
        let mistyped = Some(("Zzz*".into(), "TargetDown (3), Timeout (1)".into()));
        assert_eq!(
            said(&Reach { unmatched: mistyped, ..Reach::default() }),
            "orders: no event has an error that matches Zzz*; the errors are: TargetDown (3), Timeout (1)\n"
        );
        let due = Reach { found: 4, reached: 4, all_within_seconds: Some(3_261), ..Reach::default() };
        assert_eq!(
            said(&due),
            "orders: nothing to speed up. A waiting message stays hidden until its next check; for these 4 events, that \
             is when they are due anyway (within 54m 21s)\n"
        );
    }

    #[test]
    fn an_order_that_does_not_fit_is_refused() {
        let now = Timestamp::from_secs(1_700_000_000);
        let refused = |reason: usize| {
            let why = "x".repeat(reason);
            let pause = format!(r#"{{"target":"*","from":1,"until":null,"spread":0,"why":"{why}"}}"#);
            let pauses = Pauses::read(&format!(r#"{{"v":1,"pauses":[{pause}]}}"#)).unwrap();
            let (target, within) = (PauseTarget::All, Duration::from_secs(600));
            let (errors, by, why, until) = (Vec::new(), None, None, None);
            let request = RetryNow { target, at: now, within, errors, by, why, until };
            fits(&pauses, request, now).err().map(|error| error.to_string())
        };
        assert_eq!(refused(3_000), None);
        let why = refused(4_000).unwrap();
        assert!(why.contains("the parameter holds 4096: shorten the reasons"), "{why}");
    }

    #[test]
    fn a_pause_is_named_as_the_operator_names_it() {
        let read = |target: &str| {
            let pause = format!(r#"{{"target":"{target}","from":1700000000,"until":null,"spread":0}}"#);
            Pauses::read(&format!(r#"{{"v":1,"pauses":[{pause}]}}"#)).unwrap()
        };
        let now = Timestamp::from_secs(1_700_000_060);
        let orders = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
        let home = sample().handler_arn;
        let said = |pauses: &Pauses| {
            paused_note(holding(pauses, &orders.parse().unwrap(), now).unwrap(), &home, " --stack shop")
        };
        let rest = "has been paused since 2023-11-14T22:13:20.000Z; end that first: comeback resume";
        assert_eq!(said(&read(orders)), format!("orders {rest} orders --stack shop"));
        assert_eq!(said(&read("*")), format!("every function {rest} --all --stack shop"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let read = |arguments: &[&str]| {
            let all = ["retry", "orders"].iter().chain(arguments);
            let command = RetryArguments::augment_args(clap::Command::new("retry"));
            command.try_get_matches_from(all).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(read(&["--within", "11h", "--error", "T*"]), Ok(()));
        assert_eq!(read(&["--cancel"]), Ok(()));
        for (refused, why) in [
            (&["--within", "39601s"][..], "must be at most 11h, so that"),
            (&["--error", ""], "must be an error type such as Timeout*"),
            (&["--error", " "], "must be an error type such as Timeout*"),
            (&["--error", "{{T*}}"], "must not contain {{"),
            (&["--why", "{{x}}"], "must not contain {{"),
            (&["--cancel", "--error", "T*"], "cannot be used with"),
            (&["--cancel", "--within", "5m"], "cannot be used with"),
        ] {
            assert!(read(refused).is_err_and(|error| error.contains(why)), "{refused:?}");
        }
    }
}
