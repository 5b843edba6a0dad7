use std::collections::BTreeSet;

use serde::Serialize;

use crate::InvokeSettings;
use crate::attach::kept;

/// One change to the account. Made twice, it does no more than made once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Writes tags of the function.
    Keep {
        /// The function's ARN.
        arn: String,
        /// Keys and values.
        tags: Vec<(String, String)>,
    },
    /// Removes tags of the function.
    Forget {
        /// The function's ARN.
        arn: String,
        /// Keys and values.
        tags: Vec<(String, String)>,
    },
    /// Adds to an inline policy of a role.
    Allow {
        /// The role's name.
        role: String,
        /// The policy's name.
        policy: String,
        /// What it allows, on what.
        statements: Vec<(Vec<&'static str>, Vec<String>)>,
    },
    /// Takes as much out of an inline policy of a role, and the policy away if it says nothing else.
    Withdraw {
        /// The role's name.
        role: String,
        /// The policy's name.
        policy: String,
        /// What it allows no longer, on what.
        statements: Vec<(Vec<&'static str>, Vec<String>)>,
    },
    /// Puts a function on the allow-list, or takes it off.
    List {
        /// Where the list is.
        place: ListPlace,
        /// The function's ARN.
        arn: String,
        /// Whether it is to be on the list.
        listed: bool,
    },
    /// Sets the function's recursion setting.
    Recursion {
        /// The function's name.
        function: String,
        /// Whether loops are to be allowed.
        allowed: bool,
    },
    /// Makes an alarm on the function's events that Lambda loses on their way to the retry queue.
    Watch {
        /// The function's name.
        function: String,
        /// The alarm's name.
        alarm: String,
        /// The actions of the alarm: ARNs of topics, usually.
        tell: BTreeSet<String>,
    },
    /// Deletes that alarm.
    Unwatch {
        /// The function's name.
        function: String,
        /// The alarm's name.
        alarm: String,
    },
    /// Replaces the settings of a qualifier's asynchronous invocations.
    Settings {
        /// The function's name.
        function: String,
        /// The qualifier.
        qualifier: Option<String>,
        /// The settings as they are.
        from: InvokeSettings,
        /// The settings as they are to be. Those that are all default are removed.
        to: InvokeSettings,
    },
}

/// Where an allow-list is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListPlace {
    /// In a stack's parameter.
    Stack(String),
    /// In a function's environment.
    Function(String),
}

/// One setting of one resource that a change makes another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The resource: `role orders-role`.
    pub resource: String,
    /// The setting: `retries`.
    pub setting: String,
    /// As it is; `None` if it is not there.
    pub from: Option<String>,
    /// As it will be; `None` if it will not be there.
    pub to: Option<String>,
}

impl Change {
    /// What it changes, setting by setting.
    #[must_use]
    pub fn differences(&self) -> Vec<Difference> {
        let one = |resource: String, setting: &str, from: Option<String>, to: Option<String>| {
            vec![Difference { resource, setting: setting.to_owned(), from, to }]
        };
        match self {
            Self::Keep { arn, tags } => tags
                .iter()
                .flat_map(|(key, value)| one(function(arn), &format!("tag {key}"), None, Some(value.clone())))
                .collect(),
            Self::Forget { arn, tags } => tags
                .iter()
                .flat_map(|(key, value)| one(function(arn), &format!("tag {key}"), Some(value.clone()), None))
                .collect(),
            Self::Allow { role, policy, statements } => {
                let actions: Vec<_> = statements.iter().flat_map(|(actions, _)| actions).copied().collect();
                one(format!("role {role}"), &format!("policy {policy}"), None, Some(actions.join(", ")))
            }
            Self::Withdraw { role, policy, .. } => {
                let setting = format!("policy {policy}");
                one(format!("role {role}"), &setting, Some("allowed".to_owned()), None)
            }
            Self::List { place, arn, listed } => {
                let (resource, setting) = match place {
                    ListPlace::Stack(stack) => (format!("stack {stack}"), "TargetFunctions"),
                    ListPlace::Function(name) => (format!("function {name}"), "TARGET_FUNCTIONS"),
                };
                let (absent, present) = (None, Some(arn.clone()));
                let (from, to) = if *listed { (absent, present) } else { (present, absent) };
                one(resource, setting, from, to)
            }
            Self::Recursion { function, allowed } => {
                let name = |allowed| Some(kept::recursion(allowed).to_owned());
                one(format!("function {function}"), "recursive loops", name(!allowed), name(*allowed))
            }
            Self::Watch { function, alarm, tell } => {
                let tell = tell.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                let tells = if tell.is_empty() { "tells nobody".to_owned() } else { format!("tells {tell}") };
                one(format!("function {function}"), &format!("alarm {alarm}"), None, Some(tells))
            }
            Self::Unwatch { function, alarm } => {
                let there = Some("there".to_owned());
                one(format!("function {function}"), &format!("alarm {alarm}"), there, None)
            }
            Self::Settings { function, qualifier, from, to } => {
                let qualified = qualifier.iter().fold(function.clone(), |name, it| format!("{name}:{it}"));
                settings(&format!("function {qualified}"), from, to)
            }
        }
    }
}

fn function(arn: &str) -> String {
    format!("function {}", arn.rsplit(':').next().unwrap_or(arn))
}

fn settings(resource: &str, from: &InvokeSettings, to: &InvokeSettings) -> Vec<Difference> {
    let number = |number: Option<i32>, unit: &str| number.map(|number| format!("{number}{unit}"));
    [
        ("on failure", from.on_failure.clone(), to.on_failure.clone()),
        ("retries", number(from.retries, ""), number(to.retries, "")),
        ("event age", number(from.event_age, "s"), number(to.event_age, "s")),
        ("on success", from.on_success.clone(), to.on_success.clone()),
    ]
    .into_iter()
    .filter(|(_, from, to)| from != to)
    .map(|(setting, from, to)| Difference {
        resource: resource.to_owned(),
        setting: setting.to_owned(),
        from,
        to,
    })
    .collect()
}
