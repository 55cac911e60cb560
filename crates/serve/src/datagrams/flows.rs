//! The flows of test datagrams that a core has seen at a listener.

use indexmap::IndexMap;
use onrush_packet::header::{Flow, Header};
use onrush_packet::tally::{Counter, Tally};

use super::limits::FLOWS_MAX;

/// In the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Flows {
    all: IndexMap<Flow, Counter>,
}

impl Flows {
    /// A test datagram of so many bytes has come at `now`, in nanoseconds of our clock. When there are as many flows as may be,
    /// the first to have begun is forgotten.
    pub(super) fn arrive(&mut self, header: &Header, bytes: usize, now: u64) {
        if let Some(counter) = self.all.get_mut(&header.flow) {
            return counter.arrive(header, bytes, now);
        }
        if self.all.len() == FLOWS_MAX {
            self.all.shift_remove_index(0);
        }
        let counter = self.all.entry(header.flow).or_default();
        counter.arrive(header, bytes, now);
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
        flows.arrive(&header(FLOWS_MAX as u32), 100, 0);
        assert_eq!(received(&flows, 0), 0);
        assert!((1..=FLOWS_MAX as u32).all(|run| received(&flows, run) == 1));
    }
}
