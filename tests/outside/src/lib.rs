//! Typical uses of the libraries, one each: see `tests/`.
