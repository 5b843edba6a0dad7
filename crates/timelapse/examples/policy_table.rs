//! Prints the tables in docs/plan.md that compare the default policy with others (`make policy-table`).

#[path = "../tests/runs/policy_table.rs"]
mod policy_table;

use std::time::Duration;

use comeback_engine::{Policy, Settings};
use comeback_timelapse::{Goal, PolicyPlan};

use policy_table::{DAY, OUTAGES, Outage, POLICIES, failing, quiet, settings};

/// Time that each plan allows between the end of the outage and the delivery of the events.
const RECOVER_WITHIN: Duration = Duration::from_secs(3_600);

fn main() {
    head(Outage::COLUMNS);
    for outage in OUTAGES {
        for (name, policy) in POLICIES {
            println!("{}", outage.row(name, &settings(policy, Outage::MAX_AGE)));
        }
        println!("{}", planned(outage));
    }
    println!();
    head(quiet::COLUMNS);
    for (name, policy) in POLICIES {
        println!("{}", quiet::row(name, &settings(policy, Outage::MAX_AGE)));
    }
    println!();
    head(failing::COLUMNS);
    for days in [1, 14] {
        for (name, policy) in POLICIES {
            println!("{}", failing::row(days, name, &settings(policy, days * DAY)));
        }
    }
}

fn head(columns: &str) {
    println!("{columns}\n|{}", "---|".repeat(columns.matches('|').count() - 1));
}

/// Formats the table row for this outage, with the policy that `comeback plan` recommends.
fn planned(outage: Outage) -> String {
    let (_, defaults) = POLICIES[0];
    let defaults = settings(defaults, Outage::MAX_AGE);
    let goal = Goal { recover_within: RECOVER_WITHIN, ..outage.goal() };
    let policy = Policy::new(defaults.clone()).expect("a valid policy");
    let plan = PolicyPlan::of(&goal, &policy, &|| {}).expect("a plan");
    let cheapest = plan.cheapest.expect("a policy that meets the goal");
    let recommended = Settings {
        base_backoff: cheapest.base_backoff,
        max_backoff: cheapest.max_backoff,
        jitter: cheapest.jitter.parse().expect("a jitter"),
        ..defaults
    };
    let minutes = recommended.max_backoff as f64 / 60.0;
    let name = format!("`plan`: {} s to {minutes} min, {}", recommended.base_backoff, cheapest.jitter);
    outage.row(&name, &recommended)
}
