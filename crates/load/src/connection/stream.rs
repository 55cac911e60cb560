//! One connection's part of a run without responses: wait for a due time, send, and record the send when the kernel has
//! accepted the bytes. If the peer does not read, the kernel accepts no more, and the next bytes wait.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use onrush_engine::Input;
use onrush_tls::Transport;

use crate::connection::core_run::CoreRun;
use crate::connection::core_run::recorder::Received;
use crate::connection::work::Work;
use crate::protocol::echo::DONE;
use crate::protocol::failure::NoResponse;
use crate::requests::request::LastRequest;

/// Sends on one connection until either side ends it; see [`crate::connection::run`].
pub(crate) async fn exchange(
    core_run: &CoreRun,
    stream: &Transport,
    work: &mut Work,
    responses: &mut u64,
) -> Result<(), NoResponse> {
    let mut input = Input::default();
    let mut now = core_run.core.now_exact();
    core_run.supply.start(work, now);
    loop {
        if !core_run.supply.take(work, &mut now, *responses).await {
            return Ok(());
        }
        core_run.extend_deadline(stream, now);
        let last = core_run.supply.is_last(*responses + work.due);
        core_run.queue(stream, work, last);
        send(stream, &mut input).await?;
        now = core_run.core.now_exact();
        core_run.accepted(work);
        let written = stream.written().unwrap_or(now);
        while work.due > 0 {
            let mut received = Received::new(DONE, now);
            received.is_first = *responses == 0;
            *responses += 1;
            work.set_kept(true);
            core_run.responded(work, received, written, now);
        }
        core_run.recorder.sample_once(stream, work);
        if last == LastRequest::Yes {
            return Ok(());
        }
    }
}

/// Sends what is queued. While the kernel accepts no more, checks whether the peer has closed the connection or sent
/// bytes, which a sink does not.
async fn send(stream: &Transport, input: &mut Input) -> Result<(), NoResponse> {
    let mut sending = pin!(stream.flush());
    poll_fn(|context| {
        if let Poll::Ready(sent) = sending.as_mut().poll(context) {
            return Poll::Ready(sent.map_err(NoResponse::from));
        }
        stream.poll_recv(input).map(|come| {
            Err(match come {
                Ok(0) => NoResponse::Ended,
                Ok(_) => NoResponse::Refused(
                    "received bytes from the target, which is therefore not a sink: for an echo leave --one-way out",
                ),
                Err(error) => NoResponse::Failed(error),
            })
        })
    })
    .await
}
