//! The bound on a client's unsent bytes in the kernel: as much as the client takes in a second.
//!
//! Only clients that do not take all bytes at once are measured, from one blocked send to the next. All others keep the
//! initial bound of accepted connections, at no cost.

use std::fs;

use crate::clock::Instant;
use crate::limits::{
    UNSENT_BUDGET_DEFAULT, UNSENT_BUDGET_DIVISOR, UNSENT_MAX, UNSENT_MEASURED_MIN, UNSENT_MIN,
    UNSENT_TIME,
};

/// The bytes that a connection has taken since a send was blocked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnsentBound {
    since: Instant,
    taken: u64,
    /// Invariant: a power of two from [`UNSENT_MIN`] to [`UNSENT_MAX`], equal to the kernel's setting.
    bound: u32,
}

/// Bytes granted to the connections of a core beyond [`UNSENT_MIN`] each.
pub(crate) struct Extra {
    granted: u64,
    max: u64,
}

impl UnsentBound {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            since: now,
            taken: 0,
            bound: UNSENT_MIN,
        }
    }

    pub(crate) fn note_taken(&mut self, count: u64) {
        self.taken += count;
    }

    /// Called when a send is blocked again; returns the new bound if it changes. To save calls, the bound is evaluated
    /// rarely, raised when the client is at least twice as fast, and lowered when it is at most a quarter as fast.
    pub(crate) fn bound_due(&mut self, now: Instant, extra: &mut Extra) -> Option<u32> {
        let elapsed = now.since(self.since);
        if elapsed < UNSENT_MEASURED_MIN {
            return None;
        }
        let taken = std::mem::take(&mut self.taken);
        self.since = now;
        let deserved = u128::from(taken) * UNSENT_TIME.as_nanos() / elapsed.as_nanos();
        let deserved = deserved.clamp(UNSENT_MIN.into(), UNSENT_MAX.into()) as u32;
        let deserved = 1_u32 << deserved.ilog2();
        let is_other = deserved >= 2 * self.bound || deserved <= self.bound / 4;
        if !is_other || !extra.exchange(self.bound, deserved) {
            return None;
        }
        self.bound = deserved;
        Some(deserved)
    }

    /// Returns the grant when the connection ends.
    pub(crate) fn give_back(&self, extra: &mut Extra) {
        let is_less = extra.exchange(self.bound, UNSENT_MIN);
        debug_assert!(is_less);
    }
}

impl Extra {
    pub(crate) fn new(max: u64) -> Self {
        Self { granted: 0, max }
    }

    /// One core's share of the memory that TCP may use without pressure (tcp(7), first number of tcp_mem), or a
    /// default.
    pub(crate) fn of_core(cores: usize) -> Self {
        let table = fs::read_to_string("/proc/sys/net/ipv4/tcp_mem").unwrap_or_default();
        let part = tcp_memory_without_pressure(&table)
            .map(|bytes| bytes / UNSENT_BUDGET_DIVISOR / cores.max(1) as u64);
        Self::new(part.unwrap_or(UNSENT_BUDGET_DEFAULT))
    }

    /// Replaces a connection's bound; false if the budget does not allow it.
    fn exchange(&mut self, before: u32, after: u32) -> bool {
        let granted = self.granted + u64::from(after) - u64::from(before);
        if after > before && granted > self.max {
            return false;
        }
        self.granted = granted;
        true
    }
}

/// The bytes up to which the kernel does not limit TCP.
fn tcp_memory_without_pressure(tcp_mem: &str) -> Option<u64> {
    let pages: u64 = tcp_mem.split_ascii_whitespace().next()?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MAX: u64 = 64 * 1024 * 1024;

    fn at(milliseconds: u64) -> Instant {
        Instant::default() + Duration::from_secs(1) + Duration::from_millis(milliseconds)
    }

    /// The bounds set for a client that takes these numbers of bytes per 50 ms.
    fn bounds(taken: &[u64], extra: &mut Extra) -> Vec<Option<u32>> {
        let mut unsent = UnsentBound::new(at(0));
        let mut turn = 0;
        let told = taken.iter().map(|&count| {
            turn += 1;
            unsent.note_taken(count);
            unsent.bound_due(at(50 * turn), extra)
        });
        let told = told.collect();
        unsent.give_back(extra);
        told
    }

    #[test]
    fn unsent_limit_follows_client_speed() {
        let mut extra = Extra::new(MAX);
        for (taken, told) in [
            (&[100, 0, 1][..], &[None, None, None][..]),
            (&[7_000, 7_000], &[Some(128 * 1024), None]),
            (
                &[30_000, 15_000, 4_000],
                &[Some(512 * 1024), None, Some(64 * 1024)],
            ),
            (&[60_000], &[Some(UNSENT_MAX)]),
            (&[u64::MAX >> 8, 0], &[Some(UNSENT_MAX), Some(UNSENT_MIN)]),
        ] {
            assert_eq!(bounds(taken, &mut extra), told, "{taken:?}");
            assert_eq!(extra.granted, 0, "all is given back");
        }
    }

    #[test]
    fn stalled_clients_stay_in_budget() {
        let mut extra = Extra::new(MAX);
        let quick = (0..1000).filter(|_| {
            let mut unsent = UnsentBound::new(at(0));
            unsent.note_taken(1 << 30);
            assert_eq!(
                unsent.bound_due(at(1), &mut extra),
                None,
                "it is early to tell"
            );
            unsent.bound_due(at(30), &mut extra).is_some()
        });
        assert!(quick.count() <= (MAX / u64::from(UNSENT_MAX - UNSENT_MIN)) as usize);
        assert!(extra.granted <= MAX);
    }
    #[test]
    fn budget_is_share_of_tcp_memory() {
        let page = rustix::param::page_size() as u64;
        for (table, bytes) in [
            ("287901\t383868\t575802\n", Some(287_901 * page)),
            ("0 0 0", Some(0)),
            ("", None),
            ("-1 2 3", None),
            ("18446744073709551615", None),
        ] {
            assert_eq!(tcp_memory_without_pressure(table), bytes, "{table:?}");
        }
        assert!(Extra::of_core(2).max <= Extra::of_core(1).max);
    }
}
