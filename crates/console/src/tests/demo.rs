//! Tests for the buttons in the demonstration's bar.

use axum::http::StatusCode;

use super::{Setting, address, confirmed};
use crate::console::Console;
use crate::demonstration::Demonstration;

/// Returns a demonstration console with a stopped clock. Only the console's own sleeps advance the clock.
pub(super) async fn stopped() -> Setting {
    let demo = Demonstration::new();
    let setting = Setting::of(Console::new(address(), false, Some(demo))).await;
    press(&setting, "stop").await;
    setting
}

pub(super) async fn press(setting: &Setting, button: &str) {
    let button = button.replace(' ', "+");
    let sent = setting.form_of("/demo", &format!("back=%2Fwaiting&button={button}"));
    let response = setting.response(sent).await;
    assert_eq!(response.status(), StatusCode::SEE_OTHER, "{button}");
    assert_eq!(response.headers()["location"], "/waiting");
}

pub(super) async fn page(setting: &Setting, path: &str) -> String {
    let (status, text) = setting.answer(setting.page(path)).await;
    assert_eq!(status, StatusCode::OK, "{path}: {text}");
    text
}

#[tokio::test]
async fn every_page_has_the_bar_and_says_what_is_wrong() {
    tokio::task::LocalSet::new()
        .run_until(async {
            let setting = stopped().await;
            for path in ["/", "/waiting", "/dead", "/function", "/function?name=orders", "/doctor"] {
                let text = page(&setting, path).await;
                assert!(text.contains("Demonstration") && text.contains("stopped"), "{path}: {text}");
            }
            let waiting = page(&setting, "/waiting").await;
            for error in ["ConnectTimeout", "RetryAfter"] {
                assert!(waiting.contains(error), "{error}: {waiting}");
            }
        })
        .await;
}

#[tokio::test]
async fn buttons_change_the_pace_and_the_functions() {
    tokio::task::LocalSet::new()
        .run_until(async {
            let setting = stopped().await;
            assert!(page(&setting, "/").await.contains("Fix orders"));
            press(&setting, "fix orders").await;
            assert!(page(&setting, "/").await.contains("Break orders"));
            press(&setting, "break orders").await;
            press(&setting, "go").await;
            for (button, pace) in [
                ("faster", "300 times"),
                ("slower", "60 times"),
                ("slower", "10 times"),
                ("slower", "real time"),
            ] {
                press(&setting, button).await;
                assert!(page(&setting, "/").await.contains(pace), "{button}: {pace}");
            }
            for wrong in ["button=fix+nobody", "button=explode", ""] {
                let (status, _) = setting.answer(setting.form_of("/demo", wrong)).await;
                assert_eq!(status, StatusCode::BAD_REQUEST, "{wrong}");
            }
            for back in
                ["%2F%2Fevil.example", "%2F%5Cevil.example", "%2F%09%2Fevil.example", "%2Fa%0D%0Ab", "a"]
            {
                let elsewhere = setting.form_of("/demo", &format!("button=stop&back={back}"));
                assert_eq!(setting.response(elsewhere).await.headers()["location"], "/", "{back}");
            }
        })
        .await;
}

#[tokio::test]
async fn activity_shows_what_was_pressed() {
    tokio::task::LocalSet::new()
        .run_until(async {
            let setting = stopped().await;
            assert!(page(&setting, "/activity").await.contains("no change was recorded"));
            let plan = page(&setting, "/pause?plan=yes&function=orders&reason=deploy+4711").await;
            assert_eq!(
                setting.answer(setting.form_of("/pause", &confirmed(&plan))).await.0,
                StatusCode::SEE_OTHER
            );
            setting.console.works.settled().await;
            let text = page(&setting, "/activity").await;
            let row = "<td>ops</td><td>pause</td><td><a href=\"/function?name=orders\">orders</a></td>\
                       <td class=\"number\"></td><td>deploy 4711</td><td>done</td>";
            assert!(text.contains(row), "{text}");
        })
        .await;
}

#[tokio::test]
async fn console_of_an_account_has_no_bar() {
    let setting = Setting::new(false).await;
    let (status, _) = setting.answer(setting.form_of("/demo", "button=stop")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
