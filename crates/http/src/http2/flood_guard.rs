//! Limits on unproductive work caused by a peer. Each limit is a token bucket: costly frames take tokens, and useful
//! work and time return them. Correct clients never reach a limit; others get GOAWAY with ENHANCE_YOUR_CALM and the
//! name of the limit.

use std::time::Duration;

use super::limits::{
    CHATTER_PER_DATA, CHATTER_PER_SECOND, CHATTER_PER_STREAM, CONTROL_UNSENT_BYTES_MAX,
    DATA_BYTES_PER_CHATTER, DATA_GOOD_BYTES, GUARD_TICK, RESETS_AHEAD_MAX, STREAM_ERRORS_AHEAD_MAX,
    STREAM_ERRORS_PER_SECOND, UNPRODUCTIVE_FRAMES_BURST_MAX, WINDOW_GOOD_BYTES,
};

/// Limit that a peer exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flood {
    /// Streams that the peer opened and reset (CVE-2023-44487), or that were refused because too many were open.
    RapidReset,
    /// Streams that we reset because of its errors (CVE-2025-8671).
    StreamErrors,
    /// A field block that is endless or in too many pieces (CVE-2024-27316).
    Continuation,
    /// Replies to its frames that it does not read (CVE-2019-9512, 9515).
    Unread,
    /// Too many settings in one frame, or too many SETTINGS frames (CVE-2019-9515).
    Settings,
    /// PING (CVE-2019-9512).
    Ping,
    /// Priority frames (CVE-2019-9513).
    Priority,
    /// Small window updates (CVE-2019-9511).
    WindowUpdate,
    /// Empty DATA (CVE-2019-9518).
    EmptyData,
    /// Ignored frames: of an unknown type, or for closed streams beyond the bytes that may arrive late.
    Ignored,
    /// Fields beyond the limit of a head, and work to decode them (CVE-2016-6581).
    Fields,
}

impl Flood {
    /// All variants in numeric order.
    pub const ALL: [Flood; 11] = [
        Flood::RapidReset,
        Flood::StreamErrors,
        Flood::Continuation,
        Flood::Unread,
        Flood::Settings,
        Flood::Ping,
        Flood::Priority,
        Flood::WindowUpdate,
        Flood::EmptyData,
        Flood::Ignored,
        Flood::Fields,
    ];

    /// Name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Flood::RapidReset => "rapid_reset",
            Flood::StreamErrors => "stream_errors",
            Flood::Continuation => "continuation",
            Flood::Unread => "unread",
            Flood::Settings => "settings",
            Flood::Ping => "ping",
            Flood::Priority => "priority",
            Flood::WindowUpdate => "window_update",
            Flood::EmptyData => "empty_data",
            Flood::Ignored => "ignored",
            Flood::Fields => "fields",
        }
    }

    /// Description for logs and GOAWAY.
    pub const fn reason(self) -> &'static str {
        match self {
            Flood::RapidReset => "too many streams reset or refused",
            Flood::StreamErrors => "too many stream errors",
            Flood::Continuation => "a field block with too many CONTINUATION frames",
            Flood::Unread => "too many unread responses to pings and settings",
            Flood::Settings => "too many SETTINGS frames, or settings in one frame",
            Flood::Ping => "too many PING frames",
            Flood::Priority => "too many PRIORITY frames",
            Flood::WindowUpdate => "too many small WINDOW_UPDATE frames",
            Flood::EmptyData => "too many empty DATA frames",
            Flood::Ignored => "too many frames without effect",
            Flood::Fields => "far too many fields",
        }
    }
}

/// Token buckets of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FloodGuard {
    /// <= `resets_max`.
    resets: u32,
    /// Tokens returned to `resets` per second.
    resets_per_second: u32,
    /// Time for which no tokens have been returned yet; < `GUARD_TICK`.
    rest: Duration,
    /// <= `STREAM_ERRORS_AHEAD_MAX`.
    stream_errors: u32,
    /// <= `UNPRODUCTIVE_FRAMES_BURST_MAX`.
    unproductive: u32,
    /// Bytes by which the peer may still open windows: twice the data sent to it, for the windows of stream and
    /// connection.
    windows: u64,
    /// Bytes of replies that the user has not reported as sent.
    unsent: u32,
    /// Bytes that the peer may have sent on streams before it received our RST_STREAM. Each stream that we reset adds
    /// the largest number of bytes that can be in transit on it.
    late: u64,
}

impl FloodGuard {
    pub(crate) fn new(resets_per_second: u32) -> Self {
        FloodGuard {
            resets: resets_max(resets_per_second),
            resets_per_second,
            rest: Duration::ZERO,
            stream_errors: STREAM_ERRORS_AHEAD_MAX,
            unproductive: UNPRODUCTIVE_FRAMES_BURST_MAX,
            windows: 0,
            unsent: 0,
            late: 0,
        }
    }

