use comeback_engine::FunctionPattern;

use crate::attach::losses::Losses;
use crate::attach::policy::Statement;
use crate::{Target, Verdict};

/// What is there of a function's attachment to a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The function, as seen through the qualifier that is to be attached.
    pub target: Target,
    /// The retry queue's ARN.
    pub queue_arn: String,
    /// The customer's key that encrypts the retry queue, if there is one.
    pub key_arn: Option<String>,
    /// Whether the function's role may send to the retry queue, and use its key.
    pub may_send: Verdict,
    /// Whether the function's role has the policy that `attach` gives it.
    pub send_policy: bool,
    /// The stack that owns the function's settings for asynchronous invocations, if one does.
    pub owner: Option<String>,
    /// Which alarm is on what Lambda loses of the function.
    pub losses: Losses,
    /// The retry handler's half.
    pub handler: Handler,
}

/// The retry handler's half of an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// Its name.
    pub name: String,
    /// The name of its role.
    pub role: String,
    /// Its variable `TARGET_FUNCTIONS`.
    pub allow_list: String,
    /// How many bytes its environment has for Lambda, the allow-list included.
    pub environment_bytes: usize,
    /// Whether its role may invoke the function.
    pub may_invoke: Verdict,
    /// Whether its role has the policy that `attach` gives it where no template does.
    pub invoke_policy: bool,
    /// Where its allow-list is changed.
    pub place: Place,
}

/// Where a handler's allow-list is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the parameter `TargetFunctions` of a stack, which also lets the handler invoke what it names.
    Parameter {
        /// The stack.
        stack: String,
        /// The parameter's value.
        value: String,
    },
    /// In a stack's template, by whoever owns it.
    Template {
        /// The stack.
        stack: String,
    },
    /// In the handler's own environment, because no stack owns the handler.
    Environment,
}

impl Attachment {
    /// Whether failures of this qualifier go to the retry queue.
    #[must_use]
    pub fn is_attached(&self, qualifier: Option<&str>) -> bool {
        let settings = self.target.invoke_settings.get(&qualifier.map(ToOwned::to_owned));
        settings.is_some_and(|settings| settings.on_failure.as_deref() == Some(&*self.queue_arn))
    }

    /// The other qualifiers of the function whose failures go to the retry queue.
    pub fn others(&self) -> impl Iterator<Item = Option<&str>> {
        let named = self.target.qualifier.as_deref();
        let all = self.target.invoke_settings.keys().map(Option::as_deref);
        all.filter(move |qualifier| *qualifier != named && self.is_attached(*qualifier))
    }

    /// The name of the inline policy that lets the function's role send.
    #[must_use]
    pub fn send_policy_name(&self) -> String {
        let queue = self.queue_arn.rsplit(':').next().unwrap_or_default();
        format!("comeback-{queue}")
    }

    /// What that policy allows.
    #[must_use]
    pub(crate) fn send_statements(&self) -> Vec<Statement> {
        let mut statements = vec![(vec!["sqs:SendMessage"], vec![self.queue_arn.clone()])];
        statements.extend(
            self.key_arn.iter().map(|key| (vec!["kms:GenerateDataKey", "kms:Decrypt"], vec![key.clone()])),
        );
        statements
    }

    /// The name of the inline policy that lets the handler invoke the function, where no template does.
    #[must_use]
    pub fn invoke_policy_name(&self) -> String {
        invoke_policy_name(&self.target)
    }
}

/// The name of the inline policy that lets the handler invoke a function.
pub(crate) fn invoke_policy_name(target: &Target) -> String {
    format!("invoke-{}", target.name)
}

/// What that policy allows.
pub(crate) fn invoke_statements(target: &Target) -> Vec<Statement> {
    let arn = &target.arn;
    vec![(vec!["lambda:InvokeFunction"], vec![arn.clone(), format!("{arn}:*")])]
}

impl Handler {
    /// Whether the allow-list has an entry that allows this function. An entry that the handler does not understand
    /// allows nothing.
    #[must_use]
    pub fn allows(&self, arn: &str) -> bool {
        let patterns =
            self.allow_list.split(',').filter_map(|entry| entry.trim().parse::<FunctionPattern>().ok());
        patterns.into_iter().any(|pattern| pattern.allows(arn))
    }
}
