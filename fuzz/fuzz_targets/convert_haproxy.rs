//! One line: see `onrush_fuzz::convert_haproxy`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onrush_fuzz::convert_haproxy(input));
