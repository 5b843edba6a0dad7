//! Simulated IAM roles, and the actions that their policies allow.

use std::collections::BTreeMap;

use comeback_engine::Timestamp;
use serde_json::Value;
use wildmatch::WildMatch;

use crate::aws::simulated::REGION;
use crate::aws::{ROLE_CHARACTERS, Verdict};

/// A role and its inline policies.
#[derive(Clone, Debug, Default)]
pub struct Role {
    /// The inline policies as JSON, keyed by name.
    pub policies: BTreeMap<String, String>,
    /// The time of the latest change to a policy. The change takes effect after the delay
    /// `AccountState::permissions_take`.
    pub(super) changed: Option<Timestamp>,
}

impl Role {
    /// Creates a role with a policy named `inline` that allows these actions on these resources.
    pub fn allowing(actions: &[&str], resources: &[&str]) -> Self {
        let mut role = Self::default();
        role.policies.insert("inline".into(), policy(actions, resources));
        role
    }

    /// Simulates `PutRolePolicy`: adds or replaces an inline policy, or fails with IAM's error code and message.
    pub(super) fn put(&mut self, now: Timestamp, name: &str, document: &str) -> Result<(), String> {
        if !serde_json::from_str::<Value>(document).is_ok_and(|document| document["Statement"] != Value::Null)
        {
            return Err("MalformedPolicyDocument: Syntax errors in policy.".into());
        }
        let mut policies = self.policies.clone();
        policies.insert(name.to_owned(), document.to_owned());
        let characters =
            policies.values().flat_map(|text| text.chars()).filter(|it| !it.is_whitespace()).count();
        if characters > ROLE_CHARACTERS {
            return Err(format!(
                "LimitExceeded: Maximum policy size of {ROLE_CHARACTERS} bytes exceeded for the role"
            ));
        }
        (self.policies, self.changed) = (policies, Some(now));
        Ok(())
    }

    /// Returns the verdict of IAM's policy simulator on an action by this role.
    pub fn may(&self, action: &str, resource: &str) -> Verdict {
        let documents = self.policies.values().filter_map(|text| serde_json::from_str::<Value>(text).ok());
        let mut verdict = Verdict::NotAllowed;
        for document in documents {
            for statement in all(&document["Statement"]).filter(|it| applies(it, action, resource)) {
                match statement["Effect"].as_str() {
                    Some("Deny") => return Verdict::Denied,
                    Some("Allow") => verdict = Verdict::Allowed,
                    _ => {}
                }
            }
        }
        verdict
    }
}

/// A policy with one statement, which allows these actions on these resources.
pub fn policy(actions: &[&str], resources: &[&str]) -> String {
    let statement = serde_json::json!({"Effect": "Allow", "Action": actions, "Resource": resources});
    serde_json::json!({"Version": "2012-10-17", "Statement": [statement]}).to_string()
}

/// Returns the elements of a list in a policy; a single value counts as a list.
fn all(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice).iter()
}

fn applies(statement: &Value, action: &str, resource: &str) -> bool {
    let any = |member: &str, text: &str| {
        let mut patterns = all(&statement[member]).filter_map(Value::as_str);
        patterns.any(|pattern| WildMatch::new(pattern).matches(text))
    };
    let any_action = all(&statement["Action"])
        .filter_map(Value::as_str)
        .any(|it| WildMatch::new(&it.to_ascii_lowercase()).matches(&action.to_ascii_lowercase()));
    any_action && any("Resource", resource) && conditions_hold(&statement["Condition"], action)
}

/// Returns true if all conditions of a statement are met. Only a condition on `kms:ViaService` can be met.
fn conditions_hold(conditions: &Value, action: &str) -> bool {
    let via = format!("sqs.{REGION}.amazonaws.com");
    let holds = |(operator, keys): (&String, &Value)| {
        let is_known = ["StringEquals", "StringLike"].contains(&&**operator) && action.starts_with("kms:");
        is_known
            && keys.as_object().into_iter().flatten().all(|(key, values)| {
                let mut values = all(values).filter_map(Value::as_str);
                key.eq_ignore_ascii_case("kms:ViaService")
                    && values.any(|it| WildMatch::new(it).matches(&via))
            })
    };
    conditions.as_object().into_iter().flatten().all(holds)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn role(statements: Value) -> Role {
        let document = json!({"Version": "2012-10-17", "Statement": statements}).to_string();
        Role { policies: BTreeMap::from([("p".into(), document)]), ..Role::default() }
    }

    #[test]
    fn a_denial_outweighs_every_permission() {
        let allow = json!({"Effect": "Allow", "Action": ["sqs:Send*"], "Resource": "arn:q"});
        let deny = json!({"Effect": "Deny", "Action": "sqs:*", "Resource": "*"});
        let allowing = role(allow.clone());
        assert_eq!(allowing.may("sqs:SendMessage", "arn:q"), Verdict::Allowed);
        assert_eq!(allowing.may("sqs:SendMessage", "arn:other"), Verdict::NotAllowed);
        assert_eq!(allowing.may("sqs:ReceiveMessage", "arn:q"), Verdict::NotAllowed);
        assert_eq!(role(json!([allow, deny])).may("sqs:SendMessage", "arn:q"), Verdict::Denied);
    }

    #[test]
    fn a_statement_applies_if_its_conditions_hold() {
        let via = |service: &str| {
            let condition = json!({"StringEquals": {"kms:ViaService": service}});
            let statement =
                json!({"Effect": "Allow", "Action": "kms:Decrypt", "Resource": "*", "Condition": condition});
            role(statement).may("kms:Decrypt", "arn:key")
        };
        assert_eq!(via("sqs.eu-west-1.amazonaws.com"), Verdict::Allowed);
        assert_eq!(via("s3.eu-west-1.amazonaws.com"), Verdict::NotAllowed);
        let tls = json!({"Bool": {"aws:SecureTransport": "false"}});
        let deny = json!({"Effect": "Deny", "Action": "*", "Resource": "*", "Condition": tls});
        assert_eq!(role(deny).may("sqs:SendMessage", "arn:q"), Verdict::NotAllowed);
    }
}
