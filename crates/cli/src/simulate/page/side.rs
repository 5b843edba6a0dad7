use comeback_engine::Policy;
use comeback_timelapse::{Schedule, Summary};
use plotters::style::RGBColor;

use crate::chart::palette::{BLUE, ORANGE};
use crate::flags::policy::PolicyFlags;
use crate::simulate::page::template::Key;

/// A policy under comparison, and its run.
pub(super) struct Side {
    /// Its name beside the other policy; empty if there is only one.
    pub(super) name: &'static str,
    pub(super) colour: RGBColor,
    pub(super) flags: PolicyFlags,
    pub(super) policy: Policy,
    pub(super) summary: Summary,
    pub(super) schedule: Schedule,
}

/// One in so many of the events that `comeback schedule` follows is enough to say, within a few
/// percent, how long an event is in flight.
const FOLLOWED_SHARE: usize = 10;

/// The policy that was given, and the one to compare it with, each with its run.
pub(super) fn sides(runs: Vec<(PolicyFlags, Policy, Summary)>, seed: u64) -> Vec<Side> {
    let names = if runs.len() > 1 { ["Policy A", "Policy B"] } else { [""; 2] };
    let side = |(((flags, policy, summary), name), colour)| {
        let events = Schedule::default_events(&policy, seed) / FOLLOWED_SHARE;
        let schedule = Schedule::of(&policy, seed, events, &|| {});
        Side { name, colour, flags, policy, summary, schedule }
    };
    runs.into_iter().zip(names).zip([BLUE, ORANGE]).map(side).collect()
}

impl Side {
    /// A sentence about it, beginning with its name if it has one.
    pub(super) fn say(&self, sentence: &str) -> String {
        if self.name.is_empty() { sentence.to_owned() } else { format!("{}: {sentence}", self.name) }
    }
}

/// A key for each, unless there is only one.
pub(super) fn keys(sides: &[Side], symbol: &'static str) -> Vec<Key> {
    let compared = sides.iter().filter(|side| !side.name.is_empty());
    compared.map(|side| Key { symbol, colour: side.colour, label: side.name.into() }).collect()
}

/// A table's head: what each row is, then a column for each, `alone` if there is only one.
pub(super) fn head(first: &str, sides: &[Side], alone: &str) -> Vec<String> {
    let name = |side: &Side| if side.name.is_empty() { alone.to_owned() } else { side.name.to_owned() };
    std::iter::once(first.to_owned()).chain(sides.iter().map(name)).collect()
}
