//! One core with a server, its clients and servers that the test plays, and the tests of this crate that need them.

#[allow(
    dead_code,
    reason = "it serves the tests of all responses; not each needs all of it"
)]
pub(crate) mod harness;
mod tests;
