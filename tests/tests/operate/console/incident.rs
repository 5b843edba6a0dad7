//! Works through the incident that docs/console.md describes, in the demonstration. One test uses only the keyboard.

use serde_json::json;

use crate::console::browser::{Browser, Running};
use crate::world::World;

const FAILING: [&str; 4] = ["orders", "thumbnails", "invoices", "emails"];

/// Part of the title above the list of waiting events.
const EVENTS: &str = "the first due first";

/// Fixes the failing functions, one of which is paused, and then retries and redrives events until none are left.
pub(crate) async fn console_leads_through_an_incident(_: &World) {
    let running = Running::start_demonstration("incident").await;
    let mut browser = Browser::signed_in(&running, "incident").await;
    browser.follow("Stop the clock").await;
    let shown = browser.sees("which functions fail", |text| text.contains("ConnectTimeout")).await;
    let worst = browser.ask("return document.querySelector('main tbody tr').innerText");
    let worst = worst.as_str().expect("a string");
    for part in ["orders", "failing", " ago", "ConnectTimeout", "Retry now"] {
        assert!(worst.contains(part), "{part}: {worst}");
    }
    assert!(shown.contains("in the last hour"), "whether it gets worse: {shown}");
    browser.assert_accessible("the demonstration");

    browser.visit("/waiting");
    let shown = browser.sees("the events", |text| text.contains(EVENTS)).await;
    let comes_back =
        "return [...document.querySelectorAll('main td')].some(it => it.innerText.startsWith('in '))";
    assert_eq!(browser.ask(comes_back), true, "when they come back: {shown}");
    let key = browser.ask("return document.querySelector('main a[href^=\"/event\"]').title");
    let key = key.as_str().expect("a key");
    browser.ask("window.isBefore = true; document.querySelector('main a[href^=\"/event\"]').click()");
    browser.arrives("the event").await;
    let life = browser.sees("the event's life", |text| text.contains("attempt")).await;
    assert!(life.starts_with("Waiting: retry ") || life.starts_with("Due: retry "), "its state: {life}");
    assert_times_are_local(&mut browser, key).await;

    browser.visit("/");
    browser.follow("Pause orders").await;
    browser.fill("Reason", "payments are down");
    browser.follow("until I resume").await;
    browser.follow("Pause").await;
    browser.sees("the pause", |text| text.contains("Done.") && text.contains("is paused. Retries may")).await;
    browser.visit("/");
    browser.sees("the pause on the first page", |text| text.contains("payments are down")).await;
    tabs_do_not_repeat_each_other(&mut browser).await;

    browser.visit("/");
    for function in FAILING {
        browser.follow(&format!("Fix {function}")).await;
        browser.shows("a function that works", &format!("Break {function}")).await;
    }
    browser.follow("Resume orders").await;
    let plan = browser.text();
    assert!(plan.contains("payments are down"), "{plan}");
    browser.follow("Resume").await;
    browser.sees("the end of the pause", |text| text.contains("Done.")).await;
    browser.visit("/");
    browser.follow("Retry now …").await;
    browser.fill("Function", "*");
    browser.follow("Show the plan").await;
    browser.follow("Retry now").await;
    browser.sees("the end of the request", |text| text.contains("Done.")).await;

    browser.visit("/");
    browser.follow("Start the clock").await;
    browser.follow("Faster").await;
    browser.shows("the pace", "300 times as fast").await;
    browser.sees("that nothing waits", |text| is_zero(text, "Waiting")).await;
    dead_letters_are_redriven(&mut browser).await;
    browser.visit("/");
    let is_over = |text: &str| is_zero(text, "Waiting") && is_zero(text, "Dead-letters");
    browser.sees("that nothing is left", is_over).await;
    a_function_is_detached_and_attached(&mut browser).await;
    browser.visit("/waiting");
    browser.sees("that nothing waits", |text| text.contains("No waiting event (")).await;
    let is_shown = browser.ask("return document.getElementById('gone').checkVisibility()");
    assert_eq!(is_shown, false, "it serves");
    drop(running);
    browser.shows("whoever still looks", "comeback ui has stopped").await;
    let from = browser.ask("return document.querySelector('#gone strong').textContent").to_string();
    assert!(from.matches(':').count() == 2, "the figures have a time: {from}");
}

