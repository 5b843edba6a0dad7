//! Tests of `infra/src/settings.json`, the table of settings for programs in other languages.
//!
//! After a change to the table, rewrite the file with `UPDATE_EXPECT=1 cargo test -p comeback-engine --test engine
//! settings_file`.

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;

use comeback_engine::{ATTRIBUTE_CHARACTERS, Kind, SETTINGS, Setting, Unset, seconds};
use serde::Serialize;
use serde_json::{Value, json};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../infra/src/settings.json");

#[derive(Default, Serialize)]
struct Row {
    /// The default value, as a number of seconds if it is a duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<u64>,
    /// The unit of `min` and `max`.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    /// Maximum length of a glob, in characters. A dead-letter does not show more of an error's type.
    #[serde(skip_serializing_if = "Option::is_none")]
    characters: Option<usize>,
    /// Maximum number of entries in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    choices: Option<&'static [&'static str]>,
    /// The accepted range, worded as in error messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
}

impl Row {
    fn of(setting: &'static Setting) -> Self {
        let (default, kind) = (setting.default, &setting.kind);
        let default = match (default, kind) {
            (Unset::Means(_), _) => None,
            (Unset::Is(text), Kind::Seconds { .. } | Kind::SecondsUpTo { .. }) => {
                Some(json!(seconds(text).expect("a duration")))
            }
            (Unset::Is(text), _) => Some(text.parse::<u64>().map_or_else(|_| json!(text), |it| json!(it))),
        };
        let within = |range: &RangeInclusive<u64>| Self {
            min: Some(*range.start()),
            max: Some(*range.end()),
            range: Some(kind.range()),
            ..Self::default()
        };
        let seconds_within = |range| Self { unit: Some("s"), ..within(range) };
        let row = match kind {
            Kind::Seconds { range, .. } | Kind::SecondsUpTo { range, .. } => seconds_within(range),
            Kind::SecondsList { range, entries, .. } => {
                Self { entries: Some(*entries), ..seconds_within(range) }
            }
            Kind::Number(range) | Kind::NumberOrAlways(range) => within(range),
            Kind::Choice(choices) => {
                Self { choices: Some(choices), range: Some(kind.range()), ..Self::default() }
            }
            Kind::Globs => Self { characters: Some(ATTRIBUTE_CHARACTERS), ..Self::default() },
            Kind::Functions | Kind::Policies | Kind::Queue | Kind::Parameter => Self::default(),
        };
        Self { default, ..row }
    }
}

#[test]
fn settings_file_is_the_table() {
    let rows: BTreeMap<&str, Row> = SETTINGS.iter().map(|it| (it.name, Row::of(it))).collect();
    let table = serde_json::to_string_pretty(&rows).expect("JSON") + "\n";
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(FILE, &table).expect("it can be written");
    }
    let file = fs::read_to_string(FILE).unwrap_or_default();
    assert!(
        file == table,
        "rewrite infra/src/settings.json as the head of this test says; it must be\n{table}"
    );
}
