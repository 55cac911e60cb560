//! One client of memcached's text protocol.

use std::rc::Rc;

use onrush_engine::{Buffer, Error};
use onrush_tls::Transport;

use super::output::Piece;
use super::server::{Server, now};
use super::session::{Next, Session};
use crate::client::{Client, Received};

/// Serves a client until either side closes. Responses to commands received together are sent in one call.
pub(crate) async fn serve(mut client: impl Client, server: &Server) -> Result<(), Error> {
    let (mut session, mut output) = (Session::default(), Output::default());
    loop {
        let next = answer(&mut client, server, (&mut session, &mut output))?;
        if output.queue(client.stream()) {
            client.limit_send();
            client.stream().flush().await?;
        }
        match next {
            Next::Flush => {}
            Next::Close => return client.end().await,
            Next::Receive => match client.receive().await? {
                Received::Bytes => {}
                Received::End => return Ok(()),
                Received::Nothing => return client.end().await,
            },
        }
    }
}

fn answer(
    client: &mut impl Client,
    server: &Server,
    (session, output): (&mut Session, &mut Output),
) -> Result<Next, Error> {
    let (stream, input) = client.parts();
    let send = |pieces: &mut dyn Iterator<Item = Piece<'_>>| {
        for piece in pieces {
            match piece {
                Piece::Text(text) => output.copy(stream, text)?,
                Piece::Value(value) => output.share(stream, Rc::clone(value)),
            }
        }
        Ok(())
    };
    let (done, next, sent) = server.answer(session, input.bytes(), now(stream.core()), send);
    input.consume(done);
    sent.map(|()| next)
}

/// Responses that are not flushed yet: lines are copied into buffers, values are shared with the store.
#[derive(Default)]
struct Output {
    buffer: Option<Buffer>,
    is_queued: bool,
}

impl Output {
    fn copy(&mut self, stream: &Transport, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            if self.buffer.as_ref().is_none_or(|buffer| buffer.room() == 0) {
                self.queue_buffer(stream);
                self.buffer = Some(stream.core().buffer()?);
            }
            let buffer = self.buffer.as_mut().expect("set above");
            bytes = &bytes[buffer.put_some(bytes)..];
        }
        Ok(())
    }

    fn share(&mut self, stream: &Transport, value: Rc<[u8]>) {
        self.queue_buffer(stream);
        stream.queue(value);
        self.is_queued = true;
    }

    fn queue_buffer(&mut self, stream: &Transport) {
        if let Some(buffer) = self.buffer.take() {
            stream.queue(buffer);
            self.is_queued = true;
        }
    }

    /// Queues everything. Returns whether there is something to flush.
    fn queue(&mut self, stream: &Transport) -> bool {
        self.queue_buffer(stream);
        std::mem::take(&mut self.is_queued)
    }
}
