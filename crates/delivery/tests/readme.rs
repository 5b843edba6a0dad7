//! The README's example is also the one in the crate's documentation.

#[test]
fn the_readmes_example_is_the_crates() {
    let readme = include_str!("../README.md");
    let example = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("the README has an example");
    let documented: String =
        example.lines().map(|line| format!("{}\n", format!("//! {line}").trim_end())).collect();
    assert!(
        include_str!("../src/lib.rs").contains(&documented),
        "not in the crate's documentation:\n{example}"
    );
}
