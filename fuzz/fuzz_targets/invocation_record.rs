//! See `comeback_fuzz::invocation_record`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| comeback_fuzz::invocation_record(data));
