//! One line: see `onrush_fuzz::request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onrush_fuzz::request(input));
