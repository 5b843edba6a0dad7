//! What the checks find, in words.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use crate::operate::doctor::diagnosis::Outcome;
use crate::operate::doctor::findings::{Finding, count};
use crate::text::numbers::counted;
use crate::text::terminal::{shown, shown_lines};

/// Writes the checks that are shown, by group; for a problem, what it means and what fixes it. The last line counts all
/// checks, and names what is broken.
pub(super) fn write(
    out: &mut impl Write,
    heading: &str,
    findings: &[Finding],
    is_shown: impl Fn(&Finding) -> bool,
) -> io::Result<()> {
    let bold = Style::new().bold();
    writeln!(out, "{heading}")?;
    let shown: Vec<&Finding> = findings.iter().filter(|finding| is_shown(finding)).collect();
    for group in shown.chunk_by(|one, next| one.check.group == next.check.group) {
        let heading = area(group[0].check.group);
        writeln!(out, "\n{bold}{heading}{bold:#}")?;
        group.iter().try_for_each(|finding| write_finding(out, finding))?;
    }
    writeln!(out, "\n{}", summary(findings))
}

pub(crate) fn area(group: &str) -> &str {
    match group {
        "mapping" => "event source mapping",
        "handler" => "retry handler",
        "role" => "handler's role",
        "functions" => "attached functions",
        "consumers" => "functions that read SQS",
        name => name,
    }
}

/// How many checks ended how, and what is broken.
pub(crate) fn summary(findings: &[Finding]) -> String {
    let count = |outcome| count(findings, outcome);
    let warnings = counted(count(Outcome::Warning), "warning", "warnings");
    let (ok, broken, skipped) = (count(Outcome::Ok), count(Outcome::Broken), count(Outcome::Skipped));
    let named: Vec<String> = findings
        .iter()
        .filter(|finding| finding.diagnosis.outcome == Outcome::Broken)
        .map(Finding::name)
        .collect();
    let named = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
    format!("{ok} ok, {skipped} skipped, {warnings}, {broken} broken{named}")
}

fn write_finding(out: &mut impl Write, finding: &Finding) -> io::Result<()> {
    let diagnosis = &finding.diagnosis;
    let (mark, style) = match diagnosis.outcome {
        Outcome::Ok => ("ok     ", AnsiColor::Green.on_default()),
        Outcome::Skipped => ("skipped", Style::new().dimmed()),
        Outcome::Warning => ("WARNING", AnsiColor::Yellow.on_default()),
        Outcome::Broken => ("BROKEN ", AnsiColor::Red.on_default()),
    };
    writeln!(out, "{style}{mark}{style:#} {}: {}", finding.name(), shown(&finding.found()))?;
    let indented = |text: &str| shown_lines(text).replace('\n', &format!("\n{:15}", ""));
    if let Some(means) = &diagnosis.means {
        writeln!(out, "        means: {}", indented(means))?;
    }
    if let Some(fix) = &diagnosis.fix {
        writeln!(out, "        fix:   {}", indented(fix))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::operate::doctor::checks::selected;
    use crate::operate::doctor::facts::log::{LoggedError, LoggedErrors};
    use crate::operate::doctor::findings::findings;
    use crate::operate::doctor::heading;
    use crate::operate::doctor::sample::healthy;
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

    use super::*;

    #[test]
    fn the_last_line_names_what_is_broken() {
        let mut facts = healthy();
        facts.functions[0].target = Ok(None);
        facts.functions[0].entrances.clear();
        let found = findings(&facts, &[], selected(&["CB001", "CB101"], &[]));
        let mut written = Vec::new();
        write(&mut written, &heading(&facts), &found, |finding| finding.diagnosis.outcome > Outcome::Ok)
            .unwrap();
        let written = anstream::adapter::strip_bytes(&written).into_vec();
        let expected = "\
retry-handler of stack comeback

attached functions
BROKEN  CB101 orders: the function does not exist
        means: its events are dead-lettered as target_not_found
        fix:   comeback detach orders

1 ok, 0 skipped, 0 warnings, 1 broken: CB101 orders
";
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }

    #[test]
    fn a_logged_error_cannot_command_the_terminal() {
        let mut facts = healthy();
        let text = HOSTILE.to_owned();
        let newest = Some(LoggedError { at: facts.now, remedy: Some(text.clone()), text });
        facts.errors = Ok(LoggedErrors { count: 1, newest, all_were_read: true });
        let mut written = Vec::new();
        write(
            &mut written,
            "retry-handler of stack comeback",
            &findings(&facts, &[], selected(&["CB024"], &[])),
            |_| true,
        )
        .unwrap();
        let written = String::from_utf8(written).unwrap();
        assert!(written.contains("means: a\\u{1b}]") && !is_obeyed_anywhere(&written), "{written}");
    }
}
