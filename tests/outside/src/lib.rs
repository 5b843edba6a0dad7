//! Typical uses of the libraries: see `tests/`.
