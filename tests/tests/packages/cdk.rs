use std::time::Duration;

use comeback_tests::{Operator, eventually, log_lines};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::app::App;

/// What the trials share, each app deployed for the first that asks.
#[derive(Default)]
pub(crate) struct World {
    typescript: OnceCell<Result<App, String>>,
    python: OnceCell<Result<App, String>>,
}

impl World {
    async fn typescript(&self) -> &App {
        or_panic(self.typescript.get_or_init(App::in_typescript).await)
    }

    async fn python(&self) -> &App {
        or_panic(self.python.get_or_init(App::in_python).await)
    }
}

fn or_panic(app: &Result<App, String>) -> &App {
    app.as_ref().unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) async fn an_app_in_typescript_retries_until_it_succeeds(world: &World) {
    succeeds_on_the_fourth_and_is_healthy(world.typescript().await).await;
}

pub(crate) async fn an_app_in_python_retries_until_it_succeeds(world: &World) {
    succeeds_on_the_fourth_and_is_healthy(world.python().await).await;
}

async fn succeeds_on_the_fourth_and_is_healthy(app: &App) {
    let orders = app.resource("AWS::Lambda::Function", "Orders");
    let payload = json!({"order": 17});
    app.ministack.invoke(&orders, &payload.to_string()).await;
    let succeeded = json!({"attempt": 3, "payload": payload});
    eventually("the fourth invocation", Duration::from_secs(90), async || {
        let lines = log_lines(&app.ministack, &format!("/aws/lambda/{orders}")).await;
        lines.contains(&succeeded).then_some(())
    })
    .await;

    let handler = app.resource("AWS::Lambda::Function", "RetriesHandler");
    for function in [&handler, &orders] {
        // MiniStack ignores `RecursiveLoop` in CloudFormation.
        let allow = "aws lambda put-function-recursion-config --recursive-loop Allow --function-name";
        app.ministack.shell().run(&format!("{allow} {function}")).unwrap_or_else(|error| panic!("{error}"));
    }
    let checked = Operator::of(&app.ministack).comeback("doctor --stack Shop --json").json(0);
    assert_eq!(checked["healthy"], true, "{checked:#}");
}

pub(crate) async fn the_python_package_is_typed(world: &World) {
    let app = world.python().await;
    app.type_checked(|app| app).unwrap_or_else(|error| panic!("{error}"));
    let misspelt = app.type_checked(|app| app.replace("architecture=", "architectur="));
    let error = misspelt.expect_err("mypy knows the arguments");
    assert!(error.contains("Unexpected keyword argument \"architectur\" for \"AsyncRetries\""), "{error}");
}

pub(crate) async fn both_languages_synthesize_the_same(world: &World) {
    let (typescript, python) = (world.typescript().await, world.python().await);
    assert_eq!(python.template(), typescript.template());
    assert_eq!(python.assets(), typescript.assets());
    assert_eq!(
        typescript.assets()["files"].as_object().map(serde_json::Map::len),
        Some(2),
        "both functions' code"
    );
}
