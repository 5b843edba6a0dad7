use std::collections::BTreeMap;

/// CloudFormation's limit of a parameter's value.
pub(crate) const PARAMETER_BYTES: usize = 4_096;

/// Lambda's limit of a function's variables, measured as one JSON object.
pub(crate) const ENVIRONMENT_BYTES: usize = 4_096;

/// The name of the variable.
pub(crate) const VARIABLE: &str = "TARGET_FUNCTIONS";

/// The list with one more entry; as it is, if it has that entry.
pub(crate) fn with(list: &str, arn: &str) -> String {
    if entries(list).any(|entry| entry == arn) {
        return list.to_owned();
    }
    entries(list).chain([arn]).collect::<Vec<_>>().join(",")
}

/// The list without the entries that name this function, whatever their qualifier. Patterns stay.
pub(crate) fn without(list: &str, arn: &str) -> String {
    entries(list).filter(|entry| !names(entry, arn)).collect::<Vec<_>>().join(",")
}

/// Whether an entry names this function, and no other.
pub(crate) fn has(list: &str, arn: &str) -> bool {
    entries(list).any(|entry| names(entry, arn))
}

/// How many bytes Lambda counts of these variables.
pub(crate) fn environment_bytes(variables: &BTreeMap<String, String>) -> usize {
    serde_json::json!(variables).to_string().len()
}

fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

fn names(entry: &str, arn: &str) -> bool {
    entry.strip_prefix(arn).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_added_once_and_removed_with_its_qualifiers() {
        for (list, with_f, without_f) in [
            ("", "f", ""),
            ("f", "f", ""),
            ("g", "g,f", "g"),
            ("g, f ,h", "g, f ,h", "g,h"),
            ("f:live,g", "f:live,g,f", "g"),
            ("ff,f-*", "ff,f-*,f", "ff,f-*"),
            (",g,", "g,f", "g"),
        ] {
            assert_eq!(with(list, "f"), with_f, "{list:?}");
            assert_eq!(without(list, "f"), without_f, "{list:?}");
            assert_eq!(has(list, "f"), list.contains("f:live") || with(list, "f") == list, "{list:?}");
            assert!(!has(&without(list, "f"), "f"));
        }
    }

    #[test]
    fn an_environment_is_measured_as_lambda_does() {
        let variables = BTreeMap::from([("A".to_owned(), "1".to_owned()), ("B".to_owned(), String::new())]);
        assert_eq!(environment_bytes(&variables), r#"{"A":"1","B":""}"#.len());
    }
}
