//! `comeback attach` and `comeback detach`: send the failures of a function to Comeback, or leave them to Lambda again.
//!
//! An [`Attachment`] is everything that is there. Its `attach` and `detach` plan the changes and their order, and call
//! nothing. Then the plan is shown, confirmed, performed and checked. There is no other state: an interrupted run is resumed
//! by planning again.

mod attachment;
mod change;
mod grant;
pub(crate) mod kept;
mod leaving;
mod plan;
#[cfg(test)]
mod plans;
mod request;

use clap::Args;
use comeback_engine::FunctionArn;
use comeback_operate::pauses::OpenPause;
use comeback_operate::pauses::parameter::read_parameter;

use crate::account::Failure;
use crate::clock::now;
use crate::failure;
use crate::operate::attach::attachment::Attachment;
use crate::operate::attach::leaving::Leaving;
use crate::operate::attach::request::Request;
use crate::operate::function::{FunctionName, Target, command_name};
use crate::operate::session::{Common, Session};

pub(crate) const ATTACH_EXAMPLES: &str = "\
Examples:
  comeback attach orders --dry-run
  comeback attach orders:live invoices refunds --yes
  comeback attach orders --stack billing --move --yes
  comeback attach orders --handler my-retry-handler --json --yes";

#[derive(Debug, Args)]
pub(crate) struct AttachArguments {
    /// Functions, each as NAME, NAME:ALIAS, NAME:VERSION or ARN; name the alias or version that callers invoke
    #[arg(value_name = "FUNCTION[:ALIAS]", required = true)]
    pub(crate) functions: Vec<FunctionName>,
    /// Show the changes without making them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Take the function over from another deployment
    #[arg(long = "move")]
    pub(crate) may_move: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn attach(
    arguments: &AttachArguments,
    session: Session,
) -> Result<(), failure::CommandFailure> {
    let AttachArguments { functions, dry_run, may_move, .. } = arguments;
    let request = Request { verb: "attach", functions, dry_run: *dry_run };
    let ended = request.carry_out(&session, async |attachment| attachment.attach(*may_move)).await?;
    request.result(ended.into_iter().map(|(function, end)| (function, end.map(drop))))
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
    pub(crate) functions: Vec<FunctionName>,
    /// Show the changes without making them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not wait for the function's events: dead-letter those still waiting, unless another alias or version stays
    /// attached
    #[arg(long)]
    pub(crate) now: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn detach(
    arguments: &DetachArguments,
    session: Session,
) -> Result<(), failure::CommandFailure> {
    let DetachArguments { functions, dry_run, now: at_once, .. } = arguments;
    let request = Request { verb: "detach", functions, dry_run: *dry_run };
    // Reads the time again too: what `detach` keeps must not be before the destination is removed.
    let plan = async |attachment: &Attachment| {
        let open = match attachment.deployment.pauses() {
            Some(name) => {
                OpenPause::all_of(&read_parameter(&session.account.operate(), name).await?.0, now())
            }
            None => Vec::new(),
        };
        let (home, place) = (&attachment.deployment.handler_arn, session.common.place_flags());
        check_not_paused(&open, &attachment.target, home, &place)?;
        let leaving = Leaving::read(&session.account, attachment, *at_once, now()).await?;
        attachment.detach(&leaving)
    };
    let ended = request.carry_out(&session, plan).await?;
    request.result(ended.into_iter().map(|(function, end)| {
        let end = end.and_then(|planned| match planned.left {
            _ if planned.is_about_nothing() => Err(Failure::CouldNot(format!(
                "Lambda has no function {function}, and nothing of it is left to remove; check its name"
            ))),
            Some(left) if !dry_run => {
                Err(Failure::Undone(not_finished(function, &left, planned.price_of_now.as_deref())))
            }
            _ => Ok(()),
        });
        (function, end)
    }))
}

fn not_finished(function: &FunctionName, left: &str, price_of_now: Option<&str>) -> String {
    let or = price_of_now.map(|price| format!(", or use --now: {price}")).unwrap_or_default();
    format!("{function}: not finished: {left}; run the command again later{or}")
}

/// Fails if the function has an open pause of its own, which would outlive its attachment.
fn check_not_paused(
    open: &[OpenPause],
    target: &Target,
    home: &FunctionArn,
    place: &str,
) -> Result<(), Failure> {
    let own = [target.arn.clone(), target.invoked_arn()];
    let Some(pause) = open.iter().find(|pause| own.contains(&pause.target)) else { return Ok(()) };
    let name = pause.name();
    Err(Failure::Undone(format!(
        "{name} has been paused since {}; end the pause first: `comeback resume {}{place}`",
        pause.from,
        command_name(&pause.target, home)
    )))
}

#[cfg(test)]
mod tests {
    use crate::operate::attach::plans::{attachment, target};
    use crate::operate::function::Target;

    use super::*;

    #[test]
    fn a_function_with_a_pause_of_its_own_is_not_detached() {
        let live = Target { qualifier: Some("live".into()), ..target() };
        let home = attachment().deployment.handler_arn;
        let check = |paused: &str, target: &Target| {
            let paused = paused.replace("orders", &target.arn);
            let open = [OpenPause {
                target: paused,
                from: comeback_engine::Timestamp::from_secs(0),
                until: None,
                open_seconds: 0,
                spread_seconds: 0,
                by: None,
                why: None,
            }];
            check_not_paused(&open, target, &home, " --stack shop").map_err(|failure| failure.to_string())
        };
        let refused = |name: &str| {
            Err(format!(
                "{name} has been paused since 1970-01-01T00:00:00.000Z; end the pause first: `comeback resume \
                 {name} --stack shop`"
            ))
        };
        assert_eq!(check("orders", &target()), refused("orders"));
        assert_eq!(check("orders", &live), refused("orders"));
        assert_eq!(check("orders:live", &live), refused("orders:live"));
        for other in ["*", "orders:next", "orders-v2"] {
            assert_eq!(check(other, &live), Ok(()), "{other}");
        }
    }

    #[test]
    fn a_detach_that_waits_names_the_price_of_not_waiting() {
        let orders = "orders".parse().unwrap();
        let said = "orders: not finished: the allow-list stays; run the command again later";
        assert_eq!(not_finished(&orders, "the allow-list stays", None), said);
        let price = "waiting events of orders will be dead-lettered as target_not_allowed";
        let with_price = not_finished(&orders, "the allow-list stays", Some(price));
        assert_eq!(with_price, format!("{said}, or use --now: {price}"));
    }
}
