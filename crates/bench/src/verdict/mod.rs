//! What the numbers mean: what was full, whether a trial may be used, and whether a target was reached. Pure.

mod figure;
mod limiter;
mod validity;

pub use figure::{Verdict, figure_lines};
pub(crate) use limiter::mean_use;
pub use limiter::{Limiter, LimiterKind, limiter};
pub use validity::judge;
