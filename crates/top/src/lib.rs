//! A live view of a running server: its activity of each second, in a terminal.
//!
//! ```text
//!   /v1/live ──> Moment ──> View: history, order, filter, selection ──> draw, or text
//!                keys  ───────^  └──> Wish: a change of a server
//! ```
//! It only draws: the caller fetches moments and carries out changes.
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
