//! Closing of HTTP/2 connections: in two steps when the server stops, at once after a protocol error or a timeout.

use onrush_engine::Error;
use onrush_http::http2::code::{Code, ConnectionError};

use super::{ClientAction, Http2, IdleMemoryState, Stage};
use crate::connection::ending::LastEvent;
use crate::limits::LINGER_BYTES;
use crate::limits::http2::HTTP2_GOAWAY_WAIT;
use crate::observe::close_counts::CloseReason;
use crate::worker::connections::{ConnectionState, note};

impl Http2 {
    /// Announces the close with a first GOAWAY (RFC 9113 6.8). Requests are accepted until the client has received it.
    pub(super) fn announce_close(&mut self) {
        if self.stage == Stage::Open {
            self.stage = Stage::GoAwaySent;
            self.leave_at = Some(self.service.worker.core.now() + HTTP2_GOAWAY_WAIT);
            self.session.announce_shutdown();
        }
    }

    /// Accepts no more requests, and sends the last stream ID to the client.
    pub(super) fn stop_accepting(&mut self) {
        if matches!(self.stage, Stage::Open | Stage::GoAwaySent) {
            self.stage = Stage::Leaving;
            self.leave_at = None;
            self.session.go_away(Code::NO_ERROR);
        }
    }

    /// Handles a deadline: of the client, of the announced close, or of the idle time before memory is freed.
    pub(super) fn handle_deadline(&mut self) {
        // A timer set during a turn may fire before the turn's time reaches its deadline, so read the clock.
        let now = self.service.worker.core.now_exact();
        if self.leave_at.is_some_and(|leave_at| leave_at <= now) {
            return self.stop_accepting();
        }
        let client_idle = self.service.site().settings.timeouts.client_idle;
        if self.waits == ClientAction::Request
            && self.rests == IdleMemoryState::NotYet
            && self.since + client_idle > now
        {
            self.rests = IdleMemoryState::Already;
            return self.session.rest();
        }
        match self.client_by.is_some_and(|by| by <= now) {
            true => self.give_up(),
            false => self.end_stalled(now),
        }
    }

    fn give_up(&mut self) {
        self.session.go_away(Code::NO_ERROR);
        match self.waits {
            ClientAction::Rest => self.cut(CloseReason::Head),
            ClientAction::Window => self.cut(CloseReason::Window),
            ClientAction::Request | ClientAction::Nothing => self.fail(),
        }
    }

    /// Fails the connection because of the client, and counts it.
    pub(super) fn cut(&mut self, cut: CloseReason) {
        self.record_close(cut);
        self.fail();
    }

    /// Counts a close of this kind, and logs a violated limit or rule.
    pub(super) fn record_close(&self, cut: CloseReason) {
        let worker = &self.service.worker;
        worker.registry.cuts.count(cut);
        let CloseReason::Error(ConnectionError { code, reason, .. }) = cut else {
            return;
        };
        let peer = self.session.client().peer(self.session.transport());
        let peer = peer.map_or("a Unix socket".to_owned(), |(address, _)| {
            address.to_string()
        });
        worker.log.failure(
            &worker.core,
            format_args!("the HTTP/2 connection from {peer} was closed: {reason} ({code})"),
        );
    }

    /// Closes the connection after sending what is written.
    fn fail(&mut self) {
        self.session.end_all();
        self.stage = Stage::Failed;
    }

    /// Closes the sending side, and reads until the client closes its side or the time is over: closing with unread
    /// bytes would reset the connection and lose the last bytes sent.
    pub(super) async fn close_gracefully(&mut self) -> Result<(), Error> {
        let transport = self.session.transport();
        transport.change_note(|note| note::with_state(note, ConnectionState::Closing));
        transport.shutdown().await?;
        let until = self.service.worker.linger_until(LastEvent::Response);
        transport.set_deadline(Some(until));
        let mut discarded = 0;
        while discarded < LINGER_BYTES {
            self.input.consume(self.input.bytes().len());
            match transport.recv(&mut self.input).await? {
                0 => return Ok(()),
                bytes => discarded += bytes,
            }
        }
        Ok(())
    }
}
