//! Connections to a server that many clients' requests share: pipelining (RFC 9112 9.3.2).
//!
//! ```text
//!  client tasks        trunk's task                         server
//!   submit ─ head ─┐
//!   submit ─ head ─┼─> requests, in one send per turn ────>
//!   submit ─ head ─┘
//!   answer <─┬─ Whole ── answers, cut apart in order <──────
//!            └─ Handed ─ the connection itself
//! ```
//! One send and one receive serve many requests. Only requests that may be repeated travel like this, since all that is
//! under way has to be sent again when the connection ends early. An answer that is not short (or that is interim, or
//! ends with the connection) must not hold up those behind it because its client reads slowly: its client gets the
//! connection, and the requests behind it are sent again elsewhere.
//!
//! Only the oldest request has a deadline. A server answers in order, so that the time before a request is the oldest says
//! nothing about it: the wait for its head is counted from then. All requests of a core may take equally long as a whole,
//! so the oldest is also the first whose time is over. When its deadline passes, it is the one that fails.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use onrush_config::plan::Timeouts;
use onrush_engine::{BUFFER_BYTES, Buffer, Error, Input, Instant};
use onrush_http::body::BodyReader;
use onrush_http::proxy_protocol::Origin;
use onrush_http::request::RequestHead;
use onrush_http::{Framing, HeaderSlots, Method, Parsed, response};
use onrush_tls::Transport;

use super::failure::Failure;
use super::group::{FOREVER, Group, Server};
use super::rewrite;
use super::upgrade;
use crate::asker::Asker;
use crate::worker::Worker;

/// The shared connections of one core to one server.
#[derive(Default)]
pub(crate) struct Trunks {
    all: RefCell<Vec<Rc<Trunk>>>,
    /// Set when nobody is to come any more: from then on each serves those that it has, and ends.
    closed: Cell<bool>,
}

/// One of them.
pub(crate) struct Trunk {
    state: RefCell<State>,
}

struct State {
    timeouts: Timeouts,
    /// Requests that are written and not handed to the transport.
    written: VecDeque<Buffer>,
    /// Those that wait for their answers, the oldest first.
    waiting: VecDeque<u32>,
    requests: Vec<Request>,
    unused: Vec<u32>,
    /// The connection's next deadline, until it is set there. Setting one forgets that the last has passed, so it is set
    /// when it changes and not before.
    deadline: Option<Instant>,
    /// The trunk's own task, while it waits.
    task: Option<Waker>,
    /// No more requests are taken.
    closed: bool,
}

/// One request on a trunk.
struct Request {
    method: Method,
    /// When the whole exchange has to be over.
    until: Instant,
    waiter: Option<Waker>,
    outcome: Outcome,
}

enum Outcome {
    /// Not yet.
    Awaited,
    Here(Result<Answer, Failure>),
    /// Nobody wants to know any more.
    Abandoned,
}

/// What a client gets of a trunk.
pub(crate) enum Answer {
    /// A whole answer and nothing else.
    Whole(Input),
    /// The connection, on which the rest of the answer is still to come, and what has come of it.
    Handed(Transport, Input),
}

/// A request's ticket: its answer comes by it. Dropping it gives the answer up.
pub(crate) struct Ticket {
    trunk: Rc<Trunk>,
    request: u32,
}

/// Whether a request may share a connection: it may be repeated, and is nothing but a head.
pub(crate) fn fits(head: &RequestHead<'_, '_>) -> bool {
    head.method.is_idempotent()
        && head.framing == Framing::None
        && !head.expect_continue
        && !upgrade::is_asked(head)
}

