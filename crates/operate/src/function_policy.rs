//! The settings of a function's policy, and where each value comes from.

use comeback_engine::{Kind, PolicyEntry, Setting, Unset};

use crate::deployment::Deployment;
use crate::durations;
use crate::handler_setting::parameter_of;
use crate::layout::Table;

/// A table of a function's settings, each with its value and the place that sets it. `entry` is the function's entry in
/// `POLICIES`, if any.
pub fn policy_table(deployment: &Deployment, entry: Option<&PolicyEntry>) -> Table {
    let mut table = Table::new(["setting", "value", "from"]);
    let rows = Setting::of_functions().filter_map(|setting| row(deployment, entry, setting));
    rows.for_each(|row| table.row(row));
    table
}

fn row(deployment: &Deployment, entry: Option<&PolicyEntry>, setting: &Setting) -> Option<[String; 3]> {
    let of_entry = |name: &str| entry?.settings().find(|(set, _)| *set == name).map(|(_, value)| value);
    let is_replaced = match setting.name {
        "BACKOFFS" => ["BASE_BACKOFF", "MAX_BACKOFF"].iter().any(|name| of_entry(name).is_some()),
        "BASE_BACKOFF" | "MAX_BACKOFF" => of_entry("BACKOFFS").is_some(),
        _ => false,
    };
    let name = setting.name.to_owned();
    if let Some(value) = of_entry(setting.name) {
        let pattern = entry.map(PolicyEntry::pattern).unwrap_or_default();
        return Some([name, in_words(setting, value), format!("POLICIES, entry {pattern}")]);
    }
    let default = match setting.default {
        Unset::Is(text) => Some(text),
        Unset::Means(_) => None,
    };
    let set = deployment.variables.get(setting.name).filter(|value| !value.is_empty() && !is_replaced);
    let set = set.map(|value| in_words(setting, value));
    match (set, default.map(|text| in_words(setting, text))) {
        (Some(value), default) if default.as_ref() != Some(&value) => {
            let from = match &deployment.stack {
                Some(stack) => format!("stack {stack}, parameter {}", parameter_of(setting.name)),
                None => format!("variable of {}", deployment.handler),
            };
            Some([name, value, from])
        }
        (_, Some(default)) if !is_replaced => {
            let value = if default.is_empty() { "-".into() } else { default };
            Some([name, value, "default".into()])
        }
        _ => None,
    }
}

/// A setting's value, formatted as the commands print it.
fn in_words(setting: &Setting, value: &str) -> String {
    let time = match setting.kind {
        Kind::Seconds { .. } | Kind::SecondsUpTo { .. } => durations::read(value).ok(),
        _ => None,
    };
    time.map_or_else(|| value.to_owned(), durations::text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(variables: &[(&str, &str)], function: &str) -> Vec<[String; 3]> {
        let mut deployment = Deployment { stack: Some("comeback".into()), ..Deployment::sample() };
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        deployment.variables.extend(variables);
        let policies = deployment.policies().unwrap();
        let arn = format!("arn:aws:lambda:eu-west-1:123456789012:function:{function}:$LATEST");
        let rows = policy_table(&deployment, policies.entry_of(&arn)).rows.into_iter();
        rows.map(|row| [0, 1, 2].map(|cell| row[cell].to_string())).collect()
    }

    fn of(rows: &[[String; 3]], setting: &str) -> Option<(String, String)> {
        let row = rows.iter().find(|row| row[0] == setting);
        row.map(|[_, value, from]| (value.clone(), from.clone()))
    }

    #[test]
    fn each_value_says_where_it_comes_from() {
        let variables = [
            ("MAX_AGE", "172800"),
            ("BASE_BACKOFF", "10"),
            ("POLICIES", "orders MAX_AGE=2h BACKOFFS=20s,5m; ord* JITTER=none"),
        ];
        let pair = |value: &str, from: &str| Some((value.to_owned(), from.to_owned()));
        let orders = rows(&variables, "orders");
        assert_eq!(of(&orders, "MAX_AGE"), pair("2h", "POLICIES, entry orders"));
        assert_eq!(of(&orders, "BACKOFFS"), pair("20s,5m", "POLICIES, entry orders"));
        assert_eq!((of(&orders, "BASE_BACKOFF"), of(&orders, "MAX_BACKOFF")), (None, None), "replaced");
        assert_eq!(of(&orders, "JITTER"), pair("full", "default"), "the first entry alone counts");
        let others = rows(&variables, "export");
        assert_eq!(of(&others, "MAX_AGE"), pair("2d", "stack comeback, parameter MaxAge"));
        assert_eq!(of(&others, "BASE_BACKOFF"), pair("10s", "default"), "as the template writes it");
        assert_eq!(of(&others, "BACKOFFS"), None);
        assert_eq!(of(&others, "NON_RETRYABLE_ERRORS"), pair("-", "default"));
    }
}
