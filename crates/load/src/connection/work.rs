//! What one connection of a run has to do; it outlives the connection that the kernel knows.

use onrush_engine::{Core, Instant};
use onrush_tls::Transport;

/// The requests that one connection was given, and how far they have come.
pub(crate) struct Work {
    /// Its number on the core.
    pub(crate) index: u32,
    /// The second in which its TCP counters were last looked at.
    pub(crate) second: u32,
    /// Requests that are to have their responses before more are sent.
    pub(crate) due: u64,
    /// Requests of the same start that are sent when these have their responses: a connection may carry only so many.
    pub(crate) rest: u64,
    /// The number, in the whole run, of the first of them.
    pub(crate) number: u64,
    /// When they are or were intended to start.
    pub(crate) start: Instant,
    /// From when on only the generator itself has kept them from being written.
    pub(crate) ready: Instant,
    /// For how long, in nanoseconds, it had kept them before that.
    pub(crate) own: u64,
    /// When they were first written; the beginning of the clock before.
    pub(crate) written: Instant,
    /// Bytes that this connection was given before them.
    handed: u64,
    /// Their bytes.
    bytes: u64,
    /// Nothing was taken yet.
    pub(crate) is_first: bool,
    /// What is due has been sent, in vain if it is to be sent again.
    pub(crate) is_sent: bool,
    /// The connection was there before what is due was taken.
    is_kept: bool,
}

impl Work {
    /// That of connection `index` of a core, from `begin` on.
    pub(crate) fn new(index: u32, begin: Instant) -> Work {
        Work {
            index,
            second: 0,
            due: 0,
            rest: 0,
            number: 0,
            start: begin,
            ready: begin,
            own: 0,
            written: Instant::default(),
            handed: 0,
            bytes: 0,
            is_first: true,
            is_sent: false,
            is_kept: false,
        }
    }

    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// A connection begins, or has had a response: `is_kept` where it was there before its next request was taken.
    pub(crate) fn begins(&mut self, is_kept: bool) {
        self.is_kept = is_kept;
    }

    /// A connection was made: nothing was sent over it.
    pub(crate) fn connected(&mut self) {
        (self.handed, self.bytes) = (0, 0);
    }

    /// Whether the peer may have ended the connection without a fault, for nobody had asked it anything.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// What is due was queued, so many bytes.
    pub(crate) fn queued(&mut self, bytes: u64) {
        self.is_sent = true;
        self.handed += self.bytes;
        self.bytes = bytes;
    }

    /// The bytes of what was queued last.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the peer's system had taken nothing of what is due when the connection ended, so that the peer cannot have
    /// read it. Its last segment acknowledges whatever it had taken (RFC 9293 3.10.4: a FIN carries an ACK), and what
    /// reaches a closed socket later is not acknowledged but reset. Not known for Unix sockets, and not for TLS, whose
    /// bytes on the wire are others: it may have read it.
    pub(crate) fn is_unread(&self, stream: &Transport) -> bool {
        // One is for the SYN.
        let of_others = self.handed + 1;
        stream.as_plain().is_some()
            && stream
                .tcp_info()
                .is_some_and(|info| info.bytes_acknowledged <= of_others)
    }

    /// When what is due was first written, and for how long, in nanoseconds, the generator itself has kept it and then its
    /// response, which was received at `now`, from being seen.
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
        let sent_late = self.own + written.nanoseconds_since(self.ready);
        (self.written, sent_late + read_late)
    }
}
