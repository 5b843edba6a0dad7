//! Tests for `comeback simulate --report`: the text of the report, and the errors for refused arguments.

use std::path::Path;

use crate::support::*;

/// Runs `comeback simulate` with a report in `folder`. Returns the report and the standard output.
fn page_in(folder: &Path, flags: &str) -> (String, String) {
    let file = folder.join("made/here.html");
    let output = comeback(&format!("simulate {flags} --report {}", file.display()));
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.ends_with(&format!("wrote {}\n", file.display())), "{said}");
    let page = std::fs::read_to_string(&file).expect("it was written");
    (page, String::from_utf8(output.stdout).expect("text"))
}

fn made(flags: &str) -> (String, String) {
    page_in(scratch().path(), flags)
}

/// The cells of the row with this label, in any table of the report.
fn row<'a>(page: &'a str, label: &str) -> Vec<&'a str> {
    let head = format!("<th scope=\"row\">{label}</th>");
    let (_, rest) = page.split_once(&head).unwrap_or_else(|| panic!("no row {label}"));
    let (cells, _) = rest.split_once("</tr>").expect("a row ends");
    cells.split("<td>").skip(1).map(|cell| cell.trim_end_matches("</td>")).collect()
}

const SMALL: &str = "--events 60 --outage 1h";

#[test]
fn the_same_seed_gives_the_same_page() {
    let folder = scratch();
    let run = |seed| page_in(folder.path(), &format!("{SMALL} --json --seed {seed} --vs jitter=none"));
    let (page, json) = run(5);
    assert_eq!((page.clone(), json), run(5));
    assert_ne!(page, run(6).0);
    assert!(!page.contains(&*folder.path().to_string_lossy()), "it does not depend on its place");
    assert!(page.contains(
        "<code>cargo run --release -p comeback -- simulate --seed 5 --events 60 --outage 1h --report report.html --vs jitter=none --json</code>"
    ));
}

#[test]
fn the_page_has_the_printed_figures() {
    let flags = format!("{SMALL} --max-retries 9 --seed 4");
    let (page, text) = made(&flags);
    for label in
        ["delivered", "dead-lettered", "  max_retries", "retries made", "peak in flight", "virtual time"]
    {
        let printed = text.lines().find(|line| line.starts_with(&format!("│ {label} ")));
        let printed = printed.unwrap_or_else(|| panic!("{label} is not printed: {text}"));
        let value = printed.split('┆').nth(1).expect("a value").trim_matches([' ', '│']);
        assert_eq!(row(&page, label), [value], "{label}");
    }
    let json = json(&format!("simulate {flags}"));
    assert_eq!(row(&page, "lambda:Invoke (target)")[0], json["retries"].to_string());
    let by_attempts: Vec<usize> =
        (0..=9).map(|n| row(&page, &n.to_string())[0].parse().expect("a count")).collect();
    assert_eq!(by_attempts.iter().sum::<usize>(), 60);
    assert_eq!(row(&page, "MAX_RETRIES"), ["9"]);
    assert!(!page.contains("wall time"), "that is another on every machine");
}

#[test]
fn the_page_has_the_figures_of_each_target() {
    let mix = "--target orders:3 --target export:1,outage=90m --policies 'orders MAX_RETRIES=2'";
    let (page, _) = made(&format!("{SMALL} {mix}"));
    let json = json(&format!("simulate {SMALL} {mix}"));
    let [orders, export] = json["targets"].as_array().expect("a list").as_slice() else { panic!("{json}") };
    for target in [orders, export] {
        let label = format!("{}: delivered", target["target"].as_str().expect("a name"));
        assert_eq!(row(&page, &label), [format!("{} of {}", target["delivered"], target["events"])]);
    }
    let said = |chart: &str| {
        let (_, said) = page.split_once(&format!("<desc id=\"{chart}-description\">")).expect("a chart");
        said.split_once("</desc>").expect("an end").0.to_owned()
    };
    let retries = said("retries-by-target");
    let numbers = retries.split(' ').filter_map(|word| word.replace(',', "").parse::<u64>().ok());
    assert_eq!(numbers.sum::<u64>(), number(&json, "retries"), "{retries}");
    assert!(said("recovery-by-target").starts_with("orders: 0 of "), "{}", said("recovery-by-target"));
    assert!(!made(SMALL).0.contains("by-target"), "one target has no charts of its own");
    assert!(orders["attempts"]["max"] == 2 && export["attempts"]["max"].as_u64() > Some(2), "{json}");
    assert_eq!(row(&page, "POLICIES"), ["orders MAX_RETRIES=2"]);
    assert!(page.contains("If every function stayed down under the stack"), "what is not of each function");
}

