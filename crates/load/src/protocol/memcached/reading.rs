//! What a core needs to read answers, and what it counts of them.

use std::cell::RefCell;
use std::sync::Arc;

use super::counts::{Counts, DatagramCounts};
use crate::requests::memcached::Carrier;
use crate::requests::memcached::workload::Workload;

/// What the answers of a core's connections are read with.
pub(super) struct Reading {
    pub(super) workload: Arc<Workload>,
    pub(super) counts: RefCell<Counts>,
    /// A key as it is written, to be compared with one that came.
    pub(super) key: RefCell<Vec<u8>>,
}

impl Reading {
    /// Nothing has come yet.
    pub(super) fn new(workload: &Arc<Workload>) -> Reading {
        Reading {
            workload: Arc::clone(workload),
            counts: RefCell::new(Counts {
                datagrams: match workload.carrier() {
                    Carrier::Streams => None,
                    Carrier::Datagrams => Some(DatagramCounts::default()),
                },
                ..Counts::default()
            }),
            key: RefCell::default(),
        }
    }
}
