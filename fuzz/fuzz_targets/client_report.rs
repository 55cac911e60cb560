//! One line: see `onrush_fuzz::client_report`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onrush_fuzz::client_report(input));
