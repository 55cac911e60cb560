//! Requests of one connection of a run; they outlive the socket.

use onrush_engine::{Core, Instant};
use onrush_tls::Transport;

/// Requests that a connection has taken, and their progress.
pub(crate) struct Work {
    pub(crate) index: u32,
    /// Second in which its TCP counters were last read.
    pub(crate) second: u32,
    /// Requests that must have their responses before more are sent.
    pub(crate) due: u64,
    /// Requests with the same start that are sent after these, because of the limit on requests per connection.
    pub(crate) remaining: u64,
    /// Run-wide number of the first request.
    pub(crate) number: u64,
    pub(crate) start: Instant,
    /// Since when only the generator delays them.
    pub(crate) ready: Instant,
    /// Delay caused by the generator before that, in nanoseconds.
    pub(crate) own_delay: u64,
    /// When they were first written; the default instant before.
    pub(crate) written: Instant,
    /// Bytes sent over this connection before them.
    sent_before: u64,
    bytes: u64,
    /// Whether no request was taken yet.
    pub(crate) is_first: bool,
    /// Whether the due requests were sent; without success if they are to be sent again.
    pub(crate) is_sent: bool,
    /// Whether the connection existed before the due requests were taken.
    is_kept: bool,
}

impl Work {
    pub(crate) fn new(index: u32, begin: Instant) -> Work {
        Work {
            index,
            second: 0,
            due: 0,
            remaining: 0,
            number: 0,
            start: begin,
            ready: begin,
            own_delay: 0,
            written: Instant::default(),
            sent_before: 0,
            bytes: 0,
            is_first: true,
            is_sent: false,
            is_kept: false,
        }
    }

    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// Records a new connection or a response. `is_kept` is whether the connection exists before its next request is
    /// taken.
    pub(crate) fn set_kept(&mut self, is_kept: bool) {
        self.is_kept = is_kept;
    }

    /// Records a new connection, over which nothing was sent.
    pub(crate) fn connected(&mut self) {
        (self.sent_before, self.bytes) = (0, 0);
    }

    /// Whether the peer may have closed the connection without a fault, since no request was outstanding.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Records that the due requests were queued, with their bytes.
    pub(crate) fn queued(&mut self, bytes: u64) {
        self.is_sent = true;
        self.sent_before += self.bytes;
        self.bytes = bytes;
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the peer's kernel had received nothing of the due requests when the connection ended, so that the peer
    /// cannot have read them. The last segment acknowledges everything received (RFC 9293 section 3.10.4: a FIN carries
    /// an ACK), and data for a closed socket is answered with a reset instead. Unknown, and so false, for Unix sockets
    /// and for TLS, where the bytes on the wire differ.
    pub(crate) fn was_not_received(&self, stream: &Transport) -> bool {
        // The SYN counts as one.
        let of_others = self.sent_before + 1;
        stream.as_plain().is_some()
            && stream
                .tcp_info()
                .is_some_and(|info| info.bytes_acknowledged <= of_others)
    }

    /// Returns when the due requests were first written, and the delay caused by the generator, in nanoseconds: before
    /// sending, and before the response received at `now` was noticed.
    pub(crate) fn sent_at(
        &mut self,
        core: &Core,
        written: Instant,
        now: Instant,
    ) -> (Instant, u64) {
        if self.written == Instant::default() {
            self.written = written;
        }
        let late = core.lateness().as_nanos() as u64 + now.nanoseconds_since(core.now());
        let read_late = late.min(now.nanoseconds_since(written));
        let sent_late = self.own_delay + written.nanoseconds_since(self.ready);
        (self.written, sent_late + read_late)
    }
}
