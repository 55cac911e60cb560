//! One line: see `onrush_fuzz::arrivals`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onrush_fuzz::arrivals(input));
