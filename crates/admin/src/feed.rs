//! Streams of server-sent events (HTML, section 9.2).

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use onrush_engine::{Error, Input, Stream};
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::desk::journal::Journal;
use crate::live::{self, Before};
use crate::response::{Response, send};

pub(crate) const CONTENT_TYPE: &str = "text/event-stream";

/// Comment after the last event when the server stops in good order.
pub(crate) const END: &str = ": end";

/// Interval of keep-alive comments, to detect clients that are gone.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Content of a stream.
pub(crate) enum Feed {
    /// Journal events after the one with this number.
    Events(u64),
    /// Figures of the server, once per second.
    Live(Option<Before>),
}

/// Next item of a stream.
enum News {
    Text(String),
    Nothing,
    /// The client has disconnected, or the server is stopping.
    End,
}

/// Kept events after the one with this number.
pub(crate) fn so_far(journal: &Journal, after: u64) -> Value {
    let events = journal.after(after);
    let events: Vec<Value> = events
        .iter()
        .map(|event| crate::json::event(event))
        .collect();
    json!({ "events": events, "last": journal.last() })
}

/// Counts a streaming client while it exists.
struct Follower<'d>(&'d Desk);

impl<'d> Follower<'d> {
    fn new(desk: &'d Desk) -> Self {
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
pub(crate) fn has_room(desk: &Desk) -> bool {
    desk.followers.get() < (desk.connections_max / 2).max(1)
}

impl Feed {
    /// Sends the stream until the client disconnects or the core stops; fails if the client does not read.
    pub(crate) async fn send(
        mut self,
        stream: &Stream,
        mut input: Input,
        desk: &Desk,
    ) -> Result<(), Error> {
        let _follower = Follower::new(desk);
        send(stream, &Response::endless_head(CONTENT_TYPE)).await?;
        loop {
            match self.news(stream, &mut input, desk).await {
                News::Text(text) => send(stream, text.as_bytes()).await?,
                News::Nothing => send(stream, b":\n\n").await?,
                News::End if stream.core().is_stopping() => {
                    return send(stream, format!("{END}\n\n").as_bytes()).await;
                }
                News::End => return Ok(()),
            }
        }
    }

    async fn news(&mut self, stream: &Stream, input: &mut Input, desk: &Desk) -> News {
        stream.set_deadline(None);
        let mut sleep = desk.core.sleep(SIGN_OF_LIFE);
        let mut next = pin!(self.next(desk));
        // Discard further bytes of the client; only the end of its stream matters.
        let mut gone = pin!(async {
            while matches!(stream.recv_unless_stopping(input).await, Ok(1..)) {
                input.consume(input.bytes().len());
            }
        });
        poll_fn(|context| {
            if gone.as_mut().poll(context).is_ready() {
                return Poll::Ready(News::End);
            }
            if let Poll::Ready(text) = next.as_mut().poll(context) {
                return Poll::Ready(News::Text(text));
            }
            Pin::new(&mut sleep).poll(context).map(|()| News::Nothing)
        })
        .await
    }

    async fn next(&mut self, desk: &Desk) -> String {
        match self {
            Feed::Events(last) => {
                desk.journal.beyond(*last).await;
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
            Feed::Live(before) => loop {
                live::due(&desk.core, before.as_ref()).await;
                if let Some(value) = live::sample(desk, before).await {
                    return format!("event: live\ndata: {value}\n\n");
                }
            },
        }
    }
}
