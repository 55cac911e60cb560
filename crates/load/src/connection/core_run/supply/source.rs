//! Source of the intended starts of a core's requests.

use std::time::Duration;

use onrush_engine::random::Random;

use crate::pace::Pace;
use crate::pace::arrivals::Arrivals;
use crate::pace::dispatch::Dispatch;
use crate::plan::Plan;

pub(super) enum Source {
    /// The current time.
    Closed,
    /// The current time plus a think time.
    Think(Duration, Random),
    Open(Box<Dispatch>),
    /// The connection's own schedule.
    PerConnection,
}

impl Source {
    pub(super) fn new(plan: &Plan, core: usize, connections: usize, turn: u64) -> Source {
        let options = &plan.options;
        match &options.pace {
            Pace::Closed => Source::Closed,
            Pace::Think(time) => {
                let stream = plan.share_of(core).first;
                Source::Think(*time, Random::stream(options.seed, stream))
            }
            Pace::Open(arrivals) => {
                let arrivals = Arrivals::new(arrivals, plan.share_of(core), turn);
                let dispatch = Dispatch::new(arrivals, turn, connections, options.catch_up);
                Source::Open(Box::new(dispatch))
            }
            Pace::EachConnection(_) => Source::PerConnection,
        }
    }
}
