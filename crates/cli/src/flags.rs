//! Flags that several subcommands take: the retry handler's policy, moments, and paths to write to.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Arg, Args};
use comeback_engine::{Policies, PolicyEntry, SettingError, Timestamp};
use comeback_timelapse::SimulatedTarget;

use crate::failure::Failure;

/// The retry handler's policy variables as flags. The handler's own reader reads them as text, so they
/// mean the same and are refused in the same words.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Policy (the retry handler's variables)")]
pub(crate) struct PolicyFlags {
    /// MAX_AGE: no retry later than this after the first failure; 60s to 14d [default: 24h]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    max_age: Option<String>,
    /// MAX_RETRIES: retries of one chain at most; 0 to 10000 [default: 1000]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    max_retries: Option<String>,
    /// BASE_BACKOFF: ceiling of the first backoff; 1s to MAX_BACKOFF [default: 10s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    base_backoff: Option<String>,
    /// MAX_BACKOFF: cap of every backoff; 1s to 43170s [default: 1h]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    max_backoff: Option<String>,
    /// BACKOFFS: ceilings such as 20s,5m,30m,2h, the last repeated, instead of --base-backoff and --max-backoff
    #[arg(long, value_name = "TIMES", allow_hyphen_values = true)]
    backoffs: Option<String>,
    /// JITTER: full, equal, decorrelated or none [default: full]
    #[arg(long, value_name = "NAME")]
    jitter: Option<String>,
    /// ENVELOPE: wrap or inline [default: wrap]
    #[arg(long, value_name = "STYLE")]
    envelope: Option<String>,
    /// DIRECTIVES: on or off, whether the target's own RetryAfter and NonRetryable are obeyed [default: on]
    #[arg(long, value_name = "ON|OFF")]
    directives: Option<String>,
    /// HIDE_UP_TO: messages hidden at once; beyond that, messages are sent again with a delay; 0 to 55000, or always
    /// [default: 50000]
    #[arg(long, value_name = "N")]
    hide_up_to: Option<String>,
    /// MAXIMUM_CONCURRENCY: pollers, so batches handled at once; 2 to 1000 [default: 10]
    #[arg(long, value_name = "N")]
    maximum_concurrency: Option<String>,
    /// NON_RETRYABLE_ERRORS: comma-separated globs of errorTypes, class names or simple names to dead-letter at once
    #[arg(long, value_name = "GLOBS")]
    non_retryable_errors: Option<String>,
    /// POLICIES: policies of single functions, such as "orders MAX_AGE=2h; export-* MAX_AGE=14d"
    #[arg(long, value_name = "ENTRIES")]
    policies: Option<String>,
}

/// Adds to the help of `--non-retryable-errors` which errors there are where a target is simulated.
pub(crate) fn naming(errors: &'static str) -> impl Fn(Arg) -> Arg {
    move |arg| {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        arg.help(format!("{help}. {errors}"))
    }
}

impl PolicyFlags {
    /// The policies, with these target functions.
    ///
    /// # Errors
    ///
    /// Every value that was refused, in the handler's words.
    pub(crate) fn policies(&self, target_functions: &str) -> Result<Policies, Vec<SettingError>> {
        let given = self.given();
        Policies::from_variables(|name| match name {
            "TARGET_FUNCTIONS" => Some(target_functions.to_owned()),
            _ => given.iter().find(|(flag, _)| variable(flag) == name).map(|(_, value)| value.clone()),
        })
    }

    /// The flags that were given, without their dashes, and their values.
    pub(crate) fn given(&self) -> Vec<(&'static str, String)> {
        self.clone().slots().into_iter().filter_map(|(flag, value)| Some((flag, value.take()?))).collect()
    }

    /// The same with other values for some of the flags.
    pub(crate) fn with<'a>(&self, changes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut changed = self.clone();
        for (name, value) in changes {
            let slot = changed.slots().into_iter().find(|(flag, _)| *flag == name);
            *slot.expect("BUG: a flag that there is not").1 = Some(value.to_owned());
        }
        changed
    }

    /// Every flag, without its dashes.
    pub(crate) fn names() -> [&'static str; 12] {
        Self::default().slots().map(|(flag, _)| flag)
    }

    fn slots(&mut self) -> [(&'static str, &mut Option<String>); 12] {
        [
            ("max-age", &mut self.max_age),
            ("max-retries", &mut self.max_retries),
            ("base-backoff", &mut self.base_backoff),
            ("max-backoff", &mut self.max_backoff),
            ("backoffs", &mut self.backoffs),
            ("jitter", &mut self.jitter),
            ("envelope", &mut self.envelope),
            ("directives", &mut self.directives),
            ("hide-up-to", &mut self.hide_up_to),
            ("maximum-concurrency", &mut self.maximum_concurrency),
            ("non-retryable-errors", &mut self.non_retryable_errors),
            ("policies", &mut self.policies),
        ]
    }
}

