//! The runs that a simulation report compares, and their names.

use std::iter::once;

use comeback_engine::{Jitter, Policies, Policy, PolicyEntry, Setting, Unset};
use comeback_operate::durations;
use comeback_operate::numbers::grouped;
use comeback_timelapse::{RunError, Scenario, Schedule, Summary, Watcher, run};
use plotters::style::RGBColor;

use crate::chart::{BLUE, ORANGE};
use crate::figure::{FigureTable, LegendEntry};
use crate::flags::{PolicyFlags, variable};
use crate::schedule::of_few_events;

/// The runs that a simulation report covers: the same events under several policies.
pub struct Runs {
    /// The run under the given policy and, if the report compares two policies, the run under the second policy.
    pub(super) sides: Vec<Side>,
    /// Runs with other kinds of jitter; empty if there is no outage, or if an entry in `POLICIES` sets a jitter.
    pub(super) jitters: Vec<(Jitter, Summary)>,
}

/// One of the compared policies, with its run.
pub(super) struct Side {
    /// The policy's name. It is empty if the page shows only one policy.
    pub(super) name: String,
    pub(super) colour: RGBColor,
    pub(super) flags: PolicyFlags,
    pub(super) policies: Policies,
    pub(super) summary: Summary,
    /// The schedule under the stack's policy, for events that always fail.
    pub(super) schedule: Schedule,
}

impl Runs {
    /// Performs all runs but the first, whose summary the caller passes. `watch` gets the description of a run
    /// and returns the run's watcher.
    pub fn make<W: Watcher>(
        scenario: &Scenario,
        (flags, policies, summary): (PolicyFlags, Policies, Summary),
        other: Option<(PolicyFlags, Policies)>,
        mut watch: impl FnMut(&str) -> W,
    ) -> Result<Self, RunError> {
        let mut made = |what: &str, policies: &Policies| run(scenario, policies, &mut watch(what));
        let names =
            other.as_ref().map(|(other, with)| names((&flags, policies.stack()), (other, with.stack())));
        let [name, other_name] = names.unwrap_or_default();
        let mut sides = vec![Side::of((name, BLUE), flags, policies, summary)];
        if let Some((flags, policies)) = other {
            let summary = made("the other policy", &policies)?;
            sides.push(Side::of((other_name, ORANGE), flags, policies, summary));
        }
        let own = sides[0].policies.stack().backoff().jitter();
        let mut jitters = Vec::new();
        let sets_jitter = |entry: &PolicyEntry| entry.settings().any(|(name, _)| name == "JITTER");
        let varies =
            !scenario.longest_outage().is_zero() && !sides[0].policies.entries().iter().any(sets_jitter);
        for jitter in Jitter::ALL.into_iter().filter(|&jitter| varies && jitter != own) {
            let flags = sides[0].flags.with([("jitter", jitter.name())]);
            let summary = match sides.iter().find(|side| side.flags == flags) {
                Some(known) => known.summary.clone(),
                None => {
                    // A policy with a list of ceilings cannot have decorrelated jitter.
                    let Ok(policies) = flags.policies(&scenario.target_functions()) else { continue };
                    made(&format!("jitter {jitter}"), &policies)?
                }
            };
            jitters.push((jitter, summary));
        }
        Ok(Self { sides, jitters })
    }
}

/// Returns, for each policy, the settings in which it differs from the other policy: `jitter full, max-backoff 1h`.
fn names(one: (&PolicyFlags, &Policy), other: (&PolicyFlags, &Policy)) -> [String; 2] {
    let settings = PolicyFlags::names().map(|flag| (flag, setting(one, flag), setting(other, flag)));
    let differing: Vec<_> = settings.into_iter().filter(|(_, one, other)| one != other).collect();
    if differing.is_empty() {
        return ["the policy".into(), "the same again".into()];
    }
    let name = |value: fn(&(&str, String, String)) -> String| {
        differing.iter().map(value).collect::<Vec<_>>().join(", ")
    };
    [name(|(flag, one, _)| format!("{flag} {one}")), name(|(flag, _, other)| format!("{flag} {other}"))]
}

/// Formats one of a policy's settings for display.
pub(super) fn setting((flags, policy): (&PolicyFlags, &Policy), flag: &str) -> String {
    let backoff = policy.backoff();
    let given = flags.given().find(|(name, _)| *name == flag).map(|(_, value)| value);
    match flag {
        "max-age" => durations::text(policy.max_age()),
        "max-retries" => grouped(policy.settings().max_retries),
        "base-backoff" | "max-backoff" if !policy.settings().backoffs.is_empty() => "-".into(),
        "base-backoff" => durations::text(backoff.base()),
        "max-backoff" => durations::text(backoff.cap()),
        _ => {
            let default = match Setting::named(&variable(flag)).default {
                Unset::Is(text) => text,
                Unset::Means(_) => "",
            };
            let text = given.unwrap_or(default);
            if text.is_empty() { "-".into() } else { text.to_owned() }
        }
    }
}

/// Returns a sentence about each policy, preceded by the policy's name. If all sentences are identical, returns one
/// without a name.
pub(super) fn say(sides: &[Side], sentence: impl Fn(&Side) -> String) -> Vec<String> {
    let sentences: Vec<String> = sides.iter().map(&sentence).collect();
    if sentences.windows(2).all(|pair| pair[0] == pair[1]) {
        return sentences.into_iter().take(1).collect();
    }
    sides.iter().zip(sentences).map(|(side, sentence)| side.say(&sentence)).collect()
}

impl Side {
    pub(super) fn of(
        (name, colour): (String, RGBColor),
        flags: PolicyFlags,
        policies: Policies,
        summary: Summary,
    ) -> Self {
        let schedule = of_few_events(policies.stack(), summary.seed);
        Self { name, colour, flags, policies, summary, schedule }
    }

    /// Puts the policy's name, if it has one, before a sentence.
    pub(super) fn say(&self, sentence: &str) -> String {
        if self.name.is_empty() { sentence.to_owned() } else { format!("{}: {sentence}", self.name) }
    }
}

/// Returns a legend with an entry for each compared policy. The legend is empty if there is only one policy.
pub(super) fn keys(sides: &[Side], symbol: &'static str) -> Vec<LegendEntry> {
    let compared = sides.iter().filter(|side| !side.name.is_empty());
    compared.map(|side| LegendEntry { symbol, colour: side.colour, label: side.name.clone() }).collect()
}

pub(super) struct Headings<'a> {
    pub(super) caption: &'a str,
    pub(super) labels: &'a str,
    /// Heading of the column of figures if there is only one policy.
    pub(super) figures: &'a str,
}

/// Creates a table with a row for each label and a column for each compared policy.
pub(super) fn table(
    headings: Headings<'_>,
    labels: Vec<String>,
    sides: &[Side],
    mut figures: impl FnMut(&Side) -> Vec<String>,
) -> FigureTable {
    let Headings { caption, labels: first, figures: alone } = headings;
    let name = |side: &Side| if side.name.is_empty() { alone.to_owned() } else { side.name.clone() };
    let columns = sides.iter().map(|side| (name(side), figures(side)));
    FigureTable {
        caption: caption.into(),
        columns: once((first.to_owned(), labels)).chain(columns).collect(),
    }
}
