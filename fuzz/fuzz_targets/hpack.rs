//! One line: see `onrush_fuzz::hpack`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onrush_fuzz::hpack(input));
