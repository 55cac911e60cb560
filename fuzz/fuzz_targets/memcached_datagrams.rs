//! One line: see `onrush_fuzz::memcached_datagrams`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onrush_fuzz::memcached_datagrams(input));
