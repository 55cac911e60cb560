//! A client connection with HTTP/2 (RFC 9113): one task that receives and sends for all streams, and one for each
//! request that must wait.
//!
//! Requests write into the shared `Session` and wake the connection's task, so frames of all streams are sent in one
//! call, in the order of their priorities.

mod ending;
mod parked_requests;
mod request;
mod stalled;
mod step;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use onrush_config::plan::HttpVersions;
use onrush_engine::{Error, Input, Instant, Kind};
use onrush_http::http2::LocalSettings;
use onrush_http::http2::frame::PREFACE;
use onrush_http::http2::limits::GUARD_TICK;
use onrush_http::http2::message::ExtendedConnect;
use onrush_tls::{Info, Transport};

use super::Connection;
use crate::exchange::downstream::http2::session::{Carrier, Session};
use crate::limits::http2::{HTTP2_CONNECTION_WINDOW, HTTP2_FREE_MEMORY_AFTER};
use crate::observe::close_counts::CloseReason;
use crate::observe::work::CLIENT;
use crate::routing::client::Client;
use crate::site::service::Service;
use crate::worker::alarm::Alarm;
use crate::worker::connections::{ConnectionState, note};
use crate::worker::upload_budget::UploadBudget;

impl Carrier for Connection {
    fn transport(&self) -> &Transport {
        &self.side.stream
    }

    fn client(&self) -> &Client {
        &self.client
    }

    fn uploads_held(&self) -> &UploadBudget {
        &self.service.worker.uploads_held
    }
}

impl Connection {
    /// Whether HTTP/2 was negotiated (RFC 9113 3.2), or the listener supports nothing else.
    pub(super) fn speaks_http2(&self) -> bool {
        let agreed = |info: &Info| info.protocol.as_deref() == Some(b"h2");
        self.versions == HttpVersions::Http2 || self.side.stream.with_info(agreed) == Some(true)
    }

    /// Whether the first bytes are the HTTP/2 preface, possibly incomplete (RFC 9113 3.4).
    #[cold]
    pub(super) fn begins_in_http2(&self) -> bool {
        let bytes = self.side.input.bytes();
        let beginning = &PREFACE[..PREFACE.len().min(bytes.len())];
        let mut requests = 0;
        self.side.stream.change_note(|note| {
            requests = note.count;
            note
        });
        self.versions == HttpVersions::Both && requests == 0 && bytes.starts_with(beginning)
    }
}

struct Http2 {
    session: Rc<Session>,
    service: Rc<Service>,
    listener: u16,
    /// No request has been forwarded yet.
    is_first: bool,
    input: Input,
    stage: Stage,
    /// Start of the current wait for the client: for a head, a request or a window.
    since: Instant,
    waits: ClientAction,
    /// Whether memory was freed since the connection became idle.
    rests: IdleMemoryState,
    /// Deadline for the client's next action.
    client_by: Option<Instant>,
    /// Number of stalled streams reported for the client's address.
    stalled: u32,
    /// The earliest of all deadlines.
    deadline: Option<Instant>,
    /// In `GoAwaySent`: when to stop accepting requests, even if the client has not answered.
    leave_at: Option<Instant>,
    alarm: Alarm,
    /// Time up to which the protocol has been told of elapsed time.
    elapsed: Instant,
}

/// Life cycle of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The connection accepts requests.
    Open,
    /// The connection still accepts requests, because the client may not have received the first GOAWAY.
    GoAwaySent,
    /// The connection accepts no more requests; those in flight are finished.
    Leaving,
    /// Nothing is received any more; the connection is closed after sending what is written.
    Failed,
}

/// The client's next action, which has a timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ClientAction {
    /// Send a request.
    Request,
    /// Send the rest of a frame or of a head.
    Rest,
    /// Open a window.
    Window,
    /// Nothing: the server is busy, or the timeout of a request body applies.
    Nothing,
}

/// Whether an idle connection has freed the memory that it does not need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum IdleMemoryState {
    /// The next request may come at once and would need the memory again.
    NotYet,
    Already,
}

/// Result of processing the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StepResult {
    /// More must be received.
    Nothing,
    /// Output must be sent before more input is processed.
    Input,
}

impl Connection {
    /// Continues in a new task, so that an idle connection frees the memory of HTTP/1. `counted` is dropped at the end.
    pub(super) fn switch_to_http2(self, counted: impl Sized + 'static) {
        let core = self.service.worker.core.clone();
        core.spawn_as(CLIENT, serve(self, counted));
    }
}

/// Serves a client with HTTP/2; the received bytes are in the connection's input. Not an `async fn`, which would also
/// store its arguments.
fn serve(mut connection: Connection, counted: impl Sized + 'static) -> impl Future<Output = ()> {
    let service = Rc::clone(&connection.service);
    let settings = LocalSettings {
        resets_per_second: service.site().settings.resets_per_second,
        connection_window: HTTP2_CONNECTION_WINDOW,
        // Always, because a later configuration may forward, and the setting cannot be revoked (RFC 8441 3).
        extended_connect: ExtendedConnect::Allowed,
        ..LocalSettings::DEFAULT
    };
    let now = service.worker.core.now();
    connection.side.stream.change_note(note::in_http2);
    let mut client = Http2 {
        listener: connection.exchange.listener(),
        input: std::mem::take(&mut connection.side.input),
        session: Session::new(Box::new(connection), settings),
        service,
        is_first: true,
        stage: Stage::Open,
        since: now,
        elapsed: now,
        client_by: None,
        stalled: 0,
        deadline: None,
        leave_at: None,
        alarm: Alarm::default(),
        waits: ClientAction::Rest,
        rests: IdleMemoryState::NotYet,
    };
    async move {
        // After an error, an orderly close is not possible.
        if client.run().await.is_ok() {
            client.session.end_all();
            let _ = client.close_gracefully().await;
        }
        client.session.end_all();
        drop(counted);
    }
}

