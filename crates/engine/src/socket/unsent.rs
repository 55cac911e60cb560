//! How much may wait in the kernel for a client to take it: as much as it takes in a second.
//!
//! Measured are clients that do not take all at once, from one time that a send had to wait to the next. Everybody else keeps
//! the bound that accepted connections begin with, and costs nothing.

use std::fs;

use crate::clock::Instant;
use crate::limits::{
    UNSENT_EXTRA_USUAL, UNSENT_MAX, UNSENT_MEASURED_MIN, UNSENT_MIN, UNSENT_SHARE, UNSENT_TIME,
};

/// What a connection has taken since a send had to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unsent {
    since: Instant,
    taken: u64,
    /// Invariant: a power of two within [`UNSENT_MIN`] and [`UNSENT_MAX`], and what the kernel was told.
    bound: u32,
}

/// What connections of a core have been granted beyond [`UNSENT_MIN`] each.
pub(crate) struct Extra {
    /// Invariant: at most `max`.
    granted: u64,
    max: u64,
}

impl Unsent {
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

    /// A send has to wait again: the bound that is due from now on, where it is another one. It is judged once in a while,
    /// raised as soon as the client is twice as fast, and lowered when it is four times as slow, so that few calls are made.
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

    /// The connection ends.
    pub(crate) fn give_back(&self, extra: &mut Extra) {
        let is_less = extra.exchange(self.bound, UNSENT_MIN);
        debug_assert!(is_less);
    }
}

impl Extra {
    /// No more than `max` bytes will be granted.
    pub(crate) fn new(max: u64) -> Self {
        Self { granted: 0, max }
    }

    /// One core's part of what the kernel lets TCP have before it begins to save memory (tcp(7), the first number of
    /// tcp_mem), or the usual one where that cannot be read.
    pub(crate) fn of_core(cores: usize) -> Self {
        let table = fs::read_to_string("/proc/sys/net/ipv4/tcp_mem").unwrap_or_default();
        let part = unregulated(&table).map(|bytes| bytes / UNSENT_SHARE / cores.max(1) as u64);
        Self::new(part.unwrap_or(UNSENT_EXTRA_USUAL))
    }

    /// Whether a connection may have another bound, which it has then.
    fn exchange(&mut self, before: u32, after: u32) -> bool {
        let granted = self.granted + u64::from(after) - u64::from(before);
        if after > before && granted > self.max {
            return false;
        }
        self.granted = granted;
        true
    }
}

/// The bytes up to which the kernel grants TCP whatever it asks for.
fn unregulated(tcp_mem: &str) -> Option<u64> {
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

    /// The bounds that are told of a client that takes so many bytes in each time of 50 ms.
    fn bounds(taken: &[u64], extra: &mut Extra) -> Vec<Option<u32>> {
        let mut unsent = Unsent::new(at(0));
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
    fn the_bound_follows_what_a_client_takes_and_few_calls_are_made() {
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
    fn clients_that_stall_hold_no_more_than_the_core_grants() {
        let mut extra = Extra::new(MAX);
        let quick = (0..1000).filter(|_| {
            let mut unsent = Unsent::new(at(0));
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
    fn the_bound_of_a_core_is_a_part_of_what_tcp_may_have() {
        let page = rustix::param::page_size() as u64;
        for (table, bytes) in [
            ("287901\t383868\t575802\n", Some(287_901 * page)),
            ("0 0 0", Some(0)),
            ("", None),
            ("-1 2 3", None),
            ("18446744073709551615", None),
        ] {
            assert_eq!(unregulated(table), bytes, "{table:?}");
        }
        assert!(Extra::of_core(2).max <= Extra::of_core(1).max);
    }
}
