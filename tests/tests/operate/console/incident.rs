//! An operator handles an incident in the console: finds it, pauses the function, and resumes it after the fix. Only
//! breaking and fixing the function happens elsewhere.

use comeback_tests::{MiniStack, Operator, Stack, eventually, log_lines};
use serde_json::json;

use crate::console::browser::{Browser, Running};
use crate::world::World;

const STACK: &str = "--stack console";

/// Backoffs are long enough for a pause to begin and end. An event that becomes due during the pause is held, and
/// recalled when the pause ends.
pub(crate) async fn console_leads_through_an_incident(world: &World) {
    let stack = world.deploy("console", "BaseBackoff=120 MaxBackoff=120 Jitter=none").await;
    let ministack = world.ministack().await;
    let function = stack.output("ExampleTargetName");
    let operator = Operator::of(ministack);
    let running = Running::start(&operator, "incident", STACK).await;
    let mut browser = Browser::signed_in(&running, "incident").await;

    break_it(ministack, function, "FAIL_WITH=TargetDown");
    let keys = [
        ministack.invoke(function, r#"{"order": 1}"#).await,
        ministack.invoke(function, r#"{"order": 2}"#).await,
    ];
    browser.visit("/waiting");
    let shown =
        browser.sees("both events", |text| text.contains("2 waiting events in the handler's log")).await;
    assert!(shown.contains("TargetDown") && shown.contains("2 backoff"), "{shown}");
    let due = browser.ask("return document.querySelector('main tbody td:nth-child(6)').innerText");
    assert!(due.as_str().is_some_and(|due| due.starts_with("in ")), "when the next comes back: {due}");
    browser.follow(&keys[0]).await;
    browser.sees("the event's life", |text| text.contains("TargetDown")).await;
    assert_times_are_local(&mut browser, &keys[0]);

    browser.visit("/waiting");
    browser.follow(&format!("Pause {function}")).await;
    browser.fill("Reason", "a deploy broke it");
    browser.follow("Show the plan").await;
    browser.follow("Pause").await;
    browser.sees("the pause", |text| text.contains("Done.") && text.contains("is paused. Retries may")).await;
    let listed = operator.comeback(&format!("pause --list {STACK} --json")).json(0);
    assert_eq!(listed["pauses"][0]["why"], "a deploy broke it", "{listed:#}");
    browser.visit("/");
    browser.sees("the pause on the first page", |text| text.contains("a deploy broke it")).await;

    break_it(ministack, function, "");
    browser.visit("/waiting");
    browser.follow(&format!("Resume {function}")).await;
    let plan = browser.text();
    assert!(plan.contains("a deploy broke it") && plan.contains("held now."), "{plan}");
    browser.follow("Resume").await;
    browser.sees("the end of the pause", |text| text.contains("Done.")).await;
    let listed = operator.comeback(&format!("pause --list {STACK} --json")).json(0);
    assert_eq!(listed["pauses"], json!([]), "{listed:#}");
    tabs_and_commands_do_not_repeat_each_other(&operator, &mut browser, function).await;
    are_delivered(ministack, &stack, 2).await;
    browser.visit("/waiting");
    browser.sees("that nothing waits", |text| text.contains("No event is waiting.")).await;
    let is_shown = browser.ask("return document.getElementById('gone').checkVisibility()");
    assert_eq!(is_shown, false, "it serves");
    drop(running);
    browser.shows("whoever still looks", "comeback ui has stopped").await;
    let from = browser.ask("return document.querySelector('#gone strong').textContent").to_string();
    assert!(from.matches(':').count() == 2, "the figures have a time: {from}");
}

/// Asserts that a browser whose clock is nine hours ahead shows each moment in local time, with UTC as its title, and
/// without the script in UTC.
fn assert_times_are_local(browser: &mut Browser, key: &str) {
    let page = format!("/event?id={key}");
    let first_failure = |browser: &mut Browser| {
        browser.visit(&page);
        let time = browser.ask(
            "const time = [...document.querySelectorAll('main dt')]
                 .find(it => it.textContent === 'First failure').nextElementSibling.firstElementChild;
             return [time.dateTime, time.textContent, time.title]",
        );
        let texts = time.as_array().expect("three texts").iter();
        texts.map(|text| text.as_str().expect("a text").to_owned()).collect::<Vec<_>>()
    };
    browser.chromium.call("Emulation.setTimezoneOverride", json!({"timezoneId": "Asia/Tokyo"}));
    let tokyo = first_failure(browser);
    let hour = |time: &str| -> u32 {
        let (before, _) = time.rsplit_once(':').and_then(|(time, _)| time.rsplit_once(':')).expect("a time");
        before[before.len() - 2..].trim().parse().unwrap_or_else(|_| panic!("{time}"))
    };
    assert_eq!((hour(&tokyo[0]) + 9) % 24, hour(&tokyo[1]), "{tokyo:?}");
    assert!(tokyo[2].ends_with(" UTC") && hour(&tokyo[2]) == hour(&tokyo[0]), "{tokyo:?}");
    browser.chromium.call("Emulation.setTimezoneOverride", json!({"timezoneId": ""}));
    browser.chromium.call("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    let plain = first_failure(browser);
    assert_eq!(plain[0], plain[1], "{plain:?}");
    browser.chromium.call("Emulation.setScriptExecutionDisabled", json!({"value": false}));
}

fn break_it(ministack: &MiniStack, function: &str, variables: &str) {
    let shell = ministack.shell().with("FUNCTION", function).with("VARIABLES", variables);
    let update = "aws lambda update-function-configuration --function-name \"$FUNCTION\" --environment \"Variables={$VARIABLES}\"";
    shell.run(update).unwrap_or_else(|error| panic!("{error}"));
}

async fn are_delivered(ministack: &MiniStack, stack: &Stack, orders: usize) {
    eventually("the orders to be taken, each in a retry", async || {
        let lines = log_lines(ministack, stack.target_logs()).await;
        let taken =
            lines.iter().filter(|line| line["message"] == "succeeded" && line["attempt"].as_u64() >= Some(1));
        (taken.count() == orders).then_some(())
    })
    .await;
}

/// Changes made in one tab or by a command show up in the other tab, and are not made again. Pauses an alias that has
/// no events, so that this pause holds none.
async fn tabs_and_commands_do_not_repeat_each_other(
    operator: &Operator,
    browser: &mut Browser,
    function: &str,
) {
    let other = format!("{function}:live");
    let create = format!(
        "aws lambda create-alias --function-name {function} --name live --function-version '$LATEST'"
    );
    operator.shell().run(&create).unwrap_or_else(|error| panic!("{error}"));
    let listed = || operator.comeback(&format!("pause --list --history {STACK} --json")).json(0);
    let count = |what: &str| {
        let history = listed()["history"].take();
        let entries = history.as_array().expect("a list").iter();
        entries.filter(|it| it["what"] == what && it.to_string().contains(&other)).count()
    };

    // A command changes the plan that a tab shows.
    browser.visit("/pause");
    browser.fill("Function", &other);
    browser.fill("Reason", "by a tab");
    browser.follow("Show the plan").await;
    drop(operator.comeback(&format!("pause {other} {STACK} --reason 'by a command' --yes")).ended(0));
    browser.follow("Pause").await;
    browser
        .sees("that the plan has changed", |text| text.contains("The plan has changed since it was shown"))
        .await;
    assert!(!listed().to_string().contains("by a tab"), "{:#}", listed());
    browser.follow("See the new plan").await;
    browser.sees("the plan as it is now", |text| text.contains("by a command")).await;

    // Two tabs, and a button pressed twice.
    let resume = format!("/resume?plan=yes&function={}", other.replace(':', "%3A"));
    browser.visit(&resume);
    let first = browser.tab();
    let second = browser.open_tab();
    browser.visit(&resume);
    browser.press("Resume");
    browser.switch_to(&first);
    browser.ask("const form = document.querySelector('form[method=post]'); form.requestSubmit(); form.requestSubmit();");
    let ended = browser.sees("an end", has_ended).await;
    browser.switch_to(&second);
    let other_end = browser.sees("an end", has_ended).await;
    let both = [ended, other_end];
    assert_eq!(count("resumed"), 1, "{both:?}");
    assert!(both.iter().any(|text| text.contains("Done.")), "{both:?}");
    browser.switch_to(&first);
}

fn has_ended(text: &str) -> bool {
    text.contains("Back") && !text.contains("In progress")
}
