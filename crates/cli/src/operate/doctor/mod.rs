//! `comeback doctor`: numbered checks of a deployment and of the functions attached to it.
//!
//! | file | holds |
//! |---|---|
//! | `report` | what was found, in words |

mod report;

use std::io::Write as _;

use clap::Args;
use comeback_operate::doctor::{CheckNumber, Examination, Outcome, Selection, probe};
use comeback_operate::{Failure, FunctionName, Step};

use crate::clock::now;
use crate::failure;
use crate::operate::common::Common;
use crate::operate::session::Session;
use crate::operate::trace::sentence;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback doctor
  comeback doctor orders:live --strict
  comeback doctor --only CB012,CB013 --json
  comeback doctor --probe

docs/doctor.md says what each check looks at. Nothing is changed; --probe sends one event.";

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Functions to check besides those that are attached
    #[arg(value_name = "FUNCTION")]
    pub(crate) functions: Vec<FunctionName>,
    /// Make these checks alone
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', conflicts_with = "skip")]
    pub(crate) only: Vec<CheckNumber>,
    /// Make all checks but these
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pub(crate) skip: Vec<CheckNumber>,
    /// Exit with 3 for warnings too
    #[arg(long)]
    pub(crate) strict: bool,
    /// Send the example function an event that fails once, and follow it until it was retried
    #[arg(long)]
    pub(crate) probe: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &DoctorArguments, session: Session) -> Result<(), failure::Failure> {
    let work = async {
        let deployment = session.deployment().await?;
        let account = &session.account;
        let selection = arguments.selection();
        let mut examination =
            Examination::make(account, &deployment, &arguments.functions, &selection, now()).await;
        if arguments.probe && examination.has_probe() {
            let mut say = |step: &Step| anstream::eprintln!("probe: {}", sentence(step));
            examination.probed(probe(account, &deployment, now(), &mut say).await);
        }
        Ok((deployment, examination))
    };
    let (deployment, examination) = session.interrupt.or(work).await?;
    let mut out = anstream::stdout();
    let healthy = examination.is_healthy(arguments.strict);
    if session.common.json {
        writeln!(out, "{}", serde_json::json!({"healthy": healthy, "checks": examination.checks}))?;
    } else {
        report::write(&mut out, &deployment, &examination)?;
    }
    if healthy {
        return Ok(());
    }
    let [broken, warnings] = [Outcome::Broken, Outcome::Warning].map(|outcome| examination.count(outcome));
    let strictly = if arguments.strict { format!(", and {warnings} a warning") } else { String::new() };
    Err(Failure::Undone(format!(
        "{broken} of {} checks found something broken{strictly}",
        examination.checks.len()
    ))
    .into())
}

impl DoctorArguments {
    fn selection(&self) -> Selection {
        match (self.only.is_empty(), self.skip.is_empty()) {
            (false, _) => Selection::Only(self.only.clone()),
            (true, false) => Selection::Without(self.skip.clone()),
            (true, true) => Selection::All,
        }
    }
}
