//! One connection's part of a run over HTTP/2. An HTTP/1.1 connection waits for responses in the order of its requests;
//! here several independent requests are outstanding. Each has a lane: a task that waits for a request's due time,
//! opens a stream, waits for the response and records it. One more task connects, sends and receives for all lanes.
//!
//! ```text
//!   lane ── stream, request ──> Link ──> Session ── frames of all lanes ──> connection
//!   lane <── response ───────── Link <── Session <──────────────────────────── bytes
//! ```
//!
//! For the pace, a lane corresponds to a connection of HTTP/1.1: a closed loop has as many outstanding requests as
//! there are lanes on all connections.

mod lane;
mod link;
mod session;

use std::rc::Rc;

use crate::connection::core_run::CoreRun;
use crate::connection::work::Work;
use crate::limits::{BACK_OFF_MAX, BACK_OFF_MIN};
use lane::End;
pub(crate) use lane::Untouched;
use link::ConnectionSlot;

/// Establishes connection `index` of the core, number `number` of the run, and replaces it whenever it ends and a lane
/// has a request.
pub(crate) async fn run(core_run: Rc<CoreRun>, index: u32, number: u64) {
    let lanes = core_run.lanes_of_connection();
    let link = Rc::new(ConnectionSlot::new(&core_run, index, lanes));
    for place in 0..lanes {
        let (core_run, link) = (Rc::clone(&core_run), Rc::clone(&link));
        let core = core_run.core.clone();
        core.spawn(async move {
            let lane = index * lanes as u32 + place as u32;
            let mut work = core_run.work_of(lane, number).await;
            run_lane(&core_run, &link, place, &mut work).await;
            core_run.finished(&mut work);
        });
    }
    let record = &core_run.recorder.record;
    let mut made = core_run.dialer.connect_before(record).await;
    let mut work = Work::new(index, core_run.core.now_exact());
    let mut back_off = BACK_OFF_MIN;
    loop {
        let stream = match made.take() {
            Some(stream) => Ok(stream),
            None => {
                link.needed().await;
                core_run.dialer.connect(record).await
            }
        };
        let has_responded = match stream {
            Ok(stream) => {
                let has_responded = link.drive(&stream, &mut work).await;
                core_run.link_ended(&stream, &work);
                has_responded
            }
            Err(error) => {
                core_run.connect_failed(&error);
                false
            }
        };
        if has_responded {
            back_off = BACK_OFF_MIN;
        } else {
            // A connection that was accepted and closed counts like a refused one for the pause before the next.
            core_run.core.sleep(back_off).await;
            back_off = (back_off * 2).min(BACK_OFF_MAX);
        }
    }
}

async fn run_lane(core_run: &CoreRun, link: &ConnectionSlot, place: usize, work: &mut Work) {
    let mut now = core_run.core.now_exact();
    while core_run.supply.take(work, &mut now, 0).await {
        let kind = core_run.kind_of(work.number);
        match link.request(place, kind, work).await {
            End::Answered {
                received,
                written,
                at,
            } => {
                core_run.responded(work, received, written, at);
                // The request may have been completed after the response.
                now = at.max(core_run.core.now());
                continue;
            }
            End::Unprocessed(untouched) => core_run.unprocessed(work, untouched),
            End::NoStream => core_run.stream_refused(work),
            End::Lost(failure) => core_run.fail(work, failure),
            End::Cancelled(failure, code) => core_run.cancelled(work, failure, code),
            End::Refused(reason) => core_run.refused(work, reason),
        }
        now = core_run.core.now_exact();
    }
}

#[cfg(test)]
mod tests;
