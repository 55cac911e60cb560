//! One UDP socket's part of a run. Several independent requests are outstanding. Each has a lane: a task that waits
//! for a request's due time, sends it, waits for the response or a timeout, and records it. One more task receives for
//! all lanes.
//!
//! ```text
//!   lane ── id, request ──> socket                 flight.rs: ids and the states of their requests
//!   lane <── response, in order ── receive <── datagrams      (assembly.rs orders them)
//! ```
//!
//! A response that does not arrive within the timeout is lost, and delays only its own lane.

mod wait;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use onrush_engine::{
    Buffer, Core, Datagram, Error, Instant, Kind, Message, Part, ReceiveBatch, Received as Arrived,
    SendBatch,
};
use onrush_packet::memcached::{Frame, FrameError};

use crate::connection::core_run::CoreRun;
use crate::connection::core_run::recorder::Received;
use crate::connection::work::Work;
use crate::limits::socket::HELD_BYTES_MAX;
use crate::limits::{BACK_OFF_MAX, BACK_OFF_MIN, DATAGRAM_BYTES_MAX, MESSAGES_PER_CALL};
use crate::protocol::failure::{Failure, NotConnected};
use crate::protocol::flight::{IdState, OutstandingRequests};
use crate::protocol::memcached::Codec;
use crate::protocol::memcached::assembly::Added;
use crate::requests::response::{Stage, Step};
use wait::{ResponseWait, WaitFailure};

/// Buffers shared by the sockets of a core; empty between uses.
pub(crate) struct SharedBuffers {
    arrived: RefCell<ReceiveBatch>,
    leaving: RefCell<SendBatch>,
    /// Rendered request.
    text: RefCell<Vec<u8>>,
    /// Remaining bytes for datagrams that arrive early.
    held: RefCell<usize>,
}

impl SharedBuffers {
    pub(crate) fn new() -> SharedBuffers {
        SharedBuffers {
            arrived: RefCell::new(ReceiveBatch::new(MESSAGES_PER_CALL, DATAGRAM_BYTES_MAX)),
            leaving: RefCell::default(),
            text: RefCell::default(),
            held: RefCell::new(HELD_BYTES_MAX),
        }
    }
}

/// Opens socket `index` of the core, number `number` of the run, and sends requests over it until none is left.
pub(crate) async fn run(core_run: Rc<CoreRun>, room: Rc<SharedBuffers>, index: u32, number: u64) {
    let made = core_run.dialer.open_datagrams(&core_run.recorder.record);
    let lanes = core_run.lanes();
    let socket = match made {
        Ok(datagram) => Some(Rc::new(Socket::new(&core_run, room, datagram, lanes.count))),
        Err(error) => {
            core_run.connect_failed(&error);
            None
        }
    };
    core_run.dialer.ready();
    for place in 0..lanes.count {
        let lane = Lane {
            index: index * lanes.count as u32 + place as u32,
            place,
        };
        let (core_run, socket) = (Rc::clone(&core_run), socket.clone());
        let core = core_run.core.clone();
        core.spawn(async move {
            let mut work = core_run.work_of(lane.index, number).await;
            if let Some(socket) = socket {
                socket.run_lane(lane, &mut work).await;
            }
            core_run.finished(&mut work);
        });
    }
    if let Some(socket) = socket {
        socket.receive().await;
    }
}

/// Number of a lane on the core and on the socket.
#[derive(Clone, Copy, Debug)]
struct Lane {
    index: u32,
    place: usize,
}

struct Socket {
    core_run: Rc<CoreRun>,
    room: Rc<SharedBuffers>,
    datagram: Datagram,
    flight: RefCell<OutstandingRequests>,
    /// Response of each lane's request.
    waits: Box<[RefCell<ResponseWait>]>,
    /// Requests for which the kernel had no room; the receiving task sends them.
    queue: RefCell<VecDeque<Rc<[u8]>>>,
    /// Waker of the receiving task.
    receiver: OnceCell<Waker>,
    has_responded: Cell<bool>,
}

struct Answer {
    received: Received,
    /// When its request was written, and when its last byte arrived.
    written: Instant,
    at: Instant,
    /// Whether more bytes than the response arrived.
    has_more: bool,
}

