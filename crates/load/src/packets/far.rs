//! What the far end says of a run, of all its flows together. Pure.

use std::collections::BTreeMap;

use onrush_packet::report::Report;
use onrush_packet::tally::Tally;

use super::task::FlowOutcome;

/// What the far end says of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Far {
    pub(crate) tally: Tally,
    /// Datagrams that its sockets had no room for meanwhile.
    pub(crate) dropped: u64,
    /// CPU time of its threads meanwhile, in nanoseconds.
    pub(crate) cpu: u64,
}

impl Far {
    /// What reports of all flows come to; `None` where one is missing.
    pub(super) fn of<'a>(flows: impl Iterator<Item = &'a FlowOutcome>) -> Option<Far> {
        let mut tally = Tally::default();
        // A core has one socket for all flows that it got.
        let mut cores = BTreeMap::new();
        for flow in flows {
            let (before, after) = (flow.reports.0?, flow.reports.1?);
            tally.add(&after.tally);
            let core = cores.entry(after.core).or_insert((before, after));
            if before.cpu < core.0.cpu {
                core.0 = before;
            }
            if after.cpu > core.1.cpu {
                core.1 = after;
            }
        }
        let of_cores = |figure: fn(&Report) -> u64| -> u64 {
            let passed = cores
                .values()
                .map(|(before, after)| figure(after).saturating_sub(figure(before)));
            passed.sum()
        };
        Some(Far {
            tally,
            dropped: of_cores(|report| report.dropped),
            cpu: of_cores(|report| report.cpu),
        })
    }
}
