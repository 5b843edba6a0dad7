//! `comeback` command lines that are suggested to the operator.

use std::borrow::Cow;
use std::fmt;

use crate::shown::shown;

macro_rules! command_names {
    ($($name:ident $words:literal,)*) => {
        /// A subcommand of `comeback` that may be suggested to the operator.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum CommandName {
            $(#[doc = concat!("`", $words, "`")] $name,)*
        }

        impl CommandName {
            /// The subcommand as typed on the command line, such as `dead redrive`.
            pub const fn words(self) -> &'static str {
                match self {
                    $(Self::$name => $words,)*
                }
            }
        }
    };
}

command_names! {
    Attach "attach",
    Cancel "cancel",
    Discard "dead discard",
    Import "dead import",
    DeadList "dead list",
    Redrive "dead redrive",
    DeadShow "dead show",
    Detach "detach",
    Doctor "doctor",
    History "history",
    Pause "pause",
    Resume "resume",
    Retry "retry",
    Schedule "schedule",
    Status "status",
    Trace "trace",
    Waiting "waiting",
}

/// A `comeback` command line, which [`Display`](fmt::Display) quotes for a shell.
///
/// ```
/// use comeback_operate::{Command, CommandName};
///
/// let trace = Command::new(CommandName::Trace, ["a key"], " --stack shop");
/// assert_eq!(trace.to_string(), "comeback trace 'a key' --stack shop");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The subcommand, such as `dead redrive`.
    pub name: CommandName,
    /// The arguments, one word each; words after `--` are never flags.
    pub words: Vec<String>,
    /// The quoted flags that select the deployment, each with a leading space.
    pub place: String,
}

impl Command {
    /// A command with these arguments and the flags that select a deployment.
    pub fn new<W: Into<String>>(
        name: CommandName,
        words: impl IntoIterator<Item = W>,
        place: impl Into<String>,
    ) -> Self {
        Self { name, words: words.into_iter().map(Into::into).collect(), place: place.into() }
    }

    /// The first argument that is not a flag, such as the function's name; `None` if all are flags.
    pub fn operand(&self) -> Option<&str> {
        let mut words = self.words.iter().skip_while(|word| word.starts_with("--") && *word != "--");
        words.find(|word| *word != "--").map(String::as_str)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A terminal would act on control characters.
        let words: Vec<_> = self.words.iter().map(|word| shown(word)).collect();
        let (words, operands) =
            words.split_at(words.iter().position(|word| word == "--").unwrap_or(words.len()));
        let line = |words: &[Cow<'_, str>]| match words {
            [] => String::new(),
            words => format!(" {}", command_line(words.iter().map(AsRef::as_ref))),
        };
        write!(f, "comeback {}{}{}{}", self.name.words(), line(words), self.place, line(operands))
    }
}

/// Joins the words of a command into a line that can be pasted into a shell.
pub fn command_line<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Quotes a word, unless every shell reads it unchanged; `shlex` alone would also quote `=`, `,` and `%`.
fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/@=%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    shlex::try_quote(word).expect("BUG: a NUL in a command line")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_words_back() {
        let words =
            ["comeback", "", "--vs", "jitter=none,max-age=1h", "50%", "Order*", "It's $5", "a b", "~", "é"];
        let line = command_line(words);
        assert_eq!(line, r#"comeback '' --vs jitter=none,max-age=1h 50% 'Order*' "It's "'$5' 'a b' '~' 'é'"#);
        assert_eq!(shlex::split(&line).unwrap(), words);
    }

    #[test]
    fn an_operand_that_looks_like_a_flag_comes_last() {
        let show = Command::new(CommandName::DeadShow, ["--", "-k'"], " --stack shop");
        assert_eq!(show.to_string(), r#"comeback dead show --stack shop -- "-k'""#);
        assert_eq!(show.operand(), Some("-k'"));
        let all = Command::new(CommandName::Resume, ["--spread=0s", "orders"], "");
        assert_eq!(
            (all.operand(), Command::new(CommandName::Resume, ["--all"], "").operand()),
            (Some("orders"), None)
        );
    }

    #[test]
    fn a_word_cannot_command_the_terminal() {
        let trace = Command::new(CommandName::Trace, ["a\0`b`$c"], "");
        let words = shlex::split(&trace.to_string()).unwrap();
        assert_eq!(words, ["comeback", "trace", r"a\u{0}`b`$c"]);
    }
}