impl Socket {
    fn new(
        core_run: &Rc<CoreRun>,
        room: Rc<SharedBuffers>,
        datagram: Datagram,
        lanes: usize,
    ) -> Socket {
        let now = core_run.core.now_exact();
        let ids = core_run.lanes().ids;
        Socket {
            core_run: Rc::clone(core_run),
            room,
            datagram,
            flight: RefCell::new(OutstandingRequests::new(
                lanes,
                ids,
                core_run.timeout(),
                now,
            )),
            waits: (0..lanes)
                .map(|_| RefCell::new(ResponseWait::new(now)))
                .collect(),
            queue: RefCell::default(),
            receiver: OnceCell::new(),
            has_responded: Cell::new(false),
        }
    }

    fn core(&self) -> &Core {
        &self.core_run.core
    }

    fn codec(&self) -> &Codec {
        let codec = self.core_run.codec.datagrams();
        codec.expect("datagram protocols have sockets")
    }

    async fn run_lane(&self, lane: Lane, work: &mut Work) {
        let core_run = &self.core_run;
        let mut back_off = BACK_OFF_MIN;
        let mut now = self.core().now_exact();
        while core_run.supply.take(work, &mut now, 0).await {
            match self.request(lane, work).await {
                Ok(mut answer) => {
                    back_off = BACK_OFF_MIN;
                    answer.received.is_first = !self.has_responded.replace(true);
                    now = answer.at;
                    core_run.responded(work, answer.received, answer.written, now);
                    if answer.has_more {
                        core_run.unexpected_bytes();
                    }
                    continue;
                }
                Err(WaitFailure::Lost) => core_run.fail(work, Failure::LostResponse),
                Err(WaitFailure::Refused(reason)) => core_run.refused(work, reason),
                Err(WaitFailure::Unreached) => {
                    // The request was not received, so it is still due; the pause avoids flooding the target.
                    self.core().sleep(back_off).await;
                    back_off = (back_off * 2).min(BACK_OFF_MAX);
                    core_run.supply.start(work, self.core().now_exact());
                }
            }
            now = self.core().now_exact();
        }
    }

    async fn request(&self, lane: Lane, work: &mut Work) -> Result<Answer, WaitFailure> {
        let (codec, number) = (self.codec(), work.number);
        let written = self.core().now_exact();
        let messages = codec.messages_of(number);
        self.waits[lane.place]
            .borrow_mut()
            .begin(messages, &mut self.room.held.borrow_mut());
        let id = self.flight.borrow_mut().begin(lane.place, written);
        work.queued(self.send(lane, number, id));
        let mut incoming = codec.incoming(lane.index, number);
        let mut first_byte = Instant::default();
        let answer = poll_fn(|context| {
            let wait = &mut *self.waits[lane.place].borrow_mut();
            if let Some(end) = wait.end.take() {
                return Poll::Ready(Err(end));
            }
            let (bytes, step) = incoming.step(&wait.input);
            wait.input.drain(..bytes);
            if first_byte == Instant::default() && step != Step::Partial(Stage::Head) {
                first_byte = wait.at;
            }
            match step {
                Step::Done(response) => Poll::Ready(Ok(Answer {
                    received: Received::new(response, first_byte),
                    written,
                    at: wait.at,
                    has_more: !wait.input.is_empty() || wait.assembly.is_within_message(),
                })),
                Step::Refused(reason) => Poll::Ready(Err(WaitFailure::Refused(reason))),
                Step::Partial(_) if wait.assembly.is_whole() => {
                    Poll::Ready(Err(WaitFailure::Refused("a truncated response")))
                }
                Step::Partial(_) => {
                    wait.await_more(context);
                    Poll::Pending
                }
            }
        })
        .await;
        self.flight.borrow_mut().complete(lane.place);
        answer
    }

    /// Sends request `number`; returns its bytes.
    fn send(&self, lane: Lane, number: u64, id: u16) -> u64 {
        let text = &mut *self.room.text.borrow_mut();
        self.codec().write_datagram(lane.index, number, id, text);
        let is_first = self.queue.borrow().is_empty();
        if !is_first || !self.hand_over(part_of(self.core(), text)) {
            self.queue.borrow_mut().push_back(Rc::from(&text[..]));
            if let Some(receiver) = self.receiver.get() {
                receiver.wake_by_ref();
            }
        }
        text.len() as u64
    }

    /// Sends queued requests as far as the kernel has room.
    fn send_queued(&self) {
        loop {
            let first = self.queue.borrow().front().cloned();
            let Some(first) = first else { return };
            if !self.hand_over(first.into()) {
                return;
            }
            self.queue.borrow_mut().pop_front();
        }
    }

