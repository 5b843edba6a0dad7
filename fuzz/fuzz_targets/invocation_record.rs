//! Fuzz target for `comeback_fuzz::invocation_record`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| comeback_fuzz::invocation_record(data));

#[cfg(not(fuzzing))]
fn main() {}
