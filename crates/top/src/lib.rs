//! A live view of a server that runs: what it does each second, in a terminal.
//!
//! ```text
//!   /v1/live ──> Moment ──> View: history, order, filter, what is chosen ──> draw, or text
//!                keys  ───────^  └──> Wish: what is to be done with a server
//! ```
//! It only draws: who gets the moments and who carries out wishes is the caller's business.
//!
//! `moment.rs` is one second of `/v1/live`, `history.rs` the seconds before, `view.rs` the selection, `draw.rs` and
//! `text.rs` the output, `keys.rs` the commands. `crates/cli/src/top.rs` connects and owns the terminal.
#![forbid(unsafe_code)]

pub mod draw;
pub mod history;
pub mod keys;
pub mod moment;
pub mod text;
pub mod unit;
pub mod view;