/// The entry of `--policies` that counts for the function that `--target` names.
pub(crate) fn entry_of<'p>(policies: &'p Policies, target: &str) -> Result<&'p PolicyEntry, Failure> {
    policies.entry_of(&recorded_arn(target)).ok_or_else(|| {
        Failure::Refused(vec![format!(
            "--target is {target}, and no entry of --policies matches it: its policy is the stack's; leave --target out"
        )])
    })
}

/// A function's ARN as invocation records have it: with a qualifier.
pub(crate) fn recorded_arn(function: &str) -> String {
    let arn = SimulatedTarget { name: function.into(), ..SimulatedTarget::default() }.arn();
    if function.contains(':') { arn } else { format!("{arn}:$LATEST") }
}

/// Warns of each entry of `POLICIES` that is about none of these functions. `what` says whose they are.
pub(crate) fn warn_of_unmatched(policies: &Policies, function_arns: &[String], what: &str) {
    for entry in policies.entries() {
        if !function_arns.iter().any(|arn| entry.is_about(arn)) {
            anstream::eprintln!("warning: POLICIES entry {:?} matches no function {what}", entry.to_string());
        }
    }
}

/// The handler's variable for a flag: `MAX_AGE` for `max-age`.
pub(crate) fn variable(flag: &str) -> String {
    flag.to_uppercase().replace('-', "_")
}

/// What `--vs` changes in a policy: flags with their other values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyChanges(Vec<(&'static str, String)>);

impl PolicyChanges {
    /// Reads `jitter=none,max-backoff=1h`. A part without `=` continues the value before it, because
    /// a value can be a list. So does any part of `policies` that does not begin with a flag.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut changes: Vec<(&'static str, String)> = Vec::new();
        for part in text.split(',') {
            let setting = part.split_once('=').map(|(name, value)| (flag(name.trim()), value.trim()));
            match (setting, changes.last_mut()) {
                (Some((Err(_), _)), Some(("policies", list))) | (None, Some((_, list))) => {
                    list.extend([",", part]);
                }
                (Some((flag, value)), _) => {
                    let flag = flag?;
                    if changes.iter().any(|(other, _)| *other == flag) {
                        return Err(format!("{flag} is given twice"));
                    }
                    changes.push((flag, value.to_owned()));
                }
                (None, None) => return Err("must be FLAG=VALUE, such as jitter=none,max-backoff=1h".into()),
            }
        }
        Ok(Self(changes))
    }

    /// A policy's flags with these changes.
    pub(crate) fn applied_to(&self, flags: &PolicyFlags) -> PolicyFlags {
        flags.with(self.0.iter().map(|(flag, value)| (*flag, value.as_str())))
    }
}

/// `jitter=none,max-backoff=1h`
impl fmt::Display for PolicyChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changes: Vec<String> = self.0.iter().map(|(flag, value)| format!("{flag}={value}")).collect();
        f.write_str(&changes.join(","))
    }
}

fn flag(name: &str) -> Result<&'static str, String> {
    let names = PolicyFlags::names();
    let known = names.into_iter().find(|flag| *flag == name);
    known.ok_or_else(|| format!("\"{name}\" is not a flag of the policy: there are {}", names.join(", ")))
}

/// Reads a moment, RFC 3339.
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    Timestamp::from_rfc3339(text).ok_or_else(|| "must be a time such as 2026-09-14T15:46:54Z".into())
}

/// A file for a page.
pub(crate) fn html(text: &str) -> Result<PathBuf, String> {
    let is_html = [None, Some("html"), Some("htm")].contains(&suffix(Path::new(text)).as_deref());
    is_html.then(|| text.into()).ok_or_else(|| "the page is HTML: the name must end in .html".into())
}

