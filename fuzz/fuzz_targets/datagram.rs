//! One line: see `onrush_fuzz::datagram`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onrush_fuzz::datagram(input));
