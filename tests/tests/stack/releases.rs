//! Tests for `make check-dist`: an update from the previous release, and `make verify-aws` on MiniStack.

use std::path::PathBuf;

use comeback_tests::{ARCHITECTURE, MiniStack, SAMS_OWN, Shell, build, eventually, pages, root, scratch};
use comeback_timelapse::Depth;

use crate::orders::{Orders, give_time};
use crate::retries::{depth, enable, held};
use crate::world::World;

const SCRIPT: &str = ".tools/clients/bin/python packaging/verify_aws";
/// The commit that stands in for the previous release until a version is tagged.
const BEFORE_ANY_TAG: &str = "160eccec553f62961072a249fa6e6961b87fc296";
const NAME: &str = "upgraded";
/// Number of orders of each kind.
const EACH: u64 = 4;
/// Backoff before each retry, in seconds: long enough to send all orders (a minute of real time).
const BACKOFF: f64 = 3_600.0;

/// Updates a stack and its envelope style while its queue holds new records, hidden records and old envelopes.
pub(crate) async fn update_of_the_previous_release_loses_nothing(world: &World) {
    let ministack = world.sped_up().await;
    let parameters = format!(
        "Jitter=none BaseBackoff={BACKOFF} MaxBackoff={BACKOFF} TargetFunctions={}",
        MiniStack::function_arn(&Orders::target_of(NAME))
    );
    let before = ministack.shell().at(release_before(&ministack.shell()));
    build(&before, SAMS_OWN).unwrap_or_else(|error| panic!("{error}"));
    let stack = ministack.sam_deploy(&before, NAME, &format!("Envelope=inline {parameters}")).await;
    let stack = stack.unwrap_or_else(|error| panic!("{error}"));
    let orders = Orders::of_stack(ministack, &stack).await;
    let (handler, queue) = (stack.output("RetryHandlerName"), stack.output("RetryQueueUrl"));

    orders.come(0..EACH).await;
    orders.all_seen("the first retries to fail", EACH, |seen| seen.attempt == 1).await;
    orders.come(EACH..2 * EACH).await;
    eventually("the earlier handler to hide all of them", async || {
        (depth(ministack, queue).await == Depth { visible: 0, in_flight: 2 * EACH as usize, delayed: 0 })
            .then_some(())
    })
    .await;
    enable(ministack, handler, false).await;
    orders.come(2 * EACH..3 * EACH).await;
    eventually("failure records that it has not received", async || {
        (held(ministack, queue).await as u64 == 3 * EACH).then_some(())
    })
    .await;

    let code_before = code(ministack, handler).await;
    let updated =
        ministack.sam_deploy(&ministack.shell(), NAME, &format!("Envelope=wrap {parameters}")).await;
    let updated = updated.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(updated.output("RetryQueueUrl"), queue, "it is the same queue");
    assert_ne!(
        code(ministack, updated.output("RetryHandlerName")).await,
        code_before,
        "it is another handler"
    );
    give_time(ministack, &updated).await;
    assert_eq!(held(ministack, queue).await as u64, 3 * EACH, "each order still waits there");

    orders.end_outage();
    enable(ministack, updated.output("RetryHandlerName"), true).await;
    orders.all_seen("every order to be taken", 3 * EACH, |seen| seen.taken).await;
    orders.all_seen("the envelopes to be understood", EACH, |seen| seen.taken && seen.attempt == 2).await;
    eventually("the retry queue to be empty", async || (held(ministack, queue).await == 0).then_some(()))
        .await;
    assert_eq!(held(ministack, stack.output("DeadLetterQueueUrl")).await, 0, "no order is dead-lettered");
    orders.assert_retries(BACKOFF, BACKOFF);
}

async fn code(ministack: &MiniStack, function: &str) -> String {
    let answer = ministack.lambda.get_function_configuration().function_name(function).send().await;
    answer.expect("Lambda answers").code_sha256.expect("a function has code")
}

/// Returns a folder with the source of the previous release, taken from git.
fn release_before(shell: &Shell) -> PathBuf {
    let tag = shell.run("git describe --tags --abbrev=0 --match 'v[0-9]*' HEAD^");
    let revision = tag.map_or(BEFORE_ANY_TAG.to_owned(), |tag| tag.trim().to_owned());
    let folder = root().join("target/upgrade").join(&revision);
    let shell = shell.clone().with("REVISION", &revision).with("FOLDER", &folder);
    shell.run("git cat-file -e \"$REVISION^{commit}\"").unwrap_or_else(|_| {
        panic!("the history lacks {revision}, the release before this one: run git fetch --unshallow --tags")
    });
    // Unpacks into a temporary folder first, so that a folder with the final name is always complete.
    let unpacked = shell.run(
        "test -d \"$FOLDER\" || {\n\
         rm -rf \"$FOLDER.part\" && mkdir -p \"$FOLDER.part\"\n\
         git archive \"$REVISION\" | tar -x -C \"$FOLDER.part\"\n\
         mv \"$FOLDER.part\" \"$FOLDER\"\n}",
    );
    unpacked.unwrap_or_else(|error| panic!("{error}"));
    folder
}

