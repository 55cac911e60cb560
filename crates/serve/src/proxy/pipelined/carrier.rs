//! The task of a pipelined connection: it sends the requests that were submitted, and gives each client its response.

use std::future::poll_fn;
use std::task::Poll;

use onrush_engine::{BUFFER_BYTES, Error, Input};
use onrush_http::body::BodyReader;
use onrush_http::{Framing, HeaderSlots, Method, Parsed, response};
use onrush_tls::Transport;

use super::{Behind, Pipelined, Response};
use crate::proxy::failure::Failure;
use crate::worker::Worker;

/// Carries requests and responses over `transport` until it is of no more use, and ends those requests that have none.
pub(crate) async fn carry(connection: &Pipelined, transport: Transport, worker: &Worker) {
    let failure = carry_all(connection, transport, worker).await;
    connection.fail(failure.unwrap_or(Failure::Closed));
}

/// Says why the oldest request has no response; `None` when that is not known to be worse than the end of an idle
/// connection.
async fn carry_all(
    connection: &Pipelined,
    transport: Transport,
    worker: &Worker,
) -> Option<Failure> {
    let mut transport = Some(transport);
    // Connecting has a timeout of its own.
    connection.state.borrow_mut().oldest_has_changed(worker);
    let mut input = Input::default();
    loop {
        let open = transport.as_ref()?;
        match turn(connection, open, &mut input).await {
            Ok(Turn::Received) => {}
            Ok(Turn::Done) => return None,
            Ok(Turn::Ended) if input.is_empty() => return None,
            Ok(Turn::Ended) => return Some(Failure::EndedWithin),
            Err(error) => return Some(Failure::NoResponse(error)),
        }
        if let Err(failure) = separate(connection, &mut transport, &mut input, worker) {
            return Some(failure);
        }
    }
}

/// What happened on the connection.
enum Turn {
    Received,
    /// The server has ended its side.
    Ended,
    /// No request is in flight, and none will be.
    Done,
}

/// Sends what has been written and waits for the next bytes.
async fn turn(
    connection: &Pipelined,
    transport: &Transport,
    input: &mut Input,
) -> Result<Turn, Error> {
    poll_fn(|context| {
        {
            let mut state = connection.state.borrow_mut();
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

/// Hands out the responses that have arrived. `transport` is gone afterwards when it was handed out with one.
fn separate(
    connection: &Pipelined,
    transport: &mut Option<Transport>,
    input: &mut Input,
    worker: &Worker,
) -> Result<(), Failure> {
    while !input.is_empty() {
        let Some((number, method)) = oldest(connection) else {
            return Err(Failure::BadResponse(
                "it responds to what was not asked".into(),
            ));
        };
        let response = match extent(input.bytes(), method, worker)? {
            Extent::Unknown => return Ok(()),
            Extent::Partial => {
                let mut state = connection.state.borrow_mut();
                let wait = state.timeouts.upstream_body;
                state.wait_for(wait, worker);
                return Ok(());
            }
            Extent::Whole(bytes) if bytes == input.bytes().len() => {
                Response::Whole(std::mem::take(input))
            }
            Extent::Whole(bytes) => {
                let mut copy = worker.core.buffer().map_err(Failure::Client)?;
                let fits = copy.put(&input.bytes()[..bytes]);
                debug_assert!(fits, "it fitted one buffer before");
                input.consume(bytes);
                Response::Whole(Input::from(copy))
            }
            Extent::Long => match transport.take() {
                Some(transport) => {
                    let mut state = connection.state.borrow_mut();
                    // Its head may be still to come, behind an interim response.
                    state.set_deadline(&transport);
                    let behind = match state.waiting.len() {
                        1 => Behind::Nobody,
                        _ => Behind::Others,
                    };
                    Response::Handed(transport, std::mem::take(input), behind)
                }
                None => return Ok(()),
            },
        };
        let mut state = connection.state.borrow_mut();
        state.waiting.pop_front();
        state.is_used = true;
        state.oldest_has_changed(worker);
        state.closed |= transport.is_none();
        state.finish(number, Ok(response));
    }
    Ok(())
}

fn oldest(connection: &Pipelined) -> Option<(u32, Method)> {
    let state = connection.state.borrow();
    let &number = state.waiting.front()?;
    Some((number, state.requests[number as usize].method))
}

/// How far the response at the start of the input goes.
enum Extent {
    /// That is not known yet: its head is still to come.
    Unknown,
    /// It is short, and more of its body is still to come.
    Partial,
    /// All of it has arrived: so many bytes.
    Whole(usize),
    /// It is too long to be waited for here.
    Long,
}

fn extent(bytes: &[u8], method: Method, worker: &Worker) -> Result<Extent, Failure> {
    let mut slots = HeaderSlots::new();
    let head = match response::parse(bytes, &mut slots, method, &worker.limits) {
        Parsed::Complete(head) => head,
        Parsed::Partial => return Ok(Extent::Unknown),
        Parsed::Refused(refusal) => return Err(Failure::BadResponse(refusal.into())),
    };
    if head.status < 200 || !head.keep_alive {
        return Ok(Extent::Long);
    }
    let mut body = BodyReader::of_response(head.framing);
    let arrived = &bytes[head.bytes..];
    match (body.skip(arrived, &worker.limits), head.framing) {
        (Ok(length), _) if body.is_complete() => Ok(of_whole(head.bytes + length, bytes.len())),
        (Ok(_), Framing::Length(length)) if length <= (BUFFER_BYTES - head.bytes) as u64 => {
            Ok(Extent::Partial)
        }
        // What is wrong with it, if anything is, is found out where it is relayed.
        (Ok(_) | Err(_), _) => Ok(Extent::Long),
    }
}

/// A response of so many bytes, all of which have arrived: with others behind it, it has to fit a buffer of its own. What was
/// received may be longer than that, where it is bulk.
fn of_whole(bytes: usize, received: usize) -> Extent {
    match bytes == received || bytes <= BUFFER_BYTES {
        true => Extent::Whole(bytes),
        false => Extent::Long,
    }
}
