use std::str::FromStr;

use crate::doctor::{CHECKS, Check};

/// The number of a check that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckNumber(&'static str);

/// A number that no check has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no check; docs/doctor.md lists them, from CB001 to CB201")]
pub struct UnknownCheck(String);

impl FromStr for CheckNumber {
    type Err = UnknownCheck;

    fn from_str(text: &str) -> Result<Self, UnknownCheck> {
        let check = CHECKS.iter().find(|check| check.id.eq_ignore_ascii_case(text.trim()));
        check.map(|check| Self(check.id)).ok_or_else(|| UnknownCheck(text.to_owned()))
    }
}

/// Which checks are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// Every one.
    #[default]
    All,
    /// These.
    Only(Vec<CheckNumber>),
    /// All but these.
    Without(Vec<CheckNumber>),
}

impl Selection {
    /// Whether a check is made.
    #[must_use]
    pub fn has(&self, check: &Check) -> bool {
        let is_in = |numbers: &[CheckNumber]| numbers.contains(&CheckNumber(check.id));
        match self {
            Self::All => true,
            Self::Only(numbers) => is_in(numbers),
            Self::Without(numbers) => !is_in(numbers),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_no_check_has_is_refused() {
        assert_eq!("cb001".parse(), Ok(CheckNumber("CB001")));
        let refused = "CB999".parse::<CheckNumber>().unwrap_err().to_string();
        assert_eq!(refused, r#""CB999" is no check; docs/doctor.md lists them, from CB001 to CB201"#);
        let (first, last) = (CHECKS[0].id, CHECKS[CHECKS.len() - 1].id);
        assert!(refused.ends_with(&format!("from {first} to {last}")));
    }

    #[test]
    fn a_selection_has_some_or_all_others() {
        let selected = |selection: Selection| CHECKS.iter().filter(|check| selection.has(check)).count();
        let numbers = || vec![CheckNumber("CB001"), CheckNumber("CB201")];
        assert_eq!(selected(Selection::All), CHECKS.len());
        assert_eq!(selected(Selection::Only(numbers())), 2);
        assert_eq!(selected(Selection::Without(numbers())), CHECKS.len() - 2);
    }
}
