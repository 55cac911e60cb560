//! Streams of server-sent events (HTML, section 9.2).

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use onrush_engine::{Error, Input, Stream};
use serde_json::{Value, json};

use crate::context::Context;
use crate::context::journal::Journal;
use crate::live::{self, Sample};
use crate::response::{Response, send};

pub(crate) const CONTENT_TYPE: &str = "text/event-stream";

/// Comment after the last event when the server stops in good order.
pub(crate) const END_COMMENT: &str = ": end";

/// Interval of keep-alive comments, to detect clients that are gone.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Content of a stream.
pub(crate) enum EventStream {
    /// Journal events after the one with this number.
    Events(u64),
    /// Figures of the server, once per second.
    Live(Option<Sample>),
}

/// Next item of a stream.
enum StreamItem {
    Text(String),
    Nothing,
    /// The client has disconnected, or the server is stopping.
    End,
}

/// Kept events after the one with this number.
pub(crate) fn past_events(journal: &Journal, after: u64) -> Value {
    let events = journal.after(after);
    let events: Vec<Value> = events
        .iter()
        .map(|event| crate::json::event(event))
        .collect();
    json!({ "events": events, "last": journal.last_number() })
}

/// Counts a streaming client while it exists.
struct Follower<'d>(&'d Context);

impl<'d> Follower<'d> {
    fn new(desk: &'d Context) -> Self {
        desk.followers.set(desk.followers.get() + 1);
        Self(desk)
    }
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        self.0.followers.set(self.0.followers.get() - 1);
    }
}

/// Whether another client may stream: half of the connections are for single requests.
pub(crate) fn has_room(desk: &Context) -> bool {
    desk.followers.get() < (desk.connections_max / 2).max(1)
}

impl EventStream {
    /// Sends the stream until the client disconnects or the core stops; fails if the client does not read.
    pub(crate) async fn send(
        mut self,
        stream: &Stream,
        mut input: Input,
        desk: &Context,
    ) -> Result<(), Error> {
        let _follower = Follower::new(desk);
        send(stream, &Response::streaming_head(CONTENT_TYPE)).await?;
        loop {
            match self.next_item(stream, &mut input, desk).await {
                StreamItem::Text(text) => send(stream, text.as_bytes()).await?,
                StreamItem::Nothing => send(stream, b":\n\n").await?,
                StreamItem::End if stream.core().is_stopping() => {
                    return send(stream, format!("{END_COMMENT}\n\n").as_bytes()).await;
                }
                StreamItem::End => return Ok(()),
            }
        }
    }

    async fn next_item(
        &mut self,
        stream: &Stream,
        input: &mut Input,
        desk: &Context,
    ) -> StreamItem {
        stream.set_deadline(None);
        let mut sleep = desk.core.sleep(KEEP_ALIVE_INTERVAL);
        let mut next = pin!(self.next(desk));
        // Discard further bytes of the client; only the end of its stream matters.
        let mut gone = pin!(async {
            while matches!(stream.recv_unless_stopping(input).await, Ok(1..)) {
                input.consume(input.bytes().len());
            }
        });
        poll_fn(|context| {
            if gone.as_mut().poll(context).is_ready() {
                return Poll::Ready(StreamItem::End);
            }
            if let Poll::Ready(text) = next.as_mut().poll(context) {
                return Poll::Ready(StreamItem::Text(text));
            }
            Pin::new(&mut sleep)
                .poll(context)
                .map(|()| StreamItem::Nothing)
        })
        .await
    }

    async fn next(&mut self, desk: &Context) -> String {
        match self {
            EventStream::Events(last) => {
                desk.journal.wait_after(*last).await;
                let mut text = String::new();
                for event in desk.journal.after(*last) {
                    let data = crate::json::event(&event);
                    text += &format!(
                        "id: {}\nevent: {}\ndata: {data}\n\n",
                        event.number, event.kind
                    );
                    *last = event.number;
                }
                text
            }
            EventStream::Live(before) => loop {
                live::wait_until_due(&desk.core, before.as_ref()).await;
                if let Some(value) = live::sample(desk, before).await {
                    return format!("event: live\ndata: {value}\n\n");
                }
            },
        }
    }
}
