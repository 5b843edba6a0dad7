//! `comeback doctor`: runs numbered checks on a deployment and its functions.

use clap::Args;
use comeback_operate::doctor::checks::number;
use comeback_operate::doctor::diagnosis::Examination;
use comeback_operate::doctor::doctor;
use comeback_operate::function::FunctionName;

use crate::failure::CommandFailure;
use crate::operate::session::Session;
use crate::terminal;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback doctor
  comeback doctor --short
  comeback doctor orders:live --strict
  comeback doctor --only CB012,CB013 --json
  comeback doctor --probe

docs/doctor.md describes each check. The doctor changes nothing; with --probe, it sends one event.";

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Check these functions, attached or not, and list only problems with the deployment itself; for a function that
    /// reads SQS directly, check what comeback-sqs needs
    #[arg(value_name = "FUNCTION")]
    functions: Vec<FunctionName>,
    /// Run only these checks
    #[arg(long, value_name = "NUMBERS", value_parser = number, value_delimiter = ',', conflicts_with = "skip")]
    only: Vec<&'static str>,
    /// Run all checks except these
    #[arg(long, value_name = "NUMBERS", value_parser = number, value_delimiter = ',')]
    skip: Vec<&'static str>,
    /// Show only the checks that are not ok
    #[arg(long)]
    short: bool,
    /// Exit with code 3 for warnings too
    #[arg(long)]
    strict: bool,
    /// Send the example function an event that fails once, and follow it until it is retried
    #[arg(long, conflicts_with = "dry_run")]
    probe: bool,
}

pub(crate) async fn run(arguments: DoctorArguments, session: Session) -> Result<(), CommandFailure> {
    let DoctorArguments { functions, only, skip, short, strict, probe } = arguments;
    let examination = Examination { functions, only, skip, is_short: short, is_strict: strict, probe };
    terminal::answer(&doctor(&session.operator(), &examination).await?, &session)
}
