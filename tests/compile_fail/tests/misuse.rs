//! Tests that misuse of `ladder!` and of retries does not compile, and that correct use of `ladder!` does.

/// Without a passing case, `trybuild` runs only `cargo check`. The expected errors are those of CI's compiler;
/// `TRYBUILD=overwrite` updates them.
#[test]
fn misuse_is_refused_by_cargo_check() {
    trybuild::TestCases::new().compile_fail("tests/ui/*/*.rs");
}

#[test]
fn right_use_builds() {
    trybuild::TestCases::new().pass("tests/ui/climbs_to_the_top.rs");
}
