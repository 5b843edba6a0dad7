//! Tests that the documentation shows what `comeback` really prints, and that every command in the documentation runs.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use crate::support::*;

/// The output of `comeback schedule --rate 10/s`, which several documentation pages quote.
static SCHEDULE: LazyLock<String> = LazyLock::new(|| printed("schedule --rate 10/s"));

/// The text of a documentation page, joined into one line.
fn prose(page: &str) -> String {
    read(page).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn each_command_of_the_pages_runs() {
    let docs = std::fs::read_dir(repository().join("docs")).expect("docs/ is a directory");
    let docs = docs.map(|entry| entry.expect("an entry").path());
    let pages: Vec<PathBuf> = docs.chain([repository().join("README.md")]).collect();
    let texts = pages.iter().filter(|page| page.extension().is_some_and(|extension| extension == "md"));
    let texts: Vec<String> =
        texts.map(|page| std::fs::read_to_string(page).expect("a readable page")).collect();
    // Other tests run the commands under these headings and check their output.
    let measured = ["Retries of one event", "Waiting events", "When the handler is down"];
    let measured: Vec<String> = measured.into_iter().flat_map(documented_commands).collect();
    let shown = ["schedule --rate 10/s", "schedule --rate 10/s --hide-up-to always"];
    let commands: BTreeSet<&str> = texts
        .iter()
        .flat_map(|text| text.lines())
        .filter(|line| line.starts_with("cargo run "))
        .filter_map(|line| line.split_once(" -p comeback -- "))
        .map(|(_, arguments)| arguments)
        // A command with `>` writes a file that another documented command needs. The end-to-end tests run both.
        .filter(|arguments| !arguments.contains(" > "))
        .filter(|arguments| {
            !measured.contains(&arguments.replace(" --json", "")) && !shown.contains(arguments)
        })
        .collect();
    assert!(commands.len() >= 12, "{commands:?}");
    for arguments in commands {
        // The command runs in a shell, because `events/*.json` must be expanded.
        let output = Command::new("sh")
            .args(["-c", &format!("exec \"$0\" {arguments}"), env!("CARGO_BIN_EXE_comeback")])
            .current_dir(repository())
            .output()
            .expect("sh runs");
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(!output.stdout.is_empty(), "{arguments} prints nothing");
    }
}

#[cfg(feature = "operate")]
#[test]
fn each_flag_of_the_operating_commands_is_on_a_page() {
    const COMMON: [&str; 7] = ["handler", "stack", "region", "profile", "json", "yes", "help"];
    let pages =
        ["operate", "attach", "doctor", "console"].map(|page| read(&format!("docs/{page}.md"))).concat();
    let command_line = comeback::command_line();
    let mut commands: Vec<&clap::Command> = command_line.get_subcommands().collect();
    let mut missing = Vec::new();
    let mut flags = 0;
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands());
        let works_on_a_deployment = command.get_arguments().any(|it| it.get_long() == Some("handler"));
        let own = command.get_arguments().filter_map(clap::Arg::get_long).filter(|it| !COMMON.contains(it));
        for flag in own.filter(|_| works_on_a_deployment) {
            flags += 1;
            let goes_on = |c: char| c == '-' || c.is_ascii_alphanumeric();
            let is_named = pages.split(&format!("--{flag}")).skip(1).any(|rest| !rest.starts_with(goes_on));
            if !is_named {
                missing.push(format!("{} --{flag}", command.get_name()));
            }
        }
    }
    assert!(flags > 40 && missing.is_empty(), "of {flags} flags, no page names {missing:?}");
}

#[test]
fn the_scale_table_begins_with_the_retries_of_todays_run() {
    let output = Command::new("python3")
        .args(["tests/scale/measure.py", env!("CARGO_BIN_EXE_comeback"), "1000"])
        .current_dir(repository())
        .output()
        .expect("Python 3 is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let measured = String::from_utf8(output.stdout).expect("text");
    let cells = |table: &str, events: &str| -> Vec<String> {
        let start = format!("| {events} | ");
        let row =
            table.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("{start}: {table}"));
        row.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let [shown, measured] = [&read("docs/simulate.md"), &measured].map(|table| cells(table, "1,000"));
    assert_eq!((shown.len(), &shown[2]), (measured.len(), &measured[2]), "retries of 1,000 events");
}

/// Arguments of the `comeback` commands under a heading in `docs/limits-and-costs.md`.
fn documented_commands(heading: &str) -> Vec<String> {
    let page = read("docs/limits-and-costs.md");
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).expect("the section is there");
    let section = section.split("\n## ").next().unwrap_or_default();
    let commands = section.lines().filter_map(|line| line.split_once(" -p comeback -- "));
    commands.map(|(_, arguments)| arguments.replace(" --json", "")).collect()
}

