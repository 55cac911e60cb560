//! State that the parsers of a core's responses share: the workload and the counters.

use std::cell::RefCell;
use std::sync::Arc;

use super::counts::{Counts, DatagramCounts};
use crate::requests::memcached::TransportKind;
use crate::requests::memcached::workload::Workload;

pub(super) struct Reading {
    pub(super) workload: Arc<Workload>,
    pub(super) counts: RefCell<Counts>,
    /// Buffer for the expected key.
    pub(super) key: RefCell<Vec<u8>>,
}

impl Reading {
    pub(super) fn new(workload: &Arc<Workload>) -> Reading {
        Reading {
            workload: Arc::clone(workload),
            counts: RefCell::new(Counts {
                datagrams: match workload.carrier() {
                    TransportKind::Streams => None,
                    TransportKind::Datagrams => Some(DatagramCounts::default()),
                },
                ..Counts::default()
            }),
            key: RefCell::default(),
        }
    }
}
