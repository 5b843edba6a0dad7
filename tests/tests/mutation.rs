//! The mutation check of `make mutants` is too long for each run of the tests; that it still fits the code is not.

use std::process::Command;

use comeback_tests::root;

#[test]
fn each_bug_can_be_planted() {
    let check = root().join("tests/mutation/check.py");
    let output = Command::new("python3").arg(check).arg("--planted").output().expect("Python 3 is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "10 bugs can be planted\n");
}
