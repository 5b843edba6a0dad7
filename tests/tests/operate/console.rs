//! `comeback ui` in a real browser, against the stack as it is deployed.

mod browser;
pub(crate) mod strangers;

use comeback_tests::{Look, Operator};

use crate::world::World;
use browser::{Browser, Running, WIDE};

/// The addresses in the head of every page.
fn pages_of(browser: &mut Browser) -> Vec<String> {
    let links =
        browser.ask("return [...document.querySelectorAll('nav a')].map(it => it.getAttribute('href'))");
    links.as_array().expect("a list").iter().map(|it| it.as_str().expect("a text").to_owned()).collect()
}

/// Every page, with a stack and without.
pub(crate) async fn console_pages_are_accessible_at_every_size(world: &World) {
    const NARROW: u32 = 360;
    let stack = world.deploy("console-looks", "").await;
    let operator = Operator::of(world.ministack().await);
    for (name, flags) in [("looks", stack.name()), ("lost", "no-such-stack")] {
        let running = Running::start(&operator, name, &format!("--stack {flags}")).await;
        let mut browser = Browser::signed_in(&running, name).await;
        for page in pages_of(&mut browser) {
            for look in [WIDE, Look { dark: true, ..WIDE }, Look { width: NARROW, ..WIDE }] {
                browser.chromium.look(look);
                browser.visit(&page);
                browser.assert_accessible(&format!("{page} of {flags}, {look:?}"));
                let width = browser.ask("return document.documentElement.scrollWidth");
                assert_eq!(width, look.width, "{page} of {flags} is wider than the window");
            }
        }
    }
}