    /// Records that we reset a stream on which up to `bytes` bytes of the peer are in transit.
    #[inline]
    pub(crate) fn expect_late(&mut self, bytes: u32) {
        self.late = self.late.saturating_add(bytes.into());
    }

    /// Records a frame ignored because its stream is closed. Within the bytes of [`FloodGuard::expect_late`] it costs no
    /// token: a server may respond to a request before it receives our reset.
    #[inline]
    pub(crate) fn late(&mut self, bytes: u64) -> Result<(), Flood> {
        match self.late.checked_sub(bytes) {
            Some(left) => {
                self.late = left;
                Ok(())
            }
            None => self.chatter(Flood::Ignored),
        }
    }

    /// Records that the peer has reset an unserved stream, or has opened one stream too many. The token also pays for
    /// frames that accompany the reset: Go's client sends a PING with it.
    pub(crate) fn reset(&mut self) -> Result<(), Flood> {
        take(&mut self.resets, Flood::RapidReset)?;
        give(
            &mut self.unproductive,
            CHATTER_PER_STREAM,
            UNPRODUCTIVE_FRAMES_BURST_MAX,
        );
        Ok(())
    }

    /// Records that we reset a stream because of an error of the peer.
    pub(crate) fn stream_error(&mut self) -> Result<(), Flood> {
        take(&mut self.stream_errors, Flood::StreamErrors)
    }

    #[inline]
    pub(crate) fn chatter(&mut self, kind: Flood) -> Result<(), Flood> {
        take(&mut self.unproductive, kind)
    }

    /// Records that a window was opened by `increment` bytes. Up to the amount of data sent it is free, however late: a
    /// client may buffer megabytes of many streams and read them after all have ended.
    #[inline]
    pub(crate) fn window(&mut self, increment: u32) -> Result<(), Flood> {
        let left = self.windows.checked_sub(increment.into());
        match left.filter(|_| increment >= WINDOW_GOOD_BYTES) {
            Some(left) => {
                self.windows = left;
                Ok(())
            }
            None => self.chatter(Flood::WindowUpdate),
        }
    }

    /// Records unproductive work of a field block ([`FieldSection::excess`]).
    ///
    /// [`FieldSection::excess`]: super::fields::FieldSection::excess
    #[inline]
    pub(crate) fn excess(&mut self, units: u32) -> Result<(), Flood> {
        take_many(&mut self.unproductive, units, Flood::Fields)
    }

    pub(crate) fn answered(&mut self, bytes: usize) -> Result<(), Flood> {
        self.unsent = self.unsent.saturating_add(bytes as u32);
        match self.unsent <= CONTROL_UNSENT_BYTES_MAX {
            true => Ok(()),
            false => Err(Flood::Unread),
        }
    }

    #[inline]
    pub(crate) fn sent(&mut self) {
        self.unsent = 0;
    }

    /// Records that a stream was served to its end.
    #[inline]
    pub(crate) fn served(&mut self) {
        give(&mut self.resets, 1, resets_max(self.resets_per_second));
        give(&mut self.stream_errors, 1, STREAM_ERRORS_AHEAD_MAX);
        give(
            &mut self.unproductive,
            CHATTER_PER_STREAM,
            UNPRODUCTIVE_FRAMES_BURST_MAX,
        );
    }

    #[inline]
    pub(crate) fn data_received(&mut self, bytes: usize) {
        if bytes >= DATA_GOOD_BYTES {
            give(
                &mut self.unproductive,
                CHATTER_PER_DATA,
                UNPRODUCTIVE_FRAMES_BURST_MAX,
            );
        }
    }

    /// Records sent DATA. The peer determines its size by its windows.
    #[inline]
    pub(crate) fn data_sent(&mut self, bytes: usize) {
        let earned = (bytes / DATA_BYTES_PER_CHATTER).min(CHATTER_PER_DATA as usize);
        give(
            &mut self.unproductive,
            earned as u32,
            UNPRODUCTIVE_FRAMES_BURST_MAX,
        );
        self.windows = self.windows.saturating_add(2 * bytes as u64);
    }

    pub(crate) fn elapsed(&mut self, time: Duration) {
        const TICKS_PER_SECOND: u64 = (1000 / GUARD_TICK.as_millis()) as u64;
        self.rest += time;
        let ticks = self.rest.as_millis() / GUARD_TICK.as_millis();
        let ticks = u32::try_from(ticks).unwrap_or(u32::MAX);
        self.rest = self.rest.saturating_sub(GUARD_TICK.saturating_mul(ticks));
        let tokens = |per_second: u32| {
            let tokens = u64::from(ticks) * u64::from(per_second) / TICKS_PER_SECOND;
            u32::try_from(tokens).unwrap_or(u32::MAX)
        };
        let resets_max = resets_max(self.resets_per_second);
        give(&mut self.resets, tokens(self.resets_per_second), resets_max);
        let errors = tokens(STREAM_ERRORS_PER_SECOND);
        give(&mut self.stream_errors, errors, STREAM_ERRORS_AHEAD_MAX);
        give(
            &mut self.unproductive,
            tokens(CHATTER_PER_SECOND),
            UNPRODUCTIVE_FRAMES_BURST_MAX,
        );
    }
}

