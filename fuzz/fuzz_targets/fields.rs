//! One line: see `onrush_fuzz::fields`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onrush_fuzz::fields(input));
