//! One line: see `onrush_fuzz::response`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onrush_fuzz::response(input));
