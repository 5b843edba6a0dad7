//! Writes a manual page for each subcommand, and completions for three shells, into a folder laid out like `/usr`.
//!
//! `cargo run -p comeback --example manual -- FOLDER`

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap_complete::{Shell, generate_to};

const NAME: &str = "comeback";

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("name the folder to write to");
        return ExitCode::from(2);
    };
    match write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path) -> std::io::Result<()> {
    let pages = folder.join("share/man/man1");
    fs::create_dir_all(&pages)?;
    clap_mangen::generate_to(comeback::command_line(), &pages)?;
    for (shell, place) in [
        (Shell::Bash, "share/bash-completion/completions"),
        (Shell::Fish, "share/fish/vendor_completions.d"),
        (Shell::Zsh, "share/zsh/site-functions"),
    ] {
        let place = folder.join(place);
        fs::create_dir_all(&place)?;
        let file = generate_to(shell, &mut comeback::command_line(), NAME, &place)?;
        if shell == Shell::Bash {
            // bash-completion expects a file with the command's name and no extension.
            fs::rename(file, place.join(NAME))?;
        }
    }
    Ok(())
}
