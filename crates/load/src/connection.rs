//! One connection's part of a run: wait for a request's due time, send it, receive the response, and record the time
//! since the intended start.
//!
//! Identical requests are rendered once and shared by all connections of a core; others are rendered into a buffer of
//! the core when they are sent. A response is parsed in the receive buffer and not stored. A head with the same bytes
//! as the previous one is not parsed again.

pub(crate) mod core_run;
pub(crate) mod duplex;
pub(crate) mod http2;
pub(crate) mod outcome;
pub(crate) mod socket;
pub(crate) mod stream;
pub(crate) mod user;
pub(crate) mod work;

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use onrush_engine::{Input, Instant};
use onrush_tls::Transport;

use crate::connection::core_run::CoreRun;
use crate::connection::core_run::recorder::Received;
use crate::connection::duplex::send_while_receiving;
use crate::connection::work::Work;
use crate::limits::{BACK_OFF_MAX, BACK_OFF_MIN, DISCARD_BYTES_MIN};
use crate::protocol::failure::NoResponse;
use crate::requests::request::LastRequest;
use crate::requests::response::{Stage, Step};

/// Establishes connection `index` of the core, number `number` of the run, and replaces it whenever it ends, until no
/// request is left.
pub(crate) async fn run(core_run: Rc<CoreRun>, index: u32, number: u64) {
    let mut made = core_run
        .dialer
        .connect_before(&core_run.recorder.record)
        .await;
    let mut is_kept = made.is_some();
    let mut work = core_run.work_of(index, number).await;
    let mut back_off = BACK_OFF_MIN;
    let mut now = core_run.core.now_exact();
    while core_run.supply.take(&mut work, &mut now, 0).await {
        let stream = match made.take() {
            Some(stream) => stream,
            None => match core_run.dialer.connect(&core_run.recorder.record).await {
                Ok(stream) => stream,
                Err(error) => {
                    core_run.connect_failed(&error);
                    core_run.core.sleep(back_off).await;
                    back_off = (back_off * 2).min(BACK_OFF_MAX);
                    now = core_run.core.now_exact();
                    continue;
                }
            },
        };
        let mut responses = 0;
        work.set_kept(std::mem::take(&mut is_kept));
        let end = match core_run.is_one_way() {
            false => exchange(&core_run, &stream, &mut work, &mut responses).await,
            // Boxed, since most runs do not need it and each connection would hold room for it.
            true => {
                let sending = stream::exchange(&core_run, &stream, &mut work, &mut responses);
                Box::pin(sending).await
            }
        };
        core_run.closed(&stream, &mut work, end);
        if work.is_kept() {
            back_off = BACK_OFF_MIN;
        } else {
            // A connection that was accepted and closed counts like a refused one for the pause before the next.
            drop(stream);
            core_run.core.sleep(back_off).await;
            back_off = (back_off * 2).min(BACK_OFF_MAX);
        }
        now = core_run.core.now_exact();
    }
    core_run.finished(&mut work);
}

/// Sends and receives on one connection until either side ends it. Requests that are still due were not sent, or have
/// no response.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn would store its arguments twice in every connection"
)]
fn exchange(
    core_run: &CoreRun,
    stream: &Transport,
    work: &mut Work,
    responses: &mut u64,
) -> impl Future<Output = Result<(), NoResponse>> {
    async move {
        let mut input = Input::default();
        let mut now = core_run.core.now_exact();
        core_run.supply.start(work, now);
        core_run.extend_deadline(stream, now);
        loop {
            let before = now;
            if !core_run.supply.take(work, &mut now, *responses).await {
                return Ok(());
            }
            if now != before {
                core_run.extend_deadline(stream, now);
            }
            if work.is_kept() && stream.is_spent() {
                check_idle(stream, &mut input).await?;
            }
            let last = core_run.supply.is_last(*responses + work.due);
            core_run.queue(stream, work, last);
            let mut first = None;
            if core_run.may_exceed_buffers() {
                // Boxed, since most runs do not need it and each connection would hold room for it.
                let receiving = receive(core_run, stream, &mut input, work, &mut now);
                let exchange = send_while_receiving(stream, receiving, |received| {
                    &mut received.response.keep_alive
                });
                first = Some(Box::new(Box::pin(exchange).await?));
            } else {
                stream.flush().await?;
            }
            let mut written = None;
            while work.due > 0 {
                if first.is_none() && input.is_empty() {
                    wait_readable(core_run, stream, &mut input, &mut now).await?;
                }
                let mut received = match first.take() {
                    Some(received) => *received,
                    None => match take(core_run, &mut input, (work, *responses), now) {
                        Some(received) => received,
                        None => receive(core_run, stream, &mut input, work, &mut now).await?,
                    },
                };
                received.is_first = *responses == 0;
                *responses += received.count;
                work.set_kept(true);
                let written = *written.get_or_insert_with(|| {
                    let known = stream.written();
                    known.unwrap_or(work.start())
                });
                core_run.responded(work, received, written, now);
                if !received.response.keep_alive {
                    return Ok(());
                }
            }
            if !input.is_empty() {
                return Err(NoResponse::Unasked);
            }
            core_run.recorder.sample_once(stream, work);
            if last == LastRequest::Yes {
                return Ok(());
            }
        }
    }
}

