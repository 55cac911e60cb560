//! Verdicts: the bottleneck of a trial, whether it is valid, and whether figures reach their targets.

mod advice;
mod agree;
mod comparable;
mod control;
mod evidence;
mod figure;
mod limiter;
mod settled;
mod standstill;
mod steady;
mod validity;

pub use crate::outcome::{Limiter, LimiterKind, Verdict};
pub use agree::{disagreements, remedy};
pub use control::{ControlEnd, judge_control};
pub(crate) use evidence::of_all_cpus;
pub(crate) use figure::counts;
pub use figure::figure_lines;
pub use limiter::limiter;
pub(crate) use limiter::mean_use;
pub use settled::all_settled;
pub use validity::judge;
