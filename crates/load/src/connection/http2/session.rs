//! What is said over one connection of HTTP/2, from its preface to its end: frames of all lanes leave together, and what has
//! come is stepped over at once.

mod receive;
mod send;

use onrush_engine::Instant;
use onrush_http::http2::code::Code;
use onrush_http::http2::message::RepeatedHead;
use onrush_http::http2::{Connection, LocalSettings, Role};

use super::lane::Passed;
use crate::connection::core_run::CoreRun;
use crate::limits::http2::{LIST_BYTES_MAX, WINDOW_BYTES};
use crate::protocol::http2::Codec;

/// What a connection says of itself.
const SETTINGS: LocalSettings = LocalSettings {
    stream_window: WINDOW_BYTES,
    connection_window: WINDOW_BYTES,
    list_bytes_max: LIST_BYTES_MAX,
    ..LocalSettings::CLIENT
};

/// A connection and what is known of it.
pub(super) struct Session {
    connection: Connection,
    /// The last request heads.
    heads: Box<[RepeatedHead]>,
    /// Frames that wait to be sent.
    out: Vec<u8>,
    /// For each slot of a stream, the lane that it is of.
    lane_of_slot: Box<[u32]>,
    /// Lanes whose requests are in `out`, and those whose requests left with the last flush.
    unsent: Vec<u32>,
    sent: Vec<u32>,
    /// When that was begun.
    flushed: Instant,
    /// The kernel has not taken all of it yet.
    is_flushing: bool,
    /// A response is due, and there is a moment by which something has to come.
    is_timed: bool,
    /// Streams opened so far.
    opened: u64,
    has_responded: bool,
    /// More has come than a response that has ended, and it is not counted yet.
    is_exceeded: bool,
    /// No stream is opened any more.
    is_leaving: bool,
    /// Why the server goes away, where it has said so.
    gone: Option<Code>,
    /// When it was last looked for streams on which nothing happens, and told that time passes.
    looked: Instant,
    told: Instant,
}

impl Session {
    /// One that begins at `now`, for so many lanes.
    pub(super) fn new(core_run: &CoreRun, lanes: usize, now: Instant) -> Session {
        let mut out = Vec::new();
        Session {
            connection: Connection::new(Role::Client, SETTINGS, &mut out),
            heads: codec_of(core_run).repeated_heads(),
            out,
            lane_of_slot: vec![0; lanes].into(),
            unsent: Vec::with_capacity(lanes),
            sent: Vec::with_capacity(lanes),
            flushed: now,
            is_flushing: false,
            is_timed: false,
            opened: 0,
            has_responded: false,
            is_exceeded: false,
            is_leaving: false,
            gone: None,
            looked: now,
            told: now,
        }
    }

    pub(super) fn has_responded(&self) -> bool {
        self.has_responded
    }

    /// Why the server has gone away, where something was wrong.
    pub(super) fn gone_for(&self) -> Option<Code> {
        self.gone.filter(|&code| code != Code::NO_ERROR)
    }

    /// Why the server has gone away, in any case, if it has said so.
    pub(super) fn gone(&self) -> Option<Code> {
        self.gone
    }

    /// Whom the server has passed over, if it goes away now.
    pub(super) fn passed(&self) -> Passed {
        match self.has_responded {
            true => Passed::Some,
            false => Passed::Everybody,
        }
    }

    /// How many streams may be opened now.
    pub(super) fn room(&self) -> u32 {
        let open = self.connection.open_streams();
        match self.is_leaving {
            true => 0,
            false => self.connection.streams_max().saturating_sub(open),
        }
    }

    /// Whether there is nothing left to do on the connection.
    pub(super) fn is_over(&self) -> bool {
        self.is_leaving
            && self.connection.open_streams() == 0
            && self.out.is_empty()
            && !self.is_flushing
    }

    /// Whether something waits to be sent that can be.
    pub(super) fn is_unsent(&self) -> bool {
        !self.out.is_empty() && !self.is_flushing
    }
}

fn codec_of(core_run: &CoreRun) -> &Codec {
    let codec = core_run.codec.over_http2();
    codec.expect("there are sessions where HTTP/2 is spoken")
}
