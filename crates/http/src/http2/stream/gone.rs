//! Streams that are closed, as far as it matters for frames that still come for them. Of the ids that are not open, those
//! that we have reset may still have frames on their way (RFC 9113 5.1, "closed"), for the rest it is an error.

/// Streams that we have reset and that are remembered: as many as are usually open at a time, so that all of them can be
/// reset at once and frames on their way are still known.
const RESETS: usize = 128;

/// Other streams that have ended last: enough to tell a peer that goes on with one from one that goes back to ids it has
/// skipped.
const ENDED: usize = 8;

/// The last streams that are closed. Empty until a stream is reset by us, apart from a few numbers.
#[derive(Debug, Default)]
pub(crate) struct Gone {
    /// A ring.
    resets: Vec<u32>,
    resets_next: u8,
    /// A ring; 0 is none.
    ended: [u32; ENDED],
    ended_next: u8,
}

impl Gone {
    /// We have reset this stream.
    pub(crate) fn reset(&mut self, id: u32) {
        if self.resets.len() < RESETS {
            return self.resets.push(id);
        }
        self.resets[usize::from(self.resets_next)] = id;
        self.resets_next = (self.resets_next + 1) % RESETS as u8;
    }

    /// This stream has ended, or the peer has reset it.
    #[inline]
    pub(crate) fn ended(&mut self, id: u32) {
        self.ended[usize::from(self.ended_next)] = id;
        self.ended_next = (self.ended_next + 1) % ENDED as u8;
    }

    pub(crate) fn was_reset(&self, id: u32) -> bool {
        self.resets.contains(&id)
    }

    pub(crate) fn has_ended(&self, id: u32) -> bool {
        self.ended.contains(&id)
    }

    /// Gives memory back; nothing is on its way any more.
    pub(crate) fn forget(&mut self) {
        self.resets = Vec::new();
        self.resets_next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_remembered() {
        let mut gone = Gone::default();
        for id in 1..=RESETS as u32 + 3 {
            gone.reset(id);
            gone.ended(id + 1000);
        }
        assert!(!gone.was_reset(3));
        assert!(gone.was_reset(4));
        assert!(gone.was_reset(RESETS as u32 + 3));
        assert!(gone.has_ended(RESETS as u32 + 1003));
        assert!(!gone.has_ended(1001));
        assert!(!gone.has_ended(5));
    }
}
