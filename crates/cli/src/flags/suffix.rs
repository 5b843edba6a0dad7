use std::path::{Path, PathBuf};

/// A file for a page.
pub(crate) fn html(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let refused = "the page is HTML: the name must end in .html";
    if [None, Some("html"), Some("htm")].contains(&suffix(&path).as_deref()) {
        Ok(path)
    } else {
        Err(refused.into())
    }
}

/// A file for a picture, or the folder to write it to.
pub(crate) fn svg_or_folder(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if suffix(&path).as_deref() == Some("svg") || is_folder(text) {
        return Ok(path);
    }
    Err(format!("the picture is SVG: the name must end in .svg, or in / for a folder of the name {text}"))
}

/// A folder for pictures.
pub(crate) fn folder(text: &str) -> Result<PathBuf, String> {
    if is_folder(text) {
        return Ok(text.into());
    }
    Err(format!(
        "several pictures are written to a folder: {text} looks like a file; a folder of this name ends in /"
    ))
}

/// One that there is, or a path that cannot be taken for a file's.
fn is_folder(text: &str) -> bool {
    let path = Path::new(text);
    path.is_dir() || text.ends_with('/') || suffix(path).is_none()
}

fn suffix(path: &Path) -> Option<String> {
    path.extension().map(|suffix| suffix.to_string_lossy().to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_html() {
        for path in ["report.html", "out/Report.HTM", "page", "a.b/page"] {
            assert_eq!(html(path), Ok(path.into()));
        }
        let refused = "the page is HTML: the name must end in .html";
        for path in ["report.pdf", "report.html.gz", "out/report.png"] {
            assert_eq!(html(path), Err(refused.into()), "{path}");
        }
    }

    #[test]
    fn a_picture_is_svg() {
        for path in ["schedule.svg", "out/", "out", "v1.2/", "v1.2/out", "."] {
            assert_eq!(svg_or_folder(path), Ok(path.into()));
        }
        let refused = "the picture is SVG: the name must end in .svg, or in / for a folder of the name a.png";
        assert_eq!(svg_or_folder("a.png"), Err(refused.into()));
    }

    #[test]
    fn several_pictures_need_a_folder() {
        for path in ["out/", "out", "v1.2/"] {
            assert_eq!(folder(path), Ok(path.into()));
        }
        let refused = "several pictures are written to a folder: a.svg looks like a file; a folder of this name ends in /";
        assert_eq!(folder("a.svg"), Err(refused.into()));
    }
}
