//! See `comeback_fuzz::envelope`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| comeback_fuzz::envelope(data));
