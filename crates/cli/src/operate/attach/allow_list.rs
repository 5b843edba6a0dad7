//! The allow-list, `TARGET_FUNCTIONS`, as text.

use crate::operate::deployment::entries;

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

/// Whether an entry names this function alone.
pub(crate) fn has(list: &str, arn: &str) -> bool {
    entries(list).any(|entry| names(entry, arn))
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
}
