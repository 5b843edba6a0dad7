use std::fs;
use std::path::{Path, PathBuf};

use comeback_tests::{ARCHITECTURE, MiniStack, Operator, eventually, log_lines, pages, root, scratch};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::outside::{dist, without_rust};

/// The apps from `docs/deploy-cdk.md`, each deployed when a test first needs it.
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

pub(crate) async fn typescript_app_retries_until_success(world: &World) {
    succeeds_on_the_fourth_and_is_healthy(world.typescript().await).await;
}

pub(crate) async fn python_app_retries_until_success(world: &World) {
    succeeds_on_the_fourth_and_is_healthy(world.python().await).await;
}

async fn succeeds_on_the_fourth_and_is_healthy(app: &App) {
    let orders = app.resource("AWS::Lambda::Function", "Orders");
    let payload = json!({"order": 17});
    app.ministack.invoke(&orders, &payload.to_string()).await;
    let succeeded = json!({"attempt": 3, "payload": payload});
    eventually("the fourth invocation", async || {
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

pub(crate) async fn python_package_is_typed(world: &World) {
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

/// The version of `aws-cdk-lib` for the TypeScript and Python apps. It must be on both npm and PyPI.
const AWS_CDK_LIB: &str = "2.275.0";

/// Code of a function that fails on the first three invocations for each event.
const ORDERS: &str = r#"
import json

def handler(event, context):
    attempt = event.get("_retry_metadata", {"attempt": 0})["attempt"]
    if attempt < 3:
        raise RuntimeError(f"attempt {attempt} fails")
    print(json.dumps({"attempt": attempt, "payload": event["_original_payload"]}))
"#;

/// An app from `docs/deploy-cdk.md`, deployed to a MiniStack server of its own.
pub(crate) struct App {
    ministack: MiniStack,
    folder: PathBuf,
}

impl App {
    pub(crate) async fn in_typescript() -> Result<Self, String> {
        let commands = pages::blocks("docs/deploy-cdk.md", "TypeScript");
        assert_eq!(pages::blocks("README.md", "With the CDK"), commands, "the README has the same commands");
        let source = pages::blocks_in("ts", "docs/deploy-cdk.md", "TypeScript");
        let architecture =
            "new AsyncRetries(stack, 'Retries', { architecture: lambda.Architecture.OF_HERE })";
        let source = on_this_machine(&source.concat(), "new AsyncRetries(stack, 'Retries')", architecture);
        let package = released(concat!("comeback-cdk-", env!("CARGO_PKG_VERSION"), ".tgz"));
        let folder = scratch("outside-typescript");
        // The manifest that an existing app would have. npm installs the release from the local file.
        let manifest = json!({
            "private": true,
            "dependencies": {
                "aws-cdk-lib": AWS_CDK_LIB,
                "comeback-cdk": format!("file:{}", package.display()),
                "constructs": "^10.0.5",
            },
            "devDependencies": {"aws-cdk": "2", "tsx": "4", "typescript": "5"},
        });
        write(&folder, "package.json", &manifest.to_string())?;
        write(&folder, "app.ts", &source)?;
        write(&folder, "cdk.json", &pages::blocks_in("json", "docs/deploy-cdk.md", "TypeScript").concat())?;
        Self::deployed("outside-typescript-aws", folder, commands).await
    }

    pub(crate) async fn in_python() -> Result<Self, String> {
        let commands = pages::blocks("docs/deploy-cdk.md", "Python");
        let source = pages::blocks_in("python", "docs/deploy-cdk.md", "Python");
        let architecture = "AsyncRetries(stack, \"Retries\", architecture=lambda_.Architecture.OF_HERE)";
        let source = on_this_machine(&source.concat(), "AsyncRetries(stack, \"Retries\")", architecture);
        _ = released(concat!("comeback_cdk-", env!("CARGO_PKG_VERSION"), "-py3-none-any.whl"));
        let folder = scratch("outside-python");
        write(&folder, "constraints.txt", &format!("aws-cdk-lib=={AWS_CDK_LIB}\n"))?;
        write(&folder, "app.py", &source)?;
        Self::deployed("outside-python-aws", folder, commands).await
    }

    /// Installs the CDK app in `folder` and deploys it to a new server named `server`, with the commands from
    /// `docs/deploy-cdk.md`.
    async fn deployed(server: &str, folder: PathBuf, commands: Vec<String>) -> Result<Self, String> {
        fs::create_dir(folder.join("orders")).map_err(|error| error.to_string())?;
        write(&folder, "orders/index.py", ORDERS)?;
        let ministack = MiniStack::start(server).await?;
        let shell = without_rust(&ministack.shell())?
            .with("FOLDER", &folder)
            .with("CDK_NOTICES", "false")
            .with("CDK_REQUIRE_APPROVAL", "never");
        // The CDK is bootstrapped from another folder. In the app's folder, it would run the app, whose dependencies
        // are not installed yet.
        shell.run(
            "cd \"$(mktemp -d)\"; npx --yes aws-cdk@2 bootstrap aws://000000000000/$AWS_DEFAULT_REGION",
        )?;
        // `PIP_FIND_LINKS` makes pip install the release from `dist/`.
        let installing =
            shell.clone().with("PIP_FIND_LINKS", dist()).with("PIP_CONSTRAINT", "constraints.txt");
        installing.run(&format!("cd \"$FOLDER\"; unset SSL_CERT_FILE\n{}", commands.join("\n")))?;
        Ok(Self { ministack, folder })
    }

    /// Physical name of a resource in the stack `Shop`. `kind` is its type, and its logical id begins with `id`.
    fn resource(&self, kind: &str, id: &str) -> String {
        let query = format!(
            "StackResourceSummaries[?ResourceType=='{kind}' && starts_with(LogicalResourceId, '{id}')].PhysicalResourceId"
        );
        let list = "aws cloudformation list-stack-resources --stack-name Shop --output text --query";
        let found = self.ministack.shell().with("QUERY", query).run(&format!("{list} \"$QUERY\""));
        let found = found.unwrap_or_else(|error| panic!("{error}"));
        let [name] = found.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{kind} {id}: {found:?}")
        };
        name.to_owned()
    }

    /// Runs mypy on the Python app with this change to its source, and returns mypy's output.
    fn type_checked(&self, change: impl FnOnce(String) -> String) -> Result<String, String> {
        let app = fs::read_to_string(self.folder.join("app.py")).map_err(|error| error.to_string())?;
        write(&self.folder, "checked.py", &change(app))?;
        let mypy = root().join(".tools/clients/bin/mypy");
        let shell = self.ministack.shell().with("FOLDER", &self.folder).with("MYPY", mypy);
        shell.run("cd \"$FOLDER\"; \"$MYPY\" --strict --python-executable .venv/bin/python checked.py")
    }

    /// The template that the CDK has deployed, without the metadata that depends on the app's language.
    fn template(&self) -> Value {
        let mut template: Value = self.synthesized("Shop.template.json");
        let resources = template["Resources"].as_object_mut().expect("a template has resources");
        drop(resources.remove("CDKMetadata"));
        template
    }

    fn assets(&self) -> Value {
        let mut assets = self.synthesized("Shop.assets.json");
        let files = assets["files"].as_object_mut().expect("a manifest lists files");
        files.retain(|_, file| file["source"]["path"] != "Shop.template.json");
        assets
    }

    fn synthesized(&self, name: &str) -> Value {
        let path = self.folder.join("cdk.out").join(name);
        let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_slice(&text).expect("the CDK writes JSON")
    }
}

/// Adapts the app from `docs/deploy-cdk.md`, which is for arm64, to this machine's architecture.
fn on_this_machine(app: &str, retries: &str, with_architecture: &str) -> String {
    assert_eq!(app.matches(retries).count(), 1, "{app}");
    let name = if ARCHITECTURE == "arm64" { "ARM_64" } else { "X86_64" };
    app.replace(retries, &with_architecture.replace("OF_HERE", name))
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    fs::write(folder.join(name), text).map_err(|error| format!("{name}: {error}"))
}

fn released(name: &str) -> PathBuf {
    let file = dist().join(name);
    assert!(file.is_file(), "{} does not exist: run `make dist`", file.display());
    file
}
