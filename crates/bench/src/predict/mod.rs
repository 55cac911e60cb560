//! A capacity model: how many requests a second a machine can do, and what is full first.
//!
//! A machine (`machine.rs`) and what a request costs (`cost.rs`) become a prediction (`model.rs`). Costs come out of runs of
//! this program and out of published measurements (`rows.rs`, `fit.rs`), and `check.rs` says how far off the model is, by
//! predicting each row from the others. `docs/predict.md` explains the model and shows its errors.

mod solve;

pub mod wire;

pub mod machine;

pub mod cost;

pub mod model;

mod cost_file;
mod machine_file;

pub mod rows;

mod fit;

pub mod check;

pub mod measured;
pub mod series;

pub mod text;

pub use cost::Cost;
pub use cost_file::CostFile;
pub use machine::Machine;
pub use machine_file::read as read_machine;
pub use model::{Limiter, Prediction, predict};
