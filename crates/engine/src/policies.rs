//! Policies for individual functions, from the environment variable `POLICIES`.

use std::fmt;

use crate::arn::{PolicyPattern, QueueArn};
use crate::policy::{Policy, REPLACED_BY_BACKOFFS};
use crate::setting::{Setting, SettingError};

/// The stack's policy, and the policies that `POLICIES` gives to individual functions.
///
/// The first entry that matches a function applies. The stack's policy supplies the settings that the entry leaves
/// out.
///
/// ```
/// use comeback_engine::Policies;
///
/// let arn = |name| format!("arn:aws:lambda:eu-west-1:123456789012:function:{name}:$LATEST");
/// let policies = Policies::from_variables(|name| match name {
///     "TARGET_FUNCTIONS" => Some("arn:aws:lambda:eu-west-1:123456789012:function:*".into()),
///     "MAX_RETRIES" => Some("7".into()),
///     "POLICIES" => Some("orders MAX_AGE=2h; export-* MAX_AGE=14d BACKOFFS=20s,5m,2h".into()),
///     _ => None,
/// })
/// .unwrap();
/// let hours = |name| policies.of(&arn(name)).max_age().as_secs() / 3_600;
/// assert_eq!(["orders", "export-eu", "payments"].map(hours), [2, 336, 24]);
/// assert_eq!(policies.of(&arn("orders")).settings().max_retries, 7);
/// ```
#[derive(Clone, Debug)]
pub struct Policies {
    stack: Policy,
    entries: Vec<PolicyEntry>,
}

/// An entry in `POLICIES`, written `PATTERN VARIABLE=VALUE …`.
#[derive(Clone, Debug)]
pub struct PolicyEntry {
    text: String,
    pattern: PolicyPattern,
    policy: Policy,
}

impl PolicyEntry {
    /// This entry's function pattern, as written.
    pub fn pattern(&self) -> &str {
        pattern_of(&self.text)
    }

    /// The environment variables that this entry in `POLICIES` sets, with their values.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        self.text.split_whitespace().skip(1).filter_map(|setting| setting.split_once('='))
    }

    /// The policy with this entry's settings, and with the stack's settings for all other variables.
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns true if this entry's pattern matches the function, even if an earlier entry matches too.
    pub fn is_about(&self, function_arn: &str) -> bool {
        self.pattern.matches(function_arn)
    }
}

impl fmt::Display for PolicyEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Policies {
    /// Reads the stack's settings and `POLICIES` from environment variables, which `lookup` returns by name.
    ///
    /// # Errors
    ///
    /// Returns an error for every variable or entry that is refused.
    pub fn from_variables(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Vec<SettingError>> {
        let stack = Policy::from_variables(&lookup);
        // A mistake in the stack's own variables is reported once, not again for each entry.
        let inherited = |name: &str| match &stack {
            Ok(_) => lookup(name),
            Err(_) => (name == "TARGET_FUNCTIONS").then(String::new),
        };
        let (mut entries, mut errors) = (Vec::new(), Vec::new());
        for text in entries_of(&lookup("POLICIES").unwrap_or_default()) {
            match PolicyEntry::read(text, inherited) {
                Ok(entry) => entries.push(entry),
                Err(problems) => {
                    let refused = |problem| SettingError(format!("POLICIES entry {text:?} {problem}"));
                    errors.extend(problems.into_iter().map(refused));
                }
            }
        }
        match stack {
            Ok(stack) if errors.is_empty() => Ok(Self { stack, entries }),
            stack => Err(stack.err().into_iter().flatten().chain(errors).collect()),
        }
    }

    /// The stack's policy, which applies to every function that no entry matches.
    pub const fn stack(&self) -> &Policy {
        &self.stack
    }

    /// The entries in `POLICIES`, in the order in which they were written.
    pub fn entries(&self) -> &[PolicyEntry] {
        &self.entries
    }

    /// The policy that applies to a function.
    pub fn of(&self, function_arn: &str) -> &Policy {
        self.entry_of(function_arn).map_or(&self.stack, PolicyEntry::policy)
    }

    /// The entry in `POLICIES` that applies to a function; `None` if the stack's policy applies.
    pub fn entry_of(&self, function_arn: &str) -> Option<&PolicyEntry> {
        self.entries.iter().find(|entry| entry.is_about(function_arn))
    }

    /// Limits bare function names in `POLICIES` to functions in this queue's account and region.
    #[must_use]
    pub fn in_queue(mut self, queue: &QueueArn) -> Self {
        self.entries.iter_mut().for_each(|entry| entry.pattern.set_home(queue));
        self
    }
}

impl From<Policy> for Policies {
    fn from(stack: Policy) -> Self {
        Self { stack, entries: Vec::new() }
    }
}

fn entries_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(';').map(str::trim).filter(|entry| !entry.is_empty())
}

fn pattern_of(entry: &str) -> &str {
    entry.split_whitespace().next().unwrap_or_default()
}

impl PolicyEntry {
    /// Reads an entry; fails with a message for each problem with it.
    fn read(text: &str, inherited: impl Fn(&str) -> Option<String>) -> Result<Self, Vec<String>> {
        let pattern = pattern_of(text).parse::<PolicyPattern>();
        let mut problems: Vec<String> = pattern.as_ref().err().map(ToString::to_string).into_iter().collect();
        let mut settings: Vec<(&str, &str)> = Vec::new();
        for part in text.split_whitespace().skip(1) {
            match part.split_once('=') {
                None => problems
                    .push(format!("has {part:?}, which is not VARIABLE=VALUE; write values without spaces")),
                Some((name, _)) if !Setting::of_functions().any(|setting| setting.name == name) => {
                    let names: Vec<&str> = Setting::of_functions().map(|setting| setting.name).collect();
                    problems.push(format!("sets {name:?}; it may set {}", names.join(", ")));
                }
                Some((name, _)) if settings.iter().any(|(other, _)| *other == name) => {
                    problems.push(format!("sets {name} twice"));
                }
                Some(setting) => settings.push(setting),
            }
        }
        if settings.is_empty() && problems.is_empty() {
            problems.push(
                "sets nothing; it must be a function's name or ARN, then VARIABLE=VALUE, separated by spaces"
                    .into(),
            );
        }
        let own =
            |name: &str| settings.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
        let is_replaced = |name: &str| match name {
            "BACKOFFS" => REPLACED_BY_BACKOFFS.into_iter().any(|name| own(name).is_some()),
            _ => REPLACED_BY_BACKOFFS.contains(&name) && own("BACKOFFS").is_some(),
        };
        let value = |name: &str| own(name).or_else(|| inherited(name).filter(|_| !is_replaced(name)));
        match (pattern, Policy::from_variables(value)) {
            (Ok(pattern), Ok(policy)) if problems.is_empty() => {
                Ok(Self { text: text.into(), pattern, policy })
            }
            (_, policy) => {
                let refused = policy.err().unwrap_or_default();
                problems.extend(refused.iter().map(|error| format!("is refused: {error}")));
                Err(problems)
            }
        }
    }
}
