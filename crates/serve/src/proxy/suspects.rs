//! Servers that have just failed a request: one that cannot be repeated goes elsewhere, if there is another server.
//!
//! A server is taken out after several failures in a row, and one that ends keeps sockets open for a moment, in which it
//! seems to take requests. Those that may be repeated (RFC 9110 9.2.2) are repeated elsewhere. Of the others only those
//! are lost that were in flight when the first failure was seen.

use std::cell::RefCell;

use onrush_engine::Instant;

use crate::limits::SUSPICION;

/// The suspects of a group on one core.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    /// Each with the end of the suspicion; nearly always empty.
    until: RefCell<Vec<(u32, Instant)>>,
}

impl Suspects {
    /// Those of the next configuration, in which each server has had the position here that `positions` says, or none.
    pub(crate) fn in_positions(&self, positions: &[Option<usize>]) -> Self {
        let until = self.until.borrow();
        let next = until.iter().filter_map(|&(server, end)| {
            let next = positions
                .iter()
                .position(|place| *place == Some(server as usize))?;
            Some((next as u32, end))
        });
        Self {
            until: RefCell::new(next.collect()),
        }
    }

    /// A server has failed a request.
    pub(crate) fn add(&self, server: u32, now: Instant) {
        let mut until = self.until.borrow_mut();
        until.retain(|(known, _)| *known != server);
        until.push((server, now + SUSPICION));
    }

    /// Those of this moment, if there are any. O(n) in their number.
    #[inline]
    pub(crate) fn at(&self, now: Instant) -> Option<Vec<u32>> {
        let mut until = self.until.borrow_mut();
        if until.is_empty() {
            return None;
        }
        until.retain(|(_, end)| *end > now);
        let servers: Vec<u32> = until.iter().map(|(server, _)| *server).collect();
        (!servers.is_empty()).then_some(servers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_suspect_for_a_while_after_its_last_failure() {
        let suspects = Suspects::default();
        let start = Instant::from_nanoseconds(1);
        let half = SUSPICION / 2;
        assert_eq!(suspects.at(start), None);
        suspects.add(3, start);
        suspects.add(1, start);
        assert_eq!(suspects.at(start), Some(vec![3, 1]));
        suspects.add(3, start + half);
        assert_eq!(suspects.at(start + half), Some(vec![1, 3]));
        assert_eq!(suspects.at(start + SUSPICION), Some(vec![3]));
        assert_eq!(suspects.at(start + half + SUSPICION), None);
    }

    #[test]
    fn a_suspect_stays_one_at_its_next_position() {
        let suspects = Suspects::default();
        let start = Instant::from_nanoseconds(1);
        suspects.add(3, start);
        suspects.add(1, start);
        let next = suspects.in_positions(&[None, Some(0), Some(3)]);
        assert_eq!(next.at(start), Some(vec![2]));
        assert_eq!(next.at(start + SUSPICION), None);
        assert_eq!(suspects.at(start), Some(vec![3, 1]));
    }
}