#[test]
fn two_policies_stand_side_by_side() {
    let vs = "--max-age 12h --vs 'jitter=none,max-backoff=30m,non-retryable-errors=Target<b>*,Else'";
    let (page, _) = made(&format!("{SMALL} {vs}"));
    assert_eq!(row(&page, "MAX_AGE"), ["12h", "12h"]);
    assert_eq!(row(&page, "MAX_BACKOFF"), ["1h", "30m"]);
    assert_eq!(row(&page, "JITTER"), ["full", "none"]);
    assert_eq!(
        row(&page, "NON_RETRYABLE_ERRORS"),
        ["-", "Target&#60;b&#62;*,Else"],
        "text is text, not markup"
    );
    let names = [
        "max-backoff 1h, jitter full, non-retryable-errors -",
        "max-backoff 30m, jitter none, non-retryable-errors Target&#60;b&#62;*,Else",
    ];
    for name in names {
        assert!(page.contains(&format!("<th scope=\"col\">{name}</th>")), "named by what differs: {page}");
    }
    assert!(!page.contains("Policy A") && !page.contains("Policy B"));
    // The second policy's figures are the same as in a run with that policy alone.
    let alone = json(&format!("simulate {SMALL} --max-age 12h --jitter none --max-backoff 30m"));
    assert_eq!(row(&page, "retries made")[1].replace(',', ""), alone["retries"].to_string());
}

#[test]
fn faults_strike_as_they_do_without_a_page() {
    let chaos = format!("{SMALL} --chaos --for 6h");
    let json = json(&format!("simulate {chaos}"));
    let (page, _) = made(&format!("{chaos} --vs max-retries=5"));
    let cells = row(&page, "clock_skew");
    assert_eq!(
        (cells.len(), cells[0].replace(',', "")),
        (2, json["faults"]["struck"]["clock_skew"].to_string())
    );
    assert!(page.contains("report.html --vs max-retries=5 --chaos</code>"), "{page}");
    assert!(!made(SMALL).0.contains("clock_skew"));
}

#[test]
fn each_jitter_runs_as_it_does_alone() {
    let (page, _) = made(&format!("{SMALL} --vs jitter=none"));
    for jitter in ["full", "equal", "decorrelated", "none"] {
        let alone = json(&format!("simulate {SMALL} --jitter {jitter}"));
        let cells = row(&page, &format!("jitter {jitter}"));
        assert_eq!(
            (cells[0], cells[4].replace(',', "")),
            ("60 of 60", alone["retries"].to_string()),
            "{jitter}"
        );
    }
    let once = page.matches("<th scope=\"row\">jitter none</th>").count();
    assert_eq!(once, 1, "the other policy is one of the jitters");
}

#[test]
fn the_page_warns_of_a_full_queue() {
    let (page, _) = made("--events 200 --in-flight-limit 50 --outage 1h");
    assert!(
        page.contains(
            "At most 50 of 50 (100.0 %) messages were in flight. The limit was reached first at 00:1"
        )
    );
    assert!(page.contains(" were due and not received, and retries came late or not at all"));
    // 200 events an hour are 3.33 a minute, so 50 events have arrived after a quarter of an hour.
    assert_eq!(row(&page, "3.33 a minute (this run)")[3], "15m");
    assert!(page.contains("The limit is reached 15m after the target goes down."));
    let (page, _) = made(SMALL);
    assert!(page.contains("At most 60 of 120,000 (0.1 %) messages were in flight.<"), "and no more");
}

#[test]
fn the_page_says_that_waiting_events_have_no_limit() {
    let flags = "--events 100 --outage 1h --max-retries 12 --base-backoff 1s --jitter none --hide-up-to 50";
    let (page, text) = made(flags);
    // 100 events an hour wait for 4,095 s each, so 114 wait at the same time. Each event has 12 retries, and 15 moves
    // if none of its waits is hidden. At 1,000 events a second, the pollers receive 39,000 messages a second, and each
    // poller receives a hundred.
    assert!(
        page.contains(
            " 114 at once, when as many are dead-lettered as arrive.\nAny number of events can wait."
        )
    );
    assert_eq!(row(&page, "1.67 a minute (this run)"), ["114", "63.8", "2"]);
    assert_eq!(row(&page, "1,000 a second"), ["4,100,000", "4,090,000", "390"]);
    assert!(!page.contains("limit reached after") && !page.contains("The limit is reached"), "{page}");
    for label in ["sent again with a delay", "peak delayed, not in flight"] {
        assert!(text.contains(label) && row(&page, label)[0] != "0", "{label}: {text}");
    }
    let (page, _) = made(&format!("{flags} --vs hide-up-to=always"));
    assert_eq!(row(&page, "1,000 a second")[4..], ["4,100,000", "0", "240", "2m"], "the other policy's");
    assert!(page.contains("hide-up-to always: limit reached after"), "{page}");
}

