//! Ladders that do not compile, and one that does.

/// All are refused by `cargo check`: a `trybuild` set without a passing case goes no further.
/// The expected texts are those of the compiler that CI uses; `TRYBUILD=overwrite` renews them.
#[test]
fn misuse_is_refused_by_cargo_check() {
    let check = trybuild::TestCases::new();
    check.compile_fail("tests/ui/check/*.rs");
}

/// A passing case makes `trybuild` build, and so finds ladders written without the macro.
#[test]
fn right_use_builds_and_handwritten_ladders_are_refused_too() {
    let build = trybuild::TestCases::new();
    build.pass("tests/ui/build/climbs_to_the_top.rs");
    build.compile_fail("tests/ui/build/shorter_rung_by_hand.rs");
}
