use comeback_engine::{Jitter, Policy};
use comeback_timelapse::{RunError, Scenario, Summary, TARGET_ARN, Watcher, run};

use crate::flags::PolicyFlags;

/// The runs a page is about: the same events under several policies.
pub(crate) struct Runs {
    /// The policy, and the one to compare it with.
    pub(super) policies: Vec<(PolicyFlags, Policy, Summary)>,
    /// The policy with each other jitter. Empty without an outage: there is nothing to recover from.
    pub(super) jitters: Vec<(Jitter, Summary)>,
}

impl Runs {
    /// Makes the runs beside the first. `watch` gives each a watcher, by the name of what differs.
    pub(crate) fn make<W: Watcher>(
        scenario: &Scenario,
        first: (PolicyFlags, Policy, Summary),
        other: Option<(PolicyFlags, Policy)>,
        mut watch: impl FnMut(&str) -> W,
    ) -> Result<Self, RunError> {
        let mut made = |what: &str, policy: &Policy| run(scenario, policy, &mut watch(what));
        let (flags, own) = (first.0.clone(), first.1.backoff().jitter);
        let mut policies = vec![first];
        if let Some((flags, policy)) = other {
            let summary = made("the other policy", &policy)?;
            policies.push((flags, policy, summary));
        }
        let mut jitters = Vec::new();
        for jitter in Jitter::ALL {
            if jitter == own || scenario.outage.is_zero() {
                continue;
            }
            let flags = flags.with([("jitter", jitter.name())]);
            let known =
                policies.iter().find(|(known, ..)| *known == flags).map(|(.., summary)| summary.clone());
            let policy = flags.policy(TARGET_ARN).expect("BUG: another jitter makes a policy invalid");
            let summary = match known {
                Some(summary) => summary,
                None => made(&format!("jitter {jitter}"), &policy)?,
            };
            jitters.push((jitter, summary));
        }
        Ok(Self { policies, jitters })
    }
}