/// Checks a kept-alive connection before a request is sent: the peer may have closed it, which costs no request, or
/// sent unexpected bytes.
async fn check_idle(stream: &Transport, input: &mut Input) -> Result<(), NoResponse> {
    let found = poll_fn(|_| Poll::Ready(stream.poll_recv(input))).await;
    match found {
        Poll::Pending => Ok(()),
        Poll::Ready(Ok(0) | Err(_)) => Err(NoResponse::Unwritten),
        Poll::Ready(Ok(_)) => Err(NoResponse::Unasked),
    }
}

/// Waits for the first bytes of a response without the larger future that parses it: usually they are the complete
/// response.
fn wait_readable(
    core_run: &CoreRun,
    stream: &Transport,
    input: &mut Input,
    now: &mut Instant,
) -> impl Future<Output = Result<(), NoResponse>> {
    poll_fn(move |_| {
        stream.poll_recv(input).map(|received| {
            let count = received.map_err(NoResponse::Failed)?;
            *now = core_run.received(stream, count);
            match count {
                0 => Err(NoResponse::Ended),
                _ => Ok(()),
            }
        })
    })
}

/// Takes complete, ordinary and identical responses that have already arrived, as most responses to pipelined requests
/// have. They need no future and are counted together. A connection's first response is taken alone.
#[inline]
fn take(
    core_run: &CoreRun,
    input: &mut Input,
    (work, responses): (&Work, u64),
    now: Instant,
) -> Option<Received> {
    let most = match responses {
        0 => 1,
        _ => work.due,
    };
    let alike = core_run
        .codec
        .take_identical(work.index, (work.number, most), input.bytes())?;
    input.consume(alike.bytes);
    Some(Received {
        count: alike.count,
        ..Received::new(alike.response, now)
    })
}

/// Receives one response from `stream`, to the first request of `work`. `now` is the time of the last receive, on entry
/// and on return: a response in `input` was complete at that time.
fn receive(
    core_run: &CoreRun,
    stream: &Transport,
    input: &mut Input,
    work: &Work,
    now: &mut Instant,
) -> impl Future<Output = Result<Received, NoResponse>> {
    // Created outside of the future, which then does not hold `work`.
    let mut incoming = core_run.codec.incoming(work.index, work.number);
    async move {
        let mut has_begun = false;
        let mut first_byte = Instant::default();
        loop {
            has_begun |= !input.is_empty();
            let (bytes, step) = incoming.step(input.bytes());
            input.consume(bytes);
            if first_byte == Instant::default() && step != Step::Partial(Stage::Head) {
                first_byte = *now;
            }
            match step {
                Step::Done(response) => return Ok(Received::new(response, first_byte)),
                Step::Refused(reason) => return Err(NoResponse::Refused(reason)),
                Step::Partial(_) => {}
            }
            let unseen = match incoming.skippable() {
                left @ DISCARD_BYTES_MIN.. => left,
                _ => 0,
            };
            match poll_fn(|_| stream.poll_recv_or_drop(input, unseen)).await {
                Ok(0) => {
                    *now = core_run.received(stream, 0);
                    return match incoming.end() {
                        Some(response) => Ok(Received::new(response, first_byte)),
                        None if has_begun => Err(NoResponse::Cut),
                        None => Err(NoResponse::Ended),
                    };
                }
                Ok(count) => {
                    *now = core_run.received(stream, count);
                    if input.is_empty() {
                        incoming.skip(count as u64);
                    }
                }
                Err(error) if has_begun => return Err(NoResponse::Broken(error)),
                Err(error) => return Err(NoResponse::Failed(error)),
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
