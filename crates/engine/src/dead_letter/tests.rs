use super::is_reason;
use crate::ReasonCode;

#[test]
fn reasons_are_known_by_name() {
    assert!(ReasonCode::ALL.iter().all(|code| is_reason(code.name())));
    assert!(!is_reason("") && !is_reason("MAX_AGE"));
}
