//! `comeback attach` and `comeback detach`: route functions' failed events to Comeback, or back to Lambda.

use clap::{ArgGroup, Args};
use comeback_operate::attach::attachments::attachments;
use comeback_operate::attach::{Route, RouteFailures};
use comeback_operate::function::FunctionName;

use crate::failure::CommandFailure;
use crate::operate::session::Session;
use crate::terminal;

pub(crate) const ATTACH_EXAMPLES: &str = "\
Examples:
  comeback attach orders --dry-run
  comeback attach orders:live invoices refunds --yes
  comeback attach orders --stack billing --move --yes
  comeback attach orders --handler my-retry-handler --json --yes
  comeback attach --list";

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["functions", "list"])))]
pub(crate) struct AttachArguments {
    /// Functions, each as NAME, NAME:ALIAS, NAME:VERSION or ARN; name the alias or version that callers invoke
    #[arg(value_name = "FUNCTION[:ALIAS]")]
    functions: Vec<FunctionName>,
    /// List the attached functions with their policies
    #[arg(long, conflicts_with_all = ["dry_run", "may_move"])]
    list: bool,
    /// Take the function over from another deployment
    #[arg(long = "move")]
    may_move: bool,
}

pub(crate) async fn attach(arguments: AttachArguments, session: Session) -> Result<(), CommandFailure> {
    let AttachArguments { functions, may_move, list } = arguments;
    if list {
        return terminal::answer(&attachments(&session.operator()).await?, &session);
    }
    let attach = RouteFailures { functions, route: Route::Attach { may_move } };
    terminal::change(attach, &session).await
}

pub(crate) const DETACH_EXAMPLES: &str = "\
Examples:
  comeback detach orders --dry-run
  comeback detach orders:live --yes
  comeback detach orders --now --yes";

#[derive(Debug, Args)]
pub(crate) struct DetachArguments {
    /// Functions, each as NAME, NAME:ALIAS, NAME:VERSION or ARN
    #[arg(value_name = "FUNCTION[:ALIAS]", required = true)]
    functions: Vec<FunctionName>,
    /// Do not wait for the function's events: dead-letter those still waiting, unless another alias or version stays
    /// attached
    #[arg(long)]
    now: bool,
}

pub(crate) async fn detach(arguments: DetachArguments, session: Session) -> Result<(), CommandFailure> {
    let DetachArguments { functions, now } = arguments;
    let detach = RouteFailures { functions, route: Route::Detach { at_once: now } };
    terminal::change(detach, &session).await
}
