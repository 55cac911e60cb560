//! Capacity model: predicts the requests per second of a machine and its bottleneck.
//!
//! A machine (`machine.rs`) and the costs of a request (`cost.rs`) give a prediction (`model.rs`). Costs come from runs
//! of Onrush and from published measurements (`rows.rs`, `fit.rs`); `cross_validation.rs` measures the error of the model by
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

pub mod cross_validation;

pub mod measured;
pub mod series;

pub mod text;

pub use cost::Cost;
pub use cost_file::CostFile;
pub use machine::Machine;
pub use machine_file::read as read_machine;
pub use model::{Limiter, Prediction, predict};
