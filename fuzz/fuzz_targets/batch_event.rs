//! See `comeback_fuzz::batch_event`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| comeback_fuzz::batch_event(data));
