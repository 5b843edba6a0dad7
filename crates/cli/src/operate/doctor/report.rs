use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use comeback_operate::Deployment;
use comeback_operate::doctor::{Examination, Finding, Outcome};

use crate::text::numbers::counted;

/// Every check, by group; of what is not as it should be, what it means and what repairs it.
pub(super) fn write(
    out: &mut impl Write,
    deployment: &Deployment,
    examination: &Examination,
) -> io::Result<()> {
    let bold = Style::new().bold();
    match &deployment.stack {
        Some(stack) => writeln!(out, "{} of stack {stack}", deployment.handler)?,
        None => writeln!(out, "{}", deployment.handler)?,
    }
    for checks in examination.checks.chunk_by(|one, next| one.group == next.group) {
        writeln!(out, "\n{bold}{}{bold:#}", checks[0].group)?;
        checks.iter().try_for_each(|check| write_check(out, check))?;
    }
    writeln!(out, "\n{}", summary(examination))
}

fn write_check(out: &mut impl Write, check: &Finding) -> io::Result<()> {
    let (mark, style) = match check.outcome {
        Outcome::Ok => ("ok     ", AnsiColor::Green.on_default()),
        Outcome::Skipped => ("skipped", Style::new().dimmed()),
        Outcome::Warning => ("warning", AnsiColor::Yellow.on_default()),
        Outcome::Broken => ("broken ", AnsiColor::Red.on_default()),
    };
    let about = check.about.as_ref().map_or_else(String::new, |about| format!("{about}: "));
    writeln!(out, "{style}{mark}{style:#} {} {about}{}: {}", check.id, check.title, check.found)?;
    if let Some(means) = &check.means {
        writeln!(out, "        means: {means}")?;
    }
    if let Some(fix) = &check.fix {
        writeln!(out, "        fix:   {fix}")?;
    }
    Ok(())
}

fn summary(examination: &Examination) -> String {
    let count = |outcome| examination.count(outcome) as u64;
    format!(
        "{} ok, {}, {} broken, {} skipped",
        count(Outcome::Ok),
        counted(count(Outcome::Warning), "warning", "warnings"),
        count(Outcome::Broken),
        count(Outcome::Skipped)
    )
}
