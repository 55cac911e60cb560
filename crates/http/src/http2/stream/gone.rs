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
    /// The highest of those that the ring has lost: this one and those below it may have been reset by us, too.
    forgotten: u32,
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
        let lost = std::mem::replace(&mut self.resets[usize::from(self.resets_next)], id);
        self.forgotten = self.forgotten.max(lost);
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

    /// Whether it is certain that we have not reset it. Where a peer is blamed for what comes on a stream, a doubt is in its favour.
    pub(crate) fn was_never_reset(&self, id: u32) -> bool {
        id > self.forgotten && !self.was_reset(id)
    }

    pub(crate) fn has_ended(&self, id: u32) -> bool {
        self.ended.contains(&id)
    }

    /// Gives memory back; nothing is on its way any more.
    pub(crate) fn forget(&mut self) {
        let highest = self.resets.iter().copied().max();
        self.forgotten = self.forgotten.max(highest.unwrap_or_default());
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
        // What the ring has lost is in doubt, and so is what is older.
        assert!(!gone.was_never_reset(2) && !gone.was_never_reset(3) && !gone.was_never_reset(4));
        assert!(gone.was_never_reset(RESETS as u32 + 4));
        assert!(gone.was_reset(RESETS as u32 + 3));
        assert!(gone.has_ended(RESETS as u32 + 1003));
        assert!(!gone.has_ended(1001));
        assert!(!gone.has_ended(5));
        gone.forget();
        assert!(!gone.was_reset(4) && !gone.was_never_reset(RESETS as u32 + 3));
        assert!(gone.was_never_reset(RESETS as u32 + 4));
    }
}
