//! Runs the `comeback` command as a user whose permissions may be limited.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use aws_sdk_iam::types::AccessKey;
use serde_json::json;
use tokio::runtime::Handle;

use crate::ministack::MiniStack;
use crate::pages;
use crate::repository::{built_command, root};
use crate::shell::Shell;
use crate::stack::Stack;

/// Documentation page whose last table lists the permissions that each `comeback` command needs.
const PAGE: &str = "docs/operate.md";
const EVERY_COMMAND: &str = "every command";

/// A user who runs `comeback` against a MiniStack server, with all permissions or only some of them.
#[derive(Clone, Debug)]
pub struct Operator(Shell);

/// A finished run of `comeback`.
#[derive(Clone, Debug)]
pub struct Ran {
    arguments: String,
    /// Exit code of the process.
    pub code: i32,
    /// Text that the run printed to standard output.
    pub stdout: String,
    /// Text that the run printed to standard error.
    pub stderr: String,
}

impl Operator {
    /// An operator without credentials or an AWS account, for rehearsals and the demonstration.
    pub fn without_an_account() -> Self {
        let nobody = Shell::default().with("AWS_ACCESS_KEY_ID", "").with("AWS_SECRET_ACCESS_KEY", "");
        Self(nobody.with("AWS_REGION", "eu-south-2").with("COMEBACK", command()))
    }

    /// Path to the built `comeback`, for use in another terminal.
    pub fn program() -> &'static Path {
        command()
    }

    /// An operator with all permissions.
    pub fn of(ministack: &MiniStack) -> Self {
        let named = root().join("tests/tools/named_command.sh");
        Self(ministack.shell().with("COMEBACK_PROGRAM", command()).with("COMEBACK", named))
    }

    /// An operator with all permissions, whose `comeback` command runs on the server's clock.
    pub fn on_clock_of(ministack: &MiniStack) -> Self {
        let Self(shell) = Self::of(ministack);
        Self(shell.with("COMEBACK", root().join("tests/tools/on_servers_clock.py")))
    }

    /// An operator with only the permissions that `docs/operate.md` lists for a command, limited to this stack and
    /// function.
    pub fn of_command(ministack: &MiniStack, command: &str, stack: &Stack, function: &str) -> Self {
        Self::of(ministack).with_permissions_of(ministack, command, stack, function)
    }

    /// Limits the operator to the permissions that `docs/operate.md` lists for a command.
    pub fn with_permissions_of(
        self,
        ministack: &MiniStack,
        command: &str,
        stack: &Stack,
        function: &str,
    ) -> Self {
        let policy = policy(command, &|resource| arns(resource, stack, function));
        let user = format!("{}-{}-{function}", stack.output("RetryHandlerName"), command.replace(' ', "-"));
        let key =
            tokio::task::block_in_place(|| Handle::current().block_on(access_key(ministack, &user, &policy)));
        let Self(shell) = self;
        Self(
            shell
                .with("AWS_ACCESS_KEY_ID", key.access_key_id)
                .with("AWS_SECRET_ACCESS_KEY", key.secret_access_key),
        )
    }

    /// Runs `comeback` with these arguments, in shell syntax. If a request's signature has expired, runs the command
    /// again, up to twice.
    ///
    /// A signature is valid for five minutes, which is five seconds of real time on a fast clock.
    pub fn comeback(&self, arguments: &str) -> Ran {
        const RUNS: usize = 3;
        let mut runs = (0..RUNS).map(|_| self.run_once(arguments));
        let first = runs.next().expect("BUG: no run");
        let is_late = |ran: &Ran| format!("{}{}", ran.stdout, ran.stderr).contains("Signature expired");
        if is_late(&first) { runs.find(|ran| !is_late(ran)).unwrap_or(first) } else { first }
    }

    fn run_once(&self, arguments: &str) -> Ran {
        let output = self.0.output(&format!("exec \"$COMEBACK\" {arguments}"));
        Ran {
            arguments: arguments.to_owned(),
            code: output.status.code().unwrap_or_else(|| panic!("comeback {arguments}: {}", output.status)),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The shell that `comeback` runs in, with the command in `$COMEBACK`.
    pub fn shell(&self) -> &Shell {
        &self.0
    }
}

async fn access_key(ministack: &MiniStack, user: &str, policy: &str) -> AccessKey {
    let iam = &ministack.iam;
    iam.create_user().user_name(user).send().await.expect("IAM creates the user");
    let put = iam.put_user_policy().user_name(user).policy_name("all").policy_document(policy);
    put.send().await.expect("IAM takes the policy");
    let made = iam.create_access_key().user_name(user).send().await;
    made.expect("IAM creates the key").access_key.expect("it answers with the key")
}

/// Builds `comeback` once per process and returns its path.
fn command() -> &'static Path {
    static COMMAND: LazyLock<PathBuf> = LazyLock::new(built_command);
    &COMMAND
}

