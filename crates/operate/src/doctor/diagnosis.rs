//! The doctor's options, and all of its findings, grouped by area when printed.

use serde::Serialize;

use crate::change::Answer;
use crate::doctor::findings::{Finding, count, is_healthy};
use crate::doctor::judgement::CheckOutcome;
use crate::failure::Failure;
use crate::function::FunctionName;
use crate::layout::Layout;
use crate::numbers::counted;
use crate::text;
use crate::text::Text;

/// Options for [`doctor`](crate::doctor::doctor).
#[derive(Clone, Debug, Default)]
pub struct Examination {
    /// The functions to check; if empty, all functions. If any are named, findings about the deployment itself are
    /// printed only if they are problems.
    pub functions: Vec<FunctionName>,
    /// The [numbers](crate::doctor::checks::number) of the checks to run; if empty, all checks run.
    pub only: Vec<&'static str>,
    /// The numbers of the checks to skip.
    pub skip: Vec<&'static str>,
    /// True to print only warnings and failures.
    pub is_short: bool,
    /// True to treat warnings as failures.
    pub is_strict: bool,
    /// True to send the example function an event that fails once, and to wait until the handler has retried it.
    pub probe: bool,
}

/// The result of [`doctor`](crate::doctor::doctor).
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    /// True if no check has the outcome `broken` or, in strict mode, `warning`.
    pub healthy: bool,
    /// The findings of all checks, ordered by check number.
    pub checks: Vec<Finding>,
    /// The first line of the printed diagnosis.
    #[serde(skip)]
    heading: String,
    #[serde(skip)]
    examination: Examination,
}

impl Diagnosis {
    pub(super) fn new(heading: String, checks: Vec<Finding>, examination: Examination) -> Self {
        Self { healthy: is_healthy(&checks, examination.is_strict), checks, heading, examination }
    }

    fn is_shown(&self, finding: &Finding) -> bool {
        let Examination { functions, is_short, .. } = &self.examination;
        let is_asked_for = functions.is_empty() || finding.about.is_some();
        finding.is_problem() || !is_short && is_asked_for
    }

    /// One line with the number of findings for each outcome, and the names of the findings whose outcome is `broken`.
    pub fn summary(&self) -> String {
        let count = |outcome| count(&self.checks, outcome);
        let warnings = counted(count(CheckOutcome::Warning), "warning", "warnings");
        let (ok, broken, skipped) =
            (count(CheckOutcome::Ok), count(CheckOutcome::Broken), count(CheckOutcome::Skipped));
        let is_broken = |finding: &&Finding| finding.judgement.outcome == CheckOutcome::Broken;
        let named: Vec<String> = self.checks.iter().filter(is_broken).map(Finding::name).collect();
        let named = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
        format!("{ok} ok, {skipped} skipped, {warnings}, {broken} broken{named}")
    }
}

/// The heading above a group of checks, such as `retry handler` for the group `handler`.
pub fn area(group: &str) -> &str {
    match group {
        "mapping" => "event source mapping",
        "handler" => "retry handler",
        "role" => "handler's role",
        "functions" => "attached functions",
        "consumers" => "functions that read SQS",
        name => name,
    }
}

impl Answer for Diagnosis {
    fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        layout.line(&self.heading);
        let shown: Vec<&Finding> = self.checks.iter().filter(|finding| self.is_shown(finding)).collect();
        for group in shown.chunk_by(|one, next| one.check.group == next.check.group) {
            layout.line("");
            layout.line(area(group[0].check.group));
            group.iter().for_each(|finding| lay_out(finding, &mut layout));
        }
        layout.line("");
        layout.line(self.summary());
        layout
    }

    fn end(&self) -> Result<(), Failure> {
        if self.healthy {
            return Ok(());
        }
        let [broken, warnings] =
            [CheckOutcome::Broken, CheckOutcome::Warning].map(|outcome| count(&self.checks, outcome));
        let strictly =
            if self.examination.is_strict { format!(", and {warnings} a warning") } else { String::new() };
        let all = self.checks.len();
        Err(Failure::undone(format!("{broken} of {all} checks found something broken{strictly}")))
    }
}

fn lay_out(finding: &Finding, layout: &mut Layout) {
    layout.line(finding.headline());
    for (title, text) in [("means", &finding.judgement.means), ("fix", &finding.judgement.fix)] {
        for (number, line) in text.iter().flat_map(Text::lines).enumerate() {
            let title = if number == 0 { format!("{title}:") } else { String::new() };
            layout.line(text![format!("        {title:<7}"), line]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::tests::plain;
    use crate::doctor::checks::selected;
    use crate::doctor::findings::findings;
    use crate::doctor::heading;
    use crate::doctor::tests::healthy;

    #[test]
    fn last_line_names_what_is_broken() {
        let mut facts = healthy();
        facts.functions[0].target = Ok(None);
        facts.functions[0].attachments.clear();
        let found = findings(Some(&facts), &[], &[], selected(&["CB001", "CB101"], &[]));
        let short = Examination { is_short: true, ..Examination::default() };
        let diagnosis = Diagnosis::new(heading(&facts), found, short);
        let expected = "\
retry-handler of stack comeback

attached functions
BROKEN  CB101 orders: the function does not exist
        means: its events are dead-lettered as target_not_found
        fix:   comeback detach orders

1 ok, 0 skipped, 0 warnings, 1 broken: CB101 orders
";
        assert_eq!(plain(&diagnosis), expected);
        let end = diagnosis.end().unwrap_err();
        assert_eq!((end.exit_code(), end.to_string()), (3, "1 of 2 checks found something broken".into()));
    }

    #[test]
    fn named_functions_leave_out_what_is_ok_elsewhere() {
        let printed = |functions: &[&str]| {
            let found = findings(Some(&healthy()), &[], &[], selected(&["CB001", "CB101"], &[]));
            let functions = functions.iter().map(|name| name.parse().unwrap()).collect();
            let examination = Examination { functions, ..Examination::default() };
            let text = plain(&Diagnosis::new(String::new(), found, examination));
            ["CB001", "CB101 orders"].map(|name| text.contains(name))
        };
        assert_eq!(printed(&[]), [true, true]);
        assert_eq!(printed(&["orders"]), [false, true]);
    }
}