    /// Passes a datagram to the kernel. Returns true if it was accepted or refused for good.
    fn hand_over(&self, part: Part) -> bool {
        let leaving = &mut *self.room.leaving.borrow_mut();
        leaving.clear();
        let pushed = leaving.push(Message::new(part));
        debug_assert!(pushed.is_ok(), "the batch is empty");
        match self.datagram.poll_send(leaving) {
            Poll::Ready(Ok(_)) => true,
            Poll::Ready(Err(error)) if matches!(error.kind, Kind::Os(_)) => {
                self.send_failed(error);
                true
            }
            // The deadline is that of responses; the receiving task sets it again.
            Poll::Pending | Poll::Ready(Err(_)) => false,
        }
    }

    async fn receive(&self) {
        loop {
            let due = self.flight.borrow().due();
            self.datagram.set_deadline(Some(due));
            let received = poll_fn(|context| self.poll_receive(context)).await;
            match received {
                Ok(()) => {}
                Err(error) => match error.kind {
                    Kind::TimedOut => {}
                    Kind::Os(_) => self.send_failed(error),
                    _ => return,
                },
            }
            self.expire();
        }
    }

    /// Receives and handles datagrams. They are handled within the poll, so that all sockets of the core can share one
    /// buffer.
    fn poll_receive(&self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.receiver.get_or_init(|| context.waker().clone());
        self.send_queued();
        let arrived = &mut *self.room.arrived.borrow_mut();
        match self.datagram.poll_recv(arrived) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(_)) => {
                let now = self.core().now_exact();
                arrived
                    .iter()
                    .for_each(|datagram| self.take(&datagram, now));
                Poll::Ready(Ok(()))
            }
        }
    }

    fn take(&self, datagram: &Arrived<'_>, now: Instant) {
        self.core_run.received_datagram(datagram.bytes.len());
        let frame = match datagram.is_truncated {
            false => Frame::read(datagram.bytes),
            true => Err(FrameError::Truncated),
        };
        let placed = frame.map(
            |(frame, payload)| match self.flight.borrow().state(frame.id) {
                IdState::Waiting(lane) => Ok(self.place(lane, frame, payload, now)),
                other => Err(other),
            },
        );
        self.codec().count_datagrams(|counts| {
            counts.received += 1;
            match placed {
                Ok(Ok(Added::Next | Added::Held)) => {}
                Ok(Ok(Added::Duplicated) | Err(IdState::Answered)) => counts.duplicated += 1,
                Ok(Ok(Added::NoRoom)) => counts.no_room += 1,
                Ok(Err(IdState::Lost | IdState::LostLongAgo)) => counts.late += 1,
                Ok(Err(IdState::Unused | IdState::Waiting(_))) => counts.foreign += 1,
                Ok(Ok(Added::WrongSequence)) | Err(FrameError::Sequence) => {
                    counts.wrong_sequence += 1;
                }
                Err(FrameError::Truncated) => counts.truncated += 1,
                Err(FrameError::Reserved) => counts.wrong_frame += 1,
            }
        });
    }

    /// Adds a datagram to the response of `lane`.
    fn place(&self, lane: usize, frame: Frame, payload: &[u8], now: Instant) -> Added {
        let wait = &mut *self.waits[lane].borrow_mut();
        let held = &mut *self.room.held.borrow_mut();
        let placed = wait.assembly.add(frame, payload, &mut wait.input, held);
        if placed == Added::Next {
            wait.at = now;
            wait.wake();
        }
        placed
    }

    /// Gives up the requests that have timed out.
    fn expire(&self) {
        let now = self.core().now_exact();
        let flight = &mut *self.flight.borrow_mut();
        flight.expire(now, |lane| {
            self.waits[lane].borrow_mut().end(WaitFailure::Lost)
        });
    }

    /// Handles a datagram that was refused by the kernel or the network. The error does not identify the request, so
    /// all outstanding ones are given up and sent again.
    fn send_failed(&self, error: Error) {
        self.core_run.connect_failed(&NotConnected::Failed(error));
        self.queue.borrow_mut().clear();
        let flight = &mut *self.flight.borrow_mut();
        for (lane, wait) in self.waits.iter().enumerate() {
            if flight.give_up(lane) {
                wait.borrow_mut().end(WaitFailure::Unreached);
            }
        }
    }
}

/// Copies `bytes` into a free buffer of the core, or to the heap if none has room.
fn part_of(core: &Core, bytes: &[u8]) -> Part {
    let buffer = core.buffer_for(bytes.len() as u64).ok();
    let fits = |buffer: &mut Buffer| buffer.put(bytes);
    let filled = buffer.and_then(|mut buffer| fits(&mut buffer).then_some(buffer));
    filled.map_or_else(|| Rc::<[u8]>::from(bytes).into(), Part::from)
}
