//! Verdicts: the bottleneck of a trial, whether it is valid, and whether figures reach their targets.

mod advice;
mod agreement;
mod bottleneck;
mod comparable;
mod control;
mod figure;
mod kernel_losses;
mod stall;
mod steady;
mod stopping;
mod validity;

pub use crate::outcome::{Bottleneck, BottleneckKind, Verdict};
pub use agreement::{disagreements, remedy};
pub use bottleneck::bottleneck;
pub(crate) use bottleneck::mean_use;
pub use control::{ControlEnd, judge_control};
pub(crate) use figure::counts;
pub use figure::figure_lines;
pub(crate) use kernel_losses::of_all_cpus;
pub use stopping::all_precise;
pub use validity::judge;
