//! The log: a JSON line for each failed record, with the names of the retry handler's lines. Never anything of a body.

use serde::Serialize;

#[derive(Debug, Default, Serialize)]
pub(crate) struct Line<'a> {
    pub(crate) timestamp: String,
    pub(crate) level: &'static str,
    pub(crate) v: u8,
    pub(crate) action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) due: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) due_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after_ignored: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<String>,
}

impl Line<'_> {
    pub(crate) fn print(&self) {
        println!("{}", serde_json::to_string(self).expect("BUG: texts and numbers are JSON"));
    }
}
