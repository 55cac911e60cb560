//! One line: see `onrush_fuzz::pipeline`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onrush_fuzz::pipeline(input));
