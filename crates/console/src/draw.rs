//! Helpers for the macros in `templates/layout.html`, which draw the output of a command.

use std::borrow::Cow;

use comeback_operate::{Command, CommandName, Piece, Text, Tone};

use crate::response::encoded;

pub(super) const fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Warning => "warn",
        Tone::Bad => "bad",
    }
}

/// Maximum length, in characters, of a key that is shown in full.
const WHOLE_KEY: usize = 24;

/// Shortens an event's key for a table.
pub(super) fn short_key(key: &str) -> Cow<'_, str> {
    let is_uuid = key.len() == 36 && key.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    let most = if is_uuid { 8 } else { WHOLE_KEY };
    match key.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &key[..end]).into(),
        None => key.into(),
    }
}

/// Placeholder for a function's name in a suggested command.
const PLACEHOLDER: &str = "FUNCTION";

/// The path of the page for a command; `None` if the console has no such page.
pub(super) fn address(command: &Command) -> Option<String> {
    let operand = command.operand().filter(|operand| *operand != PLACEHOLDER);
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
        CommandName::Attach if command.words.iter().any(|word| word == "--list") => "/function".into(),
        CommandName::Attach => of("/attach"),
        CommandName::Detach => of("/detach"),
        CommandName::Schedule => return None,
    })
}

/// The label and path of a button for the first command in `text` that makes a change. `None` if no command gets a
/// button.
pub(super) fn button(text: &Text) -> Option<(String, String)> {
    text.spans().iter().find_map(|span| {
        let Piece::Command(command, _) = &span.piece else { return None };
        let (words, operand) = (command.name.words(), command.operand()?);
        let is_change = matches!(
            command.name,
            CommandName::Attach | CommandName::Detach | CommandName::Resume | CommandName::Retry
        );
        // A command with flags has no button, because the page would lose the flags. A placeholder stands for a name
        // that only the operator knows.
        let is_whole = command.words.len() == 1 && operand != PLACEHOLDER;
        let path = address(command).filter(|_| is_change && is_whole)?;
        Some((
            format!("{}{} {operand} …", words[..1].to_uppercase(), &words[1..]),
            format!("{path}&plan=yes"),
        ))
    })
}

#[cfg(test)]
mod tests {
    use comeback_operate::text;

    use super::*;

    #[test]
    fn long_key_is_cut() {
        assert_eq!(short_key("5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11"), "5e2c1a9b…");
        assert_eq!(short_key("größe-注文"), "größe-注文");
        assert_eq!(short_key(&"é".repeat(25)), format!("{}…", "é".repeat(24)));
    }

    #[test]
    fn change_that_a_text_suggests_is_a_button() {
        let suggests = |name, words: &[&str]| {
            let command = Command::new(name, words.iter().copied(), " --stack shop");
            button(&text!["its failures are lost: ", command])
        };
        let attach = ("Attach orders …".to_owned(), "/attach?function=orders&plan=yes".to_owned());
        assert_eq!(suggests(CommandName::Attach, &["orders"]), Some(attach));
        assert_eq!(suggests(CommandName::Doctor, &["orders"]), None, "it changes nothing");
        assert_eq!(suggests(CommandName::Attach, &[]), None);
        assert_eq!(suggests(CommandName::Attach, &["orders", "--move"]), None, "the page cannot move it");
        assert_eq!(suggests(CommandName::Attach, &["FUNCTION"]), None);
        assert_eq!(button(&"aws lambda".into()), None);
    }

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
            (CommandName::Attach, &["orders"], Some("/attach?function=orders")),
            (CommandName::Attach, &["FUNCTION"], Some("/attach")),
            (CommandName::Attach, &["--list"], Some("/function")),
        ] {
            let command = Command::new(name, words.iter().copied(), " --stack shop");
            assert_eq!(address(&command).as_deref(), page, "{command}");
        }
    }
}
