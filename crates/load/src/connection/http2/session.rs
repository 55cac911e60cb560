//! One HTTP/2 connection from preface to end: frames of all lanes are sent together, and received frames are processed
//! together.

mod receive;
mod send;

use onrush_engine::Instant;
use onrush_http::http2::code::Code;
use onrush_http::http2::message::HeadCache;
use onrush_http::http2::{Connection, LocalSettings, Role};

use super::lane::GoAwayScope;
use crate::connection::core_run::CoreRun;
use crate::limits::http2::{LIST_BYTES_MAX, WINDOW_BYTES};
use crate::protocol::http2::Codec;

const SETTINGS: LocalSettings = LocalSettings {
    stream_window: WINDOW_BYTES,
    connection_window: WINDOW_BYTES,
    list_bytes_max: LIST_BYTES_MAX,
    ..LocalSettings::CLIENT
};

pub(super) struct Session {
    connection: Connection,
    /// Cache of request heads.
    heads: Box<[HeadCache]>,
    out: Vec<u8>,
    lane_of_slot: Box<[u32]>,
    /// Lanes whose requests are in `out`, and those whose requests were sent by the last flush.
    unsent: Vec<u32>,
    sent: Vec<u32>,
    /// Start of the last flush.
    flushed: Instant,
    /// Whether the kernel has not accepted all of it.
    is_flushing: bool,
    /// Whether a response is pending, so that a deadline is set.
    is_timed: bool,
    opened: u64,
    has_responded: bool,
    /// Whether data after the end of a response was received that is not counted yet.
    is_exceeded: bool,
    /// Whether no more streams are opened.
    is_leaving: bool,
    /// Error code of the server's GOAWAY.
    goaway_code: Option<Code>,
    /// Last check for idle streams, and last report of elapsed time to the connection.
    idle_checked: Instant,
    elapsed_reported: Instant,
}

impl Session {
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
            goaway_code: None,
            idle_checked: now,
            elapsed_reported: now,
        }
    }

    pub(super) fn has_responded(&self) -> bool {
        self.has_responded
    }

    /// Returns the code of the server's GOAWAY, if it is an error.
    pub(super) fn goaway_error(&self) -> Option<Code> {
        self.goaway_code.filter(|&code| code != Code::NO_ERROR)
    }

    pub(super) fn goaway_code(&self) -> Option<Code> {
        self.goaway_code
    }

    /// Returns which requests a GOAWAY received now leaves unprocessed.
    pub(super) fn passed(&self) -> GoAwayScope {
        match self.has_responded {
            true => GoAwayScope::Some,
            false => GoAwayScope::Everybody,
        }
    }

    /// Returns how many streams may be opened now.
    pub(super) fn room(&self) -> u32 {
        let open = self.connection.open_streams();
        match self.is_leaving {
            true => 0,
            false => self.connection.streams_max().saturating_sub(open),
        }
    }

    /// Whether the connection has ended and nothing is left to send.
    pub(super) fn is_over(&self) -> bool {
        self.is_leaving
            && self.connection.open_streams() == 0
            && self.out.is_empty()
            && !self.is_flushing
    }

    /// Whether there is something to send and no flush is pending.
    pub(super) fn is_unsent(&self) -> bool {
        !self.out.is_empty() && !self.is_flushing
    }
}

fn codec_of(core_run: &CoreRun) -> &Codec {
    let codec = core_run.codec.http2();
    codec.expect("HTTP/2 connections have sessions")
}
