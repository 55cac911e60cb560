//! One line: see `onrush_fuzz::tls_tampering`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onrush_fuzz::tls_tampering(input));