#[test]
fn the_documented_factors_are_those_of_the_commands_beside_them() {
    let page = read("docs/limits-and-costs.md");
    let factors: Vec<&str> =
        page.lines().filter_map(|line| line.strip_suffix(" × |")?.rsplit(' ').next()).collect();
    let retries = documented_commands("Retries of one event");
    let retries: Vec<f64> =
        retries.iter().map(|command| json(command)["retries"].as_f64().expect("a number")).collect();
    let measured: Vec<String> = retries.iter().map(|with| format!("{:.1}", with / retries[0])).collect();
    assert_eq!((factors.len(), factors), (9, measured.iter().map(String::as_str).collect()));
}

#[test]
fn waiting_events_cost_and_stay_bounded_as_documented() {
    let commands = documented_commands("Waiting events");
    let [rate, day] = commands.as_slice() else { panic!("{commands:?}") };
    let printed = printed(rate);
    let (_, usd) = printed.split_once(" USD an hour, or ").expect("the price");
    let usd: f64 = usd.split(' ').next().expect("a word").parse().expect("a number");
    let page = prose("docs/limits-and-costs.md");
    let price = format!("about {usd:.2} USD for a million hours of waiting");
    assert!(page.contains(&price), "not documented: {price}");
    let day = json(day);
    assert!(page.contains("at most 200 of 1,000 messages are hidden"));
    assert_eq!((number(&day, "delivered"), number(&day, "events")), (1_000, 1_000));
    assert!(
        (80..=200).contains(&number(&day, "peak_in_flight")) && number(&day, "peak_delayed") > 750,
        "{day}"
    );
}

#[test]
fn the_documented_outages_lose_nothing() {
    let commands = documented_commands("When the handler is down");
    assert_eq!(commands.len(), 2);
    for command in commands {
        assert_eq!(json(&command)["delivered"], 100, "{command:?}");
    }
}

#[test]
fn the_documented_prices_are_those_of_the_commands() {
    let page = prose("docs/limits-and-costs.md");
    for (events, part) in [(10_000, "USD in one of 10,000,"), (1_000, "USD in one of 1,000,")] {
        let run = json(&format!("simulate --events {events}"));
        let [usd, retries] = ["cost_usd", "retries"].map(|figure| run[figure].as_f64().expect("a number"));
        let price = format!("{:.2} {part}", usd / retries * 1e6);
        assert!(page.contains(&price), "docs/limits-and-costs.md does not say: {price}");
    }
}

#[test]
fn the_readme_says_when_the_demo_recovers() {
    let printed = printed("simulate");
    let row = printed.lines().find(|line| line.contains("recovery after the outage")).expect("the row");
    let [half, all] = ["p50 ", "max "].map(|of| {
        let (_, rest) = row.split_once(of).expect("a figure");
        rest.split(['│', 'p']).next().expect("a string").trim()
    });
    let sentence =
        format!("Half of them are delivered within {half} of the end of the outage, and all within {all}.");
    assert!(prose("README.md").contains(&sentence), "the README does not say: {sentence}");
}

#[test]
fn the_readmes_table_has_sources_and_todays_price() {
    let readme = read("README.md");
    let (_, section) = readme.split_once("\n## Is this for me?\n").expect("the section");
    let rows: Vec<Vec<&str>> = section
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let sources = read("docs/limits-and-costs.md");
    for row in &rows[2..] {
        let source = format!("\n| {} | ", row[1].trim_matches('*'));
        assert!(sources.contains(&source), "docs/limits-and-costs.md has no row {source:?}");
    }
    assert_eq!(rows.len(), 9, "six alternatives");
    let (_, price) = SCHEDULE.split_once(" USD an hour, or ").expect("the price");
    let price = price.split(' ').next().expect("a figure");
    assert_eq!(rows[2][5], format!("0 to {price} USD"));
}

#[test]
fn the_rate_in_the_settings_is_what_schedule_prints() {
    let page = read("docs/settings.md");
    let shown: Vec<&str> = page
        .lines()
        .skip_while(|line| !line.starts_with("At 10 a second"))
        .take_while(|line| !line.starts_with("```"))
        .collect();
    let ends = SCHEDULE.ends_with(&format!("\n{}\n", shown.join("\n")));
    assert!(shown.len() == 5 && ends, "{shown:#?}: {}", *SCHEDULE);
    let always = printed("schedule --rate 10/s --hide-up-to always");
    assert!(always.contains("The limit is reached 3h 20m after the target goes down."), "{always}");
    assert!(page.contains("after 3 h 20 min at 10 failing events a second."));
}

#[test]
fn the_policies_in_the_documentation_are_what_plan_prints() {
    let printed = printed("plan --outage 3h --rate 10/s --recover-within 30m");
    let rows = |text: &str| -> Vec<String> {
        let is_row =
            |line: &&str| line.starts_with("│ ") && (line.contains('×') || line.contains("┆ jitter"));
        text.lines().filter(is_row).map(Into::into).collect()
    };
    let all = rows(&printed);
    assert!(all.len() > 8, "{printed}");
    assert_eq!(rows(&read("docs/plan.md")), all, "docs/plan.md");
    let page = read("docs/plan.md");
    let pasted = printed.lines().filter(|line| line.starts_with("  "));
    assert!(pasted.clone().count() == 4 && pasted.into_iter().all(|line| page.contains(line)), "{printed}");
}
