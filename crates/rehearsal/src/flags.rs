//! Command-line flags that several rehearsals share: the retry handler's policy, and output paths.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use comeback_engine::{Kind, Policies, PolicyEntry, SETTINGS, Scope, Setting, SettingError, Unset};
use comeback_operate::{Failure, durations};
use comeback_timelapse::SimulatedTarget;

/// The handler's policy settings as command-line flags, parsed by the handler's own code.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyFlags(Vec<(&'static str, String)>);

/// The name of every policy flag, without the leading `--`, and the setting that the flag stands for.
static FLAGS: LazyLock<Vec<(String, &Setting)>> = LazyLock::new(|| {
    let of_the_policy = SETTINGS.iter().filter(|setting| setting.scope != Scope::Deployment);
    of_the_policy.map(|setting| (setting.name.to_lowercase().replace('_', "-"), setting)).collect()
});

impl Args for PolicyFlags {
    fn augment_args(command: Command) -> Command {
        command.args(FLAGS.iter().map(|(flag, setting)| arg(flag, setting)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for PolicyFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |name: &'static str| Some((name, matches.get_one::<String>(name)?.clone()));
        Ok(Self(Self::names().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn arg(flag: &'static str, setting: &Setting) -> Arg {
    let (value_name, is_number) = match setting.kind {
        Kind::Seconds { .. } | Kind::SecondsUpTo { .. } => ("TIME", true),
        Kind::SecondsList { .. } => ("TIMES", true),
        Kind::Number(_) | Kind::NumberOrAlways(_) => ("N", true),
        Kind::Choice(["on", "off"]) => ("ON|OFF", false),
        Kind::Globs => ("GLOBS", false),
        Kind::Policies => ("ENTRIES", false),
        Kind::Choice(_) | Kind::Functions | Kind::Queue | Kind::Parameter => ("NAME", false),
    };
    Arg::new(flag)
        .long(flag)
        .value_name(value_name)
        .allow_hyphen_values(is_number)
        .help_heading("Policy (the retry handler's variables)")
        .help(help(setting))
}

/// Formats a flag's help text: `MAX_AGE: no retry later than this after the first failure; 60s to 14d [default: 24h]`.
pub fn help(setting: &Setting) -> String {
    let Setting { name, meaning, kind, default, .. } = setting;
    let range = match kind {
        Kind::Seconds { range, .. } => format!("; {} to {}", unit(*range.start()), unit(*range.end())),
        Kind::SecondsUpTo { range, most } => format!("; {} to {most}", unit(*range.start())),
        Kind::Number(_) | Kind::NumberOrAlways(_) | Kind::Choice(_) => format!("; {}", kind.range()),
        _ => String::new(),
    };
    let default = match default {
        Unset::Is(text) if !text.is_empty() => format!(" [default: {text}]"),
        _ => String::new(),
    };
    format!("{name}: {meaning}{range}{default}")
}

/// Formats seconds as days and hours (`14d`) if that is exact, otherwise as seconds (`43170s`).
fn unit(seconds: u64) -> String {
    let is_hours = seconds.is_multiple_of(3_600);
    if is_hours { durations::flag(Duration::from_secs(seconds)) } else { format!("{seconds}s") }
}

/// The first words of a command line that runs `comeback`: `cargo run …` in a checkout, otherwise `comeback`.
pub(crate) fn own_command() -> &'static [&'static str] {
    let by_cargo = std::env::var_os("CARGO").is_some();
    if by_cargo { &["cargo", "run", "--release", "-p", "comeback", "--"] } else { &["comeback"] }
}

/// Parses the arguments of a subcommand; `words` starts with `comeback` and the subcommand's name.
///
/// # Errors
///
/// Fails with the command's own error if the command would refuse the arguments.
pub fn parsed<A: Args>(words: &[String]) -> Result<A, Failure> {
    let command = A::augment_args(Command::new("comeback").no_binary_name(true));
    let matches = command.try_get_matches_from(words.iter().skip(2));
    matches.and_then(|matches| A::from_arg_matches(&matches)).map_err(|error| {
        // The rest of the text is the command's usage.
        let error = error.to_string();
        let why = error.split("\n\n").next().unwrap_or_default();
        Failure::refused(why.strip_prefix("error: ").unwrap_or(why).trim())
    })
}

/// Returns a function that adds a sentence about the simulated target's errors to a flag's help text.
pub fn naming(errors: &'static str) -> impl Fn(Arg) -> Arg {
    move |arg| {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        arg.help(format!("{help}. {errors}"))
    }
}

impl PolicyFlags {
    /// Parses the flags into policies; `target_functions` is the value of `TARGET_FUNCTIONS`.
    ///
    /// # Errors
    ///
    /// Fails with the handler's errors if the handler would refuse a value.
    pub fn policies(&self, target_functions: &str) -> Result<Policies, Vec<SettingError>> {
        Policies::from_variables(|name| match name {
            "TARGET_FUNCTIONS" => Some(target_functions.to_owned()),
            _ => self.0.iter().find(|(flag, _)| variable(flag) == name).map(|(_, value)| value.clone()),
        })
    }

    /// Returns the name, without dashes, and the value of each flag that was given.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(flag, value)| (*flag, value.as_str()))
    }

    /// Returns a copy of the flags with new values for some of them. Panics if a name is not a policy flag.
    pub fn with<'a>(&'a self, changes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut values: HashMap<&str, &str> = self.given().collect();
        for (name, value) in changes {
            assert!(Self::names().any(|flag| flag == name), "BUG: unknown flag {name}");
            values.insert(name, value);
        }
        let given = |name: &'static str| Some((name, values.get(name)?.to_string()));
        Self(Self::names().filter_map(given).collect())
    }

    /// Returns the name of every policy flag, without dashes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FLAGS.iter().map(|(flag, _)| flag.as_str())
    }
}

/// Returns the entry in `--policies` that matches the function `target`, or an error if none matches.
pub fn entry_of<'p>(policies: &'p Policies, target: &str) -> Result<&'p PolicyEntry, Failure> {
    policies.entry_of(&recorded_arn(target)).ok_or_else(|| {
        Failure::refused(format!(
            "--target is {target}, which no entry of --policies matches, so its policy is the stack's; check the \
             name, or omit --target"
        ))
    })
}

