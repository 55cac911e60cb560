//! Requests reports of a flow from the target, with retries.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use onrush_engine::{Message, SendBatch};
use onrush_packet::report::{Report, report_request};

use super::flow::Flow;
use crate::limits::{REPORT_REQUESTS_MAX, REPORT_SETTLED, REPORT_TIMEOUT};

/// Returns the target's counters of the flow; `None` if it does not report.
pub(super) async fn ask(flow: &Flow) -> Option<Report> {
    for number in 0..REPORT_REQUESTS_MAX {
        let mut batch = SendBatch::default();
        let bytes: Rc<[u8]> = Rc::from(&report_request(flow.id, number)[..]);
        let _ = batch.push(Message::new(bytes));
        flow.report.set(None);
        // A refused request is retried like a lost one.
        let _ = flow.socket.send(&mut batch).await;
        if let Some(report) = report_within(flow, REPORT_TIMEOUT).await {
            return Some(report);
        }
    }
    None
}

/// Requests reports until two agree, which means that no more datagrams are in flight.
pub(super) async fn ask_until_settled(flow: &Flow) -> Option<Report> {
    let mut last = ask(flow).await?;
    for _ in 0..REPORT_REQUESTS_MAX {
        flow.shared.core.sleep(REPORT_SETTLED).await;
        // If the next report is lost, the last one is used.
        let Some(report) = ask(flow).await else {
            return Some(last);
        };
        let is_settled = report.tally.received == last.tally.received;
        last = report;
        if is_settled {
            break;
        }
    }
    Some(last)
}

async fn report_within(flow: &Flow, time: Duration) -> Option<Report> {
    let mut sleep = pin!(flow.shared.core.sleep(time));
    poll_fn(|context| {
        if let Some(report) = flow.report.take() {
            return Poll::Ready(Some(report));
        }
        flow.report_waker.set(Some(context.waker().clone()));
        sleep.as_mut().poll(context).map(|()| None)
    })
    .await
}
