//! Redrives a function's dead-letters after a deployment: `cargo run --example redrive -- orders`.
//!
//! The program fails if a dead-letter in the plan is not redriven.

use std::rc::Rc;

use comeback_operate::aws::sdk::SdkAws;
use comeback_operate::change::{outdated, perform};
use comeback_operate::dead::{Chosen, Filter, Redrive};
use comeback_operate::{Account, Change as _, Failure, Operator, Performed, Which};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let target = std::env::args().nth(1).unwrap_or_else(|| "orders".into());
    let target = target.parse().map_err(|problem| Failure::refused(format!("{target}: {problem}")))?;

    // Uses the same region and credentials as the AWS CLI.
    let (aws, place) = SdkAws::connect(None, None).await?;
    let operator = Operator::new(Account { aws: Rc::new(aws), place }, Which::Stack("comeback".into()));

    let filter = Filter { target: Some(target), ..Filter::default() };
    let redrive = Redrive::new(Chosen::matching(filter));
    let plan = redrive.plan(&operator).await?;
    eprintln!("{} dead-letters to redrive", plan.count());
    let (performed, recorded) = perform(&redrive, &operator, &plan).await?;
    if let Err(failure) = recorded {
        eprintln!("the redrive is not recorded: {failure}");
    }
    match performed {
        Performed::Done(redriven, result) => {
            println!("redrove {}", redriven.count());
            result
        }
        Performed::Outdated(_) => Err(outdated()),
    }
}
