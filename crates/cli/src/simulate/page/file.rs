use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::failure::Failure;

/// The file that the page is written to.
pub(crate) struct PageFile<'a> {
    path: &'a Path,
    file: File,
}

impl<'a> PageFile<'a> {
    /// Makes the file, and its folder if it is missing.
    pub(crate) fn create(path: &'a Path) -> Result<Self, Failure> {
        let folder = path.parent().unwrap_or(path);
        std::fs::create_dir_all(folder).map_err(|problem| Failure::write(folder, problem))?;
        let file = File::create(path).map_err(|problem| Failure::write(path, problem))?;
        Ok(Self { path, file })
    }

    pub(crate) fn write(mut self, html: &str) -> Result<(), Failure> {
        self.file.write_all(html.as_bytes()).map_err(|problem| Failure::write(self.path, problem))?;
        anstream::eprintln!("wrote {}", self.path.display());
        Ok(())
    }
}
