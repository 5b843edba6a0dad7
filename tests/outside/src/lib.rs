//! What the libraries are used for, each use once: see `tests/`.
