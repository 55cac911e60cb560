//! Which socket a core that busy-polls expects the next bytes from.

use crate::limits::{ALONE_MIN, LOOKS_APART_MAX};
use crate::socket::key::Key;

/// The one that has received again and again while no other has.
#[derive(Default)]
pub(crate) struct Expected {
    /// Whether anybody wants to know: the core busy-polls.
    pub(crate) is_wanted: bool,
    /// Receives that have brought something, an end or an error, since somebody wants to know.
    pub(crate) received: u64,
    last: Option<Key>,
    /// So many of the latest receives were of the `last`.
    alone: u32,
    /// Looks at the driver since the latest receive.
    looks: u32,
    /// The socket of which the driver reports nothing meanwhile.
    pub(crate) apart: Option<Key>,
}

impl Expected {
    /// Something has been received.
    #[inline]
    pub(crate) fn note_received(&mut self, key: Key) {
        if !self.is_wanted {
            return;
        }
        self.received += 1;
        self.looks = 0;
        if self.last == Some(key) {
            self.alone = self.alone.saturating_add(1);
        } else {
            self.last = Some(key);
            self.alone = 1;
        }
    }

    /// The socket is given up.
    pub(crate) fn forget(&mut self, key: Key) {
        if self.last == Some(key) {
            self.last = None;
        }
    }

    /// A look at the driver is due.
    pub(crate) fn note_look(&mut self) {
        self.looks = self.looks.saturating_add(1);
    }

    /// Whether so much has come of late that the driver need not report what comes next.
    pub(crate) fn is_lively(&self) -> bool {
        self.looks < LOOKS_APART_MAX
    }

    /// Where the next bytes are expected.
    pub(crate) fn key(&self) -> Option<Key> {
        self.last.filter(|_| self.alone >= ALONE_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_expected_where_all_of_the_latest_have_come() {
        let mut expected = Expected::default();
        let receive = |expected: &mut Expected, key, times| {
            (0..times).for_each(|_| expected.note_received(Key(key)));
            expected.key()
        };
        assert_eq!(receive(&mut expected, 1, ALONE_MIN), None, "nobody asked");
        expected.is_wanted = true;
        assert_eq!(receive(&mut expected, 1, ALONE_MIN - 1), None);
        assert_eq!(receive(&mut expected, 1, 1), Some(Key(1)));
        assert_eq!(receive(&mut expected, 2, 1), None);
        assert_eq!(receive(&mut expected, 2, ALONE_MIN), Some(Key(2)));
        expected.forget(Key(1));
        assert_eq!(expected.key(), Some(Key(2)));
        expected.forget(Key(2));
        assert_eq!(expected.key(), None);
        assert_eq!(receive(&mut expected, 3, 1), None);
    }
}
