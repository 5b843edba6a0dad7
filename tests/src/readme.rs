//! A README's shell blocks, to be run as they are written.

use crate::root;

/// The `sh` blocks of `file` below the heading with this text, up to the next heading of its level or above.
///
/// # Panics
///
/// If there is no such heading or no such block: a test must not pass for want of anything to run.
#[must_use]
pub fn blocks(file: &str, heading: &str) -> Vec<String> {
    let readme = std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let blocks = blocks_in(&readme, heading);
    assert!(!blocks.is_empty(), "{file} has no sh block below a heading {heading:?}");
    blocks
}

fn blocks_in(readme: &str, heading: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut wanted_depth = None;
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            if wanted_depth.is_some() && language == "sh" {
                blocks.push(block.join("\n"));
            }
        } else if line.starts_with('#') {
            let text = line.trim_start_matches('#');
            let depth = line.len() - text.len();
            if text.trim() == heading {
                wanted_depth = Some(depth);
            } else if wanted_depth.is_some_and(|wanted| depth <= wanted) {
                wanted_depth = None;
            }
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::blocks_in;

    const README: &str = "# A\n```sh\nnot this\n```\n## Wanted\n```sh\none\ntwo\n```\n```json\n# Wanted\n{}\n```\n\
        ### Below\n```sh\n# three\n```\n## Other\n```sh\nnor this\n```\n";

    #[test]
    fn finds_the_sh_blocks_of_one_section() {
        assert_eq!(blocks_in(README, "Wanted"), ["one\ntwo", "# three"]);
        assert_eq!(blocks_in(README, "Below"), ["# three"]);
        assert!(blocks_in(README, "three").is_empty(), "a comment in a block is no heading");
    }
}
