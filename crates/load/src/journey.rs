//! Journeys: what a user does, one request after the other, where a later one needs what an earlier response said.
//!
//! ```text
//!  a file ──> file.rs ──> Journeys: steps, checks, what is taken ──┐
//!                    └──> Request ──> mix::Mix: bytes of a step ───┤
//!                                                                  v
//!  connection/user.rs, once per user: wait for the pace ──> step ──> response ──> check, take ──> think ──> step ...
//! ```
//!
//! A mix sends what follows from the number of a request; of a journey only the first request does. So a user is a task of
//! its own, and goes the way of a connection only where both are the same: who dials, when to begin, what is recorded.

pub(crate) mod check;
mod file;
mod json;
pub(crate) mod redirect;
pub(crate) mod response;
pub(crate) mod take;

pub(crate) mod steps;

pub use file::{Found, parse};
pub use steps::Journeys;
