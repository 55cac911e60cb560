//! The UDP socket of one core, and the replies to received datagrams.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onrush_engine::clock::thread_time;
use onrush_engine::{Core, Datagram, DatagramClaim, Error, Kind, ReceiveBatch, Received};
use onrush_packet::header::{self, Header};
use onrush_packet::memcached::FrameError;
use onrush_packet::report::{Report, Role, read_report_request};

use super::flows::Flows;
use super::limits::MESSAGES_PER_CALL;
use super::replies::{Replies, ReplyPath};
use super::traffic::DatagramTraffic;
use crate::memcached::datagrams::DatagramResponse;
use crate::memcached::server::{Server, now};
use crate::target::Target;

/// Socket of one core for the datagrams of a listener.
pub struct UdpSocketServer {
    claim: Arc<DatagramClaim>,
    socket: Datagram,
    core: Core,
    /// From the current configuration, or from the last one with this address.
    target: RefCell<Target>,
    state: RefCell<State>,
}

struct State {
    flows: Flows,
    traffic: Rc<DatagramTraffic>,
    /// Last drop counter of the kernel, modulo 2^32, and the total.
    dropped_reported: u32,
    dropped: u64,
    /// A memcached response that did not fit in the batch of replies.
    answer: Option<(ReplyPath, DatagramResponse)>,
    /// Its next datagram.
    written: Vec<u8>,
}

impl UdpSocketServer {
    /// Opens the core's socket for `claim`. [`UdpSocketServer::run`] receives from it.
    ///
    /// # Errors
    /// If the kernel refuses to register the socket or to report destination addresses.
    pub fn new(
        core: &Core,
        claim: &Arc<DatagramClaim>,
        target: &Target,
        traffic: Rc<DatagramTraffic>,
    ) -> Result<Self, Error> {
        let socket = Datagram::open(core, claim)?;
        // If the kernel refuses, each message is one datagram, and drops are not counted.
        socket.enable_gro();
        socket.enable_drop_count();
        if claim.address().ip().is_unspecified() {
            // A reply must come from the address that the request was sent to.
            socket.enable_control()?;
        }
        Ok(Self {
            claim: Arc::clone(claim),
            socket,
            core: core.clone(),
            target: RefCell::new(target.clone()),
            state: RefCell::new(State {
                flows: Flows::default(),
                traffic,
                dropped_reported: 0,
                dropped: 0,
                answer: None,
                written: Vec::new(),
            }),
        })
    }

    /// Whether this is the socket of `claim`.
    pub fn has_claim(&self, claim: &Arc<DatagramClaim>) -> bool {
        Arc::ptr_eq(&self.claim, claim)
    }

    /// Switches to another configuration. Counters of flows are kept.
    pub fn take_over(&self, target: &Target, traffic: Rc<DatagramTraffic>) {
        self.state.borrow_mut().traffic = traffic;
        self.target.replace(target.clone());
    }

    /// Stops receiving.
    pub fn end(&self) {
        self.socket.stop_receiving();
    }

    /// Receives until the core stops or [`UdpSocketServer::end`] is called.
    pub async fn run(self: Rc<Self>) {
        let mut received = ReceiveBatch::new(MESSAGES_PER_CALL, usize::MAX);
        let mut replies = Replies::default();
        // A continuous sender must not keep a stopping core alive.
        while !self.core.is_stopping() {
            match self.socket.recv_unless_stopping(&mut received).await {
                Ok(_) => {}
                Err(error) if error.kind == Kind::Stopping => return,
                // An error of an earlier datagram, which the kernel reports once.
                Err(_) => self.state.borrow().traffic.failed(1),
            }
            let mut done = 0;
            while let Some(next) = self.take(&received, done, &mut replies) {
                done = next;
                self.send(&mut replies).await;
            }
            received.clear();
        }
    }

