//! Tests that the release's `comeback.cfn.json` equals the expanded `template.yaml`, apart from known
//! differences.

use std::collections::BTreeSet;
use std::process::Command;

use comeback_tests::{pages, root, template};
use serde_json::{Map, Value, json};

/// Maximum size of a template outside an S3 bucket, in bytes.
const LARGEST_BODY: usize = 51_200;

/// Returns the output of a script in `packaging/`, run by the Python interpreter in the SAM CLI's environment.
fn printed(script: &str, argument: &str) -> Vec<u8> {
    let output = Command::new(root().join(".tools/sam/bin/python"))
        .args([script, argument])
        .current_dir(root())
        .output()
        .expect("the tools are installed: run `make tools`");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn released() -> Value {
    serde_json::from_slice(&printed("packaging/cloudformation.py", "1.2.3")).expect("a template")
}

fn expanded() -> Value {
    serde_json::from_slice(&printed("packaging/expand.py", "template.yaml")).expect("a template")
}

#[test]
fn release_differs_from_the_expansion_only_here() {
    let (mut released, mut expanded) = (released(), expanded());
    // The release has one more parameter group, in front of the others.
    let groups = |template: &mut Value| {
        template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"].take()
    };
    let (ours, theirs) = (groups(&mut released), groups(&mut expanded));
    assert_eq!(&ours.as_array().unwrap()[1..], theirs.as_array().unwrap());
    assert_eq!(ours[0]["Parameters"], json!(["CodeBucket", "CodeKey", "ExampleCodeKey"]));
    let expected = [
        "/Metadata/Comeback",
        "/Outputs/AttachCommands/Value/Fn::Sub/0",
        "/Parameters/Architecture/Description",
        "/Parameters/CodeBucket",
        "/Parameters/CodeKey",
        "/Parameters/Example/Default",
        "/Parameters/ExampleCodeKey",
        "/Resources/ExampleTarget/Metadata",
        "/Resources/ExampleTarget/Properties/Code/S3Bucket",
        "/Resources/ExampleTarget/Properties/Code/S3Key",
        "/Resources/ExampleTargetEventInvokeConfig/Metadata",
        "/Resources/RetryHandler/Metadata",
        "/Resources/RetryHandler/Properties/Code/S3Bucket",
        "/Resources/RetryHandler/Properties/Code/S3Key",
    ];
    let mut found = BTreeSet::new();
    differences(&released, &expanded, "", &mut found);
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn release_needs_no_transform_and_takes_code_from_a_bucket() {
    let released = released();
    assert!(released.get("Transform").is_none());
    let resources = released["Resources"].as_object().expect("resources");
    let of_sam: Vec<_> =
        resources.values().filter(|it| it["Type"].to_string().contains("AWS::Serverless::")).collect();
    assert!(of_sam.is_empty(), "{of_sam:?}");
    for (function, key) in [("RetryHandler", "CodeKey"), ("ExampleTarget", "ExampleCodeKey")] {
        let code = json!({"S3Bucket": {"Ref": "CodeBucket"}, "S3Key": {"Ref": key}});
        assert_eq!(resources[function]["Properties"]["Code"], code);
    }
    let commands = &released["Outputs"]["AttachCommands"]["Value"]["Fn::Sub"][0];
    let commands = commands.as_str().expect("text");
    let deploy = "\naws cloudformation deploy --template-file comeback.cfn.json --capabilities CAPABILITY_IAM --stack-name";
    assert!(commands.contains(deploy) && !commands.contains("sam deploy"), "{commands}");
}

#[test]
fn release_fits_cloudformation_without_a_bucket() {
    let size = printed("packaging/cloudformation.py", "1.2.3").len();
    assert!(size <= LARGEST_BODY, "{size} bytes");
}

/// No test applies the Terraform code in docs/deploy-cloudformation.md, so its names and values are compared with the
/// template's.
#[test]
fn page_of_terraform_has_the_templates_values() {
    let page = pages::blocks_in("hcl", "docs/deploy-cloudformation.md", "With Terraform").join("\n");
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let released = released();
    let (_, parameters) = words.split_once("parameters = { ").expect("the stack's parameters");
    let (parameters, _) = parameters.split_once(" }").expect("their end");
    let given = parameters.split_whitespace().collect::<Vec<_>>();
    let names: Vec<_> = given.windows(2).filter(|pair| pair[1] == "=").map(|pair| pair[0]).collect();
    assert_eq!(names, ["CodeBucket", "CodeKey", "Architecture", "TargetFunctions"]);
    for name in names {
        assert!(released["Parameters"].get(name).is_some(), "{name}");
    }
    for output in page.split("outputs[\"").skip(1).map(|rest| rest.split('"').next().unwrap_or_default()) {
        assert_eq!(output, "RetryQueueArn");
        assert!(released["Outputs"].get(output).is_some(), "{output}");
    }
    let config = &template()["Resources"]["ExampleTarget"]["Properties"]["EventInvokeConfig"];
    for expected in [
        format!("maximum_retry_attempts = {} ", config["MaximumRetryAttempts"]),
        format!("maximum_event_age_in_seconds = {} ", config["MaximumEventAgeInSeconds"]),
        format!("recursive_loop = {} ", template()["Globals"]["Function"]["RecursiveLoop"]),
        "Action = \"sqs:SendMessage\" ".to_owned(),
        "on_failure { destination = aws_cloudformation_stack.comeback.outputs[\"RetryQueueArn\"] }"
            .to_owned(),
    ] {
        assert!(words.contains(&expected), "{expected}: {words}");
    }
}

fn differences(left: &Value, right: &Value, path: &str, found: &mut BTreeSet<String>) {
    match (left, right) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for key in ours.keys().chain(theirs.keys()) {
                let of = |members: &Map<String, Value>| members.get(key).cloned().unwrap_or_default();
                differences(&of(ours), &of(theirs), &format!("{path}/{key}"), found);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                differences(ours, theirs, &format!("{path}/{index}"), found);
            }
        }
        _ if left == right => (),
        _ => drop(found.insert(path.to_owned())),
    }
}