#[test]
fn a_policy_has_one_colour_in_every_chart() {
    let (page, _) = made(&format!("{SMALL} --jitter equal --vs jitter=none"));
    let colours = |name: &str| -> Vec<&str> {
        let keys = page.split("<li><span class=\"").skip(1).filter_map(|key| key.split_once("</li>"));
        let of_name = keys.filter(|(key, _)| {
            key.split_once("</span> ").is_some_and(|(_, label)| label.split(", ").next() == Some(name))
        });
        of_name.filter_map(|(key, _)| Some(key.split_once('"')?.0)).collect()
    };
    assert_eq!(colours("jitter equal"), ["blue"; 6]);
    assert_eq!(colours("jitter none"), ["orange"; 6]);
    let others = [colours("jitter full"), colours("jitter decorrelated")].concat();
    assert!(others.len() == 2 && others[0] != others[1], "{others:?}");
    assert_eq!(page.matches("class=\"orange\"").count(), 6, "no other thing has a policy's colour");
}

#[test]
fn no_paragraph_is_repeated() {
    for flags in [
        "--vs jitter=none",
        "--vs envelope=inline",
        "--in-flight-limit 50 --vs max-retries=100",
        "--in-flight-limit 50",
    ] {
        let (page, _) = made(&format!("--events 200 --outage 1h {flags}"));
        let texts = ["<p>", "<desc "].map(|start| page.split(start).skip(1).collect::<Vec<_>>()).concat();
        let text = |text: &&str| -> String {
            let text = text.split_once("</").expect("it ends").0;
            let text = text.split_once("\">").map_or(text, |(_, text)| text);
            // Removes the policy's name from the beginning of the text.
            text.split_once(": ").map_or(text, |(_, said)| said).to_owned()
        };
        let mut texts: Vec<String> = texts.iter().map(text).filter(|text| !text.is_empty()).collect();
        let all = texts.len();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), all, "{flags}: {texts:#?}");
    }
}

#[test]
fn tiny_and_huge_runs_have_pages() {
    let charts = |flags: &str| made(flags).0.matches("<figure").count();
    assert_eq!(charts("--events 1"), 6);
    assert_eq!(charts("--events 5 --outage 0 --for 0"), 4, "nothing happens at all");
    assert_eq!(charts("--events 5 --outage 0"), 4, "nothing fails, nothing recovers");
    assert_eq!(charts("--events 5 --outage 0 --failure-rate 1 --max-age 1h"), 5);
    assert_eq!(charts("--events 5 --max-retries 0 --arrival-spread 0"), 6);
    let (page, _) = made("--events 2 --base-backoff 1s --max-backoff 1s --max-retries 2000 --for 365d");
    assert!(page.len() < 400_000, "{} bytes", page.len());
}

#[test]
fn an_unwritable_page_fails_before_the_run() {
    let folder = scratch();
    let folder = folder.path().display();
    let error = format!("error: {folder}: Is a directory (os error 21)\n");
    assert_eq!(failed(&format!("simulate --events 10000000 --report {folder}")), (1, error));
}

#[test]
fn refusals_name_the_mistake() {
    for (flags, error) in [
        ("--vs jitter=none", "the following required arguments were not provided:\n  --report <FILE.html>\n"),
        (
            "--report never.html --vs max-age=1s --events 0",
            "MAX_AGE is 1 s; it must be 60 s to 1209600 s (14 days)\n       --events is 0; it must be 1 to 10000000\n",
        ),
        (
            "--report never.html --jitter wild --vs max-age=1h",
            "JITTER is \"wild\"; it must be full, equal, decorrelated or none\n",
        ),
    ] {
        assert_refused(&format!("simulate {flags}"), &format!("error: {error}"));
    }
    assert!(!Path::new("never.html").exists());
}

#[test]
fn capacity_and_plan_follow_the_runs_function() {
    let (page, _) = made(&format!("{SMALL} --target refunds --policies 'refunds JITTER=equal'"));
    let (default, _) = made(SMALL);
    assert_eq!(row(&page, "10 a second"), row(&default, "10 a second"), "both are of the stack's policy");
    assert!(page.contains("An entry of POLICIES sets a jitter of its own"), "{page}");
    assert!(!page.contains("jitter none"), "the stack's jitter would change nothing");
    let plan = "--recover-within 30m --policies &#39;refunds JITTER=equal&#39; --target refunds --plot .";
    assert!(page.contains(plan), "{page}");
    assert!(default.contains("The same run under every jitter") && default.contains("jitter none"));
}