impl Trunks {
    /// Sends a request with others, at most `depth` at a time on one connection. The first with room takes it: a few
    /// that are full batch better than many that are not. The whole exchange has to be over at `until`.
    pub(crate) fn submit(
        &self,
        depth: u32,
        (group, server): (&Rc<Group>, u32),
        head: &RequestHead<'_, '_>,
        asker: Asker<'_>,
        until: Instant,
    ) -> Result<Ticket, Error> {
        let mut all = self.all.borrow_mut();
        let with_room = all.iter().find(|trunk| trunk.has_room(depth));
        let trunk = match with_room {
            Some(trunk) => Rc::clone(trunk),
            None => {
                let trunk = Rc::new(Trunk {
                    state: RefCell::new(State::new(group.timeouts)),
                });
                all.push(Rc::clone(&trunk));
                let worker = asker.worker.myself();
                let carrier = run(Rc::clone(&trunk), Rc::clone(group), server, worker);
                asker.worker.spawn_aside(carrier);
                trunk
            }
        };
        let authority = &group.server(server).authority;
        let request = trunk.write(head, authority, asker, until)?;
        if self.closed.get() {
            trunk.close();
        }
        Ok(Ticket { trunk, request })
    }

    /// Takes no more requests; what is under way comes to its end.
    pub(crate) fn close(&self) {
        self.all.borrow().iter().for_each(|trunk| trunk.close());
    }

    /// The same, and for those to come.
    pub(crate) fn clear(&self) {
        self.closed.set(true);
        self.close();
    }

    fn remove(&self, trunk: &Rc<Trunk>) {
        self.all
            .borrow_mut()
            .retain(|other| !Rc::ptr_eq(other, trunk));
    }
}

impl fmt::Debug for Trunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trunks({})", self.all.borrow().len())
    }
}

