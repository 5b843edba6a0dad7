//! Tests that the attributes in `docs/attach-with-your-tool.md` exist in Terraform and similar tools, and that the
//! page's HCL is formatted.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use comeback_tests::pages;

const PAGE: &str = "docs/attach-with-your-tool.md";

/// Returns the attributes of a resource and of the objects in its inputs, according to the provider's package.
fn known(provider: &str, resource: &str) -> BTreeSet<String> {
    let golden = pages::read(&format!("tests/golden/providers/{provider}.txt"));
    let of = |line: &str| {
        let (name, attributes) = line.split_once(": ")?;
        let is_its = name == resource || name.starts_with("inputs.");
        is_its.then(|| attributes.split(' ').map(ToOwned::to_owned).collect::<Vec<_>>())
    };
    assert!(golden.contains(&format!("\n{resource}: ")), "{provider} has no {resource}");
    golden.lines().skip(1).filter_map(of).flatten().collect()
}

/// Words in `text` that are followed by one of these characters, except inside quotes.
fn words_before(sign: &[char], text: &str) -> BTreeSet<String> {
    let of_line = |line: &str| {
        let line = line.split('"').step_by(2).collect::<String>();
        let parts = line.split(sign).map(ToOwned::to_owned).collect::<Vec<_>>();
        let words = parts[..parts.len() - 1].iter().map(|part| {
            part.trim_end()
                .rsplit(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
                .unwrap_or_default()
                .to_owned()
        });
        words.collect::<Vec<_>>()
    };
    text.lines().flat_map(of_line).filter(|word| !word.is_empty()).collect()
}

#[test]
fn terraform_has_the_resources_attributes() {
    let blocks = pages::blocks_in("hcl", PAGE, "Terraform").concat();
    let resources: Vec<&str> = blocks.split("\nresource \"").skip(1).collect();
    assert_eq!(resources.len(), 3);
    for resource in resources {
        let (kind, body) = resource.split_once('"').expect("a resource has a type");
        let body = body.split("\n}").next().expect("a resource ends");
        // These are not attributes of the resource, but members of a policy document, and Terraform's own `depends_on`.
        let others = ["Version", "Statement", "Effect", "Action", "Resource", "depends_on"];
        let known = known("terraform", kind);
        for attribute in words_before(&['='], body).into_iter().chain(words_before(&['{'], body)) {
            let is_known = known.contains(&attribute) || others.contains(&&*attribute);
            assert!(is_known, "{kind} has no attribute {attribute}");
        }
    }
}

#[test]
fn pulumi_has_the_resources_attributes() {
    for heading in ["Pulumi", "SST"] {
        let blocks = pages::blocks_in("ts", PAGE, heading).concat();
        let resources: Vec<&str> = blocks.split("new aws.").skip(1).collect();
        assert!(resources.len() >= 2, "{heading}");
        for resource in resources {
            let (kind, body) = resource.split_once('(').expect("a resource has arguments");
            let body =
                body.split("\n);").next().and_then(|body| body.split("\n});").next()).expect("it ends");
            let others = ["Version", "Statement", "Effect", "Action", "Resource", "dependsOn"];
            let known = known("pulumi", &format!("aws.{kind}"));
            for attribute in words_before(&[':'], body) {
                let is_known = known.contains(&attribute) || others.contains(&&*attribute);
                assert!(is_known, "{heading}: {kind} has no attribute {attribute}");
            }
        }
    }
}

#[test]
fn hcl_is_formatted_as_terraform_does_it() {
    let page = pages::read(PAGE);
    let blocks: Vec<&str> =
        page.split("```hcl\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let terraform = Command::new("terraform")
            .args(["fmt", "-check", "-diff", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        // `make` does not install Terraform; the test is skipped without it.
        let Ok(mut terraform) = terraform else { return };
        let mut input = terraform.stdin.take().expect("piped");
        input.write_all(block.as_bytes()).expect("terraform reads it");
        drop(input);
        let output = terraform.wait_with_output().expect("terraform ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}
