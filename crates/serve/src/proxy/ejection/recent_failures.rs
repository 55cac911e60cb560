//! Servers that have recently failed a request. Requests that cannot be repeated avoid them if another server is
//! available.
//!
//! A server is taken out only after several failures in a row, and an exiting process may still accept connections that
//! it will not serve. Idempotent requests (RFC 9110 9.2.2) are repeated on another server. Of the others, only those in
//! flight at the first failure are lost.

use std::cell::RefCell;

use onrush_engine::Instant;

use crate::limits::AVOID_TIME;

#[derive(Debug, Default)]
pub(crate) struct RecentFailures {
    /// Index of each server and the time until which it is avoided; nearly always empty.
    until: RefCell<Vec<(u32, Instant)>>,
}

impl RecentFailures {
    /// The same servers at their indexes in the next configuration; `positions` has the index here of each server
    /// there.
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

    pub(crate) fn add(&self, server: u32, now: Instant) {
        let mut until = self.until.borrow_mut();
        until.retain(|(known, _)| *known != server);
        until.push((server, now + AVOID_TIME));
    }

    /// The servers to avoid now, or `None`. O(n) in their number.
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
    fn recently_failed_server_is_avoided_temporarily() {
        let failures = RecentFailures::default();
        let start = Instant::from_nanoseconds(1);
        let half = AVOID_TIME / 2;
        assert_eq!(failures.at(start), None);
        failures.add(3, start);
        failures.add(1, start);
        assert_eq!(failures.at(start), Some(vec![3, 1]));
        failures.add(3, start + half);
        assert_eq!(failures.at(start + half), Some(vec![1, 3]));
        assert_eq!(failures.at(start + AVOID_TIME), Some(vec![3]));
        assert_eq!(failures.at(start + half + AVOID_TIME), None);
    }

    #[test]
    fn avoided_servers_survive_reordering() {
        let failures = RecentFailures::default();
        let start = Instant::from_nanoseconds(1);
        failures.add(3, start);
        failures.add(1, start);
        let next = failures.in_positions(&[None, Some(0), Some(3)]);
        assert_eq!(next.at(start), Some(vec![2]));
        assert_eq!(next.at(start + AVOID_TIME), None);
        assert_eq!(failures.at(start), Some(vec![3, 1]));
    }
}
