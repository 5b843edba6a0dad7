use comeback_tests::{ARCHITECTURE, Shell, pages, scratch};

use crate::world::World;

const SCRIPT: &str = ".tools/clients/bin/python packaging/verify_aws";

/// Every question is asked, the emulator's answers are kept apart from AWS's, and the page has the same questions.
pub(crate) async fn the_script_asks_and_leaves_nothing(world: &World) {
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
    let emulated = ["count anew", "messages in flight", "request id", "timed out"];
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

pub(crate) async fn an_interrupted_run_leaves_nothing(world: &World) {
    let shell = prepared(world).await;
    let directory = scratch("verify-aws");
    // As soon as everything is deployed and the questions are asked.
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

pub(crate) async fn the_script_refuses_to_begin_blindly(world: &World) {
    let shell = world.ministack().await.shell();
    for (script, expected) in [
        (
            format!("{SCRIPT} </dev/null"),
            "verify-aws: nobody can answer here: give --yes if this account is meant\n",
        ),
        (
            format!("env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY {SCRIPT} --yes"),
            "verify-aws: no credentials that AWS takes: set AWS_PROFILE, or log in (Unable to locate credentials)\n",
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

/// What has the name of the run that printed this.
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
