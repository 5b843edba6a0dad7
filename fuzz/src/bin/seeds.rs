//! Writes the samples in `events/` to `fuzz/corpus/TARGET/`, where `cargo fuzz` looks for a target's inputs.

use std::fs;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for seed in comeback_fuzz::seeds() {
        let directory = corpus.join(seed.target);
        fs::create_dir_all(&directory)?;
        fs::write(directory.join(seed.name), seed.data)?;
    }
    Ok(())
}
