//! One line: see `onrush_fuzz::chunked`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onrush_fuzz::chunked(input));
