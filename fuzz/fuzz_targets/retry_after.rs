//! Fuzz target for `comeback_fuzz::retry_after`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| comeback_fuzz::retry_after(data));

#[cfg(not(fuzzing))]
fn main() {}
