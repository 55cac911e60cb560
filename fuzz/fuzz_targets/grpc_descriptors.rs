//! One line: see `onrush_fuzz::grpc_descriptors`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onrush_fuzz::grpc_descriptors(input));
