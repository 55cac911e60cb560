//! Control frames: SETTINGS, PING, GOAWAY, WINDOW_UPDATE, RST_STREAM and priorities.

use super::event::{Cause, EventKind, Progress};
use super::{Acknowledged, Connection, FRAME_OF_IDLE};
use crate::http2::code::{Code, ConnectionError, StreamError};
use crate::http2::flood_guard::Flood;
use crate::http2::flow::Change;
use crate::http2::frame::{
    self, Flags, HEAD_BYTES, Head, Kind, NUMBER_MAX, read_go_away, read_ping, read_priority,
    read_priority_update, read_reset, read_window_update,
};
use crate::http2::limits::{EARLY_PRIORITIES_MAX, PRIORITY_BYTES_MAX, SETTINGS_PER_FRAME_MAX};
use crate::http2::priority::Priority;
use crate::http2::settings::{Role, WINDOW_DEFAULT};
use crate::http2::stream::Outgoing;

impl Connection {
    /// Handles a control frame. The needed part of its payload must be complete; the rest is skipped.
    pub(super) fn control(
        &mut self,
        head: Head,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, ConnectionError> {
        let needed = self.needed(&head)?;
        let done = HEAD_BYTES + needed as usize;
        let Some(payload) = input.get(HEAD_BYTES..done) else {
            return Ok(Progress::need(done));
        };
        self.skip(head.length - needed);
        let found = match head.kind {
            Kind::Settings if head.flags.has(Flags::ACK) => self.settings_ack()?,
            Kind::Settings => self.settings(payload, out)?,
            Kind::Ping if head.flags.has(Flags::ACK) => self.pong(payload)?,
            Kind::Ping => self.ping_frame(payload, out)?,
            Kind::GoAway => self.going_away(payload)?,
            Kind::WindowUpdate if head.stream == 0 => self.window(payload)?,
            Kind::WindowUpdate => self.window_of_stream(head.stream, payload, out)?,
            Kind::Reset => self.reset_frame(head.stream, payload)?,
            Kind::Priority => self.priority_frame(&head, payload, out)?,
            Kind::PriorityUpdate => self.priority_update(payload)?,
            Kind::Data | Kind::Headers | Kind::PushPromise | Kind::Continuation | Kind::Unknown => {
                EventKind::Nothing
            }
        };
        Ok(Progress::of(done, found))
    }

    /// Number of payload bytes needed to handle the frame.
    fn needed(&self, head: &Head) -> Result<u32, ConnectionError> {
        match head.kind {
            Kind::Settings if head.length > 6 * SETTINGS_PER_FRAME_MAX => {
                Err(Flood::Settings.into())
            }
            Kind::GoAway => Ok(8),
            Kind::Priority if head.length != 5 => Ok(0),
            Kind::PriorityUpdate if head.length > 4 + PRIORITY_BYTES_MAX => Ok(4),
            Kind::Settings
            | Kind::Ping
            | Kind::WindowUpdate
            | Kind::Reset
            | Kind::Priority
            | Kind::PriorityUpdate
            | Kind::Data
            | Kind::Headers
            | Kind::PushPromise
            | Kind::Continuation
            | Kind::Unknown => Ok(head.length),
        }
    }

    fn settings(
        &mut self,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<EventKind, ConnectionError> {
        self.guard.chatter(Flood::Settings)?;
        let window = self.peer.stream_window;
        let encoder = &mut self.encoder;
        let table = |bytes| encoder.set_table_bytes_max(bytes);
        self.peer.take(payload, self.role, table)?;
        let by = i64::from(self.peer.stream_window) - i64::from(window);
        if by != 0 && self.streams.change_windows(by).is_err() {
            return Err(TOO_LARGE_WINDOW);
        }
        self.answer(out, frame::settings_ack)?;
        Ok(EventKind::Settings)
    }

    /// The peer follows our settings from now on (RFC 9113 6.5.3).
    fn settings_ack(&mut self) -> Result<EventKind, ConnectionError> {
        match self.acknowledged {
            Acknowledged::NotYet => {
                self.acknowledged = Acknowledged::Yes;
                if let Some(by) = WINDOW_DEFAULT.checked_sub(self.local.stream_window) {
                    self.streams.shrink_windows(by);
                }
            }
            Acknowledged::Yes => self.guard.chatter(Flood::Settings)?,
        }
        Ok(EventKind::Nothing)
    }

    fn ping_frame(
        &mut self,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<EventKind, ConnectionError> {
        self.guard.chatter(Flood::Ping)?;
        self.answer(out, |out| frame::ping_ack(read_ping(payload), out))?;
        Ok(EventKind::Nothing)
    }

    fn pong(&mut self, payload: &[u8]) -> Result<EventKind, ConnectionError> {
        self.guard.chatter(Flood::Ping)?;
        Ok(EventKind::Pong(read_ping(payload)))
    }

    /// GOAWAY (RFC 9113 6.8). A second one may lower the last stream id, never raise it.
    fn going_away(&mut self, payload: &[u8]) -> Result<EventKind, ConnectionError> {
        self.guard.chatter(Flood::Ignored)?;
        let (last, code) = read_go_away(payload);
        let last = last.min(self.last_opened.unwrap_or(NUMBER_MAX));
        self.last_opened = Some(last);
        let own = self.next % 2;
        while let Some(stream) = self.streams.any(|id| id % 2 == own && id > last) {
            self.streams.remove(stream);
            self.gone.ended(stream.id);
        }
        Ok(EventKind::GoAway { last, code })
    }

    fn window(&mut self, payload: &[u8]) -> Result<EventKind, ConnectionError> {
        let increment = read_window_update(payload);
        self.guard.window(increment)?;
        if increment == 0 {
            return Err(ConnectionError::protocol(
                "WINDOW_UPDATE with an increment of 0",
            ));
        }
        match self.sending.change(increment.into()) {
            Ok(Change::Opened) => Ok(EventKind::Window(None)),
            Ok(Change::Same) => Ok(EventKind::Nothing),
            Err(_) => Err(TOO_LARGE_WINDOW),
        }
    }

    fn window_of_stream(
        &mut self,
        id: u32,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<EventKind, ConnectionError> {
        let increment = read_window_update(payload);
        self.guard.window(increment)?;
        let Some(stream) = self.streams.find(id) else {
            // A client may open the window after the stream has ended (RFC 9113 5.1); the guard above limits that.
            return match self.is_idle(id) {
                true => Err(FRAME_OF_IDLE),
                false => Ok(EventKind::Nothing),
            };
        };
        if increment == 0 {
            let error = StreamError::protocol("WINDOW_UPDATE with an increment of 0");
            return self.fail_stream(stream, error, out);
        }
        let slot = self.streams.get_mut(stream);
        match slot.map(|slot| slot.sending.change(increment.into())) {
            Some(Ok(Change::Opened)) => {
                self.streams.unblock(stream.slot);
                Ok(EventKind::Window(Some(stream)))
            }
            Some(Ok(Change::Same)) | None => Ok(EventKind::Nothing),
            Some(Err(_)) => {
                let error = StreamError::new(TOO_LARGE_WINDOW.code, TOO_LARGE_WINDOW.reason);
                self.fail_stream(stream, error, out)
            }
        }
    }

    /// RST_STREAM. It takes no token if we have already sent the whole response.
    fn reset_frame(&mut self, id: u32, payload: &[u8]) -> Result<EventKind, ConnectionError> {
        let Some(stream) = self.streams.find(id) else {
            return self.ignore_closed(id, (HEAD_BYTES + payload.len()) as u64);
        };
        let slot = self.streams.get(stream);
        let is_served = slot.is_some_and(|slot| slot.outgoing == Outgoing::Nothing);
        if self.role == Role::Server && !is_served {
            self.guard.reset()?;
        }
        self.streams.remove(stream);
        self.gone.ended(id);
        Ok(EventKind::Reset {
            stream,
            cause: Cause::Peer(read_reset(payload)),
        })
    }

    /// PRIORITY has no effect any more, but must still be valid (RFC 9113 6.3).
    fn priority_frame(
        &mut self,
        head: &Head,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<EventKind, ConnectionError> {
        self.guard.chatter(Flood::Priority)?;
        let Err(error) = read_priority(head, payload) else {
            return Ok(EventKind::Nothing);
        };
        if let Some(stream) = self.streams.find(head.stream) {
            return self.fail_stream(stream, error, out);
        }
        if self.is_idle(head.stream) {
            // RST_STREAM is not allowed on an idle stream (RFC 9113 6.4); connection errors may replace stream errors
            // (5.4.1).
            return Err(ConnectionError::new(error.code, error.reason));
        }
        self.fail_id(head.stream, error, out)?;
        Ok(EventKind::Nothing)
    }

    /// PRIORITY_UPDATE (RFC 9218 7.1).
    fn priority_update(&mut self, payload: &[u8]) -> Result<EventKind, ConnectionError> {
        self.guard.chatter(Flood::Priority)?;
        let (id, value) = read_priority_update(payload);
        if self.role == Role::Client || id == 0 || self.is_own(id) {
            return Err(ConnectionError::protocol(
                "PRIORITY_UPDATE for a stream that is not a request",
            ));
        }
        let priority = Priority::parse(value);
        if let Some(stream) = self.streams.find(id) {
            self.streams.prioritize(stream, priority);
        } else if self.is_idle(id) {
            self.store_early_priority(id, priority);
        }
        Ok(EventKind::Nothing)
    }

    /// Stores the priority of a stream that is not open yet, and replaces an earlier one.
    fn store_early_priority(&mut self, id: u32, priority: Priority) {
        if let Some(said) = self
            .early_priorities
            .iter_mut()
            .find(|(ahead, _)| *ahead == id)
        {
            said.1 = priority;
            return;
        }
        self.early_priorities[usize::from(self.ahead_next)] = (id, priority);
        self.ahead_next = (self.ahead_next + 1) % EARLY_PRIORITIES_MAX as u8;
    }
}

const TOO_LARGE_WINDOW: ConnectionError =
    ConnectionError::new(Code::FLOW_CONTROL_ERROR, "window larger than 2^31-1");
