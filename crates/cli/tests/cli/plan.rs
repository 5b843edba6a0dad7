//! Tests for `comeback plan`. Short outages and generous goals keep the tests fast.

use serde_json::Value;

use crate::support::*;

const QUICK: &str = "plan --outage 2m --recover-within 2d";

#[test]
fn settings_to_paste_are_those_of_the_template_and_the_construct() {
    let line = format!("{QUICK} --max-age 2d --max-retries 100 --rate 1000/s");
    let (plan, printed) = (json(&line), printed(&line));
    let template = read("template.yaml");
    let (_, parameters) = template.split_once("\nParameters:\n").expect("parameters");
    let construct = ["function-policy", "policy"].map(|file| read(&format!("infra/src/{file}.ts"))).concat();
    let mut named = Vec::new();
    for setting in plan["settings"].as_array().expect("settings") {
        let [parameter, value, property, property_value] =
            ["parameter", "value", "property", "property_value"]
                .map(|name| setting[name].as_str().expect("text"));
        assert!(parameters.contains(&format!("\n  {parameter}:\n")), "{parameter}");
        assert!(construct.contains(&format!("\n  readonly {property}?: ")), "{property}");
        if let Some(member) = property_value.strip_prefix("Jitter.") {
            assert!(construct.contains(&format!("\n  {member} = '{value}',\n")), "{member}");
        }
        assert!(printed.contains(&format!(" {parameter}={value}")), "{parameter}: {printed}");
        assert!(printed.contains(&format!("\n  {property}: {property_value},")), "{property}: {printed}");
        named.push(parameter);
    }
    let expected = ["BaseBackoff", "MaxBackoff", "Jitter", "MaxAge", "MaxRetries", "MaximumConcurrency"];
    assert_eq!(named, expected);
}

#[test]
fn the_table_marks_the_cheapest_and_has_the_defaults() {
    let output = printed(QUICK);
    let rows: Vec<&str> =
        output.lines().filter(|line| line.starts_with("│ ") && line.contains('×')).collect();
    assert_eq!(rows.iter().filter(|row| row.contains('▸')).count(), 1, "{output}");
    assert_eq!(rows.iter().filter(|row| row.contains("○ 1h ┆ full")).count(), 1, "{output}");
    assert!(output.lines().all(|line| line.chars().count() <= 100), "{output}");
    let mut table = output.lines().filter(|line| line.starts_with(['│', '┌', '╞', '└']));
    assert!(table.all(|line| line.chars().count() <= 80), "{output}");
    let plan = json(QUICK);
    assert_eq!((&plan["limited_by"], &plan["limits"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    assert_eq!(plan["grid"].as_array().map(Vec::len), Some(10), "the defaults, and 3 jitters with 3 bases");
}

#[test]
fn the_picture_has_a_point_for_each_policy() {
    let folder = scratch();
    printed(&format!("{QUICK} --plot {}", folder.path().display()));
    let svg = std::fs::read_to_string(folder.path().join("plan.svg")).expect("it was written");
    let points = svg.matches("<circle ").count();
    assert_eq!(points, 10 + 3 + 2, "the policies, the key, and the marks around two of them");
    assert!(
        svg.contains("the cheapest that meets the goal: ") && svg.contains("the defaults: 1h, full, 10s"),
        "{svg}"
    );
}

#[test]
fn a_goal_that_cannot_be_met_names_its_limit_and_ends_with_3() {
    for (flags, limit) in [
        ("--max-age 60s", "MAX_AGE: "),
        ("--max-retries 1", "MAX_RETRIES: "),
        ("--rate 1000000/s", "throughput: "),
    ] {
        let output = comeback(&format!("{QUICK} {flags}"));
        let error = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(3), "{flags}: {error}");
        let start = format!(
            "error: no policy in the grid meets the goal; what stands in the \
                             way:\n       {limit}"
        );
        assert!(error.starts_with(&start), "{error}");
        let printed = String::from_utf8(output.stdout).expect("text");
        assert!(
            printed.contains('○') && !printed.contains(['▸']) && !printed.contains("sam deploy"),
            "{printed}"
        );
        let json = comeback(&format!("{QUICK} --json {flags}"));
        assert_eq!(json.status.code(), Some(3));
        let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
        assert_eq!((&json["cheapest"], &json["settings"]), (&Value::Null, &Value::Null));
        assert!(json["limited_by"][0].as_str().is_some_and(|text| text.starts_with(limit)), "{flags}");
    }
}

#[test]
fn refusals_of_the_policy_and_of_the_goal_are_reported_at_once() {
    let expected = "error: MAX_AGE is 1 s; it must be 60 s to 1209600 s (14 days)\n       \
        --outage is 0ns; it must be 1 s to 14 days\n";
    assert_eq!(failed("plan --outage 0 --max-age 1s"), (2, expected.to_owned()));
}

#[test]
fn a_functions_plan_follows_its_entry_and_writes_it_again() {
    let entries = "export-* MAX_AGE=2d MAX_RETRIES=100 BACKOFFS=20s,5m ENVELOPE=inline; * MAX_AGE=60s";
    let plan = |more: &[&str]| {
        let arguments = QUICK.split(' ').chain(["--rate", "1000/s"]).chain(more.iter().copied());
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_comeback")).args(arguments).output();
        output.expect("comeback runs")
    };
    let json = |more: &[&str]| -> Value {
        let output = plan(&[more, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let own = json(&["--policies", entries, "--target", "export-eu"]);
    let stacks = json(&["--max-age", "2d", "--max-retries", "100"]);
    assert_eq!(own["grid"], stacks["grid"], "the entry's MAX_AGE and MAX_RETRIES count");
    let chosen = ["base_backoff", "max_backoff", "jitter"].map(|name| own["cheapest"][name].to_string());
    let [base, cap, jitter] = chosen.map(|value| value.replace('"', ""));
    let entry = format!(
        "export-* MAX_AGE=2d MAX_RETRIES=100 ENVELOPE=inline BASE_BACKOFF={base} MAX_BACKOFF={cap} JITTER={jitter}"
    );
    assert_eq!((&own["entry"], &stacks["entry"]), (&entry.as_str().into(), &Value::Null));
    let named: Vec<_> = own["settings"].as_array().expect("a list").iter().collect();
    assert!(named.len() == 1 && named[0]["parameter"] == "MaximumConcurrency", "the queue's: {named:?}");
    let text =
        String::from_utf8(plan(&["--policies", entries, "--target", "export-eu"]).stdout).expect("text");
    assert!(text.starts_with("For export-eu, under its entry of POLICIES: export-* MAX_AGE=2d "), "{text}");
    assert!(text.contains(&format!("As an entry of POLICIES:\n  {entry}\n")), "{text}");

    let without = json(&["--policies", entries, "--max-age", "2d", "--max-retries", "100"]);
    assert_eq!(without, stacks, "the plan is for the stack's policy");
    let unmatched = plan(&["--policies", "export MAX_AGE=2h", "--target", "orders"]);
    let error = String::from_utf8(unmatched.stderr).expect("text");
    assert!(error.starts_with("error: --target is orders, which no entry of --policies matches"), "{error}");
    let refused = plan(&["--policies", "export MAX_AGE=1s", "--target", "export"]);
    let error = String::from_utf8(refused.stderr).expect("text");
    assert!(error.contains("export MAX_AGE=1s") && error.contains("MAX_AGE is 1 s"), "{error}");
}
