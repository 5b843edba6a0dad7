//! The runs that a page compares, and how it names them.

use comeback_engine::{Jitter, Policy};
use comeback_timelapse::{RunError, Scenario, Schedule, Summary, TARGET_ARN, Watcher, run};
use indicatif::HumanCount;
use plotters::style::RGBColor;

use crate::chart::{BLUE, ORANGE};
use crate::flags::PolicyFlags;
use crate::simulate::page::template::Key;
use crate::text::durations;

/// The runs a page is about: the same events under several policies.
pub(crate) struct Runs {
    /// The policy, and the one to compare it with.
    pub(super) policies: Vec<(PolicyFlags, Policy, Summary)>,
    /// The policy with each other jitter. Empty without an outage: there is nothing to recover from.
    pub(super) jitters: Vec<(Jitter, Summary)>,
}

impl Runs {
    /// Makes the runs beside the first. `watch` gives each a watcher, by the name of what differs.
    pub(crate) fn make<W: Watcher>(
        scenario: &Scenario,
        first: (PolicyFlags, Policy, Summary),
        other: Option<(PolicyFlags, Policy)>,
        mut watch: impl FnMut(&str) -> W,
    ) -> Result<Self, RunError> {
        let mut made = |what: &str, policy: &Policy| run(scenario, policy, &mut watch(what));
        let (flags, own) = (first.0.clone(), first.1.backoff().jitter());
        let mut policies = vec![first];
        if let Some((flags, policy)) = other {
            let summary = made("the other policy", &policy)?;
            policies.push((flags, policy, summary));
        }
        let mut jitters = Vec::new();
        for jitter in Jitter::ALL {
            if jitter == own || scenario.outage.is_zero() {
                continue;
            }
            let flags = flags.with([("jitter", jitter.name())]);
            let known =
                policies.iter().find(|(known, ..)| *known == flags).map(|(.., summary)| summary.clone());
            let policy = flags.policy(TARGET_ARN).expect("BUG: another jitter makes a policy invalid");
            let summary = match known {
                Some(summary) => summary,
                None => made(&format!("jitter {jitter}"), &policy)?,
            };
            jitters.push((jitter, summary));
        }
        Ok(Self { policies, jitters })
    }
}

/// A policy under comparison, and its run.
pub(super) struct Side {
    /// What differs from the other policy; empty if there is only one.
    pub(super) name: String,
    pub(super) colour: RGBColor,
    pub(super) flags: PolicyFlags,
    pub(super) policy: Policy,
    pub(super) summary: Summary,
    pub(super) schedule: Schedule,
}

/// A tenth of the events that `comeback schedule` follows gives the time in flight within a few percent.
const FOLLOWED_SHARE: usize = 10;

/// The policy that was given, and the one to compare it with, each with its run.
pub(super) fn sides(runs: Vec<(PolicyFlags, Policy, Summary)>, seed: u64) -> Vec<Side> {
    let policies: Vec<_> = runs.iter().map(|(flags, policy, _)| (flags, policy)).collect();
    let names = names(&policies);
    let side = |(((flags, policy, summary), name), colour)| {
        let events = Schedule::default_events(&policy, seed) / FOLLOWED_SHARE;
        let schedule = Schedule::of(&policy, seed, events, &|| {});
        Side { name, colour, flags, policy, summary, schedule }
    };
    runs.into_iter().zip(names).zip([BLUE, ORANGE]).map(side).collect()
}

/// `jitter full, max-backoff 1h`: the settings in which a policy differs from the other.
fn names(policies: &[(&PolicyFlags, &Policy)]) -> Vec<String> {
    let &[one, other] = policies else { return vec![String::new(); policies.len()] };
    let differing = PolicyFlags::names().map(|flag| (flag, setting(one, flag), setting(other, flag)));
    let differing = || differing.iter().filter(|(_, one, other)| one != other);
    if differing().count() == 0 {
        return vec!["the policy".into(), "the same again".into()];
    }
    let name = |value: fn(&(&str, String, String)) -> String| {
        let settings = differing().map(|it| format!("{} {}", it.0, value(it)));
        settings.collect::<Vec<_>>().join(", ")
    };
    vec![name(|it| it.1.clone()), name(|it| it.2.clone())]
}

/// A setting of a policy as people read it.
pub(super) fn setting((flags, policy): (&PolicyFlags, &Policy), flag: &str) -> String {
    let backoff = policy.backoff();
    let given = flags.given().into_iter().find(|(name, _)| *name == flag).map(|(_, value)| value);
    match flag {
        "max-age" => durations::text(policy.max_age()),
        "max-retries" => HumanCount(policy.max_retries()).to_string(),
        "base-backoff" => durations::text(backoff.base()),
        "max-backoff" => durations::text(backoff.cap()),
        "jitter" => backoff.jitter().to_string(),
        "directives" => if policy.directives() { "on" } else { "off" }.into(),
        "envelope" => given.unwrap_or_else(|| comeback_engine::Settings::default().envelope.to_string()),
        _ => given.filter(|value| !value.is_empty()).unwrap_or_else(|| "-".into()),
    }
}

/// A sentence about each side; one without a name if it is the same for all.
pub(super) fn say(sides: &[Side], sentence: impl Fn(&Side) -> String) -> Vec<String> {
    let sentences: Vec<String> = sides.iter().map(&sentence).collect();
    if sentences.windows(2).all(|pair| pair[0] == pair[1]) {
        return sentences.into_iter().take(1).collect();
    }
    sides.iter().zip(sentences).map(|(side, sentence)| side.say(&sentence)).collect()
}

impl Side {
    /// A sentence about it, beginning with its name if it has one.
    pub(super) fn say(&self, sentence: &str) -> String {
        if self.name.is_empty() { sentence.to_owned() } else { format!("{}: {sentence}", self.name) }
    }
}

/// A key for each side, unless there is only one.
pub(super) fn keys(sides: &[Side], symbol: &'static str) -> Vec<Key> {
    let compared = sides.iter().filter(|side| !side.name.is_empty());
    compared.map(|side| Key { symbol, colour: side.colour, label: side.name.clone() }).collect()
}

/// Head of a table: the rows' meaning, then a column for each side, `alone` if there is only one.
pub(super) fn head(first: &str, sides: &[Side], alone: &str) -> Vec<String> {
    let name = |side: &Side| if side.name.is_empty() { alone.to_owned() } else { side.name.clone() };
    std::iter::once(first.to_owned()).chain(sides.iter().map(name)).collect()
}