/// Capacity of the reset bucket: a burst, and the resets between two ticks.
fn resets_max(per_second: u32) -> u32 {
    RESETS_AHEAD_MAX.saturating_add(per_second / 10)
}

#[inline]
fn take(tokens: &mut u32, flood: Flood) -> Result<(), Flood> {
    take_many(tokens, 1, flood)
}

#[inline]
fn take_many(tokens: &mut u32, count: u32, flood: Flood) -> Result<(), Flood> {
    *tokens = tokens.checked_sub(count).ok_or(flood)?;
    Ok(())
}

#[inline]
fn give(tokens: &mut u32, count: u32, max: u32) {
    *tokens = tokens.saturating_add(count).min(max);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::limits::RESETS_PER_SECOND;

    #[test]
    fn served_streams_and_time_restore_tokens() {
        let mut guard = FloodGuard::new(500);
        let ahead = RESETS_AHEAD_MAX + 50;
        assert!((0..ahead).all(|_| guard.reset().is_ok()));
        assert_eq!(guard.reset(), Err(Flood::RapidReset));
        guard.served();
        assert_eq!(guard.reset(), Ok(()));
        assert_eq!(guard.reset(), Err(Flood::RapidReset));
        // In steps of two and a half ticks.
        for _ in 0..8 {
            guard.elapsed(Duration::from_millis(250));
        }
        assert!((0..1000).all(|_| guard.reset().is_ok()));
        assert_eq!(guard.reset(), Err(Flood::RapidReset));
        guard.elapsed(Duration::MAX / 2);
        assert!((0..ahead).all(|_| guard.reset().is_ok()));
        assert_eq!(guard.reset(), Err(Flood::RapidReset));
    }

    #[test]
    fn small_data_restores_no_tokens() {
        let mut guard = FloodGuard::new(RESETS_PER_SECOND);
        while guard.chatter(Flood::WindowUpdate).is_ok() {}
        guard.data_received(DATA_GOOD_BYTES - 1);
        guard.data_sent(DATA_BYTES_PER_CHATTER - 1);
        assert_eq!(guard.chatter(Flood::WindowUpdate), Err(Flood::WindowUpdate));
        guard.data_received(DATA_GOOD_BYTES);
        assert_eq!(guard.chatter(Flood::WindowUpdate), Ok(()));
    }

    #[test]
    fn sent_data_offsets_window_updates() {
        for (bytes, is_flood) in [(1, true), (7, false), (1000, false)] {
            let mut guard = FloodGuard::new(RESETS_PER_SECOND);
            let mut outcome = Ok(());
            for _ in 0..10 * UNPRODUCTIVE_FRAMES_BURST_MAX {
                // Updates for the stream and the connection, then the data sent in response.
                outcome = outcome.and(guard.chatter(Flood::WindowUpdate));
                outcome = outcome.and(guard.chatter(Flood::WindowUpdate));
                guard.data_sent(bytes);
            }
            assert_eq!(outcome.is_err(), is_flood, "{bytes}");
        }
    }

    #[test]
    fn late_small_window_updates_are_allowed() {
        let mut guard = FloodGuard::new(RESETS_PER_SECOND);
        let pieces = 100 * UNPRODUCTIVE_FRAMES_BURST_MAX;
        for _ in 0..pieces {
            guard.data_sent(WINDOW_GOOD_BYTES as usize);
        }
        for _ in 0..pieces {
            assert_eq!(guard.window(WINDOW_GOOD_BYTES), Ok(()));
            assert_eq!(guard.window(WINDOW_GOOD_BYTES), Ok(()));
        }
        // The allowance is used up; the rest counts as chatter.
        let more =
            (0..UNPRODUCTIVE_FRAMES_BURST_MAX).all(|_| guard.window(WINDOW_GOOD_BYTES).is_ok());
        assert!(more);
        assert_eq!(guard.window(WINDOW_GOOD_BYTES), Err(Flood::WindowUpdate));
        guard.data_sent(1_000_000);
        let small = (0..=UNPRODUCTIVE_FRAMES_BURST_MAX).all(|_| guard.window(1).is_ok());
        assert!(
            !small,
            "windows opened by a byte are chatter whatever was sent"
        );
    }

    #[test]
    fn queued_control_replies_are_bounded() {
        let mut guard = FloodGuard::new(RESETS_PER_SECOND);
        assert_eq!(guard.answered(CONTROL_UNSENT_BYTES_MAX as usize), Ok(()));
        assert_eq!(guard.answered(1), Err(Flood::Unread));
        guard.sent();
        assert_eq!(guard.answered(1), Ok(()));
    }

    #[test]
    fn flood_names_are_unique() {
        let names: std::collections::BTreeSet<_> = Flood::ALL.iter().map(|it| it.name()).collect();
        assert_eq!(names.len(), Flood::ALL.len());
    }
}