impl Ran {
    /// Asserts that the command exited with `code`, and returns what it printed to standard output.
    pub fn ended(self, code: i32) -> String {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    /// Returns the printed JSON object, after asserting the exit code and the members that `docs/json.md` lists.
    pub fn json(self, code: i32) -> serde_json::Value {
        let documented = members(&self.arguments);
        let stdout = self.ended(code);
        let object: serde_json::Value =
            serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"));
        let printed: BTreeSet<_> = object.as_object().expect("an object").keys().cloned().collect();
        let only_head = BTreeSet::from(HEAD.map(ToOwned::to_owned));
        assert!(printed == documented || (printed == only_head && !object["error"].is_null()), "{printed:?}");
        object
    }
}

/// Members of every JSON object that a command on a deployment prints.
const HEAD: [&str; 3] = ["account", "error", "region"];

/// Returns the members that `docs/json.md` lists for a command's JSON output.
fn members(arguments: &str) -> BTreeSet<String> {
    let page = pages::read("docs/json.md");
    let rows =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix('|')?.split_once("` | "));
    let words: BTreeSet<_> = arguments.split_whitespace().collect();
    let names_it = |row: &&str| arguments.starts_with(row.split(" --").next().unwrap_or_default());
    let rows = rows.filter(|(row, _)| names_it(row) && row.split(' ').all(|word| words.contains(word)));
    let row = rows.max_by_key(|(row, _)| row.len());
    let (_, cell) = row.unwrap_or_else(|| panic!("docs/json.md has no row for comeback {arguments}"));
    cell.split('`').skip(1).step_by(2).chain(HEAD).map(ToOwned::to_owned).collect()
}

/// Returns an IAM policy with the permissions in `docs/operate.md` for this command and for "every command".
fn policy(command: &str, arns: &dyn Fn(&str) -> Vec<String>) -> String {
    let page = pages::read(PAGE);
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
        let [commands, actions, resource] = cells.as_slice() else { return None };
        let commands: BTreeSet<_> = commands.split(", ").map(|name| name.trim_matches('`')).collect();
        (commands.contains(command) || commands.contains(EVERY_COMMAND)).then_some((*actions, *resource))
    });
    let statement = |(actions, resource): (&str, &str)| {
        let actions: Vec<_> = actions.split(", ").map(|action| action.trim_matches('`')).collect();
        json!({"Effect": "Allow", "Action": actions, "Resource": arns(resource)})
    };
    let statements: Vec<_> = rows.map(statement).collect();
    assert!(statements.len() > 1, "{PAGE} lists no permissions of {command:?}");
    json!({"Version": "2012-10-17", "Statement": statements}).to_string()
}

/// ARNs of a resource, given its name in `docs/operate.md`.
fn arns(resource: &str, stack: &Stack, function: &str) -> Vec<String> {
    let of_function = |name: &str| {
        let arn = MiniStack::function_arn(name);
        vec![format!("{arn}:*"), arn]
    };
    let queue = |output: &str| vec![stack.output(output).to_owned()];
    let log_group = |name: &str| {
        let arn = format!("arn:aws:logs:*:*:log-group:{name}");
        vec![format!("{arn}:*"), arn]
    };
    let role = |name: &str| vec![format!("arn:aws:iam::*:role/{name}")];
    match resource {
        "all" => vec!["*".into()],
        "the retry queue" => queue("RetryQueueArn"),
        "the dead-letter queue" => queue("DeadLetterQueueArn"),
        "the handler" => of_function(stack.output("RetryHandlerName")),
        "the handler's role" => role(stack.output("RetryHandlerRoleName")),
        "the handler's log group" => log_group(stack.handler_logs()),
        "the function's log group" if function == stack.output("ExampleTargetName") => {
            log_group(stack.target_logs())
        }
        "the function's log group" => log_group(&format!("/aws/lambda/{function}")),
        "all queues' keys" => vec!["arn:aws:kms:*:*:key/*".into()],
        "every stack" => vec!["arn:aws:cloudformation:*:*:stack/*/*".into()],
        "SAM's transform" => vec!["arn:aws:cloudformation:*:aws:transform/Serverless-2016-10-31".into()],
        "every function" => of_function("*"),
        "the function" => of_function(function),
        "the attached functions" => {
            [of_function(function), of_function(stack.output("ExampleTargetName"))].concat()
        }
        "the attached functions' roles" => {
            [role(function), role(&format!("{}-ExampleTargetRole*", stack.name()))].concat()
        }
        "the example function" => of_function(stack.output("ExampleTargetName")),
        "the example function's log group" => log_group(stack.target_logs()),
        "the function's alarm" => {
            let queue = stack.output("RetryQueueArn").rsplit(':').next().unwrap_or_default();
            vec![format!("arn:aws:cloudwatch:*:*:alarm:{queue}-lost-{function}")]
        }
        "the function's role" => role(function),
        // The queues that the function reads from and sends to. In docs/consumer.md, their names begin with the
        // function's.
        "the function's queues" => vec![format!("arn:aws:sqs:*:*:{function}*")],
        "the stack" => vec![format!("arn:aws:cloudformation:*:*:stack/{}/*", stack.name())],
        "the pauses parameter" => {
            vec![format!("arn:aws:ssm:*:*:parameter{}", stack.output("PausesParameter"))]
        }
        "the stack's functions" => of_function("*"),
        _ => panic!("{PAGE} names {resource:?}, and no test knows its ARN"),
    }
}
