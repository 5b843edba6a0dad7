use std::collections::BTreeMap;
use std::io::{self, Write};

use comeback_engine::Timestamp;
use comeback_operate::Failure;
use comeback_operate::dead::{End, Group, Pace, Survey, Worked};
use indicatif::HumanCount;
use serde_json::{Value, json};

use crate::text::durations;
use crate::text::numbers::counted;
use crate::text::terminal::table;

/// A survey, and how its letters are acted on.
pub(crate) struct Plan<'a> {
    /// `redrive` or `discard`.
    pub(crate) verb: &'static str,
    pub(crate) survey: &'a Survey,
    pub(crate) pace: Pace,
    pub(crate) limit: Option<u64>,
    pub(crate) now: Timestamp,
}

impl Plan<'_> {
    /// Letters that are to be acted on.
    pub(crate) fn letters(&self) -> u64 {
        self.survey.chosen.min(self.limit.unwrap_or(u64::MAX))
    }

    /// Whether it can be carried out. One that could not look at all letters, because they are too many, can.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match &self.survey.read.end {
            End::Interrupted => self.survey.read.result("nothing was changed"),
            End::Failed(failure) => Err(failure.clone()),
            End::All | End::Enough | End::TooManyHidden => Ok(()),
        }
    }

    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { verb, survey, pace, now, .. } = self;
        let (letters, all) = (self.letters(), HumanCount(survey.read.letters));
        let time = durations::short(pace.time_for(letters).as_secs_f64());
        writeln!(
            out,
            "to {verb}: about {} of {all}, in about {time}",
            counted(letters, "letter", "letters")
        )?;
        if letters < survey.chosen {
            writeln!(out, "(--limit: the filter takes {} letters)", HumanCount(survey.chosen))?;
        }
        if survey.chosen > 0 {
            writeln!(out, "{}", groups_table(&survey.groups, *now))?;
        }
        for (reason, count) in &survey.left {
            writeln!(out, "left: {}, which would be dead-lettered again as {reason}", HumanCount(*count))?;
        }
        match survey.read.incomplete() {
            Some(why) => writeln!(out, "these are not all: {why}"),
            None => Ok(()),
        }
    }

    pub(crate) fn json(&self) -> Value {
        let Survey { chosen, groups, left, not_allowed, read, .. } = self.survey;
        json!({
            "letters": self.letters(),
            "chosen": chosen,
            "read": read.letters,
            "groups": groups,
            "left": left,
            "not_allowed": not_allowed,
            "incomplete": read.incomplete(),
        })
    }
}

/// What was done, in words: `redrove 812 letters; …`.
pub(crate) fn summary(did: &str, worked: &Worked) -> String {
    let mut parts = vec![format!("{did} {}", counted(worked.done, "letter", "letters"))];
    if let Some((count, why)) = &worked.not_deleted {
        let letters = counted(*count, "letter was", "letters were");
        parts.push(format!("{letters} not deleted, and the next run would do them again: {why}"));
    }
    parts.extend(worked.left.iter().map(|(why, count)| format!("left {}: {why}", HumanCount(*count))));
    parts.join("; ")
}

pub(crate) fn worked_json(worked: &Worked) -> Value {
    let Worked { done, not_deleted, left, read } = worked;
    json!({
        "done": done,
        "left": left,
        "not_deleted": not_deleted.as_ref().map(|(count, why)| json!({"count": count, "why": why})),
        "incomplete": read.incomplete(),
    })
}

/// How the command ends. What the plan said would be left is no surprise; anything else is.
pub(crate) fn result(
    worked: &Worked,
    planned: &BTreeMap<&'static str, u64>,
    summary: &str,
) -> Result<(), Failure> {
    worked.read.result(summary)?;
    let surprises = worked.left.keys().any(|why| !planned.contains_key(why.as_str()));
    if surprises || worked.not_deleted.is_some() {
        return Err(Failure::Undone(format!("{summary}; repeat the command for what was left")));
    }
    Ok(())
}

pub(crate) fn groups_table(groups: &[Group], now: Timestamp) -> comfy_table::Table {
    let mut table = table();
    table.set_header(["letters", "reason", "function", "error", "oldest", "newest"]);
    for group in groups {
        table.add_row([
            HumanCount(group.count).to_string().as_str(),
            &group.reason,
            name(group.target.as_deref()),
            group.error_type.as_deref().unwrap_or_default(),
            &age(group.oldest, now),
            &age(group.newest, now),
        ]);
    }
    table
}

/// A function's name and its qualifier, without the rest of its ARN.
pub(crate) fn name(arn: Option<&str>) -> &str {
    let arn = arn.unwrap_or_default();
    arn.split_once(":function:").map_or(arn, |(_, name)| name)
}

/// How long ago that was.
pub(crate) fn age(moment: Timestamp, now: Timestamp) -> String {
    durations::short(now.since(moment).as_secs_f64().floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_shown_by_name() {
        let arn = "arn:aws:lambda:eu-west-1:123456789012:function:orders:live";
        assert_eq!([Some(arn), Some("odd"), None].map(name), ["orders:live", "odd", ""]);
    }
}
