use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use comeback_tests::{
    Shell, Stack, dead_letter, deploy_example, eventually, hide_briefly, pages, root, scratch,
};
use serde_json::{Value, json};

use crate::limits::is_given_up_after;
use crate::retries::{succeeds_on_the_fourth, successes};
use crate::world::World;

/// `maxRetries` of `infra/example/app.ts`.
const MAX_RETRIES: u64 = 4;

/// The page's commands for the example, but for its first, which `make` has run.
struct Commands {
    deploy: String,
    invoke: String,
}

impl Commands {
    fn read() -> Self {
        let blocks = pages::blocks("docs/deploy-cdk.md", "The example");
        let [install, deploy, invoke] =
            <[String; 3]>::try_from(blocks).unwrap_or_else(|blocks| panic!("not three blocks: {blocks:#?}"));
        assert_eq!(install, "npm ci --ignore-scripts");
        Self { deploy, invoke }
    }
}

/// The example app, deployed, and where it was synthesized to.
pub(crate) struct Example {
    stack: Stack,
    output: PathBuf,
}

impl Example {
    pub(crate) fn deploy(shell: &Shell) -> Result<Self, String> {
        let output = scratch("cdk");
        let stack = deploy_example(shell, &Commands::read().deploy, &output)?;
        hide_briefly(shell, stack.output("RetryQueueUrl"))?;
        Ok(Self { stack, output })
    }
}

pub(crate) async fn the_cdk_example_succeeds_on_the_fourth_invocation(world: &World) {
    succeeds_on_the_fourth(world.ministack().await, &world.cdk_example().await.stack).await;
}

pub(crate) async fn the_cdk_example_gives_up_with_all_that_is_known(world: &World) {
    is_given_up_after(MAX_RETRIES, world.ministack().await, &world.cdk_example().await.stack).await;
}

/// The Python function counts its attempts by the key that the inline style adds.
pub(crate) async fn the_cdk_example_retries_a_function_that_reads_the_envelope_inline(world: &World) {
    let (ministack, stack) = (world.ministack().await, &world.cdk_example().await.stack);
    let event = json!({"fail_times": MAX_RETRIES + 1, "order": 9});
    ministack.invoke(stack.output("OrdersName"), &event.to_string()).await;
    let letter = dead_letter(ministack, stack.output("DeadLetterQueueUrl"), "the order given up", |letter| {
        letter
            .attributes
            .get("TargetFunction")
            .is_some_and(|target| target.ends_with(stack.output("OrdersName")))
    })
    .await;
    let body: Value = serde_json::from_str(&letter.body).expect("the body is JSON");
    assert_eq!((&body["reason"], &body["payload"]), (&json!("max_retries"), &event));
    assert_eq!(body["error"]["message"], format!("attempt {MAX_RETRIES} was asked to fail"));
}

pub(crate) async fn the_cdk_example_can_be_watched_with_the_commands_of_its_page(world: &World) {
    let (ministack, stack) = (world.ministack().await, &world.cdk_example().await.stack);
    ministack.shell().run(&Commands::read().invoke).unwrap_or_else(|error| panic!("{error}"));
    let succeeded = eventually("the fourth invocation", Duration::from_secs(90), async || {
        // The error of an event that chooses none.
        successes(ministack, stack.target_logs(), "FailedOnRequest").await.pop()
    })
    .await;
    assert_eq!(succeeded["attempt"], 3);
}

/// Out of the same source, by the same tool and with the same profile as `sam build`: the same bytes.
pub(crate) async fn the_cdk_example_builds_what_the_template_ships(world: &World) {
    let output = &world.cdk_example().await.output;
    let assets = fs::read_dir(output).expect("the CDK wrote what it synthesized").flatten();
    let mut built: Vec<_> = assets.filter_map(|asset| bootstrap(&asset.path())).collect();
    let shipped = ["RetryHandler", "ExampleTarget"].map(|name| root().join(".aws-sam/build").join(name));
    for folder in shipped {
        let bootstrap = bootstrap(&folder).expect("sam build has run");
        let index = built.iter().position(|other| *other == bootstrap);
        drop(built.remove(index.unwrap_or_else(|| panic!("no asset is {}", folder.display()))));
    }
    assert!(built.is_empty(), "only these two");
}

fn bootstrap(folder: &Path) -> Option<Vec<u8>> {
    fs::read(folder.join("bootstrap")).ok()
}
