//! TLS state of a connection: a session on top of the stream.

use std::task::{Poll, ready};

use onrush_engine::{Error, Input, Kind, Op, Stream};

use crate::session::Session;

pub(super) struct Tls {
    pub(super) session: Session,
    /// The stream may hold the handshake's tickets, which are sent with the first response or before the first wait.
    pub(super) has_unsent_tickets: bool,
    /// Records are being sent; new ones are encrypted after that.
    pub(super) is_sending: bool,
    /// The connection is to end with a reset, so no alert is sent.
    pub(super) is_resetting: bool,
}

impl Tls {
    pub(super) fn poll_recv(
        &mut self,
        stream: &Stream,
        input: &mut Input,
        receive: impl Fn(&Stream, &mut Input) -> Poll<Result<usize, Error>>,
    ) -> Poll<Result<usize, Error>> {
        loop {
            if self.session.has_used_turn() && !self.charge(stream) {
                return Poll::Pending;
            }
            let count = self.open(stream, input)?;
            if self.session.has_used_turn() && count == 0 {
                continue;
            }
            if count > 0 || self.session.is_ended {
                return Poll::Ready(Ok(count));
            }
            let received = receive(stream, &mut self.session.incoming);
            if received.is_pending() {
                input.park();
                if std::mem::take(&mut self.has_unsent_tickets) {
                    stream.flush_now();
                }
            }
            if ready!(received)? == 0 {
                return Poll::Ready(Err(Error::new(Op::Recv, Kind::Truncated)));
            }
        }
    }

    /// Moves received data to `input`, and replies to other messages.
    pub(super) fn open(&mut self, stream: &Stream, input: &mut Input) -> Result<usize, Error> {
        let opened = self.session.receive(input, stream.core());
        if opened.is_err() {
            self.say_goodbye(stream);
        } else if self.session.owes_reply() {
            self.answer(stream)?;
        }
        opened
    }

    /// Replies to the peer's requests, unless a reply or data is still unsent: a peer that never reads gets one reply.
    pub(super) fn answer(&mut self, stream: &Stream) -> Result<(), Error> {
        if stream.has_unsent() {
            return Ok(());
        }
        let send = &mut |record| stream.queue(record);
        let answered = self.session.reply(stream.core(), send);
        stream.flush_now();
        answered
    }

    /// Charges the task for work that the peer has caused; `false` if other tasks come first.
    pub(super) fn charge(&mut self, stream: &Stream) -> bool {
        let schedules = std::mem::take(&mut self.session.pending_control.schedules);
        stream.charge(schedules.into())
    }

    pub(super) fn poll_flush(&mut self, stream: &Stream) -> Poll<Result<(), Error>> {
        let flushed = self.try_poll_flush(stream);
        if let Poll::Ready(Err(_)) = flushed {
            self.session.clear();
        }
        flushed
    }

    pub(super) fn try_poll_flush(&mut self, stream: &Stream) -> Poll<Result<(), Error>> {
        loop {
            if !self.is_sending {
                self.is_sending = true;
                self.session
                    .seal_some(stream.core(), |record| stream.queue(record))?;
            }
            let sent = stream.poll_flush();
            self.is_sending = sent.is_pending();
            ready!(sent)?;
            if !self.session.is_sealing() {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Ends our side, as far as possible without waiting.
    pub(super) fn say_goodbye(&mut self, stream: &Stream) {
        if let Some(record) = self.session.send_close(stream.core()) {
            stream.queue(record);
            stream.flush_now();
        }
    }

    pub(super) fn is_spent(&mut self, stream: &Stream) -> bool {
        loop {
            let has_data = self.session.has_data();
            if has_data.is_err() {
                self.say_goodbye(stream);
            }
            if has_data != Ok(false) || self.session.is_ended {
                return true;
            }
            if self.session.owes_reply() && self.answer(stream).is_err() {
                return true;
            }
            if !stream.is_spent() {
                return false;
            }
            match stream.recv_now(&mut self.session.incoming) {
                None => return false,
                Some(Ok(1..)) => {}
                Some(Ok(0) | Err(_)) => return true,
            }
        }
    }
}
