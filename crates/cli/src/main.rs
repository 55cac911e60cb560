//! The binary `onrush`: flags -> a command -> exit code. Nothing else.
#![forbid(unsafe_code)]

fn main() {}
