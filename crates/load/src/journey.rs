//! Journeys: sequences of requests that a user sends, with values from earlier responses in later requests.
//!
//! ```text
//!  file ──> file.rs ──> Journeys: steps, checks, extractions ──┐
//!                  └──> Request ──> mix::Mix: bytes of a step ─┤
//!                                                              v
//!  connection/user.rs, once per user: wait for the pace ──> step ──> response ──> check, take ──> think ──> step ...
//! ```
//!
//! A mix derives a request from its number, which works only for the first request of a journey. So a user is a task
//! of its own and shares with other connections only dialing, pacing and recording.

pub(crate) mod check;
pub(crate) mod extract;
mod file;
mod json;
pub(crate) mod redirect;
pub(crate) mod response;

pub(crate) mod steps;

pub use file::{ParsedJourneys, parse};
pub use steps::Journeys;
