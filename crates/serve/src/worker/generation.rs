//! Number of a configuration and count of its sites: when no site is left, its last request has ended.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Generation {
    number: u64,
    sites: Mutex<usize>,
    gone: Condvar,
}

/// Counts one site until it is dropped.
#[derive(Debug)]
pub(crate) struct SiteGuard(Arc<Generation>);

impl Generation {
    /// The generation after `before`, or the first.
    pub(crate) fn after(before: Option<&Generation>) -> Arc<Self> {
        Arc::new(Self {
            number: before.map_or(1, |before| before.number + 1),
            sites: Mutex::new(0),
            gone: Condvar::new(),
        })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    fn sites(&self) -> MutexGuard<'_, usize> {
        // The counter cannot be left half changed.
        self.sites.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn in_force(self: &Arc<Self>) -> SiteGuard {
        *self.sites() += 1;
        SiteGuard(Arc::clone(self))
    }

    /// Whether any request uses it or any core has yet to replace it.
    pub(crate) fn is_used(&self) -> bool {
        *self.sites() > 0
    }

    /// Waits, for at most `patience`, until no site is left. Returns whether none is.
    pub(crate) fn wait_until_gone(&self, patience: Duration) -> bool {
        let is_left = |sites: &mut usize| *sites > 0;
        let waited = self
            .gone
            .wait_timeout_while(self.sites(), patience, is_left);
        *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
    }
}

impl SiteGuard {
    pub(crate) fn number(&self) -> u64 {
        self.0.number
    }
}

impl Drop for SiteGuard {
    fn drop(&mut self) {
        let mut sites = self.0.sites();
        *sites -= 1;
        if *sites == 0 {
            self.0.gone.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn generation_wait_ends_when_last_reference_drops() {
        let first = Generation::after(None);
        let second = Generation::after(Some(&first));
        assert_eq!((first.number(), second.number()), (1, 2));
        let in_force = [first.in_force(), first.in_force()];
        assert!(!first.wait_until_gone(Duration::ZERO));
        assert!(second.wait_until_gone(Duration::ZERO));
        let waiting = Arc::clone(&first);
        let waiter = thread::spawn(move || waiting.wait_until_gone(Duration::from_secs(100)));
        drop(in_force);
        assert!(waiter.join().expect("no panic"));
    }
}
