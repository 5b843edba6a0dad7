//! Which functions are down, and which recover: by the rule with which the handler lets waits pass faster.

use std::collections::BTreeSet;
use std::time::Duration;

use comeback_engine::{FunctionArn, Health, MetricMinute, Recovery, RecoveryMode, Timestamp};
use futures_util::stream::{StreamExt as _, TryStreamExt as _, iter};
use serde::Serialize;

use crate::account::{Account, Failure};
use crate::operate::deployment::{AT_A_TIME, Deployment};
use crate::operate::metrics::minutes;

/// What the handler does when a function recovers, and the functions that are not well.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Outages {
    /// `RECOVERY`.
    pub(crate) mode: &'static str,
    pub(crate) functions: Vec<Outage>,
    /// Why they are not known.
    pub(crate) problem: Option<String>,
    #[serde(skip)]
    pub(crate) read_at: Timestamp,
}

/// A function that is down or recovers, or has no data since it did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Outage {
    pub(crate) function: String,
    /// `down`, `recovering` or `unknown`.
    pub(crate) health: &'static str,
    pub(crate) since: Timestamp,
    /// Its attempts since then, as far as CloudWatch has counted them …
    pub(crate) attempts: u64,
    /// … and how many of them failed.
    pub(crate) errors: u64,
    /// How fast the waits of its events pass; `None` unless it recovers.
    pub(crate) speed: Option<f64>,
}

impl Outages {
    /// Reads the minutes of each function, unless the handler reads none either.
    pub(crate) async fn read(account: &Account, deployment: &Deployment, now: Timestamp) -> Self {
        let mode = deployment.recovery();
        let read = match mode {
            RecoveryMode::Off => Ok(Vec::new()),
            RecoveryMode::Watch | RecoveryMode::On => not_well(account, deployment, now).await,
        };
        // During an incident, the rest of the status still matters.
        let problem = read.as_ref().err().map(ToString::to_string);
        Self { mode: mode.name(), functions: read.unwrap_or_default(), problem, read_at: now }
    }

    #[cfg(test)]
    pub(crate) fn sample(mode: &'static str) -> Self {
        Self { mode, functions: Vec::new(), problem: None, read_at: Timestamp::from_secs(0) }
    }

    /// Whether CloudWatch has no newer minute yet, so that reading again would only cost.
    pub(crate) fn are_fresh(&self, now: Timestamp) -> bool {
        now.since(self.read_at) < Duration::from_secs(60)
    }

    /// `orders: down since 09:12 (97 % of 412 failed)`, a line for each function.
    pub(crate) fn lines(&self) -> Vec<String> {
        match (self.mode, &self.problem, self.functions.as_slice()) {
            ("off", ..) => vec!["off: no metrics are read (RECOVERY)".into()],
            (_, Some(problem), _) => vec![format!("unknown: {problem}")],
            (mode, None, []) => vec![format!("{mode}: no function is known to be down")],
            (.., functions) => functions.iter().map(Outage::line).collect(),
        }
    }
}

async fn not_well(
    account: &Account,
    deployment: &Deployment,
    now: Timestamp,
) -> Result<Vec<Outage>, Failure> {
    let mut names = named(deployment);
    names.extend(deployment.matched(account).await?.into_iter().map(|arn| arn.name));
    let outages = iter(names).map(async |function| {
        let minutes = minutes(account, &function, now).await?;
        Ok::<_, Failure>(Outage::of(function, &minutes, now))
    });
    let outages: Vec<Option<Outage>> = outages.buffered(AT_A_TIME).try_collect().await?;
    Ok(outages.into_iter().flatten().collect())
}

/// The functions of the handler's own account and region that `TARGET_FUNCTIONS` names.
fn named(deployment: &Deployment) -> BTreeSet<String> {
    let FunctionArn { account, region, .. } = &deployment.handler_arn;
    let arns = deployment.target_functions().filter_map(|entry| entry.parse::<FunctionArn>().ok());
    arns.filter(|arn| arn.account == *account && arn.region == *region).map(|arn| arn.name).collect()
}

impl Outage {
    /// `None` if it is well, or if its minutes contradict each other: the handler ignores them too.
    fn of(function: String, minutes: &[MetricMinute], now: Timestamp) -> Option<Self> {
        let health = Recovery::of(minutes.iter().copied()).ok()?.health(now);
        let (health, since, speed) = match health {
            Health::Well => return None,
            Health::Unknown { since } => ("unknown", since, None),
            Health::Down { since } => ("down", since, None),
            Health::Recovering { since, speed } => ("recovering", since, Some(speed as f64 / 100.0)),
        };
        let counted = minutes.iter().filter(|minute| minute.number >= since.as_secs() / 60);
        let (attempts, errors) = counted.fold((0, 0), |(attempts, errors), minute| {
            (attempts + u64::from(minute.invocations), errors + u64::from(minute.errors))
        });
        Some(Self { function, health, since, attempts, errors, speed })
    }

    fn line(&self) -> String {
        let Self { function, health, since, attempts, errors, speed } = self;
        let since = since.to_string();
        let since = since.get(11..16).unwrap_or(&since);
        match speed {
            Some(speed) => {
                let speed = format!("{speed:.1}");
                let speed = speed.trim_end_matches(".0");
                format!("{function}: recovering since {since}, {speed} × speed")
            }
            None if *health == "unknown" => format!("{function}: unknown, no data since {since}"),
            None => {
                let share = 100 * errors / attempts.max(&1);
                let attempts = indicatif::HumanCount(*attempts);
                format!("{function}: down since {since} ({share} % of {attempts} failed)")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two hours down with ten attempts a minute, of which one succeeded; then well with two.
    fn minutes(until: u64) -> Vec<MetricMinute> {
        let minute = |number: u64| MetricMinute {
            number,
            invocations: if number < 120 { 10 } else { 2 },
            errors: match number {
                70 => 9,
                0..120 => 10,
                _ => 0,
            },
        };
        (0..until).map(minute).collect()
    }

    fn line(until: u64) -> Option<String> {
        let now = Timestamp::from_secs(60 * until);
        Outage::of("orders".into(), &minutes(until), now).map(|outage| outage.line())
    }

    #[test]
    fn a_function_is_down_then_recovers_then_is_well_or_unknown() {
        assert_eq!(line(40), None, "500 attempts are needed");
        assert_eq!(line(100).unwrap(), "orders: down since 00:00 (99 % of 1,000 failed)");
        assert_eq!(line(125).unwrap(), "orders: recovering since 02:00, 2.5 × speed");
        assert_eq!(line(600), None);
        let silent = Outage::of("orders".into(), &minutes(120), Timestamp::from_secs(60 * 133)).unwrap();
        assert_eq!(silent.line(), "orders: unknown, no data since 02:00");
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_well() {
        let problem = Some("lambda:ListFunctions for the account: denied".into());
        let outages = Outages { problem, ..Outages::sample("on") };
        assert_eq!(outages.lines(), ["unknown: lambda:ListFunctions for the account: denied"]);
    }

    #[test]
    fn only_functions_that_are_named_and_near_are_read() {
        let mut deployment = Deployment::sample();
        let list = "arn:aws:lambda:eu-west-1:123456789012:function:orders:live,\
                    arn:aws:lambda:eu-west-1:123456789012:function:orders,\
                    arn:aws:lambda:eu-west-1:123456789012:function:bill-*,\
                    arn:aws:lambda:us-east-1:123456789012:function:far";
        deployment.variables.insert("TARGET_FUNCTIONS".into(), list.into());
        assert_eq!(named(&deployment), ["orders".to_owned()].into());
    }
}
