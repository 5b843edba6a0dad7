//! Runs the documentation's commands for deploying the handler from a checkout, and for testing the deployment.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use comeback_tests::{
    MiniStack, Shell, Stack, assert_kept, built_command, deploy_example, eventually, pages, root, scratch,
};
use serde_json::json;

use crate::policies::{dead_lettered, update, waiting};
use crate::retries::successes;
use crate::world::World;

/// Runs the commands in docs/deploy-sam.md, except the first block, which has already deployed the stack.
pub(crate) async fn commands_of_the_sam_page_work(world: &World) {
    let (ministack, _) = (world.ministack().await, world.comeback().await);
    let blocks = pages::blocks("docs/deploy-sam.md", "From a checkout");
    let [deploy, invoke, logs] =
        <[String; 3]>::try_from(blocks).unwrap_or_else(|blocks| panic!("not three blocks: {blocks:#?}"));
    assert_eq!(deploy, "export PATH=\"$PWD/.tools/sam/bin:$PATH\"\nsam build\nsam deploy");
    ministack.shell().run(&invoke).unwrap_or_else(|error| panic!("{error}"));
    eventually("the logs to report a success", async || {
        let logs = ministack.shell().run(&logs).unwrap_or_else(|error| panic!("{error}"));
        logs.contains("succeeded").then_some(())
    })
    .await;
}

/// Deploys the example app from docs/deploy-cdk.md, with the functions that `sam build` has built.
pub(crate) async fn commands_of_the_cdk_page_work(world: &World) {
    let blocks = pages::blocks("docs/deploy-cdk.md", "The example");
    let [install, deploy, invoke] =
        <[String; 3]>::try_from(blocks).unwrap_or_else(|blocks| panic!("not three blocks: {blocks:#?}"));
    assert_eq!(install, "npm ci --ignore-scripts", "`make` has run it");
    world.built().await;
    let (ministack, output) = (world.ministack().await, scratch("cdk"));
    let stack = deploy_example(ministack, &deploy, &output).await.unwrap_or_else(|error| panic!("{error}"));
    ships_what_sam_builds(&output);

    ministack.shell().run(&invoke).unwrap_or_else(|error| panic!("{error}"));
    dead_letters_its_python_function_sooner(ministack, &stack).await;
    let succeeded = eventually("the fourth invocation", async || {
        // `FailedOnRequest` is the error type of an event that does not request one.
        successes(ministack, stack.target_logs(), "FailedOnRequest").await.pop()
    })
    .await;
    assert_eq!(succeeded["attempt"], 3);
    // Updating the stack ends the handler's execution environment, which loses its current batch. So no other event may
    // be waiting at this point.
    changes_a_policy_while_an_event_waits(ministack, &stack, &output).await;
}

/// Asserts that the app's bootstraps equal those from `sam build`, byte for byte.
fn ships_what_sam_builds(output: &Path) {
    let assets = fs::read_dir(output).expect("the CDK wrote what it synthesized").flatten();
    let mut built: Vec<_> = assets.filter_map(|asset| bootstrap(&asset.path())).collect();
    for name in ["RetryHandler", "ExampleTarget"] {
        let bootstrap = bootstrap(&root().join(".aws-sam/build").join(name)).expect("sam build has run");
        let index = built.iter().position(|other| *other == bootstrap);
        drop(built.remove(index.unwrap_or_else(|| panic!("no asset is {name}"))));
    }
    assert!(built.is_empty(), "only these two");
}

fn bootstrap(folder: &Path) -> Option<Vec<u8>> {
    fs::read(folder.join("bootstrap")).ok()
}

/// Asserts that the function's own policy dead-letters an event after two retries; the stack's policy allows four.
async fn dead_letters_its_python_function_sooner(ministack: &MiniStack, stack: &Stack) {
    /// `maxRetries` of the Python function's policy in `infra/example/app.ts`.
    const MAX_RETRIES: u64 = 2;
    let event = json!({"fail_times": MAX_RETRIES + 1, "order": 9});
    let orders = stack.output("OrdersName");
    ministack.invoke(orders, &event.to_string()).await;
    let dead_letter = dead_lettered(ministack, stack, orders).await;
    assert_eq!((&dead_letter["reason"], &dead_letter["payload"]), (&json!("max_retries"), &event));
    assert_eq!(dead_letter["error"]["message"], format!("attempt {MAX_RETRIES} was asked to fail"));
}

