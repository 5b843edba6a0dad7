//! Tests that the policy lab works without credentials and shows the same figures as the commands.

use comeback_tests::{Operator, eventually};
use serde_json::{Value, json};

use crate::console::browser::{Browser, Running};
use crate::world::World;

pub(crate) async fn console_lab_shows_what_simulate_prints(_: &World) {
    let operator = Operator::without_an_account();
    let running = Running::start(&operator, "lab", "").await;
    let mut browser = Browser::signed_in(&running, "lab").await;
    browser.visit("/doctor");
    let missing = browser.text();
    assert!(missing.contains("credentials"), "what is missing is said: {missing}");

    browser.visit("/lab");
    browser
        .sees("the default policy", |text| {
            text.contains("This is the default policy: there is nothing to set.")
        })
        .await;
    browser.fill("Outage", "1h");
    browser.fill("Events", "300");
    browser.fill("Capacity", "2");
    browser.fill("JITTER", "none");
    let arguments = "simulate --outage 1h --events 300 --capacity 2 --jitter none --json";
    let printed = printed(&operator, arguments);
    let is_simulated =
        |text: &str| text.contains("300 events arrive within 1h") && text.contains("this policy");
    let shown = browser.sees("the simulation", is_simulated).await;
    let delivered = format!("this policy {} of 300", printed["delivered"]);
    assert!(
        shown.split_whitespace().collect::<Vec<_>>().join(" ").contains(&delivered),
        "{delivered}: {shown}"
    );
    let figures = browser.ask(
        r##"const tables = [...document.querySelectorAll("#lab table")];
           const cells = name => tables.flatMap(it => [...it.querySelectorAll("tbody tr")])
               .find(row => row.cells[0].textContent === name)?.cells[1].textContent.replaceAll(",", "");
           const usd = document.querySelector("#lab .tiles div:last-child dd").lastChild.textContent.trim();
           return [cells("retries made"), cells("JITTER"), usd, location.search.includes("outage=1h")];"##,
    );
    let usd = format!("{:.4} USD", printed["cost_usd"].as_f64().expect("a price"));
    assert_eq!(figures, json!([printed["retries"].to_string(), "none", usd, true]));
    assert!(shown.contains("sam deploy --parameter-overrides Jitter=none"), "{shown}");
    assert!(shown.contains("jitter: Jitter.NONE,"), "{shown}");
    browser.assert_accessible("the lab with figures");

    // A setting changes during a long simulation. Then another setting is set to a value that the lab refuses.
    browser.fill("Events", "100000");
    browser.fill("Events", "200");
    browser.sees("the last change", |text| text.contains("200 events arrive within 1h")).await;
    browser.fill("MAX_AGE", "1s");
    browser.sees("why it is refused", |text| text.contains("MAX_AGE") && text.contains("1s")).await;
    browser.fill("MAX_AGE", "");
    recommends_what_plan_prints(&operator, &mut browser).await;
    // Without the page's script, the browser submits the form, and the page refreshes itself until it has the figures.
    browser.chromium.call("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    browser.visit("/lab?tab=0123456789abcdef&events=250&outage=1h");
    let is_there = async || {
        let shown = browser.chromium.ask("document.querySelector('main').innerText").ok()?;
        shown.as_str().is_some_and(|text| text.contains("250 events arrive within 1h")).then_some(())
    };
    eventually("the figures without a script", is_there).await;
}

async fn recommends_what_plan_prints(operator: &Operator, browser: &mut Browser) {
    browser.fill("Outage", "1m");
    browser.fill("Capacity", "");
    browser.fill("Back within", "10m");
    let printed = printed(operator, "plan --outage 1m --recover-within 10m --json");
    let settings = printed["settings"].as_array().expect("a policy meets the goal").iter();
    let set = settings.map(|it| format!("{}={}", it["parameter"], it["value"]).replace('"', ""));
    let set = set.collect::<Vec<_>>().join(" ");
    let is_there =
        |text: &str| text.contains("Recommendation") && text.contains("goal: 99 % recovered within 10m");
    let shown = browser.sees("the recommendation", is_there).await;
    let (_, recommended) = shown.split_once("Recommendation").expect("it was seen");
    let (recommended, _) = recommended.split_once("Deploy this policy").expect("it follows");
    assert!(recommended.contains(&format!("sam deploy --parameter-overrides {set}")), "{set}: {recommended}");
    let row = browser.ask(
        r##"const tables = [...document.querySelectorAll("#lab table")];
           const rows = tables.flatMap(it => [...it.querySelectorAll("tbody tr")]);
           return rows.map(it => it.innerText).find(it => it.includes("▸"));"##,
    );
    let usd = format!("{:.2}", printed["cheapest"]["usd_per_million_events"].as_f64().expect("a price"));
    assert!(row.as_str().is_some_and(|row| row.contains(&usd)), "{usd}: {row}");
}

fn printed(operator: &Operator, arguments: &str) -> Value {
    let output = operator.comeback(arguments).ended(0);
    serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"))
}
