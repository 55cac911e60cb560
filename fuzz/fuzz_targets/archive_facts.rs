//! One line: see `onrush_fuzz::archive_facts`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onrush_fuzz::archive_facts(input));