/// Returns a function's ARN in the form that invocation records use, always with a qualifier.
pub fn recorded_arn(function: &str) -> String {
    let arn = SimulatedTarget { name: function.into(), ..SimulatedTarget::default() }.arn();
    if function.contains(':') { arn } else { format!("{arn}:$LATEST") }
}

/// Returns the name of the handler's environment variable for a flag: `MAX_AGE` for `max-age`.
pub fn variable(flag: &str) -> String {
    flag.to_uppercase().replace('-', "_")
}

/// The value of `--vs`: the policy flags to change, with their new values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyChanges(Vec<(&'static str, String)>);

impl PolicyChanges {
    /// Parses a list such as `jitter=none,max-backoff=1h`, in which a value may contain commas.
    pub fn read(text: &str) -> Result<Self, String> {
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
                (None, None) => {
                    return Err("must be FLAG=VALUE pairs, such as jitter=none,max-backoff=1h".into());
                }
            }
        }
        Ok(Self(changes))
    }

    /// Returns a copy of a policy's flags with these changes.
    pub fn applied_to(&self, flags: &PolicyFlags) -> PolicyFlags {
        flags.with(self.0.iter().map(|(flag, value)| (*flag, value.as_str())))
    }
}

/// Formats the changes as they are written on the command line: `jitter=none,max-backoff=1h`.
impl fmt::Display for PolicyChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changes: Vec<String> = self.0.iter().map(|(flag, value)| format!("{flag}={value}")).collect();
        f.write_str(&changes.join(","))
    }
}

fn flag(name: &str) -> Result<&'static str, String> {
    PolicyFlags::names().find(|flag| *flag == name).ok_or_else(|| {
        let names: Vec<_> = PolicyFlags::names().collect();
        format!("\"{name}\" is not a policy flag; the policy flags are {}", names.join(", "))
    })
}

/// Parses the path to an HTML file to write.
pub fn html(text: &str) -> Result<PathBuf, String> {
    let is_html = [None, Some("html"), Some("htm")].contains(&suffix(Path::new(text)).as_deref());
    is_html.then(|| text.into()).ok_or_else(|| "the page is HTML: the name must end in .html".into())
}

/// Parses the path to an SVG file to write, or to a folder for that file.
pub fn svg_or_folder(text: &str) -> Result<PathBuf, String> {
    let accepted = suffix(Path::new(text)).as_deref() == Some("svg") || is_folder(text);
    accepted.then(|| text.into()).ok_or_else(|| {
        format!("the picture is SVG: the name must end in .svg, or in / for a folder named {text}")
    })
}

/// Parses the path to a folder for pictures.
pub fn folder(text: &str) -> Result<PathBuf, String> {
    is_folder(text).then(|| text.into()).ok_or_else(|| {
        format!("several pictures need a folder, and {text} looks like a file; end a folder's name in /")
    })
}

/// Returns true if the path is an existing folder, ends with `/`, or has no file extension.
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
        assert_eq!(changes.applied_to(&given).given().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_value_can_be_a_list() {
        let changes = PolicyChanges::read("non-retryable-errors=Order*,Payment*,jitter=none").unwrap();
        let given = changes.applied_to(&PolicyFlags::default());
        let expected = [("jitter", "none"), ("non-retryable-errors", "Order*,Payment*")];
        assert_eq!(given.given().collect::<Vec<_>>(), expected);
        let policies = "orders BACKOFFS=20s,5m MAX_AGE=2h;export NON_RETRYABLE_ERRORS=A,B";
        let changes = PolicyChanges::read(&format!("policies={policies},jitter=none")).unwrap();
        let given = changes.applied_to(&PolicyFlags::default());
        assert_eq!(given.given().collect::<Vec<_>>(), [("jitter", "none"), ("policies", policies)]);
    }

    #[test]
    fn change_without_effect_is_refused() {
        let form = "must be FLAG=VALUE pairs, such as jitter=none,max-backoff=1h";
        let flags = PolicyFlags::names().collect::<Vec<_>>().join(", ");
        for (text, expected) in [
            ("", form.to_owned()),
            ("none", form.to_owned()),
            ("jiter=none", format!("\"jiter\" is not a policy flag; the policy flags are {flags}")),
            ("=none", format!("\"\" is not a policy flag; the policy flags are {flags}")),
            (
                "jitter=none,jiter=full",
                format!("\"jiter\" is not a policy flag; the policy flags are {flags}"),
            ),
            ("jitter=none,jitter=full", "jitter is given twice".to_owned()),
        ] {
            assert_eq!(PolicyChanges::read(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn page_and_picture_have_their_suffixes() {
        let page = "the page is HTML: the name must end in .html";
        let picture = "the picture is SVG: the name must end in .svg, or in / for a folder named";
        let pictures = "several pictures need a folder, and";
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
