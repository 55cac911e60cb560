//! One line: see `onrush_fuzz::grpc_responses`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onrush_fuzz::grpc_responses(input));
