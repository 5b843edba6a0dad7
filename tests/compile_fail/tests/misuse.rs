//! Ladders and retries that do not compile, and a ladder that does.

/// For a set of cases that must all fail, `trybuild` only runs `cargo check`, so that must refuse each case. The
/// expected errors are those of the compiler that CI uses; `TRYBUILD=overwrite` renews them.
#[test]
fn misuse_is_refused_by_cargo_check() {
    trybuild::TestCases::new().compile_fail("tests/ui/*/*.rs");
}

#[test]
fn right_use_builds() {
    trybuild::TestCases::new().pass("tests/ui/climbs_to_the_top.rs");
}
