//! One line: see `onrush_fuzz::forwarded`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onrush_fuzz::forwarded(input));
