//! Fuzz target for `comeback_fuzz::batch_event`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| comeback_fuzz::batch_event(data));

#[cfg(not(fuzzing))]
fn main() {}