/// Asserts that `make verify-aws` checks the facts in docs/verify-aws.md, and removes everything that it creates.
pub(crate) async fn verify_aws_asks_everything_and_leaves_nothing(world: &World) {
    let shell = prepared(world).await;
    let run = |script: &str| shell.run(script).unwrap_or_else(|error| panic!("{error}"));
    let questions = run(&format!("{SCRIPT} --list"));
    let page = pages::read("docs/verify-aws.md");
    for row in questions.lines().filter_map(|line| line.strip_suffix(" |")) {
        let on_the_page = page.lines().any(|line| line.starts_with(row));
        assert!(on_the_page, "docs/verify-aws.md lacks the row {row}");
    }

    let printed = run(&format!("{SCRIPT} {}", options()));
    let rows: Vec<&str> = printed.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), questions.lines().count(), "{printed}");
    let emulated = [
        "restart with",
        "another principal",
        "a line of the log",
        "messages in flight",
        "request id",
        "timed out",
    ];
    for row in &rows[2..] {
        let is_emulated = emulated.iter().any(|fact| row.contains(fact));
        let verdict = if is_emulated { "as expected" } else { "not shown here" };
        assert!(row.ends_with(&format!("| {verdict} |")), "{row}");
        assert!(!row.contains("Error:"), "a question that could not be asked: {row}");
    }
    for seen in ["| 3 retries, then `max_retries` |", "| sent again 3 times |"] {
        assert!(printed.contains(seen), "{printed}");
    }
    assert_eq!(left(&shell, &printed), "");
}

pub(crate) async fn interrupted_verify_aws_leaves_nothing(world: &World) {
    let shell = prepared(world).await;
    let directory = scratch("verify-aws");
    // Interrupts the script as soon as it has deployed everything and begins its checks.
    let interrupted = shell.clone().with("IN", &directory).run(&format!(
        "mkfifo \"$IN/printed\"\n\
         {SCRIPT} {} >\"$IN/printed\" 2>\"$IN/errors\" & pid=$!\n\
         while read -r line; do\n\
           echo \"$line\"\n\
           case $line in asking) kill -TERM $pid ;; esac\n\
         done <\"$IN/printed\"\n\
         wait $pid && echo \"exit 0\" || echo \"exit $?\"\n\
         cat \"$IN/errors\"",
        options()
    ));
    let printed = interrupted.unwrap_or_else(|error| panic!("{error}"));
    assert!(printed.ends_with("exit 1\ninterrupted: removing what was made\n"), "{printed}");
    assert_eq!(left(&shell, &printed), "");
}

pub(crate) async fn verify_aws_refuses_to_begin_blindly(world: &World) {
    let shell = world.ministack().await.shell();
    for (script, expected) in [
        (
            format!("{SCRIPT} </dev/null"),
            "verify-aws: nobody can answer here: give --yes if this account is meant\n",
        ),
        (
            format!("env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY {SCRIPT} --yes"),
            "verify-aws: no credentials that AWS accepts: set AWS_PROFILE, or log in (Unable to locate credentials)\n",
        ),
        (
            format!("env -u AWS_REGION -u AWS_DEFAULT_REGION {SCRIPT} --yes"),
            "verify-aws: no region: set AWS_REGION\n",
        ),
        (
            format!("{SCRIPT} --clean orders"),
            "error: --clean takes the eight hexadecimal digits that the run has printed, not 'orders'\n",
        ),
        (format!("{SCRIPT} --yes --template absent.yaml"), "verify-aws: there is no template absent.yaml\n"),
    ] {
        let output = shell.output(&script);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.ends_with(expected), "{script}: {errors}");
    }
}

async fn prepared(world: &World) -> Shell {
    world.built().await;
    world.ministack().await.shell()
}

fn options() -> String {
    format!("--yes --template .aws-sam/build/template.yaml --parameters Architecture={ARCHITECTURE}")
}

/// Names of everything that a run of `make verify-aws` left behind, given the run's output.
fn left(shell: &Shell, printed: &str) -> String {
    let (_, name) = printed.split_once("all named ").expect("it says what it makes");
    let name = name.split([',', ' ']).next().expect("a name stands there");
    assert!(name.starts_with("comeback-verify-"), "{name}");
    let left = shell.clone().with("NAME", name).run(
        "aws lambda list-functions --query \"Functions[?starts_with(FunctionName, '$NAME')].FunctionName\" --output text\n\
         aws lambda list-event-source-mappings --query \"EventSourceMappings[?contains(EventSourceArn, '$NAME')].UUID\" --output text\n\
         aws sqs list-queues --queue-name-prefix \"$NAME\" --query 'QueueUrls[] || `[]`' --output text\n\
         aws iam list-roles --query \"Roles[?starts_with(RoleName, '$NAME')].RoleName\" --output text\n\
         aws logs describe-log-groups --log-group-name-prefix \"/aws/lambda/$NAME\" --query 'logGroups[].logGroupName' --output text\n\
         aws s3api list-buckets --query \"Buckets[?starts_with(Name, '$NAME')].Name\" --output text\n\
         aws cloudformation describe-stacks --query \"Stacks[?StackName=='$NAME'].StackStatus\" --output text",
    );
    left.unwrap_or_else(|error| panic!("{error}")).trim().to_owned()
}
