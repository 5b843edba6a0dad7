//! Runs the commands in docs/deploy-cloudformation.md, with the template and the zip file from a release.

use comeback_tests::{ARCHITECTURE, example_target, pages, scratch};

use crate::attach::is_retried;
use crate::world::World;

/// Script that writes two files of a release: the template, and a zip file with the handler from `sam build`.
const RELEASE: &str = r#"
.tools/sam/bin/python packaging/cloudformation.py 1.2.3 > "$FOLDER/comeback.cfn.json"
cd .aws-sam/build/RetryHandler
python3 -m zipfile -c "$FOLDER/retry-handler-$ARCHITECTURE.zip" bootstrap
"#;

pub(crate) async fn commands_of_the_cloudformation_page_work(world: &World) {
    let ministack = world.ministack().await;
    world.built().await;
    let folder = scratch("cloudformation");
    let shell = ministack.shell().with("FOLDER", &folder).with("ARCHITECTURE", ARCHITECTURE);
    shell.run(RELEASE).unwrap_or_else(|error| panic!("{error}"));
    let shell = shell.at(&folder).with("BUCKET", "code-of-cloudformation").with("FUNCTION", "plain-orders");
    let run = |script: &str| shell.run(script).unwrap_or_else(|error| panic!("{error}"));

    let blocks = pages::blocks("docs/deploy-cloudformation.md", "With the AWS CLI");
    let [block] = <[String; 1]>::try_from(blocks).unwrap_or_else(|blocks| panic!("{blocks:#?}"));
    let (download, deploy) = block.split_once('\n').expect("several commands");
    assert!(download.ends_with("/{comeback.cfn.json,retry-handler-arm64.zip}\""), "{download}");
    let deploy = deploy.replace("arm64", ARCHITECTURE).replace("--stack-name comeback", "--stack-name plain");
    run(&format!("aws s3 mb \"s3://$BUCKET\"\n{deploy}"));
    let stack = ministack.stack("plain").await.unwrap_or_else(|error| panic!("{error}"));
    assert!(!stack.has_output("ExampleTargetName"), "a release has no example unless it is asked for");

    example_target(ministack, "plain-orders").await;
    run(stack.output("AttachCommands"));
    is_retried(ministack, "plain-orders").await;
}
