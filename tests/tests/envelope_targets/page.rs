use std::path::PathBuf;
use std::process::Command;

use comeback_tests::{pages, root, scratch};

pub(crate) fn text() -> String {
    pages::read("docs/envelope.md")
}

/// The code block for `language` in docs/envelope.md, without its fences. The page must have exactly one.
pub(crate) fn block(language: &str) -> String {
    let page = text();
    let fence = format!("\n```{language}\n");
    let mut parts = page.split(&fence).skip(1);
    let (Some(part), None) = (parts.next(), parts.next()) else {
        panic!("docs/envelope.md must have exactly one ```{language} block");
    };
    let (block, _) = part.split_once("```").expect("a closing fence");
    block.to_owned()
}

/// Creates a folder with a function's code from docs/envelope.md; the examples become `orders.py` and `orders.mjs`.
pub(crate) fn function(name: &str) -> PathBuf {
    let folder = scratch(name);
    for commands in pages::blocks("docs/envelope.md", "Open the envelope") {
        let copy = Command::new("sh")
            .args(["-euc", &commands])
            .current_dir(root())
            .env("FUNCTION", &folder)
            .output();
        let copy = copy.expect("the operating system has a shell");
        assert!(copy.status.success(), "{commands}{}", String::from_utf8_lossy(&copy.stderr));
    }
    for (file, language) in [("orders.py", "python"), ("orders.mjs", "javascript")] {
        std::fs::write(folder.join(file), block(language)).expect("a file can be written");
    }
    folder
}
