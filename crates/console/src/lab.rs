//! The policy lab: a form for a retry policy. It shows the results of `comeback simulate` and `comeback plan` while
//! the operator fills it in.

use askama::Template;
use axum::response::Response;
use comeback_engine::{Kind, Setting, Unset};
use comeback_operate::Text;
use comeback_operate::deployment::Deployment;
use comeback_rehearsal::deployed::{DeployedSetting, lines};
use comeback_rehearsal::flags::{PolicyFlags, variable};

use crate::access::token;
use crate::page::{Fields, Frame, Problem, Visit, ok};
use crate::rehearsal::{LabAnswer, Words};
use crate::response::go_to;

/// Fields that are always shown.
const MAIN: [&str; 4] = ["outage", "events", "max-age", "max-backoff"];

const DEFAULT_OUTAGE: &str = "3h";
/// Label of each button, and the fields that the button sets.
const PRESETS: [(&str, &[(&str, &str)]); 4] = [
    ("15 minutes", &[("outage", "15m")]),
    ("3 hours", &[("outage", DEFAULT_OUTAGE)]),
    ("A day", &[("outage", "24h"), ("for", "48h")]),
    ("Flapping", &[("outage", "3h"), ("flapping", "10m")]),
];

/// The command-line flags for the policy settings that have a field in the form.
const POLICY: [&str; 8] = [
    "max-age",
    "max-retries",
    "base-backoff",
    "max-backoff",
    "backoffs",
    "jitter",
    "hide-up-to",
    "maximum-concurrency",
];

/// A form field that is not part of the policy: its name, label, placeholder and hint.
type Given = (&'static str, &'static str, &'static str, &'static str);

/// Form fields that become flags of `comeback simulate`.
const RUN: [Given; 6] = [
    ("outage", "Outage", DEFAULT_OUTAGE, "How long the target is down"),
    (
        "flapping",
        "Flapping",
        "never up",
        "Switch between down and up during the outage, and stay in each state for this long",
    ),
    ("events", "Events", "1000", "Events that reach the target during the outage"),
    ("failure-rate", "Failure rate", "0", "Share of the invocations that fail after the outage, 0 to 1"),
    ("capacity", "Capacity", "no limit", "Most that the target handles, as a multiple of its usual traffic"),
    ("for", "Virtual time", "24h", "Length of the run"),
];
/// Form fields that become flags of `comeback plan`.
const GOAL: [Given; 2] = [
    ("rate", "Rate", "10/s", "Events that fail while the target is down, such as 10/s or 600/m"),
    (
        "recover-within",
        "Back within",
        "none",
        "Recommend a policy with which 99 % are delivered this soon after the outage",
    ),
];

/// Form field with the browser tab's id.
const TAB: &str = "tab";
const BESIDE: &str = "beside";
const DEPLOYED: &str = "deployed";

struct Input {
    name: &'static str,
    label: String,
    placeholder: String,
    hint: String,
    value: String,
    /// The allowed values; empty if any text is allowed.
    choices: &'static [&'static str],
}

impl Input {
    /// Returns true if the value is neither empty nor the default.
    fn is_changed(&self) -> bool {
        !self.value.is_empty() && self.value != self.placeholder
    }
}

