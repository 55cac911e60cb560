//! Test harness: one core with a server, its clients and scripted upstream servers; and the tests of this crate that
//! use it.

#[allow(
    dead_code,
    reason = "it serves the tests of all responses; not each needs all of it"
)]
pub(crate) mod harness;
mod tests;
