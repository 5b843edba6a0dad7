/// Between the parts of a qualified name: packages, nested classes and paths; ...
const SEPARATORS: [char; 3] = ['.', '$', '/'];
/// ... and modules.
const PATH: &[u8] = b"::";
const ENDINGS: [&str; 2] = ["Error", "Exception"];

/// The simple name of an `errorType`, which is the same whichever runtime wrote it: what is left without Ruby's
/// `Function<…>`, any `&`, everything up to the last `.`, `$`, `::` or `/`, and one `Error` or `Exception` at the end. A
/// name that is nothing but such an ending stays.
///
/// ```
/// use comeback_engine::simple_name;
///
/// for error_type in ["RetryAfter", "RetryAfterError", "com.acme.Orders$RetryAfter", "Function<Acme::RetryAfter>"] {
///     assert_eq!(simple_name(error_type), "RetryAfter");
/// }
/// assert_eq!(simple_name("java.lang.Error"), "Error");
/// ```
pub fn simple_name(error_type: &str) -> &str {
    let inner = error_type.strip_prefix("Function<").and_then(|rest| rest.strip_suffix('>'));
    let name = inner.unwrap_or(error_type).trim_start_matches('&');
    let last = name.rsplit(SEPARATORS).next().unwrap_or(name);
    // Names are short: to prepare a search for `::` would take longer than to look at each pair.
    let pairs = last.as_bytes().windows(PATH.len());
    let last = pairs.rev().position(|pair| pair == PATH).map_or(last, |after| &last[last.len() - after..]);
    let shorter = ENDINGS.iter().find_map(|ending| last.strip_suffix(ending));
    shorter.filter(|name| !name.is_empty()).unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_each_runtime_puts_around_a_name_is_taken_off() {
        for (error_type, name) in [
            ("RetryAfter", "RetryAfter"),
            ("RetryAfterError", "RetryAfter"),
            ("RetryAfterException", "RetryAfter"),
            ("com.acme.RetryAfterException", "RetryAfter"),
            ("com.acme.Orders$RetryAfter", "RetryAfter"),
            ("orders::error::RetryAfter", "RetryAfter"),
            ("&orders::RetryAfter", "RetryAfter"),
            ("&&str", "str"),
            ("Function<Acme::RetryAfter>", "RetryAfter"),
            ("Function<&Acme::RetryAfterError>", "RetryAfter"),
            ("github.com/acme/orders.RetryAfter", "RetryAfter"),
            ("Sandbox.Timedout", "Timedout"),
            ("Runtime.ExitError", "Exit"),
            ("Größe", "Größe"),
        ] {
            assert_eq!(simple_name(error_type), name, "{error_type}");
        }
    }

    #[test]
    fn odd_names_stay_apart_from_ours() {
        for (error_type, name) in [
            ("", ""),
            ("&", ""),
            ("Function<>", ""),
            ("com.acme.", ""),
            ("Error", "Error"),
            ("java.lang.Exception", "Exception"),
            ("ErrorException", "Error"),
            ("ErrorError", "Error"),
            ("RetryAfterErrorError", "RetryAfterError"),
            ("RetryAfterErrors", "RetryAfterErrors"),
            ("retryafter", "retryafter"),
            ("Acme:RetryAfter", "Acme:RetryAfter"),
            ("Function<RetryAfter", "Function<RetryAfter"),
            ("Init<RetryAfter>", "Init<RetryAfter>"),
            // Generics are not looked into.
            ("Failed<orders::RetryAfter>", "RetryAfter>"),
            ("alloc::boxed::Box<dyn core::error::Error + Send + Sync>", "Error + Send + Sync>"),
            ("RetryAfter`1", "RetryAfter`1"),
        ] {
            assert_eq!(simple_name(error_type), name, "{error_type:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_part_of_itself_as_its_name(error_type in r"(Function<)?[&.$:/<>A-Za-zé]{0,24}(Error|Exception)?>?") {
            let name = simple_name(&error_type);
            prop_assert!(error_type.contains(name));
            prop_assert!(!name.contains(SEPARATORS) && !name.contains("::"), "{}", name);
        }

        /// One ending is taken off, so a name that has none is its own simple name.
        #[test]
        fn a_simple_name_stays(error_type in any::<String>()) {
            let name = simple_name(&error_type);
            if !ENDINGS.iter().any(|ending| name.ends_with(ending)) && !name.starts_with(['&', 'F']) {
                prop_assert_eq!(simple_name(name), name);
            }
        }

        #[test]
        fn where_a_name_comes_from_does_not_matter(
            path in "[a-z.$/]{0,12}",
            name in "[A-Z][A-Za-z]{0,12}[a-qs-z]",
            ending in "(Error|Exception)?",
        ) {
            prop_assume!(!ENDINGS.iter().any(|ending| name.ends_with(ending)));
            for separator in [".", "$", "::", "/"] {
                let qualified = format!("{path}{separator}{name}{ending}");
                for written in [format!("&{qualified}"), format!("Function<{qualified}>"), qualified] {
                    prop_assert_eq!(simple_name(&written), name.as_str());
                }
            }
        }
    }
}
