use indicatif::HumanCount;

/// To three digits: `0.0123`, `1.58`, `837,000`.
pub(crate) fn rounded(number: f64) -> String {
    if number <= 0.0 {
        return "0".into();
    }
    let digits = 2 - number.log10().floor() as i32;
    let unit = 10f64.powi(-digits);
    let rounded = (number / unit).round() * unit;
    if digits > 0 {
        let text = format!("{rounded:.*}", digits as usize);
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    HumanCount(rounded.round() as u64).to_string()
}

/// `1 event`, `1,000 events`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", HumanCount(count), if count == 1 { one } else { many })
}

/// The first of 1, 2, 5, 10, 20, 50, … that is large enough.
pub(crate) fn round_step(is_enough: impl Fn(u64) -> bool) -> u64 {
    let steps = (0..).flat_map(|tens| [1, 2, 5].map(|n| n * 10u64.pow(tens)));
    steps.into_iter().find(|&step| is_enough(step)).expect("BUG: no step is enough")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_three_digits() {
        let texts = [0.0, 0.012_34, 0.5, 1.0, 1.576, 9.996, 99.96, 123.4, 5_689.0, 837_123.0].map(rounded);
        assert_eq!(texts, ["0", "0.0123", "0.5", "1", "1.58", "10", "100", "123", "5,690", "837,000"]);
    }

    #[test]
    fn steps_are_round() {
        assert_eq!(
            [1, 2, 3, 6, 11, 40, 51, 1_000].map(|n| round_step(|step| step >= n)),
            [1, 2, 5, 10, 20, 50, 100, 1_000]
        );
    }
}
