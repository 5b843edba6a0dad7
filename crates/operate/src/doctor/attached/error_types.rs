//! What the runtimes write as an error's type.

/// What Lambda itself writes, whatever the runtime: `Sandbox.Timedout`, `Runtime.ExitError`, ….
const OF_LAMBDA: [&str; 4] = ["Sandbox.", "Runtime.", "Extension.", "Lambda."];

/// What Ruby writes before every type.
const OF_RUBY: &str = "Function<";

/// Whether the type of some error of a runtime, or its simple name, can match an entry of `NON_RETRYABLE_ERRORS`. If it is
/// not known, it can.
pub(super) fn can_match(entry: &str, runtime: &str) -> bool {
    let is_written: fn(char) -> bool =
        match runtime.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
            // The class's own name, without its module.
            "python" => is_name,
            // The class with its package: `com.acme.Orders$RetryAfter`.
            "java" => |c| is_name(c) || matches!(c, '.' | '$'),
            // `Function<Acme::RetryAfter>`.
            "ruby" => |c| is_name(c) || matches!(c, '<' | '>' | ':'),
            _ => return true,
        };
    let is_wildcard = |c: char| matches!(c, '*' | '?');
    let begins = entry.split(is_wildcard).next().unwrap_or_default();
    let may_begin = |prefix: &str| begins.starts_with(prefix) || prefix.starts_with(begins);
    let may_be_simple = entry.chars().all(|c| is_name(c) || is_wildcard(c));
    let may_be_whole = entry.chars().all(|c| is_written(c) || is_wildcard(c))
        && (may_begin(OF_RUBY) || !runtime.starts_with("ruby"));
    may_be_simple || may_be_whole || OF_LAMBDA.into_iter().any(may_begin)
}

/// A character of a name, in any script.
fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::can_match;

    #[test]
    fn python_writes_no_module() {
        for entry in
            ["OrderRefused", "Order*", "*", "Größe", "Sandbox.Timedout", "Runtime.*", "*.Timeout", "Run*.x"]
        {
            assert!(can_match(entry, "python3.12"), "{entry}");
        }
        for entry in
            ["com.acme.OrderRefused", "orders.OrderRefused", "Orders$Refused", "Acme::Refused", "Order-*"]
        {
            assert!(!can_match(entry, "python3.12"), "{entry}");
        }
    }

    #[test]
    fn java_and_ruby_write_their_own_marks() {
        assert!(can_match("com.acme.Orders$RetryAfter", "java21"));
        assert!(!can_match("Acme::RetryAfter", "java21"));
        assert!(can_match("Function<Acme::RetryAfter>", "ruby3.4"));
        assert!(can_match("*::RetryAfter>", "ruby3.4"));
        assert!(!can_match("Acme::RetryAfter", "ruby3.4"), "neither the whole type nor its simple name");
        assert!(!can_match("com.acme.RetryAfter", "ruby3.4"));
    }

    #[test]
    fn every_runtimes_types_have_simple_names() {
        for runtime in ["python3.12", "java21", "ruby3.4"] {
            assert!(can_match("OrderRefused", runtime) && can_match("Order*", runtime), "{runtime}");
        }
    }

    #[test]
    fn a_runtime_that_writes_anything_is_not_judged() {
        for runtime in ["nodejs22.x", "provided.al2023", "dotnet8", "an image"] {
            assert!(can_match("com.acme::Any-thing", runtime), "{runtime}");
        }
    }
}
