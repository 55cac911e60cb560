//! Automation of the repository, in Rust.
#![forbid(unsafe_code)]

fn main() {}
