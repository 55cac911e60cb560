//! Sums up the target's reports of all flows. Pure.

use std::collections::BTreeMap;

use onrush_packet::report::Report;
use onrush_packet::tally::FlowCounters;

use super::task::FlowOutcome;

#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetReports {
    pub(crate) tally: FlowCounters,
    /// Datagrams dropped by its sockets during the run because their buffers were full.
    pub(crate) dropped: u64,
    /// CPU time of its threads during the run, in nanoseconds.
    pub(crate) cpu: u64,
}

impl TargetReports {
    /// Sums up the reports; `None` if that of a flow is missing.
    pub(super) fn of<'a>(flows: impl Iterator<Item = &'a FlowOutcome>) -> Option<TargetReports> {
        let mut tally = FlowCounters::default();
        // Drops and CPU time are per core of the target, which may have several flows.
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
        Some(TargetReports {
            tally,
            dropped: of_cores(|report| report.dropped),
            cpu: of_cores(|report| report.cpu),
        })
    }
}
