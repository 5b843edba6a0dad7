use comeback_tests::{MiniStack, Operator, example_target};

use crate::world::World;

const REASON: &str = "Größeres Problem beim Händler 東京 🚧";

/// Runs commands with the longest names, non-ASCII text and many functions, for `make conformance` to check.
pub(crate) async fn commands_work_at_the_limits_of_names_tags_and_parameters(world: &World) {
    let (stack, function) = (format!("{:s<128}", "longest-"), format!("{:f<64}", "longest-"));
    // These functions leave about 200 of the 4,096 bytes for the handler's environment variables.
    let others: Vec<_> = (0..45).map(|number| MiniStack::function_arn(&format!("f-{number}"))).collect();
    let parameters = format!("BaseBackoff=1 MaxBackoff=1 TargetFunctions={}", others.join(","));
    drop(world.deploy(&stack, &parameters).await);
    let ministack = world.ministack().await;
    example_target(ministack, &function).await;
    let tags: Vec<_> = (0..48).map(|number| format!("team-{number}=größer")).collect();
    let tag = format!(
        "aws lambda tag-resource --resource {} --tags {}",
        MiniStack::function_arn(&function),
        tags.join(",")
    );
    drop(ministack.shell().run(&tag).unwrap_or_else(|error| panic!("{error}")));

    let operator = Operator::of(ministack);
    let ran = |arguments: &str, codes: &[i32]| {
        let ran = operator.comeback(&format!("{arguments} --stack {stack} --json"));
        assert!(codes.contains(&ran.code), "{arguments}: {}{}{}", ran.code, ran.stdout, ran.stderr);
    };
    ran(&format!("attach {function} --yes"), &[0]);
    ran(&format!("pause {function} --reason '{REASON}' --yes"), &[0]);
    ran("pause --list --history", &[0]);
    ran("status", &[0]);
    ran(&format!("resume {function} --spread 1m --yes"), &[0]);
    ran(&format!("retry {function} --error 'Zu*' --why '{REASON}' --yes"), &[0]);
    ran(&format!("waiting {function} --error Größe"), &[0]);
    // On MiniStack, `doctor` may find faults; the trials of `doctor` explain them.
    ran(&format!("doctor {function}"), &[0, 3]);
    ran("dead list --error Größe", &[0]);
    // `detach` must be run again later, so it exits with 3.
    ran(&format!("detach {function} --now --yes"), &[3]);
}
