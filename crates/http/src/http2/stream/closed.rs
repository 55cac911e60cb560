//! Closed streams, for frames that still arrive on them. On streams that we have reset, frames may be in transit and
//! are ignored (RFC 9113 5.1, "closed"); on other closed streams a frame is an error.

/// Number of reset streams remembered individually, about as many as are usually open at a time. Among them the peer's
/// errors are detected. Older streams count as reset.
const RESETS: usize = 128;

/// Number of other recently ended streams: enough to distinguish a peer that continues an ended stream from a peer that
/// uses an id it has skipped.
const ENDED: usize = 8;

/// Recently closed streams. Allocates only once we reset a stream.
#[derive(Debug, Default)]
pub(crate) struct ClosedStreams {
    resets: Vec<u32>,
    resets_next: u8,
    /// Highest id evicted from the ring: streams up to this one may have been reset by us too.
    forgotten: u32,
    /// Ring of stream ids; 0 is unused.
    ended: [u32; ENDED],
    ended_next: u8,
}

impl ClosedStreams {
    pub(crate) fn reset(&mut self, id: u32) {
        if self.resets.len() < RESETS {
            return self.resets.push(id);
        }
        let lost = std::mem::replace(&mut self.resets[usize::from(self.resets_next)], id);
        self.forgotten = self.forgotten.max(lost);
        self.resets_next = (self.resets_next + 1) % RESETS as u8;
    }

    /// Records that a stream ended, or that the peer reset it.
    #[inline]
    pub(crate) fn ended(&mut self, id: u32) {
        self.ended[usize::from(self.ended_next)] = id;
        self.ended_next = (self.ended_next + 1) % ENDED as u8;
    }

    /// Whether frames on this closed stream may have been sent before our RST_STREAM was received, and must be ignored
    /// (RFC 9113 5.1). Forgotten streams count as reset, because an error would end all streams of the connection.
    pub(crate) fn may_be_in_transit(&self, id: u32) -> bool {
        self.resets.contains(&id) || (id <= self.forgotten && !self.has_ended(id))
    }

    /// Whether the peer ended this stream, among the last `ENDED` streams.
    pub(crate) fn has_ended(&self, id: u32) -> bool {
        self.ended.contains(&id)
    }

    /// Frees memory; call when no frames are in transit.
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
    fn evicted_streams_count_as_reset() {
        let mut gone = ClosedStreams::default();
        for id in 1..=RESETS as u32 + 3 {
            gone.reset(id);
            gone.ended(id + 1000);
        }
        let newest = RESETS as u32 + 3;
        assert!((1..=newest).all(|id| gone.may_be_in_transit(id)));
        assert!(!gone.may_be_in_transit(newest + 1));
        assert!(gone.has_ended(newest + 1000));
        assert!(!gone.has_ended(1001) && !gone.has_ended(5));
        gone.forget();
        assert!((1..=newest).all(|id| gone.may_be_in_transit(id)));
        assert!(!gone.may_be_in_transit(newest + 1));
    }

    #[test]
    fn ended_stream_is_not_in_transit() {
        let mut gone = ClosedStreams::default();
        gone.reset(9);
        gone.ended(7);
        gone.forget();
        assert!(gone.may_be_in_transit(5) && gone.may_be_in_transit(9));
        assert!(!gone.may_be_in_transit(7));
    }
}
