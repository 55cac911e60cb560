//! Counters of the flows of test datagrams that a core has received at a listener.

use indexmap::IndexMap;
use onrush_packet::header::{Flow, Header};
use onrush_packet::tally::{Counter, FlowCounters};

use super::limits::FLOWS_MAX;

/// Flows with their counters, up to the limit.
#[derive(Debug, Default)]
pub(super) struct Flows {
    all: IndexMap<Flow, Counter>,
    /// Index of the oldest flow, once the limit is reached.
    oldest: usize,
    /// Index of the flow of the last datagram, which is usually that of the next.
    last: usize,
}

impl Flows {
    /// Counts a test datagram of `bytes` bytes at `now`, in nanoseconds of this machine's clock. At the limit, a new
    /// flow replaces the oldest.
    pub(super) fn arrive(&mut self, header: &Header, bytes: usize, now: u64) {
        if let Some((flow, counter)) = self.all.get_index_mut(self.last)
            && *flow == header.flow
        {
            return counter.record(header, bytes, now);
        }
        self.last = self.place_of(header.flow);
        self.all[self.last].record(header, bytes, now);
    }

    fn place_of(&mut self, flow: Flow) -> usize {
        if let Some(place) = self.all.get_index_of(&flow) {
            return place;
        }
        if self.all.len() < FLOWS_MAX {
            return self.all.insert_full(flow, Counter::default()).0;
        }
        // The new flow takes the index of the oldest, so that the order of the others remains.
        let place = self.oldest;
        self.oldest = (place + 1) % FLOWS_MAX;
        self.all.swap_remove_index(place);
        let (last, _) = self.all.insert_full(flow, Counter::default());
        self.all.swap_indices(place, last);
        place
    }

    /// Returns the counters of a flow, all zero for an unknown flow.
    pub(super) fn tally(&self, flow: Flow) -> FlowCounters {
        let counter = self.all.get(&flow);
        counter.map(Counter::tally).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_packet::header::Kind;

    #[test]
    fn oldest_flow_is_evicted() {
        let mut flows = Flows::default();
        let header = |run| Header {
            kind: Kind::Data,
            flow: Flow { run, number: 0 },
            sequence: 0,
            sent: 0,
        };
        let runs = 0..FLOWS_MAX as u32;
        runs.clone()
            .for_each(|run| flows.arrive(&header(run), 100, 0));
        flows.arrive(&header(0), 100, 0);
        let received = |flows: &Flows, run| flows.tally(header(run).flow).received;
        assert!(runs.clone().all(|run| received(&flows, run) == 1));
        for run in 0..2 * FLOWS_MAX as u32 {
            flows.arrive(&header(FLOWS_MAX as u32 + run), 100, 0);
            assert_eq!(received(&flows, run), 0);
            assert_eq!(received(&flows, run + 1), 1);
            assert_eq!(received(&flows, FLOWS_MAX as u32 + run), 1);
        }
    }
}
