//! The command that makes a run again.

/// What was typed, with this one seed. Ready to be pasted into a shell.
pub(crate) fn command(seed: u64) -> String {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    with_seed(arguments, seed)
}

fn with_seed(mut arguments: impl Iterator<Item = String>, seed: u64) -> String {
    let mut command = vec!["comeback".to_owned()];
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seed" | "--seeds" => drop(arguments.next()),
            other if other.starts_with("--seed=") || other.starts_with("--seeds=") => {}
            _ => command.push(quoted(argument)),
        }
    }
    command.push(format!("--seed {seed}"));
    command.join(" ")
}

fn quoted(argument: String) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=.,:/@%+".contains(&byte);
    if !argument.is_empty() && argument.bytes().all(plain) {
        return argument;
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_all_but_the_seeds() {
        let typed = ["replay", "--seed", "1", "--chaos", "--seeds=200", "--for=6h"].map(String::from);
        assert_eq!(with_seed(typed.into_iter(), 17), "comeback replay --chaos --for=6h --seed 17");
    }

    #[test]
    fn quotes_what_a_shell_would_change() {
        let typed = ["replay", "--non-retryable-errors", "Bad*", "it's", ""].map(String::from);
        let expected = r"comeback replay --non-retryable-errors 'Bad*' 'it'\''s' '' --seed 1";
        assert_eq!(with_seed(typed.into_iter(), 1), expected);
    }
}