/// Pauses a function and opens the plan for retrying one event, with the keyboard alone.
pub(crate) async fn console_works_by_keyboard_alone(_: &World) {
    let running = Running::start_demonstration("keyboard").await;
    let mut browser = Browser::signed_in(&running, "keyboard").await;
    browser.tab_to("Stop the clock");
    browser.keys_lead_on(&["Enter"]).await;
    browser.keys(&["?"]);
    let has_dialog = "return document.querySelector('dialog').open";
    assert_eq!(browser.ask(has_dialog), true);
    browser.keys(&["Escape"]);
    assert_eq!(browser.ask(has_dialog), false);

    // The operator searches for waiting events by their error, and then pauses their function from the first page.
    browser.keys(&["/"]);
    browser.types("connecttimeout");
    browser.keys_lead_on(&["Enter"]).await;
    browser.sees("the filter", |text| text.contains("error ConnectTimeout ×")).await;
    browser.keys_lead_on(&["g", "o"]).await;
    browser.sees("which functions fail", |text| text.contains("ConnectTimeout")).await;
    browser.tab_to("Pause orders");
    browser.keys_lead_on(&["Enter"]).await;
    browser.tab_to("Reason");
    browser.types("payments are down");
    browser.tab_to("15m");
    browser.keys_lead_on(&["Enter"]).await;
    browser.tab_to("Pause");
    browser.keys_lead_on(&["Enter"]).await;
    browser.sees("the pause", |text| text.contains("Done.")).await;
    browser.visit("/");

    // The operator selects one waiting event, and sees a plan for that event alone.
    browser.keys_lead_on(&["g", "w"]).await;
    browser.sees("the events", |text| text.contains(EVENTS)).await;
    let chosen =
        browser.ask("return document.querySelector('main input[name=fields][type=checkbox]').ariaLabel");
    browser.tab_to(chosen.as_str().expect("a label"));
    browser.keys(&[" ", "c"]);
    browser.keys_lead_on(&["Enter"]).await;
    browser.sees("the plan of one event", |text| text.contains("The plan") && text.contains("--key")).await;
}

