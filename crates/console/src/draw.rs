//! Helpers of the macros in `templates/layout.html`, which draw an answer: the CSS class of a tone, and the page that
//! corresponds to a command.

use comeback_operate::{Command, CommandName, Tone};

use crate::page::encoded;

/// The CSS class for text of this tone.
pub(super) const fn class(tone: &Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Warning => "warn",
        Tone::Bad => "bad",
    }
}

/// The path of the console's page that does the same as a command; `None` if only the terminal can do it.
pub(super) fn address(command: &Command) -> Option<String> {
    let operand = command.operand();
    let of = |path: &str| {
        let function = operand.map(|function| format!("?function={}", encoded(function)));
        format!("{path}{}", function.unwrap_or_default())
    };
    Some(match command.name {
        CommandName::Status => "/".into(),
        CommandName::History => "/activity".into(),
        CommandName::Pause if command.words.iter().any(|word| word == "--list") => "/".into(),
        CommandName::Waiting => of("/waiting"),
        CommandName::Trace => format!("/event?id={}", encoded(operand?)),
        CommandName::Pause => of("/pause"),
        CommandName::Resume => of("/resume"),
        CommandName::Retry => of("/retry"),
        CommandName::DeadList | CommandName::DeadShow | CommandName::Redrive | CommandName::Discard => {
            "/dead".into()
        }
        CommandName::Import => "/dead/import".into(),
        CommandName::Doctor => "/doctor".into(),
        CommandName::Cancel => of("/cancel"),
        CommandName::Attach | CommandName::Detach => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_leads_to_its_page() {
        for (name, words, page) in [
            (CommandName::Status, &[][..], Some("/")),
            (CommandName::Pause, &["--list"], Some("/")),
            (CommandName::Pause, &["a b"], Some("/pause?function=a%20b")),
            (CommandName::Resume, &["--all"], Some("/resume")),
            (CommandName::History, &[], Some("/activity")),
            (CommandName::Trace, &["k-1"], Some("/event?id=k%2D1")),
            (CommandName::Trace, &[], None),
            (CommandName::DeadShow, &["k-1"], Some("/dead")),
            (CommandName::Attach, &["orders"], None),
        ] {
            let command = Command::new(name, words.iter().copied(), " --stack shop");
            assert_eq!(address(&command).as_deref(), page, "{command}");
        }
    }
}