impl Drop for Http2 {
    /// Parked requests refer to the session, so drop them here.
    fn drop(&mut self) {
        self.count_stalled(0);
        self.session.abandon();
        self.service.worker.dropped(self.session.take_dropped());
    }
}

impl Http2 {
    async fn run(&mut self) -> Result<(), Error> {
        let core = self.service.worker.core.clone();
        let mut stopped = core.stopped();
        poll_fn(|context| {
            if self.stage == Stage::Open
                && self.session.has_streams()
                && Pin::new(&mut stopped).poll(context).is_ready()
            {
                self.announce_close();
            }
            self.poll(context)
        })
        .await
    }

    /// Receives, responds and sends as far as possible.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.session.mark_running(context);
        let polled = self.poll_awake(context);
        self.service.worker.dropped(self.session.take_dropped());
        self.session.mark_waiting();
        polled
    }

    /// Does the work of `poll` while the session is awake: what is written is sent afterwards without waking the task.
    fn poll_awake(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let mut left = self.step();
        loop {
            let is_sent = match self.send() {
                Poll::Ready(Ok(())) => true,
                Poll::Ready(Err(error)) => {
                    if error.kind == Kind::TimedOut {
                        self.record_close(CloseReason::Window);
                    }
                    return Poll::Ready(Err(error));
                }
                Poll::Pending => false,
            };
            let is_over = self.stage == Stage::Failed
                || self.stage == Stage::Leaving && !self.session.has_streams();
            if is_over && is_sent {
                return Poll::Ready(Ok(()));
            }
            if self.session.is_choked() || self.stage == Stage::Failed {
                break;
            }
            if left == StepResult::Input {
                left = self.step();
                continue;
            }
            self.limit_time();
            if self.poll_late(context).is_ready() {
                self.handle_deadline();
                continue;
            }
            if is_sent {
                // Remove the deadline of the send.
                self.session.transport().set_deadline(None);
            }
            match self.poll_receive(context) {
                Poll::Pending => break,
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(_)) => left = self.step(),
                Poll::Ready(Err(error)) => match error.kind {
                    Kind::Stopping => self.announce_close(),
                    _ => return Poll::Ready(Err(error)),
                },
            }
        }
        Poll::Pending
    }

    /// Receives. A connection without requests is closed when the server stops or is out of descriptors.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Result<usize, Error>> {
        let transport = self.session.transport();
        match self.waits == ClientAction::Request && self.stage == Stage::Open {
            true => pin!(transport.recv_unless_stopping(&mut self.input)).poll(context),
            false => transport.poll_recv(&mut self.input),
        }
    }

    /// Sends output until the socket blocks.
    fn send(&mut self) -> Poll<Result<(), Error>> {
        let patience = self.service.site().settings.timeouts.client_send;
        while self.session.pump() {
            let transport = self.session.transport();
            transport.set_send_patience(patience);
            match transport.poll_flush() {
                Poll::Ready(Ok(())) => {
                    self.session.sent();
                    if self.waits == ClientAction::Window {
                        self.since = self.service.worker.core.now();
                    }
                }
                unsent => return unsent,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Sets the deadline for the client's next action.
    fn limit_time(&mut self) {
        let worker = &self.service.worker;
        let now = worker.core.now();
        let elapsed = now.since(self.elapsed);
        if elapsed >= GUARD_TICK {
            self.elapsed = now;
            self.session.elapsed(elapsed);
        }
        let stalled = self.update_stalled(now);
        let is_partial = !self.input.is_empty() || self.session.is_in_field_block();
        let waits = match is_partial {
            true => ClientAction::Rest,
            false if !self.session.has_streams() => ClientAction::Request,
            false if stalled.is_any_waiting => ClientAction::Window,
            false => ClientAction::Nothing,
        };
        if waits != self.waits {
            (self.waits, self.since) = (waits, now);
            let state = match waits {
                ClientAction::Request => ConnectionState::Idle,
                ClientAction::Rest => ConnectionState::Head,
                ClientAction::Window => ConnectionState::Sending,
                ClientAction::Nothing => ConnectionState::Request,
            };
            let transport = self.session.transport();
            transport.change_note(|note| note::with_state(note, state));
            self.rests = IdleMemoryState::NotYet;
        }
        let timeouts = &self.service.site().settings.timeouts;
        let patience = match waits {
            ClientAction::Request if self.rests == IdleMemoryState::NotYet => {
                Some(timeouts.client_idle.min(HTTP2_FREE_MEMORY_AFTER))
            }
            ClientAction::Request => Some(timeouts.client_idle),
            ClientAction::Rest => Some(timeouts.client_head),
            ClientAction::Window => Some(timeouts.client_send),
            ClientAction::Nothing => None,
        };
        self.client_by = patience.map(|patience| self.since + patience);
        let deadlines = [self.client_by, self.leave_at, stalled.late_at];
        self.deadline = deadlines.into_iter().flatten().min();
    }

    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self.deadline {
            Some(deadline) => self
                .alarm
                .poll(deadline, &self.service.worker.core, context),
            None => Poll::Pending,
        }
    }
}
