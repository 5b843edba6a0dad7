use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::json;

use crate::{MiniStack, Shell, Stack, built_command, pages, root};

/// The page whose last table lists the permissions of each command.
const PAGE: &str = "docs/operate.md";
const EVERY_COMMAND: &str = "every command";

/// Somebody who runs the `comeback` command.
#[derive(Clone, Debug)]
pub struct Operator(Shell);

/// A command that has ended.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its exit code.
    pub code: i32,
    /// What it wrote to its standard output.
    pub stdout: String,
    /// What it wrote to its standard error.
    pub stderr: String,
}

impl Operator {
    /// One who may do everything.
    #[must_use]
    pub fn of(ministack: &MiniStack) -> Self {
        Self(ministack.shell().with("COMEBACK", command()))
    }

    /// One who may do everything, and whose clock is the server's: for a server that goes 60 times as fast.
    #[must_use]
    pub fn on_clock_of(ministack: &MiniStack) -> Self {
        let Self(shell) = Self::of(ministack);
        let program = root().join("tests/tools/on_servers_clock.py");
        Self(shell.with("COMEBACK_PROGRAM", command()).with("COMEBACK", program))
    }

    /// One who may do what `docs/operate.md` lists for a command of `comeback`, with that stack and with that function, and
    /// nothing else.
    ///
    /// # Panics
    ///
    /// If the page lists nothing for the command, or the user cannot be made.
    #[must_use]
    pub fn of_command(ministack: &MiniStack, command: &str, stack: &Stack, function: &str) -> Self {
        let policy = policy(command, &|resource| arns(resource, stack, function));
        let user = format!("{}-{}-{function}", stack.output("RetryHandlerName"), command.replace(' ', "-"));
        let made = ministack
            .shell()
            .with("USER_NAME", user)
            .with("POLICY", policy)
            .run(
                "aws iam create-user --user-name \"$USER_NAME\" >/dev/null\n\
                 aws iam put-user-policy --user-name \"$USER_NAME\" --policy-name all --policy-document \"$POLICY\"\n\
                 aws iam create-access-key --user-name \"$USER_NAME\" --output text \
                 --query 'AccessKey.[AccessKeyId, SecretAccessKey]'",
            )
            .unwrap_or_else(|error| panic!("{error}"));
        let (id, secret) = made.trim().split_once('\t').expect("a key has two parts");
        Self(Self::of(ministack).0.with("AWS_ACCESS_KEY_ID", id).with("AWS_SECRET_ACCESS_KEY", secret))
    }

    /// Runs `comeback` with these arguments, as a shell reads them.
    ///
    /// # Panics
    ///
    /// If it cannot be started, or is ended by a signal.
    #[must_use]
    pub fn comeback(&self, arguments: &str) -> Ran {
        let output = self.0.output(&format!("exec \"$COMEBACK\" {arguments}"));
        Ran {
            code: output.status.code().unwrap_or_else(|| panic!("comeback {arguments}: {}", output.status)),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The shell it is run in, where `$COMEBACK` is the command.
    #[must_use]
    pub fn shell(&self) -> &Shell {
        &self.0
    }
}

/// Cargo takes a second to see that nothing is to be built.
fn command() -> &'static Path {
    static COMMAND: LazyLock<PathBuf> = LazyLock::new(built_command);
    &COMMAND
}

impl Ran {
    /// Its standard output, if it ended with this exit code.
    ///
    /// # Panics
    ///
    /// If it ended with another one.
    #[must_use]
    pub fn ended(self, code: i32) -> String {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    /// Its standard output as one JSON value, if it ended with this exit code.
    ///
    /// # Panics
    ///
    /// If it ended with another one, or printed something else.
    #[must_use]
    pub fn json(self, code: i32) -> serde_json::Value {
        let stdout = self.ended(code);
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
    }

    /// Its standard output as JSON lines, if it ended with this exit code.
    ///
    /// # Panics
    ///
    /// If it ended with another one, or printed something else.
    #[must_use]
    pub fn json_lines(self, code: i32) -> Vec<serde_json::Value> {
        let stdout = self.ended(code);
        let read = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        stdout.lines().map(read).collect()
    }
}

/// The policy of a command: the rows of the page's table that begin with it, or with "every command".
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

/// What a resource of the page is called in this account.
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
        "the stack" => vec![format!("arn:aws:cloudformation:*:*:stack/{}/*", stack.name())],
        "the pauses parameter" => {
            vec![format!("arn:aws:ssm:*:*:parameter{}", stack.output("PausesParameter"))]
        }
        "the stack's functions" => of_function("*"),
        _ => panic!("{PAGE} names {resource:?}, and no test knows which ARN that is"),
    }
}
