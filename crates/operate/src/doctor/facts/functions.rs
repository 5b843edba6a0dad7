//! | file | holds |
//! |---|---|
//! | `wanted` | which functions are to be checked, and by which aliases and versions |

mod wanted;

use std::collections::BTreeSet;

use comeback_engine::Timestamp;
use futures_util::stream::{StreamExt as _, iter};

use crate::doctor::facts::dropped::{Dropped, dropped};
use crate::doctor::facts::queue::QueueSettings;
use crate::doctor::facts::rights::{Right, ask_of_key, ask_to_invoke, ask_to_send};
use crate::{Account, Deployment, Failure, FunctionName, InvokeSettings, Target};

/// Functions that are read at a time: IAM's simulator and Lambda's API throttle more.
const AT_A_TIME: usize = 8;

/// The functions to be checked.
#[derive(Clone, Debug)]
pub(in crate::doctor) struct Functions {
    /// By their ARNs.
    pub(in crate::doctor) all: Vec<Function>,
    /// Whether the functions that the allow-list's patterns match could be looked for.
    pub(in crate::doctor) matched: Result<(), Failure>,
}

/// A function that is attached, or half so, or was named by the operator.
#[derive(Clone, Debug)]
pub(in crate::doctor) struct Function {
    /// As an operator names it.
    pub(in crate::doctor) name: String,
    /// `None` if there is no such function.
    pub(in crate::doctor) target: Result<Option<Target>, Failure>,
    /// How it is invoked: by itself, or by an alias or a version.
    pub(in crate::doctor) entrances: Vec<Entrance>,
    pub(in crate::doctor) dropped: Result<Dropped, Failure>,
}

/// A function by one qualifier: one that has the retry queue as its destination, or should have.
#[derive(Clone, Debug)]
pub(in crate::doctor) struct Entrance {
    /// The alias or version; `None` for the function itself.
    pub(in crate::doctor) qualifier: Option<String>,
    /// The ARN that its invocation records name.
    pub(in crate::doctor) invoked_arn: String,
    pub(in crate::doctor) settings: InvokeSettings,
    /// The role of the version behind it.
    pub(in crate::doctor) role: Result<String, Failure>,
    /// Of that role.
    pub(in crate::doctor) send: Result<Vec<Right>, Failure>,
    /// Of that role. None if AWS manages the key.
    pub(in crate::doctor) use_key: Result<Vec<Right>, Failure>,
    /// Of the handler's role.
    pub(in crate::doctor) invoke: Vec<Right>,
}

impl Entrance {
    /// As an operator names the function by it.
    pub(in crate::doctor) fn of(&self, function: &Function) -> String {
        match &self.qualifier {
            Some(qualifier) => format!("{}:{qualifier}", function.name),
            None => function.name.clone(),
        }
    }
}

impl Functions {
    pub(super) async fn read(
        account: &Account,
        deployment: &Deployment,
        retry_queue: &Result<QueueSettings, Failure>,
        named: &[FunctionName],
        now: Timestamp,
    ) -> Self {
        let mut wanted = wanted::named(deployment, named);
        let matched = wanted::matched(account, deployment).await.map(|arns| {
            for arn in arns {
                wanted.entry(arn).or_default();
            }
        });
        let reading =
            wanted.iter().map(|(arn, asked)| Function::read(account, deployment, retry_queue, arn, asked));
        let mut all: Vec<Function> = iter(reading).buffered(AT_A_TIME).collect().await;
        let names: Vec<&str> = all.iter().map(|function| function.name.as_str()).collect();
        let counts = dropped(account, &names, now).await;
        for (index, function) in all.iter_mut().enumerate() {
            function.dropped = counts.as_ref().map(|counts| counts[index]).map_err(Clone::clone);
        }
        Self { all, matched }
    }
}

impl Function {
    async fn read(
        account: &Account,
        deployment: &Deployment,
        retry_queue: &Result<QueueSettings, Failure>,
        arn: &str,
        asked: &BTreeSet<Option<String>>,
    ) -> Self {
        let function: FunctionName = arn.parse().expect("BUG: it was made of a function's name");
        let target = match Target::read(account, &function).await {
            Ok(target) => Ok(Some(target)),
            Err(failure) => {
                if is_missing(account, arn).await {
                    Ok(None)
                } else {
                    Err(failure)
                }
            }
        };
        let mut entrances = Vec::new();
        if let Ok(Some(target)) = &target {
            for qualifier in wanted::qualifiers(target, &deployment.retry_queue.arn, asked) {
                entrances.push(Entrance::read(account, deployment, retry_queue, target, qualifier).await);
            }
        }
        Self { name: function.name, target, entrances, dropped: Ok(Dropped::default()) }
    }
}

impl Entrance {
    async fn read(
        account: &Account,
        deployment: &Deployment,
        retry_queue: &Result<QueueSettings, Failure>,
        target: &Target,
        qualifier: Option<String>,
    ) -> Self {
        let invoked_arn = format!("{}:{}", target.arn, qualifier.as_deref().unwrap_or("$LATEST"));
        let role = match &qualifier {
            None => Ok(target.role_arn.clone()),
            Some(qualifier) => role_behind(account, &target.arn, qualifier).await,
        };
        let queue_arn = &deployment.retry_queue.arn;
        let of_role = async {
            let Ok(role) = &role else {
                return (role.clone().map(|_| Vec::new()), role.clone().map(|_| Vec::new()));
            };
            let (send, use_key) =
                tokio::join!(ask_to_send(account, role, queue_arn), ask_of_key(account, role, retry_queue));
            (Ok(send), use_key)
        };
        let of_handler = ask_to_invoke(account, &deployment.role_arn, &target.arn, &invoked_arn);
        let ((send, use_key), invoke) = tokio::join!(of_role, of_handler);
        let settings = target.invoke_settings.get(&qualifier).cloned().unwrap_or_default();
        Self { qualifier, invoked_arn, settings, role, send, use_key, invoke }
    }
}

async fn is_missing(account: &Account, arn: &str) -> bool {
    let answer = account.lambda.get_function().function_name(arn).send().await;
    answer.is_err_and(|error| {
        error.as_service_error().is_some_and(|error| error.is_resource_not_found_exception())
    })
}

/// A published version keeps the role that it was published with.
async fn role_behind(account: &Account, arn: &str, qualifier: &str) -> Result<String, Failure> {
    let of = format!("{arn}:{qualifier}");
    let answer = account.lambda.get_function().function_name(arn).qualifier(qualifier).send().await;
    let answer = answer.map_err(|error| Failure::of_call("lambda:GetFunction", &of, &error))?;
    let role = answer.configuration().and_then(|configuration| configuration.role());
    role.map(ToOwned::to_owned).ok_or_else(|| Failure::CouldNot(format!("Lambda gave no role of {of}")))
}
