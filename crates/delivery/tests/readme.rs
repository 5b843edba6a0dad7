//! What the README shows of this crate is what the crate's own documentation shows, which is compiled.

use std::path::Path;

#[test]
fn the_readmes_example_is_the_crates() {
    let read = |path: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        std::fs::read_to_string(path).expect("it can be read")
    };
    let readme = read("../../README.md");
    let section = readme.split("\n## Batch delivery\n").nth(1).expect("the README has such a section");
    let example = section.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("the section has an example");
    let documented = example.lines().map(|line| format!("//! {line}\n")).collect::<String>();
    assert!(read("src/lib.rs").contains(&documented), "not in the crate's documentation:\n{example}");
}