/// Deploys the app with a different `maxRetries` for its Rust function while one of that function's events is waiting.
async fn changes_a_policy_while_an_event_waits(ministack: &MiniStack, stack: &Stack, output: &Path) {
    const BACKOFFS: &str = " BACKOFFS=1,2,12 ";
    let template = output.join("ComebackExample.template.json");
    let before = fs::read_to_string(&template).expect("the CDK wrote it");
    assert_eq!(before.matches(BACKOFFS).count(), 1, "the policy of infra/example/app.ts");
    fs::write(&template, before.replace(BACKOFFS, &format!(" MAX_RETRIES=0{BACKOFFS}"))).expect("written");

    let flaky = stack.output("ExampleTargetName");
    let waits = waiting(ministack, stack, flaky).await;
    assert_eq!((&waits["policy"], &waits["delay"]), (&json!(flaky), &json!(12)));
    update(ministack, stack, &format!("--template-body file://{}", template.display()));
    let dead_letter = dead_lettered(ministack, stack, flaky).await;
    assert_eq!(
        (&dead_letter["reason"], dead_letter["retries_made"].as_u64() < Some(4)),
        (&json!("max_retries"), true)
    );
}

pub(crate) async fn sample_is_rehearsed_with_cargo_lambda_watch(world: &World) {
    const WATCH: (&str, u16) = ("127.0.0.1", 9000);
    let blocks = pages::blocks("docs/simulate.md", "Rehearse locally with cargo lambda watch");
    let [watch, invoke] =
        <[String; 2]>::try_from(blocks).unwrap_or_else(|blocks| panic!("not two: {blocks:#?}"));
    assert!(TcpStream::connect(WATCH).is_err(), "port 9000 is taken, and `cargo lambda watch` needs it");
    world.built().await;
    let shell = with_built_handler(world.ministack().await.shell());
    let (endpoint, calls) = silent_endpoint();
    let nobody = "http://127.0.0.1:9";
    assert!(watch.contains(nobody), "the page names no endpoint: {watch}");
    let watch = watch.replace(nobody, &endpoint);
    let server = shell.start(&watch, &scratch("watch").join("watch.log")).expect("the server starts");
    eventually("cargo lambda watch to listen", async || TcpStream::connect(WATCH).ok()).await;
    let invoke =
        invoke.replace("cargo run -q -p comeback --", built_command().to_str().expect("a plain path"));
    let answer = shell.run(&invoke).unwrap_or_else(|error| panic!("{error}\n{}", server.log()));
    let (not_allowed, first_failure) = answer.trim_end().split_once('\n').expect("two answers");
    assert_kept(not_allowed, "events/target-not-allowed.json");
    assert_kept(first_failure, "events/first-failure.json");
    for decision in [r#""reason":"target_not_allowed""#, r#""action":"defer""#] {
        assert!(server.log().contains(decision), "no {decision} in {}", server.log());
    }
    // cargo-lambda passes a deadline in 1970, which the handler must report.
    assert!(server.log().contains("deadline"), "{}", server.log());
    let calls = calls.lock().expect("no panic while it answers");
    for call in ["AmazonSQS.SendMessageBatch", "AmazonSQS.ChangeMessageVisibilityBatch"] {
        assert!(calls.iter().any(|made| made == call), "no {call} in {calls:?}");
    }
}

/// A shell in which `cargo run` starts the handler that `sam build` has built.
///
/// `cargo lambda watch` runs `cargo run`, which would otherwise spend minutes rebuilding the handler with other
/// features and another profile.
fn with_built_handler(shell: Shell) -> Shell {
    const SCRIPT: &str = "#!/bin/sh\n\
        case $1 in\n\
        run) exec \"$HANDLER\" ;;\n\
        lambda) exec cargo-lambda \"$@\" ;;\n\
        *) exec \"$REAL_CARGO\" \"$@\" ;;\n\
        esac\n";
    let folder = scratch("watch-cargo");
    let cargo = folder.join("cargo");
    fs::write(&cargo, SCRIPT).expect("a script can be written");
    fs::set_permissions(&cargo, Permissions::from_mode(0o755)).expect("it can be made executable");
    let path = shell.run("printf %s \"$PATH\"").unwrap_or_else(|error| panic!("{error}"));
    shell
        .with("PATH", format!("{}:{path}", folder.display()))
        .with("HANDLER", root().join(".aws-sam/build/RetryHandler/bootstrap"))
        .with("REAL_CARGO", env!("CARGO"))
        .with("CARGO", cargo)
}

/// An endpoint that closes every connection without a response, and a list of the operations that clients requested.
fn silent_endpoint() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let endpoint = format!("http://{}", listener.local_addr().expect("a bound socket has an address"));
    let calls = Arc::<Mutex<Vec<String>>>::default();
    let noted = calls.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let head =
                BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
            let target = head.filter_map(|line| Some(line.split_once("x-amz-target: ")?.1.to_owned()));
            noted.lock().expect("no panic while it counts").extend(target);
        }
    });
    (endpoint, calls)
}