#[derive(Template)]
#[template(path = "lab.html")]
struct LabPage {
    frame: Frame,
    tab: String,
    /// For each typical outage: the label and the path of its button, and true if the page currently shows the outage.
    presets: Vec<(&'static str, String, bool)>,
    main: Vec<Input>,
    groups: [(&'static str, Vec<Input>); 3],
    /// True if a collapsed field has a value other than its default.
    has_more: bool,
    /// The name of the policy that the form's policy is compared with.
    other: &'static str,
    is_beside_deployed: bool,
    /// Reason why the deployed policy could not be read; `None` if it was read, or if it was not requested.
    undeployed: Option<Text>,
    commands: Vec<String>,
    /// The policy for the operator to paste, as stack parameters and as CDK properties; `None` for the default
    /// policy.
    pasted: Option<(String, String)>,
    percent: u64,
    /// The result of the simulation; `None` while it runs.
    answer: Option<LabAnswer>,
}

pub(super) async fn lab(visit: Visit) -> Result<Response, Problem> {
    let console = &visit.console;
    let fields = visit.query();
    let Some(tab) = fields.get(TAB) else {
        // Once a page has reached the account, the lab compares the form's policy with the deployed policy.
        let beside = if console.account().is_some() { DEPLOYED } else { "default" };
        return Ok(go_to(&format!("/lab?{TAB}={}&{BESIDE}={beside}", &token()[..16])));
    };
    let is_beside_deployed = fields.get(BESIDE) == Some(DEPLOYED);
    let (other, undeployed) = match is_beside_deployed {
        true => match console.deployment().await.value {
            Ok(deployment) => (("the deployed policy", flags_of(&deployment)), None),
            Err(failure) => (("the default policy", PolicyFlags::default()), Some(failure.text())),
        },
        false => (("the default policy", PolicyFlags::default()), None),
    };
    let words = words_of(&fields);
    let other_name = other.0;
    let (percent, answer) = console.labs.answer(tab, words.clone(), other).await;
    let groups = [
        ("Policy", others(POLICY.map(|flag| policy_input(flag, &fields)))),
        ("What happens", others(RUN.map(|given| input(given, &fields)))),
        ("Load and goal", others(GOAL.map(|given| input(given, &fields)))),
    ];
    ok(&LabPage {
        frame: visit.frame("Policy lab", None),
        tab: tab.to_owned(),
        presets: PRESETS.iter().map(|(words, set)| preset(words, set, &fields)).collect(),
        main: MAIN.iter().filter_map(|name| inputs(&fields).find(|input| input.name == *name)).collect(),
        has_more: groups.iter().flat_map(|(_, inputs)| inputs).any(Input::is_changed),
        groups,
        other: other_name,
        is_beside_deployed,
        undeployed,
        commands: words.lines(),
        pasted: pasted(&fields),
        percent,
        answer,
    })
}

/// Returns a button for a typical outage: its label, its path, and true if the page currently shows that outage.
fn preset(words: &'static str, set: &[(&str, &str)], fields: &Fields) -> (&'static str, String, bool) {
    let names = ["outage", "flapping", "for"];
    let chosen = set.iter().fold(fields.without(&names), |fields, (name, value)| fields.with(name, value));
    let shown = |name: &str| fields.get(name).or((name == "outage").then_some(DEFAULT_OUTAGE));
    let is_shown = names.iter().all(|name| shown(name) == chosen.get(name));
    (words, format!("/lab?{}", chosen.to_query()), is_shown)
}

fn inputs(fields: &Fields) -> impl Iterator<Item = Input> {
    let run = RUN.into_iter().map(|given| input(given, fields));
    run.chain(POLICY.into_iter().map(|flag| policy_input(flag, fields)))
}

fn others(inputs: impl IntoIterator<Item = Input>) -> Vec<Input> {
    inputs.into_iter().filter(|input| !MAIN.contains(&input.name)).collect()
}

fn input((name, label, placeholder, hint): Given, fields: &Fields) -> Input {
    Input {
        name,
        label: label.into(),
        placeholder: placeholder.into(),
        hint: hint.into(),
        value: fields.get(name).unwrap_or_default().to_owned(),
        choices: &[],
    }
}

fn policy_input(flag: &'static str, fields: &Fields) -> Input {
    let setting = Setting::named(&variable(flag));
    let default = match setting.default {
        Unset::Is(text) | Unset::Means(text) => text,
    };
    let choices = match setting.kind {
        Kind::Choice(choices) => choices,
        _ => &[],
    };
    Input {
        name: flag,
        label: setting.name.into(),
        placeholder: default.into(),
        hint: setting.meaning.into(),
        value: fields.get(flag).unwrap_or(if choices.is_empty() { "" } else { default }).to_owned(),
        choices,
    }
}

fn flags_of(deployment: &Deployment) -> PolicyFlags {
    let set = |flag: &&str| deployment.variables.get(&variable(flag)).filter(|value| !value.is_empty());
    let given: Vec<(&str, String)> =
        PolicyFlags::names().filter_map(|flag| Some((flag, set(&flag)?.clone()))).collect();
    PolicyFlags::default().with(given.iter().map(|(flag, value)| (*flag, value.as_str())))
}

fn pasted(fields: &Fields) -> Option<(String, String)> {
    let given: Vec<DeployedSetting> = POLICY
        .iter()
        .filter_map(|flag| Some((variable(flag), fields.get(flag)?)))
        .filter(|(variable, value)| !matches!(Setting::named(variable).default, Unset::Is(text) if text == *value))
        .map(|(variable, value)| DeployedSetting::of(&variable, value))
        .collect();
    (!given.is_empty()).then(|| lines(&given))
}

fn words_of(fields: &Fields) -> Words {
    let flag = |name: &str| fields.get(name).map(|value| format!("--{name}={value}"));
    let words = |command: &str, names: &mut dyn Iterator<Item = &'static str>| {
        ["comeback".to_owned(), command.to_owned()].into_iter().chain(names.filter_map(flag)).collect()
    };
    let names = |given: &[Given]| given.iter().map(|given| given.0).collect::<Vec<_>>();
    let plan = ["outage", "capacity", "max-age", "max-retries"].into_iter().chain(names(&GOAL));
    Words {
        simulate: words("simulate", &mut names(&RUN).into_iter().chain(POLICY)),
        plan: fields.get("recover-within").map(|_| words("plan", &mut { plan })),
        rate: fields.get("rate").map(ToOwned::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(given: &[(&str, &str)]) -> Fields {
        Fields(given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_form_is_the_commands_with_its_values() {
        let form = fields(&[
            ("outage", "1h"),
            ("capacity", "2"),
            ("jitter", "none"),
            ("max-age", "2h"),
            ("rate", "20/s"),
            ("recover-within", ""),
        ]);
        let words = words_of(&form);
        assert_eq!(words.lines(), ["comeback simulate --outage=1h --capacity=2 --max-age=2h --jitter=none"]);
        let words = words_of(&form.with("recover-within", "10m"));
        assert_eq!(
            words.lines()[1],
            "comeback plan --outage=1h --capacity=2 --max-age=2h --rate=20/s --recover-within=10m"
        );
        let (sam, cdk) = pasted(&form).unwrap();
        assert_eq!(
            (&*sam, &*cdk),
            ("MaxAge=7200 Jitter=none", "maxAge: Duration.seconds(7200),\njitter: Jitter.NONE,")
        );
    }
}
