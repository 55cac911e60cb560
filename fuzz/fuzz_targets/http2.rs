//! One line: see `onrush_fuzz::http2`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onrush_fuzz::http2(input));
