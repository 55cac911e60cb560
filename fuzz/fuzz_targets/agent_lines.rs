//! One line: see `onrush_fuzz::agent_lines`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onrush_fuzz::agent_lines(input));
