//! The socket on which a core that busy-polls expects the next bytes.

use crate::limits::{CONSECUTIVE_RECEIVES_MIN, LOOKS_WITHOUT_REPORTS_MAX};
use crate::socket::key::Key;

/// Detects a socket that received repeatedly while no other did.
#[derive(Default)]
pub(crate) struct Expected {
    /// Whether the core busy-polls; otherwise nothing is recorded.
    pub(crate) is_wanted: bool,
    /// Number of receives that returned bytes, an end or an error, since busy polling began.
    pub(crate) received: u64,
    last: Option<Key>,
    /// Number of consecutive receives on `last`.
    consecutive_receives: u32,
    /// Looks at the driver since the latest receive.
    looks: u32,
    /// The socket that the driver currently does not report.
    pub(crate) unreported: Option<Key>,
}

impl Expected {
    #[inline]
    pub(crate) fn note_received(&mut self, key: Key) {
        if !self.is_wanted {
            return;
        }
        self.received += 1;
        self.looks = 0;
        if self.last == Some(key) {
            self.consecutive_receives = self.consecutive_receives.saturating_add(1);
        } else {
            self.last = Some(key);
            self.consecutive_receives = 1;
        }
    }

    pub(crate) fn forget(&mut self, key: Key) {
        if self.last == Some(key) {
            self.last = None;
        }
    }

    pub(crate) fn note_look(&mut self) {
        self.looks = self.looks.saturating_add(1);
    }

    /// Whether the latest receive is so recent that the driver need not report the socket.
    pub(crate) fn is_recent(&self) -> bool {
        self.looks < LOOKS_WITHOUT_REPORTS_MAX
    }

    pub(crate) fn key(&self) -> Option<Key> {
        self.last
            .filter(|_| self.consecutive_receives >= CONSECUTIVE_RECEIVES_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_receives_select_busy_poll_socket() {
        let mut expected = Expected::default();
        let receive = |expected: &mut Expected, key, times| {
            (0..times).for_each(|_| expected.note_received(Key(key)));
            expected.key()
        };
        assert_eq!(
            receive(&mut expected, 1, CONSECUTIVE_RECEIVES_MIN),
            None,
            "nobody asked"
        );
        expected.is_wanted = true;
        assert_eq!(
            receive(&mut expected, 1, CONSECUTIVE_RECEIVES_MIN - 1),
            None
        );
        assert_eq!(receive(&mut expected, 1, 1), Some(Key(1)));
        assert_eq!(receive(&mut expected, 2, 1), None);
        assert_eq!(
            receive(&mut expected, 2, CONSECUTIVE_RECEIVES_MIN),
            Some(Key(2))
        );
        expected.forget(Key(1));
        assert_eq!(expected.key(), Some(Key(2)));
        expected.forget(Key(2));
        assert_eq!(expected.key(), None);
        assert_eq!(receive(&mut expected, 3, 1), None);
    }
}
