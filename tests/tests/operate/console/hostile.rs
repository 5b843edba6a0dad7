//! Texts of functions, operators and addresses that a browser would obey.

use comeback_tests::{Operator, eventually};
use serde_json::{Value, json};

use crate::console::browser::{Browser, Running};
use crate::world::World;

const STACK: &str = "--stack console-hostile";
/// Each of these would set a property of the window, and the last would turn what follows around.
const HOSTILE: &str =
    "'\"><img src=x onerror=\"obeyed=1\"><script>obeyed=2</script><svg onload=\"obeyed=3\">\u{202e}";
/// The same in an address.
const ENCODED: &str =
    "%27%22%3E%3Cimg%20src%3Dx%20onerror%3D%22obeyed%3D1%22%3E%3Cscript%3Eobeyed%3D2%3C%2Fscript%3E";

pub(crate) async fn console_never_runs_what_it_shows(world: &World) {
    let stack = world.deploy("console-hostile", "BaseBackoff=600 MaxBackoff=600 Jitter=none").await;
    let ministack = world.ministack().await;
    let function = stack.output("ExampleTargetName");
    let operator = Operator::of(ministack);
    let event = json!({"fail": true, "error_type": HOSTILE, "error_message": HOSTILE, "note": HOSTILE});
    let key = ministack.invoke(function, &event.to_string()).await;
    let pause = operator.shell().clone().with("WHY", HOSTILE);
    let pause = pause.run(&format!("\"$COMEBACK\" pause {function} {STACK} --reason \"$WHY\" --yes"));
    pause.unwrap_or_else(|error| panic!("{error}"));
    let waits = async || {
        let found = operator.comeback(&format!("waiting {STACK} --json")).json(0);
        (found["found"] == 1).then_some(())
    };
    eventually("the event to wait", waits).await;

    let running = Running::start(&operator, "hostile", STACK).await;
    let mut browser = Browser::signed_in(&running, "hostile").await;
    let shows = [
        "/".to_owned(),
        "/waiting".into(),
        format!("/event?id={key}"),
        format!("/pause?plan=yes&function={function}&for=1h"),
    ];
    for page in &shows {
        browser.visit(page);
        let text = browser.sees(page, |text| text.contains("onerror=\"obeyed=1\"")).await;
        assert!(!text.contains('\u{202e}'), "{page} turns around what follows: {text}");
        is_harmless(&mut browser, page);
    }
    for page in [
        format!("/function?name={function}"),
        format!("/function?name={ENCODED}"),
        format!("/event?id={ENCODED}"),
        format!("/waiting?function={ENCODED}&error={ENCODED}&within={ENCODED}"),
        format!("/pause?plan=yes&function={ENCODED}&reason={ENCODED}&for={ENCODED}"),
        format!("/lab?tab={ENCODED}&outage={ENCODED}&jitter={ENCODED}&beside={ENCODED}"),
        format!("/{ENCODED}?{ENCODED}"),
        format!("/enter?code={ENCODED}"),
    ] {
        browser.chromium.visit(&format!("{}{page}", running.origin()));
        is_harmless(&mut browser, &page);
    }
}

fn is_harmless(browser: &mut Browser, page: &str) {
    let obeyed = browser.ask(
        "const made = document.querySelectorAll('main img, main script, main svg[onload], [onerror]').length;
         return [typeof obeyed, made]",
    );
    assert_eq!(obeyed, json!(["undefined", 0]), "{page}");
    // A script or style that the page's own policy has to stop was markup already.
    let stopped: Vec<&Value> =
        browser.chromium.console().into_iter().filter(|it| it.to_string().contains("Policy")).collect();
    assert_eq!(stopped, [&Value::Null; 0], "{page}");
}
