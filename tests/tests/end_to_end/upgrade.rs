use std::path::PathBuf;

use comeback_tests::{MiniStack, Shell, build, deploy, eventually, root};
use comeback_timelapse::Depth;

use crate::orders::{LIMIT, Orders, TARGET, give_time};
use crate::retries::{depth, enable, held};
use crate::world::World;

/// Stands for the release before this one until a tag does.
const BEFORE_ANY_TAG: &str = "160eccec553f62961072a249fa6e6961b87fc296";
const NAME: &str = "upgraded";
/// Orders of each kind of message.
const EACH: u64 = 4;
/// Seconds before each retry: a minute on this clock, in which all of the orders come.
const BACKOFF: f64 = 3_600.0;

/// With raw failure records that nobody has received, with hidden ones, and with envelopes that the earlier handler wrote.
/// The update also changes the style of the envelope, which docs/envelope.md allows with events in flight.
pub(crate) async fn an_update_of_the_release_before_loses_nothing(world: &World) {
    let ministack = world.upgrading().await;
    let parameters = format!(
        "Jitter=none BaseBackoff={BACKOFF} MaxBackoff={BACKOFF} TargetFunctions={}",
        MiniStack::function_arn(TARGET)
    );
    let before = ministack.shell().at(release_before(&ministack.shell()));
    build(&before).unwrap_or_else(|error| panic!("{error}"));
    let stack = deploy(&before, NAME, &format!("Envelope=inline {parameters}"));
    let stack = stack.unwrap_or_else(|error| panic!("{error}"));
    let orders = Orders::for_stack(ministack, &stack).await;
    let (handler, queue) = (stack.output("RetryHandlerName"), stack.output("RetryQueueUrl"));

    orders.come(ministack, 0..EACH).await;
    orders.all_seen("the first retries, in vain", EACH, |seen| seen.attempt == 1).await;
    orders.come(ministack, EACH..2 * EACH).await;
    eventually("the earlier handler to hide all of them", LIMIT, async || {
        (depth(ministack, queue).await == Depth { visible: 0, in_flight: 2 * EACH as usize, delayed: 0 })
            .then_some(())
    })
    .await;
    enable(ministack, handler, false).await;
    orders.come(ministack, 2 * EACH..3 * EACH).await;
    eventually("failure records that it has not received", LIMIT, async || {
        (held(ministack, queue).await as u64 == 3 * EACH).then_some(())
    })
    .await;

    let code_before = code(ministack, handler).await;
    world.built().await;
    let updated = deploy(&ministack.shell(), NAME, &format!("Envelope=wrap {parameters}"));
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
    eventually("the retry queue to be empty", LIMIT, async || {
        (held(ministack, queue).await == 0).then_some(())
    })
    .await;
    assert_eq!(held(ministack, stack.output("DeadLetterQueueUrl")).await, 0, "none is given up");
    orders.assert_retries(BACKOFF, BACKOFF);
}

/// The digest of a function's code.
async fn code(ministack: &MiniStack, function: &str) -> String {
    let answer = ministack.lambda.get_function_configuration().function_name(function).send().await;
    answer.expect("Lambda answers").code_sha256.expect("a function has code")
}

/// The sources of the release before this one, taken from the history.
fn release_before(shell: &Shell) -> PathBuf {
    let tag = shell.run("git describe --tags --abbrev=0 --match 'v[0-9]*' HEAD^");
    let revision = tag.map_or(BEFORE_ANY_TAG.to_owned(), |tag| tag.trim().to_owned());
    let folder = root().join("target/upgrade").join(&revision);
    let shell = shell.clone().with("REVISION", &revision).with("FOLDER", &folder);
    shell.run("git cat-file -e \"$REVISION^{commit}\"").unwrap_or_else(|_| {
        panic!("the history lacks {revision}, the release before this one: run git fetch --unshallow --tags")
    });
    // Unpacked beside it first, so that a folder of this name is whole.
    let unpacked = shell.run(
        "test -d \"$FOLDER\" || {\n\
         rm -rf \"$FOLDER.part\" && mkdir -p \"$FOLDER.part\"\n\
         git archive \"$REVISION\" | tar -x -C \"$FOLDER.part\"\n\
         mv \"$FOLDER.part\" \"$FOLDER\"\n}",
    );
    unpacked.unwrap_or_else(|error| panic!("{error}"));
    folder
}
