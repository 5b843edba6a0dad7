//! The `comeback` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    comeback::main()
}
