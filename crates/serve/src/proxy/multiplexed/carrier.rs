//! The task of a multiplexed connection: it connects, sends what the streams write, and distributes received frames.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use onrush_engine::{Error, Input, Instant};
use onrush_http::http2::code::Code;
use onrush_http::http2::limits::GUARD_TICK;
use onrush_http::proxy_protocol::Origin;
use onrush_tls::Transport;

use super::Multiplexed;
use super::state::{NEVER, Stage};
use crate::proxy::failure::Failure;
use crate::proxy::group::{Group, NO_DEADLINE};
use crate::worker::Worker;
use crate::worker::alarm::Alarm;

/// Connects to a server of `group` and carries requests until the connection is no longer usable.
pub(crate) async fn run(
    connection: Rc<Multiplexed>,
    group: Rc<Group>,
    server: u32,
    worker: Rc<Worker>,
) {
    let server = Rc::clone(&group.servers()[server as usize]);
    let connect = group.connect(&server, &Origin::Local, &worker, NO_DEADLINE);
    let connected = made(&connection, connect, &worker).await;
    let timeouts = group.timeouts;
    // The connection may outlive the configuration of its group as long as it has requests.
    drop(group);
    let failure = match connected {
        Err(error) => Failure::Connect(error),
        Ok(transport) if !has_agreed(&transport) => {
            Failure::BadResponse("it did not select HTTP/2 (ALPN)".into())
        }
        Ok(transport) => {
            connection.state.borrow_mut().make(worker.core.now());
            let mut carrier = Carrier {
                connection: &connection,
                transport,
                worker: &worker,
                input: Input::default(),
                output: Output::Idle,
                idle_max: timeouts.upstream_idle,
                patience: timeouts.upstream_body,
                idle: None,
                alarm: Alarm::default(),
                elapsed: worker.core.now(),
            };
            let carried = poll_fn(|context| carrier.poll(context)).await;
            carried.err().unwrap_or(Failure::Closed)
        }
    };
    connection.fail(failure);
    server.multiplexed.remove(&connection);
}

/// Waits for `connect`; meanwhile, requests that reach their deadline fail.
async fn made(
    connection: &Multiplexed,
    connect: impl Future<Output = Result<Transport, Error>>,
    worker: &Worker,
) -> Result<Transport, Error> {
    let mut connect = pin!(connect);
    let mut alarm = Alarm::default();
    poll_fn(|context| {
        connection.wait(context);
        if let Poll::Ready(connected) = connect.as_mut().poll(context) {
            return Poll::Ready(connected);
        }
        let state = &mut *connection.state.borrow_mut();
        while state.next_deadline != NEVER {
            let due = state.next_deadline;
            if alarm.poll(due, &worker.core, context).is_pending() {
                break;
            }
            state.expire(due);
        }
        Poll::Pending
    })
    .await
}

/// Whether HTTP/2 was negotiated; required with TLS only (RFC 9113 3.2).
fn has_agreed(transport: &Transport) -> bool {
    let agreed = transport.with_info(|info| info.protocol.as_deref() == Some(b"h2"));
    agreed.unwrap_or(true)
}

struct Carrier<'c> {
    connection: &'c Multiplexed,
    transport: Transport,
    worker: &'c Worker,
    input: Input,
    output: Output,
    idle_max: Duration,
    /// Timeout for each send to the server.
    patience: Duration,
    /// Start of the period without requests.
    idle: Option<Instant>,
    alarm: Alarm,
    /// Time up to which the protocol has been told of elapsed time.
    elapsed: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Output {
    Idle,
    Flushing,
}

impl Carrier<'_> {
    /// Sends and receives as much as possible.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.connection.wait(context);
        loop {
            let sent = match self.send() {
                Poll::Ready(Err(error)) => return Poll::Ready(Err(Failure::NoResponse(error))),
                sent => sent.is_ready(),
            };
            if sent && self.connection.state.borrow().is_over() {
                return Poll::Ready(Ok(()));
            }
            if self.poll_late(context).is_ready() {
                continue;
            }
            match self.transport.poll_recv(&mut self.input) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(Failure::Closed)),
                Poll::Ready(Ok(_)) => {
                    if let Err(failure) = self.take() {
                        // The last frame has the error code; the server may be gone, so ignore errors.
                        let _ = self.send();
                        return Poll::Ready(Err(failure));
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(Failure::NoResponse(error))),
            }
        }
    }

    /// Sends frames, and bodies within the windows, until the socket blocks.
    fn send(&mut self) -> Poll<Result<(), Error>> {
        loop {
            if self.output == Output::Idle {
                let state = &mut *self.connection.state.borrow_mut();
                // Clients that left may have freed streams without any received frame.
                state.open_waiting(self.worker.core.now());
                state.pump();
                if state.frames.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                self.transport.queue_bytes(&state.frames);
                state.frames.clear();
                self.output = Output::Flushing;
                self.transport.set_send_patience(self.patience);
            }
            match self.transport.poll_flush() {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) => {}
            }
            self.output = Output::Idle;
            // Remove the deadline of the send.
            self.transport.set_deadline(None);
            self.connection.state.borrow_mut().http.sent();
        }
    }

    fn take(&mut self) -> Result<(), Failure> {
        let taken = {
            let now = self.worker.core.now();
            let state = &mut *self.connection.state.borrow_mut();
            let passed = now.since(self.elapsed);
            if passed >= GUARD_TICK {
                self.elapsed = now;
                state.http.elapsed(passed);
            }
            state.take(self.input.bytes(), &self.worker.limits, now)
        };
        self.tell();
        self.input.consume(taken?);
        Ok(())
    }

    /// Resumes parked requests. They use the connection's state, so it must not be borrowed.
    fn tell(&self) {
        let mut heard = std::mem::take(&mut self.connection.state.borrow_mut().to_resume);
        heard.drain(..).for_each(|parked| parked.resume());
        self.connection.state.borrow_mut().to_resume = heard;
    }

    /// Handles deadlines and the idle timeout. Ready if any has passed and was handled.
    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let core = &self.worker.core;
        let state = &mut *self.connection.state.borrow_mut();
        let is_idle = state.requests() == 0 && state.stage == Stage::Open;
        if !is_idle {
            self.idle = None;
        } else if self.idle.is_none() {
            self.idle = Some(core.now());
        }
        let due = match self.idle {
            Some(since) => since + self.idle_max,
            None => state.next_deadline,
        };
        if due == NEVER {
            return Poll::Pending;
        }
        if self.alarm.poll(due, core, context).is_pending() {
            return Poll::Pending;
        }
        match self.idle {
            Some(_) => {
                state.stop_accepting();
                state.http.go_away(Code::NO_ERROR, &mut state.frames);
            }
            None => state.expire(due),
        }
        Poll::Ready(())
    }
}
