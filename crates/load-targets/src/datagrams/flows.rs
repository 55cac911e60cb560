//! The flows of test datagrams that a core has seen at a listener.

use indexmap::IndexMap;
use onrush_packet::header::{Flow, Header};
use onrush_packet::tally::{Counter, Tally};

use super::limits::FLOWS_MAX;

/// As many as may be, each in a place of its own.
#[derive(Debug, Default)]
pub(super) struct Flows {
    all: IndexMap<Flow, Counter>,
    /// The place of the one that began first, when there is no room for another.
    oldest: usize,
    /// The place of the one that had the last datagram, which has the next one, too, as a rule.
    last: usize,
}

impl Flows {
    /// A test datagram of so many bytes has come at `now`, in nanoseconds of our clock. When there are as many flows as may be,
    /// the first to have begun is forgotten.
    pub(super) fn arrive(&mut self, header: &Header, bytes: usize, now: u64) {
        if let Some((flow, counter)) = self.all.get_index_mut(self.last)
            && *flow == header.flow
        {
            return counter.arrive(header, bytes, now);
        }
        self.last = self.place_of(header.flow);
        self.all[self.last].arrive(header, bytes, now);
    }

    fn place_of(&mut self, flow: Flow) -> usize {
        if let Some(place) = self.all.get_index_of(&flow) {
            return place;
        }
        if self.all.len() < FLOWS_MAX {
            return self.all.insert_full(flow, Counter::default()).0;
        }
        // The new one takes the place of the old one, and the others stay where they are.
        let place = self.oldest;
        self.oldest = (place + 1) % FLOWS_MAX;
        self.all.swap_remove_index(place);
        let (last, _) = self.all.insert_full(flow, Counter::default());
        self.all.swap_indices(place, last);
        place
    }

    /// What has come of a flow; of one that is not known, nothing.
    pub(super) fn tally(&self, flow: Flow) -> Tally {
        let counter = self.all.get(&flow);
        counter.map(Counter::tally).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_packet::header::Kind;

    #[test]
    fn the_flow_that_began_first_is_forgotten() {
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
