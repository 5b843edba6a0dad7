//! The handler's execution environments, which come and go. Each has its own room for hidden messages.

use std::time::Duration;

use comeback_engine::Timestamp;

use crate::check::pauses::Known;

/// Lambda ends an environment that was idle for longer. It does not say when; ten minutes are an
/// assumption, as are the two hours after which it replaces one.
const IDLE: Duration = Duration::from_secs(600);
const LIFE: Duration = Duration::from_secs(7_200);

/// One environment. It handles one batch at a time.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    pub(crate) engine: comeback_engine::Environment,
    /// What it can know of pauses.
    pub(crate) known: Known,
    /// When it last tried to read them.
    pub(crate) tried_to_read: Option<Timestamp>,
    born: Timestamp,
    idle_since: Timestamp,
}

/// Those that wait for a batch.
#[derive(Debug)]
pub(crate) struct Environments {
    /// The one that was used last is the last.
    idle: Vec<Environment>,
    /// Of an environment that has handled nothing yet.
    new: comeback_engine::Environment,
    known: Known,
}

impl Environments {
    pub(crate) fn new(new: comeback_engine::Environment, known: Known) -> Self {
        Self { idle: Vec::new(), new, known }
    }

    /// Lambda takes an environment for a batch, or makes one.
    pub(crate) fn take(&mut self, now: Timestamp) -> Environment {
        let lives = |it: &Environment| now.since(it.idle_since) <= IDLE && now.since(it.born) <= LIFE;
        self.idle.retain(lives);
        self.idle.pop().unwrap_or_else(|| self.make(now))
    }

    fn make(&self, now: Timestamp) -> Environment {
        let (engine, known) = (self.new.clone(), self.known.clone());
        Environment { engine, known, tried_to_read: None, born: now, idle_since: now }
    }

    /// Its batch has ended. One that died is never given back.
    pub(crate) fn give_back(&mut self, now: Timestamp, environment: Environment) {
        self.idle.push(Environment { idle_since: now, ..environment });
    }
}

#[cfg(test)]
mod tests {
    use comeback_engine::{Policy, Settings};

    use super::*;

    fn none_yet() -> Environments {
        let policy = Policy::new(Settings::default()).expect("a valid policy");
        Environments::new(comeback_engine::Environment::new(policy), Known::none())
    }

    #[test]
    fn an_environment_is_used_again_until_it_idles_or_grows_old() {
        let at = |seconds: u64| Timestamp::from_secs(1_000_000 + seconds);
        let mut environments = none_yet();
        let first = environments.take(at(0));
        let second = environments.take(at(1));
        assert_eq!(second.born, at(1), "the first is busy");
        environments.give_back(at(2), first);
        environments.give_back(at(3), second);
        let last_used = environments.take(at(602));
        assert_eq!(last_used.born, at(1));
        environments.give_back(at(602), last_used);
        assert_eq!(environments.take(at(1_202)).born, at(1), "it idled for ten minutes");
        let mut environments = none_yet();
        for moment in (0..=14).map(|turn| at(turn * 500)) {
            let environment = environments.take(moment);
            assert_eq!(environment.born, at(0));
            environments.give_back(moment, environment);
        }
        assert_eq!(environments.take(at(7_201)).born, at(7_201), "it is two hours old");
    }
}
