//! Permissions that `attach` adds to a role's inline policies and `detach` removes.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::account::Account;
use crate::failure::Failure;

/// A policy statement: the allowed actions, and the resources on which they are allowed.
pub(crate) type Statement = (Vec<&'static str>, Vec<String>);

/// An inline policy of a role. Edits preserve users' own statements and the permissions for other regions.
#[derive(Clone, Debug, Default, PartialEq)]
struct InlinePolicy(Map<String, Value>);

impl InlinePolicy {
    fn read(text: &str) -> Result<Self, serde_json::Error> {
        let mut document: Map<String, Value> = serde_json::from_str(text)?;
        // IAM also accepts a single statement in place of a list.
        if let Some(statement) = document.get_mut("Statement").filter(|it| it.is_object()) {
            *statement = Value::Array(vec![statement.take()]);
        }
        Ok(Self(document))
    }

    fn with(mut self, ours: &[Statement]) -> Self {
        self.0.entry("Version").or_insert_with(|| json!("2012-10-17"));
        let statements = self.0.entry("Statement").or_insert_with(|| json!([]));
        let statements =
            statements.as_array_mut().expect("BUG: a policy was read without a list of statements");
        for (actions, resources) in ours {
            match statements.iter_mut().find(|it| is_ours(it, actions)) {
                Some(statement) => {
                    let there = texts(&statement["Resource"]);
                    let new = resources.iter().filter(|it| !there.contains(it)).cloned().collect();
                    statement["Resource"] = json!([there, new].concat());
                }
                None => statements.push(json!({"Effect": "Allow", "Action": actions, "Resource": resources})),
            }
        }
        self
    }

    fn without(mut self, ours: &[Statement]) -> Self {
        let Some(statements) = self.0.get_mut("Statement").and_then(Value::as_array_mut) else { return self };
        for (actions, resources) in ours {
            for statement in statements.iter_mut().filter(|it| is_ours(it, actions)) {
                let all = texts(&statement["Resource"]);
                let left: Vec<_> = all.iter().filter(|it| !resources.contains(it)).collect();
                if left.len() < all.len() {
                    statement["Resource"] = json!(left);
                }
            }
        }
        statements.retain(|statement| statement["Resource"] != json!([]));
        self
    }

    fn has(&self, ours: &[Statement]) -> bool {
        self.clone().without(ours) != *self
    }

    fn is_empty(&self) -> bool {
        self.0.get("Statement").and_then(Value::as_array).is_none_or(Vec::is_empty)
    }

    /// The policy's size as IAM counts it: in characters, without white space.
    fn characters(&self) -> usize {
        self.write().chars().filter(|it| !it.is_whitespace()).count()
    }

    fn write(&self) -> String {
        json!(self.0).to_string()
    }
}

/// Returns true if a statement allows exactly these actions, without a condition.
fn is_ours(statement: &Value, actions: &[&str]) -> bool {
    let Some(members) = statement.as_object() else { return false };
    let is_plain = members.keys().all(|key| ["Sid", "Effect", "Action", "Resource"].contains(&&**key));
    let has: BTreeSet<String> = texts(&statement["Action"]).into_iter().collect();
    let is_allowed = members.get("Effect") == Some(&json!("Allow"));
    is_plain && is_allowed && has == actions.iter().map(ToString::to_string).collect()
}

fn texts(value: &Value) -> Vec<String> {
    let all = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
    all.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) role: String,
    pub(crate) policy: String,
    pub(crate) statements: Vec<Statement>,
}

impl Grant {
    /// Returns true if the role's policy contains any of these permissions.
    pub(crate) async fn is_given(&self, account: &Account) -> Result<bool, Failure> {
        Ok(self.read(account).await?.has(&self.statements))
    }

    pub(crate) async fn give(&self, account: &Account) -> Result<(), Failure> {
        let policy = self.read(account).await?.with(&self.statements);
        self.put(account, &policy).await
    }

    /// Removes the grant's permissions from the role's policy. If nothing is left, deletes the policy.
    pub(crate) async fn withdraw(&self, account: &Account) -> Result<(), Failure> {
        let left = self.read(account).await?.without(&self.statements);
        if !left.is_empty() {
            return self.put(account, &left).await;
        }
        account.aws.delete_role_policy(&self.role, &self.policy).await
    }

