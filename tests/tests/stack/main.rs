//! The real stack, end to end: the template and the bootstraps as they ship, against MiniStack over HTTP.
//!
//! All trials share servers and deployments and start together, because most of their time is waiting.
//!
//! | file | holds |
//! |---|---|
//! | `retries`, `orders`, `recovery` | events retried on the real clock and on one that is 60 times as fast |
//! | `policies` | policies of single functions, changed while an event waits |
//! | `attach`, `deploy` | the commands of the pages on attaching, removing, SAM, the CDK and cargo-lambda |
//! | `cloudformation`, `encryption` | the commands of the pages on plain CloudFormation and on a KMS key |
//! | `releases` | for `make check-dist`: an update of the release before, and `make verify-aws` |
//! | `contract` | SQS, the mapping and asynchronous invocations: MiniStack and the simulation's model behave alike |

mod attach;
mod cloudformation;
mod contract;
mod deploy;
mod encryption;
mod orders;
mod policies;
mod recovery;
mod releases;
mod retries;

use std::process::ExitCode;
use std::sync::{Arc, LazyLock};

use comeback_tests::{MiniStack, SAMS_OWN, Stack, build};
use libtest_mimic::{Arguments, Trial};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::new().expect("the operating system gives us threads"));

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let world = Arc::new(World::default());
    macro_rules! trials {
        ($($module:ident::$name:ident),* $(,)?) => {
            vec![$({
                let world = Arc::clone(&world);
                Trial::test(concat!(stringify!($module), "::", stringify!($name)), move || {
                    RUNTIME.block_on($module::$name(&world));
                    Ok(())
                })
            }),*]
        };
    }
    let mut trials = trials![
        retries::succeeds_on_the_fourth_invocation,
        retries::gives_up_after_max_retries,
        orders::outages_and_restarts_lose_nothing,
        orders::moved_messages_are_not_lost,
        recovery::waits_pass_faster_once_the_target_has_recovered,
        policies::policies_of_the_template_change_while_an_event_waits,
        attach::function_is_attached_to_a_stack_and_detached,
        attach::functions_are_attached_to_a_handler_of_cargo_lambda,
        attach::deleted_stack_leaves_its_queues_to_another,
        deploy::commands_of_the_sam_page_work,
        deploy::commands_of_the_cdk_page_work,
        cloudformation::commands_of_the_cloudformation_page_work,
        encryption::stack_is_given_a_key_and_then_another,
        deploy::sample_is_rehearsed_with_cargo_lambda_watch,
    ];
    let for_check_dist = trials![
        releases::update_of_the_release_before_loses_nothing,
        releases::verify_aws_asks_everything_and_leaves_nothing,
        releases::interrupted_verify_aws_leaves_nothing,
        releases::verify_aws_refuses_to_begin_blindly,
    ];
    trials.extend(for_check_dist.into_iter().map(|trial| trial.with_ignored_flag(true)));
    trials.extend(contract::trials(&world));
    arguments.test_threads = arguments.test_threads.or(Some(trials.len()));
    let conclusion = libtest_mimic::run(&arguments, trials);
    if conclusion.has_failed() {
        eprintln!("{}", world.log());
    }
    drop(world);
    conclusion.exit_code()
}

/// What the trials share. Each part is made for the first trial that asks.
#[derive(Default)]
struct World {
    built: OnceCell<Result<(), String>>,
    ministack: OnceCell<Result<MiniStack, String>>,
    sped_up: OnceCell<Result<MiniStack, String>>,
    moving: OnceCell<Result<MiniStack, String>>,
    by_hand: OnceCell<Result<MiniStack, String>>,
    contract: OnceCell<Result<MiniStack, String>>,
    comeback: OnceCell<Result<Stack, String>>,
    quick: OnceCell<Result<Stack, String>>,
}

impl World {
    async fn ministack(&self) -> &MiniStack {
        or_panic(self.ministack.get_or_init(|| MiniStack::start("ministack")).await)
    }

    /// A server on which an hour passes in a minute.
    async fn sped_up(&self) -> &MiniStack {
        self.built().await;
        or_panic(self.sped_up.get_or_init(|| MiniStack::start_sped_up("sped-up")).await)
    }

    /// Another one, for the trial that counts messages at a moment: nothing else may slow it down.
    async fn moving(&self) -> &MiniStack {
        self.built().await;
        or_panic(self.moving.get_or_init(|| MiniStack::start_sped_up("moving")).await)
    }

    /// A server without a stack: a stack's log group has the name that the page gives the one by hand.
    async fn by_hand(&self) -> &MiniStack {
        self.built().await;
        or_panic(self.by_hand.get_or_init(|| MiniStack::start("by-hand")).await)
    }

    /// A server without deployments, whose answers come without delay.
    async fn contract(&self) -> &MiniStack {
        or_panic(self.contract.get_or_init(|| MiniStack::start("contract")).await)
    }

    /// `sam build` has run.
    async fn built(&self) {
        let shell = self.ministack().await.shell();
        or_panic(self.built.get_or_init(async || build(&shell, SAMS_OWN)).await);
    }

    /// The stack of docs/deploy-sam.md: its commands, and every setting as shipped.
    async fn comeback(&self) -> &Stack {
        self.built().await;
        let ministack = self.ministack().await;
        let deploy = || async { ministack.sam_deploy(&ministack.shell(), "comeback", "").await };
        or_panic(self.comeback.get_or_init(deploy).await)
    }

    /// A stack that gives up after two retries a second apart, in inline style, and may invoke any function.
    async fn quick(&self) -> &Stack {
        self.built().await;
        let any = MiniStack::function_arn("*");
        let parameters =
            format!("MaxRetries=2 BaseBackoff=1 MaxBackoff=1 Envelope=inline TargetFunctions={any}");
        let ministack = self.ministack().await;
        or_panic(self.quick.get_or_init(async || ministack.deploy("quick", &parameters).await).await)
    }

    /// The servers' logs, to explain a failed trial.
    fn log(&self) -> String {
        let servers = [&self.ministack, &self.sped_up, &self.moving, &self.by_hand, &self.contract];
        servers.into_iter().filter_map(OnceCell::get).flatten().map(MiniStack::log).collect()
    }
}

fn or_panic<T>(result: &Result<T, String>) -> &T {
    result.as_ref().unwrap_or_else(|error| panic!("{error}"))
}