impl Ticket {
    /// The answer, or why there is none.
    pub(crate) fn answer(&self) -> impl Future<Output = Result<Answer, Failure>> {
        poll_fn(|context| {
            let mut state = self.trunk.state.borrow_mut();
            let request = &mut state.requests[self.request as usize];
            match std::mem::replace(&mut request.outcome, Outcome::Awaited) {
                Outcome::Here(answer) => Poll::Ready(answer),
                Outcome::Awaited | Outcome::Abandoned => {
                    request.waiter = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.trunk.state.borrow_mut();
        if state.waiting.contains(&self.request) {
            // Its answer will still come, and has to be told from the others.
            state.requests[self.request as usize].outcome = Outcome::Abandoned;
        } else {
            state.unused.push(self.request);
        }
    }
}

impl Trunk {
    fn has_room(&self, depth: u32) -> bool {
        let state = self.state.borrow();
        !state.closed && state.waiting.len() < depth as usize
    }

    fn close(&self) {
        let mut state = self.state.borrow_mut();
        state.closed = true;
        state.wake_task();
    }

    /// Writes a request behind the others.
    fn write(
        &self,
        head: &RequestHead<'_, '_>,
        authority: &str,
        asker: Asker<'_>,
        until: Instant,
    ) -> Result<u32, Error> {
        let mut state = self.state.borrow_mut();
        let last = state.written.back_mut();
        let fits =
            last.is_some_and(|buffer| rewrite::request_if_it_fits(head, authority, asker, buffer));
        if !fits {
            let mut buffer = asker.worker.core.buffer()?;
            rewrite::request(head, authority, asker, &mut buffer);
            state.written.push_back(buffer);
        }
        let request = Request {
            method: head.method,
            until,
            waiter: None,
            outcome: Outcome::Awaited,
        };
        let number = match state.unused.pop() {
            Some(number) => {
                state.requests[number as usize] = request;
                number
            }
            None => {
                state.requests.push(request);
                (state.requests.len() - 1) as u32
            }
        };
        state.waiting.push_back(number);
        if state.waiting.len() == 1 {
            state.oldest_has_changed(asker.worker);
        }
        state.wake_task();
        Ok(number)
    }

    /// Ends all requests: the first by `failure`, those behind it as if the server had closed an idle connection, which
    /// is what it comes to for them.
    fn fail(&self, failure: Failure) {
        let mut state = self.state.borrow_mut();
        state.closed = true;
        state.written.clear();
        let mut failure = Some(failure);
        while let Some(number) = state.waiting.pop_front() {
            let failure = failure.take().unwrap_or(Failure::ClosedUnanswered);
            state.finish(number, Err(failure));
        }
    }
}

impl State {
    fn new(timeouts: Timeouts) -> Self {
        Self {
            timeouts,
            written: VecDeque::new(),
            waiting: VecDeque::new(),
            requests: Vec::new(),
            unused: Vec::new(),
            deadline: None,
            task: None,
            closed: false,
        }
    }

    /// Sets when the head of the oldest request's answer has to be here, counted from now; without requests, when the
    /// connection has been idle for too long.
    fn oldest_has_changed(&mut self, worker: &Worker) {
        let wait = match self.waiting.is_empty() {
            true => self.timeouts.upstream_idle,
            false => self.timeouts.upstream_first_byte,
        };
        self.wait_for(wait, worker);
    }

    /// Sets the deadline to `wait` from now, but not later than the oldest request as a whole has to be over.
    fn wait_for(&mut self, wait: Duration, worker: &Worker) {
        self.deadline = Some((worker.core.now() + wait).min(self.oldest_until()));
    }

    /// Tells the connection, if it does not know yet.
    fn set_deadline(&mut self, transport: &Transport) {
        if let Some(deadline) = self.deadline.take() {
            transport.set_deadline(Some(deadline));
        }
    }

    fn oldest_until(&self) -> Instant {
        let oldest = self.waiting.front();
        oldest.map_or(FOREVER, |&number| self.requests[number as usize].until)
    }

    fn wake_task(&mut self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }

    /// Hands the outcome to whoever waits for it.
    fn finish(&mut self, number: u32, outcome: Result<Answer, Failure>) {
        let request = &mut self.requests[number as usize];
        if matches!(request.outcome, Outcome::Abandoned) {
            self.unused.push(number);
            return;
        }
        request.outcome = Outcome::Here(outcome);
        if let Some(waiter) = request.waiter.take() {
            waiter.wake();
        }
    }
}

/// What a look at the connection came to.
enum Turn {
    Received,
    /// The server has ended its side.
    Ended,
    /// Nothing is under way, and nothing will be.
    Done,
}

/// Runs a trunk to its end.
async fn run(trunk: Rc<Trunk>, group: Rc<Group>, server: u32, worker: Rc<Worker>) {
    let server = Rc::clone(&group.servers()[server as usize]);
    let failure = carry(&trunk, group, &server, &worker).await;
    trunk.fail(failure.unwrap_or(Failure::ClosedUnanswered));
    server.trunks.remove(&trunk);
}

/// Carries requests and answers until the connection is of no more use, and says why the oldest request has none; `None`
/// when that is not known to be worse than the end of an idle connection.
async fn carry(
    trunk: &Trunk,
    group: Rc<Group>,
    server: &Server,
    worker: &Worker,
) -> Option<Failure> {
    let until = trunk.state.borrow().oldest_until();
    let mut transport = match group.connect(server, &Origin::Local, worker, until).await {
        Ok(transport) => Some(transport),
        Err(error) => return Some(Failure::Connect(error)),
    };
    // It may outlive its group's configuration by as long as there are requests.
    drop(group);
    // Connecting has a timeout of its own.
    trunk.state.borrow_mut().oldest_has_changed(worker);
    let mut input = Input::default();
    loop {
        let link = transport.as_ref()?;
        match turn(trunk, link, &mut input).await {
            Ok(Turn::Received) => {}
            Ok(Turn::Done) => return None,
            Ok(Turn::Ended) if input.is_empty() => return None,
            Ok(Turn::Ended) => return Some(Failure::BadAnswer("it ended within its head".into())),
            Err(error) => return Some(Failure::Unanswered(error)),
        }
        if let Err(failure) = cut_apart(trunk, &mut transport, &mut input, worker) {
            return Some(failure);
        }
    }
}

/// Sends what has been written and waits for the next bytes.
async fn turn(trunk: &Trunk, transport: &Transport, input: &mut Input) -> Result<Turn, Error> {
    poll_fn(|context| {
        {
            let mut state = trunk.state.borrow_mut();
            if state.closed && state.waiting.is_empty() {
                return Poll::Ready(Ok(Turn::Done));
            }
            while let Some(buffer) = state.written.pop_front() {
                transport.queue(buffer);
            }
            state.set_deadline(transport);
            state.task = Some(context.waker().clone());
        }
        if let Poll::Ready(Err(error)) = transport.poll_flush() {
            return Poll::Ready(Err(error));
        }
        match transport.poll_recv(input) {
            Poll::Ready(Ok(0)) => Poll::Ready(Ok(Turn::Ended)),
            Poll::Ready(Ok(_)) => Poll::Ready(Ok(Turn::Received)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Hands out the answers that have arrived. `transport` is gone afterwards when it was handed out with one.
fn cut_apart(
    trunk: &Trunk,
    transport: &mut Option<Transport>,
    input: &mut Input,
    worker: &Worker,
) -> Result<(), Failure> {
    while !input.is_empty() {
        let Some((number, method)) = trunk.oldest() else {
            return Err(Failure::BadAnswer("it answers what was not asked".into()));
        };
        let answer = match whole_answer(input.bytes(), method, worker)? {
            Extent::Unknown => return Ok(()),
            Extent::Partial => {
                let mut state = trunk.state.borrow_mut();
                let wait = state.timeouts.upstream_body;
                state.wait_for(wait, worker);
                return Ok(());
            }
            Extent::Whole(bytes) if bytes == input.bytes().len() => {
                Answer::Whole(std::mem::take(input))
            }
            Extent::Whole(bytes) => {
                let mut copy = worker.core.buffer().map_err(Failure::Client)?;
                let fits = copy.put(&input.bytes()[..bytes]);
                debug_assert!(fits, "it fitted one buffer before");
                input.consume(bytes);
                Answer::Whole(Input::from(copy))
            }
            Extent::Long => match transport.take() {
                Some(transport) => {
                    // Its head may be still to come, behind an interim answer.
                    trunk.state.borrow_mut().set_deadline(&transport);
                    Answer::Handed(transport, std::mem::take(input))
                }
                None => return Ok(()),
            },
        };
        let mut state = trunk.state.borrow_mut();
        state.waiting.pop_front();
        state.oldest_has_changed(worker);
        state.closed |= transport.is_none();
        state.finish(number, Ok(answer));
    }
    Ok(())
}

impl Trunk {
    fn oldest(&self) -> Option<(u32, Method)> {
        let state = self.state.borrow();
        let &number = state.waiting.front()?;
        Some((number, state.requests[number as usize].method))
    }
}

/// How far the answer at the start of the input goes.
enum Extent {
    /// That cannot be told yet: its head is still to come.
    Unknown,
    /// It is short, and more of its body is still to come.
    Partial,
    /// It is all there: so many bytes.
    Whole(usize),
    /// Further than one likes to wait for.
    Long,
}

fn whole_answer(bytes: &[u8], method: Method, worker: &Worker) -> Result<Extent, Failure> {
    let mut slots = HeaderSlots::new();
    let head = match response::parse(bytes, &mut slots, method, &worker.limits) {
        Parsed::Complete(head) => head,
        Parsed::Partial => return Ok(Extent::Unknown),
        Parsed::Refused(refusal) => return Err(Failure::BadAnswer(refusal.into())),
    };
    if head.status < 200 || !head.keep_alive {
        return Ok(Extent::Long);
    }
    let mut body = BodyReader::of_response(head.framing);
    let arrived = &bytes[head.bytes..];
    match (body.skip(arrived, &worker.limits), head.framing) {
        (Ok(length), _) if body.is_complete() => Ok(Extent::Whole(head.bytes + length)),
        (Ok(_), Framing::Length(length)) if length <= (BUFFER_BYTES - head.bytes) as u64 => {
            Ok(Extent::Partial)
        }
        // What is wrong with it, if anything is, is found out where it is relayed.
        (Ok(_) | Err(_), _) => Ok(Extent::Long),
    }
}
