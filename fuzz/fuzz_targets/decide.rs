//! See `comeback_fuzz::decide`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| comeback_fuzz::decide(data));