    /// The total size that the role's inline policies will have once the grant's permissions are added, in characters
    /// as IAM counts them.
    pub(crate) async fn characters_after(&self, account: &Account) -> Result<usize, Failure> {
        let names = account.aws.role_policies(&self.role).await?;
        let mut all = self.read(account).await?.with(&self.statements).characters();
        for policy in names.into_iter().filter(|name| *name != self.policy) {
            all += Self { policy, ..self.clone() }.read(account).await?.characters();
        }
        Ok(all)
    }

    async fn read(&self, account: &Account) -> Result<InlinePolicy, Failure> {
        let Self { role, policy, .. } = self;
        let Some(document) = account.aws.role_policy(role, policy).await? else {
            return Ok(InlinePolicy::default());
        };
        InlinePolicy::read(&document).map_err(|error| {
            Failure::could_not(format!("policy {policy} of role {role} is unreadable: {error}"))
        })
    }

    async fn put(&self, account: &Account, policy: &InlinePolicy) -> Result<(), Failure> {
        account.aws.put_role_policy(&self.role, &self.policy, &policy.write()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sends(queues: &[&str]) -> [Statement; 1] {
        [(vec!["sqs:SendMessage"], queues.iter().map(|queue| (*queue).to_owned()).collect())]
    }

    #[test]
    fn two_regions_share_a_policy_and_leave_each_other_alone() {
        let (a, b) = (sends(&["arn:a"]), sends(&["arn:b"]));
        let one = InlinePolicy::default().with(&a);
        let expected = json!({
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Action": ["sqs:SendMessage"], "Resource": ["arn:a"]}],
        });
        assert_eq!(serde_json::from_str::<Value>(&one.write()).unwrap(), expected);
        let both = InlinePolicy::read(&one.write()).unwrap().with(&b);
        assert_eq!(both, InlinePolicy::default().with(&sends(&["arn:a", "arn:b"])));
        assert_eq!(both.clone().with(&b), both, "made twice, it does no more");
        assert!(both.has(&a) && both.has(&b) && !one.has(&b));
        assert_eq!(both.clone().without(&b), one);
        assert!(both.without(&b).without(&a).is_empty() && !one.is_empty());
    }

    #[test]
    fn the_policy_of_the_page_is_ours() {
        let page = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sqs:SendMessage","Resource":"arn:a"}}"#;
        let policy = InlinePolicy::read(page).unwrap();
        assert!(policy.has(&sends(&["arn:a"])) && policy.without(&sends(&["arn:a"])).is_empty());
        for garbled in ["[]", "{", ""] {
            assert!(InlinePolicy::read(garbled).is_err(), "{garbled}");
        }
    }

    #[test]
    fn statements_of_others_stay_as_they_are() {
        let others = json!({"Version": "2012-10-17", "Id": "mine", "Statement": [
            {"Effect": "Deny", "Action": "sqs:SendMessage", "Resource": "arn:a"},
            {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "arn:a", "Condition": {"Bool": {"aws:SecureTransport": "true"}}},
            {"Effect": "Allow", "Action": ["sqs:SendMessage", "sqs:GetQueueUrl"], "Resource": "arn:a"},
            {"Effect": "Allow", "Action": "sqs:SendMessage", "NotResource": "arn:z"},
            {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "arn:b"},
        ]});
        let policy = InlinePolicy::read(&others.to_string()).unwrap();
        let ours = sends(&["arn:a"]);
        assert!(!policy.has(&ours));
        let with = policy.clone().with(&ours);
        assert!(with.has(&ours));
        let left: Value = serde_json::from_str(&with.without(&ours).write()).unwrap();
        for (index, statement) in others["Statement"].as_array().unwrap()[..4].iter().enumerate() {
            assert_eq!(left["Statement"][index], *statement);
        }
        assert_eq!((&left["Statement"][4]["Resource"], &left["Id"]), (&json!(["arn:b"]), &json!("mine")));
    }
}
