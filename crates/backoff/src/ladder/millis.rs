/// Reads a rung as `ladder!` spells it: `100ms`, `1_500ms`, `1s`, `2m`, `1h`. For anything else the
/// compiler points at the caller.
#[doc(hidden)]
#[track_caller]
pub const fn millis(rung: &str) -> u64 {
    let bytes = rung.as_bytes();
    let (mut number, mut length) = (0, 0);
    while length < bytes.len() && (bytes[length].is_ascii_digit() || bytes[length] == b'_') {
        if bytes[length] != b'_' {
            number = sum(product(number, 10), (bytes[length] - b'0') as u64);
        }
        length += 1;
    }
    let unit = match bytes.split_at(length).1 {
        b"ms" => 1,
        b"s" => 1_000,
        b"m" => 60_000,
        b"h" => 3_600_000,
        _ => 0,
    };
    require(length > 0 && unit > 0, "a rung must be a whole number of ms, s, m or h, such as 100ms");
    product(number, unit)
}

/// An assertion that the compiler reports where it is called, not inside the standard library.
#[track_caller]
pub(super) const fn require(holds: bool, what: &'static str) {
    assert!(holds, "{}", what);
}

#[track_caller]
pub(super) const fn sum(a: u64, b: u64) -> u64 {
    require(a.checked_add(b).is_some(), "a wait must be shorter than 2^64 ms");
    a + b
}

#[track_caller]
const fn product(a: u64, b: u64) -> u64 {
    require(a.checked_mul(b).is_some(), "a wait must be shorter than 2^64 ms");
    a * b
}

#[cfg(test)]
mod tests {
    use super::millis;

    fn refusal(rung: &'static str) -> String {
        *std::panic::catch_unwind(|| millis(rung)).unwrap_err().downcast().unwrap()
    }

    #[test]
    fn rungs_are_read_in_four_units() {
        assert_eq!(
            [millis("100ms"), millis("1_500ms"), millis("2s"), millis("3m"), millis("1h")],
            [100, 1_500, 2_000, 180_000, 3_600_000]
        );
    }

    #[test]
    fn anything_else_is_refused() {
        for rung in ["100", "1.5s", "100us", "ms", "1 s", "0x10ms"] {
            assert_eq!(
                refusal(rung),
                "a rung must be a whole number of ms, s, m or h, such as 100ms",
                "{rung}"
            );
        }
        for rung in ["184467440737095516160ms", "18446744073709551616ms", "18446744073709551615s"] {
            assert_eq!(refusal(rung), "a wait must be shorter than 2^64 ms", "{rung}");
        }
    }
}