/// Asserts that times are local, with UTC in the title attribute; without the page's script, they must be UTC.
async fn assert_times_are_local(browser: &mut Browser, key: &str) {
    let page = format!("/event?id={key}");
    let first_failure = async |browser: &mut Browser| {
        browser.visit(&page);
        browser.sees("the event", |text| text.contains("First failure")).await;
        let time = browser.ask(
            "const time = [...document.querySelectorAll('main dt')]
                 .find(it => it.textContent === 'First failure').nextElementSibling.firstElementChild;
             return [time.dateTime, time.textContent, time.title]",
        );
        let texts = time.as_array().expect("three strings").iter();
        texts.map(|text| text.as_str().expect("a string").to_owned()).collect::<Vec<_>>()
    };
    browser.chromium.call("Emulation.setTimezoneOverride", json!({"timezoneId": "Asia/Tokyo"}));
    let tokyo = first_failure(browser).await;
    let hour = |time: &str| -> u32 {
        let (before, _) = time.rsplit_once(':').and_then(|(time, _)| time.rsplit_once(':')).expect("a time");
        before[before.len() - 2..].trim().parse().unwrap_or_else(|_| panic!("{time}"))
    };
    assert_eq!((hour(&tokyo[0]) + 9) % 24, hour(&tokyo[1]), "{tokyo:?}");
    assert!(tokyo[2].ends_with(" UTC") && hour(&tokyo[2]) == hour(&tokyo[0]), "{tokyo:?}");
    browser.chromium.call("Emulation.setTimezoneOverride", json!({"timezoneId": ""}));
    browser.chromium.call("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    let plain = first_failure(browser).await;
    assert_eq!(plain[0], plain[1], "{plain:?}");
    browser.chromium.call("Emulation.setScriptExecutionDisabled", json!({"value": false}));
}

fn is_zero(text: &str, title: &str) -> bool {
    let mut lines = text.lines();
    lines.any(|line| line == title) && lines.next() == Some("0")
}

async fn dead_letters_are_redriven(browser: &mut Browser) {
    browser.visit("/dead");
    browser.follow("Scan").await;
    browser.sees("the end of the scan", |text| text.contains("Done.")).await;
    browser.visit("/dead");
    browser.sees("why they died", |text| text.contains("ValidationError")).await;
    browser.follow("Redrive …").await;
    browser.follow("Redrive").await;
    browser.sees("the end of the redrive", |text| text.contains("Done.")).await;
}

/// Detaches a function that has no unfinished events, and attaches it again.
async fn a_function_is_detached_and_attached(browser: &mut Browser) {
    let is_over = |text: &str| text.contains("Back") && !text.contains("In progress");
    let mut runs = 0;
    // The first run leaves the permissions in place, because invocations may still be running.
    let mut is_left = true;
    while is_left {
        runs += 1;
        assert!(runs < 100, "it is never detached");
        of_emails(browser, "Detach").await;
        browser.follow("Detach").await;
        is_left = browser.sees("the end of the change", is_over).await.contains("Not finished.");
    }
    assert!(browser.text().contains("Done."));
    of_emails(browser, "Detach").await;
    browser.shows("that it is detached", "emails is not attached; nothing to change").await;
    of_emails(browser, "Attach").await;
    browser.follow("Attach").await;
    browser.sees("the end of the change", |text| text.contains("Done.")).await;
    of_emails(browser, "Attach").await;
    browser.shows("that it is attached", "emails is attached; nothing to change").await;
}

/// Opens the page for the function `emails` and, from there, the plan to attach or detach it.
async fn of_emails(browser: &mut Browser, change: &str) {
    browser.follow("Overview").await;
    browser.follow("emails").await;
    browser.follow(&format!("{change} …")).await;
}

/// Asserts that two tabs cannot make the same change twice. Changes only the function `emails`, because the function
/// `orders` must stay paused.
async fn tabs_do_not_repeat_each_other(browser: &mut Browser) {
    // A change made in one tab makes the plan in the other tab out of date.
    let first = browser.tab();
    plan_a_pause(browser, "by a tab").await;
    let second = browser.open_tab();
    plan_a_pause(browser, "by another tab").await;
    browser.follow("Pause").await;
    browser.sees("the pause", |text| text.contains("Done.")).await;
    browser.switch_to(&first);
    browser.follow("Pause").await;
    browser
        .sees("that the plan has changed", |text| text.contains("The plan has changed since it was shown"))
        .await;
    browser.follow("See the new plan").await;
    browser.sees("the plan as it is now", |text| text.contains("by another tab")).await;

    // Both tabs resume the same function, and one tab submits its form twice.
    let resume = "/resume?plan=yes&function=emails";
    browser.visit(resume);
    browser.switch_to(&second);
    browser.visit(resume);
    browser.press("Resume").await;
    browser.switch_to(&first);
    browser.ask(
        "window.isBefore = true;
         const form = document.querySelector('main form[method=post]');
         form.requestSubmit();
         form.requestSubmit();",
    );
    let mut both = Vec::new();
    for tab in [&first, &second] {
        browser.switch_to(tab);
        browser.arrives("Resume").await;
        both.push(
            browser.sees("an end", |text| text.contains("Back") && !text.contains("In progress")).await,
        );
    }
    assert_eq!(both.iter().filter(|text| text.contains("emails: resumed")).count(), 1, "{both:?}");
    browser.switch_to(&first);
}

async fn plan_a_pause(browser: &mut Browser, reason: &str) {
    browser.visit("/pause");
    browser.fill("Function", "emails");
    browser.fill("Reason", reason);
    browser.follow("Show the plan").await;
}