    /// Counts received datagrams from index `from` on, and queues replies while there is room. Returns the index to
    /// continue from; `None` if all are done and there is nothing to send.
    fn take(&self, received: &ReceiveBatch, from: usize, replies: &mut Replies) -> Option<usize> {
        let state = &mut *self.state.borrow_mut();
        state.note_dropped(received);
        let now = self.core.now_exact().nanoseconds();
        let mut next = from;
        let mut rest = received.iter().skip(from);
        while !replies.are_full() {
            if self.queue_next_datagram((state, replies)) {
                continue;
            }
            let Some(datagram) = rest.next() else { break };
            next += 1;
            match &*self.target.borrow() {
                Target::Memcached(server) => state.ask(server, &datagram, &self.core),
                Target::Echo => self.take_one(&datagram, (Role::Echo, now), (state, replies)),
                Target::Sink | Target::Responder(_) => {
                    self.take_one(&datagram, (Role::Sink, now), (state, replies));
                }
            }
        }
        let is_over = next == from && replies.batch().is_empty();
        (!is_over).then_some(next)
    }

    /// Queues the next datagram of a memcached response; returns whether there was one.
    fn queue_next_datagram(&self, (state, replies): (&mut State, &mut Replies)) -> bool {
        let Some((way, mut answer)) = state.answer.take() else {
            return false;
        };
        let mut written = std::mem::take(&mut state.written);
        let is_one = answer.write_next(&mut written);
        if is_one {
            self.reply(way, &written, (state, replies));
            state.answer = Some((way, answer));
        }
        state.written = written;
        is_one
    }

    fn take_one(
        &self,
        datagram: &Received<'_>,
        (role, now): (Role, u64),
        (state, replies): (&mut State, &mut Replies),
    ) {
        let bytes = datagram.bytes;
        state.traffic.received(bytes.len());
        let way = ReplyPath {
            to: datagram.from,
            from: datagram.to,
        };
        if let Some((flow, question)) = read_report_request(bytes) {
            let report = Report {
                flow,
                report_request: question,
                tally: state.flows.tally(flow),
                dropped: state.dropped,
                cpu: time_used(&self.core).as_nanos() as u64,
                core: self.core.id() as u16,
                role,
            };
            return self.reply(way, &report.bytes(), (state, replies));
        }
        match Header::read(bytes) {
            Some(header) if header.kind == header::Kind::Data => {
                state.flows.arrive(&header, bytes.len(), now);
            }
            Some(_) | None => state.traffic.foreign(),
        }
        match role {
            Role::Echo => self.reply(way, bytes, (state, replies)),
            Role::Sink => {}
        }
    }

    fn reply(&self, way: ReplyPath, bytes: &[u8], (state, replies): (&State, &mut Replies)) {
        // Prevents an endless loop between two echoes, which one datagram with a forged source would start.
        let is_of_another_echo = way.to.port() == self.claim.address().port();
        if is_of_another_echo || replies.push(way, bytes, &self.core).is_err() {
            state.traffic.failed(1);
        }
    }

    async fn send(&self, replies: &mut Replies) {
        let batch = replies.batch();
        while !batch.is_empty() {
            let sent = self.socket.send(batch).await;
            let state = self.state.borrow();
            match sent {
                Ok(datagrams) => state.traffic.sent(datagrams as u64),
                // The failed message is removed from the batch.
                Err(_) => state.traffic.failed(1),
            }
        }
    }
}

impl State {
    /// Starts the response to a memcached request.
    fn ask(&mut self, server: &Server, datagram: &Received<'_>, core: &Core) {
        self.traffic.received(datagram.bytes.len());
        let way = ReplyPath {
            to: datagram.from,
            from: datagram.to,
        };
        match DatagramResponse::to(datagram.bytes, server, now(core)) {
            Ok(answer) => self.answer = Some((way, answer)),
            Err(FrameError::Truncated | FrameError::Reserved | FrameError::Sequence) => {
                self.traffic.foreign();
            }
        }
    }

    fn note_dropped(&mut self, received: &ReceiveBatch) {
        let Some(said) = received.dropped() else {
            return;
        };
        let more = said.wrapping_sub(self.dropped_reported);
        self.dropped_reported = said;
        self.dropped += u64::from(more);
        self.traffic.dropped(more.into());
    }
}

/// Returns the CPU time that a core has spent on work. With busy polling the thread uses all of its CPU, so the core
/// measures its work itself.
fn time_used(core: &Core) -> Duration {
    if core.busy_polls() {
        core.worked()
    } else {
        thread_time().ran
    }
}
