//! How a connection of HTTP/2 ends: in two steps when the server stops, at once when its client has broken a rule or was too slow.

use onrush_engine::Error;
use onrush_http::http2::code::{Code, ConnectionError};

use super::{Http2, Rests, Stage, Waits};
use crate::connection::ending::Behind;
use crate::limits::LINGER_BYTES;
use crate::limits::http2::HTTP2_LEAVING_MAX;
use crate::observe::cuts::Cut;
use crate::worker::connections::{ConnectionState, note};

impl Http2 {
    /// Tells the client that the connection is going to end. Requests that are on their way are taken until it has heard of it
    /// (RFC 9113 6.8).
    pub(super) fn leave_soon(&mut self) {
        if self.stage == Stage::Open {
            self.stage = Stage::LeavingSoon;
            self.leave_at = Some(self.service.worker.core.now() + HTTP2_LEAVING_MAX);
            self.session.go_away_soon();
        }
    }

    /// Takes no more requests: the client is told which is the last.
    pub(super) fn leave(&mut self) {
        if matches!(self.stage, Stage::Open | Stage::LeavingSoon) {
            self.stage = Stage::Leaving;
            self.leave_at = None;
            self.session.go_away(Code::NO_ERROR);
        }
    }

    /// The time is over: for what the client had to do, for its answer, or until an idle connection rests.
    pub(super) fn be_late(&mut self) {
        // A timer that is set during a turn may fire before the time of that turn reaches its deadline.
        let now = self.service.worker.core.now_exact();
        if self.leave_at.is_some_and(|leave_at| leave_at <= now) {
            return self.leave();
        }
        let client_idle = self.service.site().settings.timeouts.client_idle;
        if self.waits == Waits::Request
            && self.rests == Rests::NotYet
            && self.since + client_idle > now
        {
            self.rests = Rests::Already;
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
            Waits::Rest => self.cut(Cut::Head),
            Waits::Window => self.cut(Cut::Window),
            Waits::Request | Waits::Nothing => self.fail(),
        }
    }

    /// The connection ends with what is written, for what the client did.
    pub(super) fn cut(&mut self, cut: Cut) {
        self.account(cut);
        self.fail();
    }

    /// Counts an end of that kind, and says in the log what a bound or a rule was broken by.
    pub(super) fn account(&self, cut: Cut) {
        let worker = &self.service.worker;
        worker.registry.cuts.count(cut);
        let Cut::Error(ConnectionError { code, reason, .. }) = cut else {
            return;
        };
        let peer = self.session.client().peer(self.session.transport());
        let peer = peer.map_or("a Unix socket".to_owned(), |(address, _)| {
            address.to_string()
        });
        worker.log.failure(
            &worker.core,
            format_args!("a connection of HTTP/2 from {peer} was ended: {reason} ({code})"),
        );
    }

    /// The connection ends with what is written.
    fn fail(&mut self) {
        self.session.end_all();
        self.stage = Stage::Failed;
    }

    /// Ends our side, and reads on until the client ends its own, or has had enough time to: closing with bytes unread would
    /// reset the connection, and with it what was sent last.
    pub(super) async fn say_goodbye(&mut self) -> Result<(), Error> {
        let transport = self.session.transport();
        transport.change_note(|note| note::at(note, ConnectionState::Closing));
        transport.shutdown().await?;
        let until = self.service.worker.linger_until(Behind::Response);
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