/// A file for a picture, or the folder to write it to.
pub(crate) fn svg_or_folder(text: &str) -> Result<PathBuf, String> {
    let accepted = suffix(Path::new(text)).as_deref() == Some("svg") || is_folder(text);
    accepted.then(|| text.into()).ok_or_else(|| {
        format!("the picture is SVG: the name must end in .svg, or in / for a folder of the name {text}")
    })
}

/// A folder for pictures.
pub(crate) fn folder(text: &str) -> Result<PathBuf, String> {
    is_folder(text).then(|| text.into()).ok_or_else(|| {
        format!("several pictures are written to a folder: {text} looks like a file; a folder of this name ends in /")
    })
}

/// One that there is, or a path that cannot be taken for a file's.
fn is_folder(text: &str) -> bool {
    let path = Path::new(text);
    path.is_dir() || text.ends_with('/') || suffix(path).is_none()
}

fn suffix(path: &Path) -> Option<String> {
    path.extension().map(|suffix| suffix.to_string_lossy().to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_flags_with_values() {
        let changes = PolicyChanges::read("jitter=none, max-backoff = 1h").unwrap();
        assert_eq!(changes.to_string(), "jitter=none,max-backoff=1h");
        let given = PolicyFlags::default().with([("jitter", "full"), ("max-age", "2h")]);
        let expected = [("max-age", "2h"), ("max-backoff", "1h"), ("jitter", "none")];
        assert_eq!(
            changes.applied_to(&given).given(),
            expected.map(|(flag, value)| (flag, value.to_owned()))
        );
    }

    #[test]
    fn a_value_can_be_a_list() {
        let changes = PolicyChanges::read("non-retryable-errors=Order*,Payment*,jitter=none").unwrap();
        let given = changes.applied_to(&PolicyFlags::default()).given();
        assert_eq!(given[1], ("non-retryable-errors", "Order*,Payment*".to_owned()));
        assert_eq!(given[0], ("jitter", "none".to_owned()));
        let policies = "orders BACKOFFS=20s,5m MAX_AGE=2h;export NON_RETRYABLE_ERRORS=A,B";
        let changes = PolicyChanges::read(&format!("policies={policies},jitter=none")).unwrap();
        let given = changes.applied_to(&PolicyFlags::default()).given();
        assert_eq!(given, [("jitter", "none".to_owned()), ("policies", policies.to_owned())]);
    }

    #[test]
    fn what_changes_nothing_is_refused() {
        let form = "must be FLAG=VALUE, such as jitter=none,max-backoff=1h";
        let flags = "max-age, max-retries, base-backoff, max-backoff, backoffs, jitter, envelope, directives, \
            hide-up-to, maximum-concurrency, non-retryable-errors, policies";
        for (text, expected) in [
            ("", form.to_owned()),
            ("none", form.to_owned()),
            ("jiter=none", format!("\"jiter\" is not a flag of the policy: there are {flags}")),
            ("=none", format!("\"\" is not a flag of the policy: there are {flags}")),
            ("jitter=none,jiter=full", format!("\"jiter\" is not a flag of the policy: there are {flags}")),
            ("jitter=none,jitter=full", "jitter is given twice".to_owned()),
        ] {
            assert_eq!(PolicyChanges::read(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn a_page_is_html_and_a_picture_svg_or_in_a_folder() {
        let page = "the page is HTML: the name must end in .html";
        let picture = "the picture is SVG: the name must end in .svg, or in / for a folder of the name";
        let pictures = "several pictures are written to a folder:";
        type Read = fn(&str) -> Result<PathBuf, String>;
        let cases: [(Read, &[&str], &[&str], &str); 3] = [
            (
                html,
                &["report.html", "out/Report.HTM", "page", "a.b/page"],
                &["a.pdf", "a.html.gz", "b/a.png"],
                page,
            ),
            (svg_or_folder, &["schedule.svg", "out/", "out", "v1.2/", "v1.2/out", "."], &["a.png"], picture),
            (folder, &["out/", "out", "v1.2/"], &["a.svg"], pictures),
        ];
        for (read, accepted, refused, problem) in cases {
            assert!(accepted.iter().all(|path| read(path) == Ok(path.into())), "{accepted:?}");
            assert!(
                refused.iter().all(|path| read(path).is_err_and(|text| text.starts_with(problem))),
                "{problem}"
            );
        }
    }
}
