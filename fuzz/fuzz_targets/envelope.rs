//! Fuzz target for `comeback_fuzz::envelope`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| comeback_fuzz::envelope(data));

#[cfg(not(fuzzing))]
fn main() {}
