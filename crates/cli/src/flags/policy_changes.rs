use std::fmt;

use crate::flags::policy::PolicyFlags;

/// What `--vs` changes in a policy: flags with their other values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyChanges(Vec<(&'static str, String)>);

impl PolicyChanges {
    /// Reads `jitter=none,max-backoff=1h`. A part without `=` continues the value before it, because
    /// a value can be a list.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut changes: Vec<(&'static str, String)> = Vec::new();
        for part in text.split(',') {
            match (part.split_once('='), changes.last_mut()) {
                (Some((name, value)), _) => {
                    let flag = flag(name.trim())?;
                    if changes.iter().any(|(other, _)| *other == flag) {
                        return Err(format!("{flag} is given twice"));
                    }
                    changes.push((flag, value.trim().to_owned()));
                }
                (None, Some((_, list))) => list.extend([",", part]),
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
    known.ok_or_else(|| format!("\"{name}\" is no flag of the policy: there are {}", names.join(", ")))
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
    }

    #[test]
    fn what_changes_nothing_is_refused() {
        let form = "must be FLAG=VALUE, such as jitter=none,max-backoff=1h";
        let flags = "max-age, max-retries, base-backoff, max-backoff, jitter, envelope, directives, \
            hide-up-to, maximum-concurrency, non-retryable-errors";
        for (text, expected) in [
            ("", form.to_owned()),
            ("none", form.to_owned()),
            ("jiter=none", format!("\"jiter\" is no flag of the policy: there are {flags}")),
            ("=none", format!("\"\" is no flag of the policy: there are {flags}")),
            ("jitter=none,jitter=full", "jitter is given twice".to_owned()),
        ] {
            assert_eq!(PolicyChanges::read(text), Err(expected), "{text}");
        }
    }
}
