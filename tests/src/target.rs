use std::path::Path;

use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::{FunctionCode, Runtime};

use crate::{MiniStack, root, scratch};

/// Creates a Python function that knows nothing of Comeback (`tests/targets/plain_target.py`). It logs each event it
/// receives to `/aws/lambda/{name}`.
///
/// # Panics
///
/// If it cannot be created.
pub async fn plain_target(ministack: &MiniStack, name: &str) {
    create(ministack, name, Runtime::Python312, &root().join("tests/targets/plain_target.py")).await;
}

/// Creates one more function out of the example target that `sam build` built.
///
/// # Panics
///
/// If it cannot be created.
pub async fn example_target(ministack: &MiniStack, name: &str) {
    create(ministack, name, Runtime::Providedal2023, &root().join(".aws-sam/build/ExampleTarget/bootstrap"))
        .await;
}

/// The function's role is its own, and may do nothing.
async fn create(ministack: &MiniStack, name: &str, runtime: Runtime, code: &Path) {
    const TRUST: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole"}]}"#;
    let archive = scratch(name).join("code.zip");
    let role = ministack
        .shell()
        .with("ARCHIVE", &archive)
        .with("CODE", code)
        .run(&format!(
            "python3 -m zipfile -c \"$ARCHIVE\" \"$CODE\"\n\
             aws iam create-role --role-name {name} --assume-role-policy-document '{TRUST}' --query Role.Arn --output text"
        ))
        .unwrap_or_else(|error| panic!("{error}"));
    let archive = std::fs::read(archive).expect("the archive was just written");
    ministack
        .lambda
        .create_function()
        .function_name(name)
        .runtime(runtime)
        .handler("plain_target.handler")
        .role(role.trim())
        .code(FunctionCode::builder().zip_file(Blob::new(archive)).build())
        .send()
        .await
        .expect("Lambda creates the function");
}
