//! What the far end says of a flow: questions, asked again until there is a report.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use onrush_engine::{Message, SendBatch};
use onrush_packet::report::{Report, question};

use super::flow::Flow;
use crate::limits::{QUESTIONS_MAX, REPORT_SETTLED, REPORT_TIMEOUT};

/// What the far end has counted of the flow; `None` where nobody says.
pub(super) async fn ask(flow: &Flow) -> Option<Report> {
    for number in 0..QUESTIONS_MAX {
        let mut batch = SendBatch::default();
        let bytes: Rc<[u8]> = Rc::from(&question(flow.id, number)[..]);
        let _ = batch.push(Message::new(bytes));
        flow.report.set(None);
        // One that is refused is asked again like one that is lost.
        let _ = flow.socket.send(&mut batch).await;
        if let Some(report) = report_within(flow, REPORT_TIMEOUT).await {
            return Some(report);
        }
    }
    None
}

/// Asks until two reports agree: what was on the way has come then.
pub(super) async fn ask_until_settled(flow: &Flow) -> Option<Report> {
    let mut last = ask(flow).await?;
    for _ in 0..QUESTIONS_MAX {
        flow.shared.core.sleep(REPORT_SETTLED).await;
        // A report that was lost takes nothing away from the one before.
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
        flow.asks.set(Some(context.waker().clone()));
        sleep.as_mut().poll(context).map(|()| None)
    })
    .await
}
