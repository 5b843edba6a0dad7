//! Reads the documentation pages and the code blocks in them, which tests run verbatim.

use crate::repository::root;

/// A fenced code block on a documentation page.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Block {
    /// The headings that the code block is under, from the page's title down.
    pub headings: Vec<String>,
    /// The text between the fences.
    pub text: String,
}

/// Paths to all documentation pages.
pub fn all() -> Vec<String> {
    let entries = std::fs::read_dir(root().join("docs")).expect("docs/ is a directory");
    let names =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"));
    let mut pages: Vec<_> =
        names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")).collect();
    pages.sort();
    pages.insert(0, "README.md".to_owned());
    pages
}

/// The text of a documentation page.
pub fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// The text of each `sh` block under this heading of a page, including its subsections.
pub fn blocks(page: &str, heading: &str) -> Vec<String> {
    blocks_in("sh", page, heading)
}

/// The text of each `language` block under this heading of a page, including the blocks in subsections.
pub fn blocks_in(language: &str, page: &str, heading: &str) -> Vec<String> {
    let below = all_blocks(language, &read(page))
        .into_iter()
        .filter(|block| block.headings.iter().any(|above| above == heading));
    let texts: Vec<_> = below.map(|block| block.text).collect();
    assert!(!texts.is_empty(), "{page} has no {language} block below a heading {heading:?}");
    texts
}

/// Every `sh` block in the text of a page.
pub fn sh_blocks(page: &str) -> Vec<Block> {
    all_blocks("sh", page)
}

fn all_blocks(wanted: &str, page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut headings: Vec<(usize, String)> = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            if language == wanted {
                let headings = headings.iter().map(|(_, text)| text.clone()).collect();
                blocks.push(Block { headings, text: block.join("\n") });
            }
        } else if line.starts_with('#') {
            let text = line.trim_start_matches('#');
            let depth = line.len() - text.len();
            headings.retain(|(above, _)| *above < depth);
            headings.push((depth, text.trim().to_owned()));
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A\n```sh\nfirst\n```\n## B\n```sh\none\ntwo\n```\n```json\n# C\n{}\n```\n\
        ### D\n```sh\n# three\n```\n## E\n```sh\nlast\n```\n";

    #[test]
    fn each_sh_block_has_the_headings_above_it() {
        let block = |headings: &[&str], text: &str| Block {
            headings: headings.iter().map(ToString::to_string).collect(),
            text: text.to_owned(),
        };
        let expected = [
            block(&["A"], "first"),
            block(&["A", "B"], "one\ntwo"),
            // A shell comment in a block is not a heading.
            block(&["A", "B", "D"], "# three"),
            block(&["A", "E"], "last"),
        ];
        assert_eq!(sh_blocks(PAGE), expected);
    }
}
