//! Body bytes that reach the client with unchanged framing, or without being copied to user space.

use onrush_engine::Stream;
use onrush_http::Framing;
use onrush_tls::Transport;

use super::{BodyPassthrough, Reply, ReplyWriter};
use crate::exchange::output::Output;

impl<'a> Reply<'a> {
    /// How a body with the server's `framing` is passed on.
    pub(crate) fn passage(&self, framing: Framing) -> BodyPassthrough {
        match &self.to {
            ReplyWriter::Http1(to) => to.passage(framing),
            ReplyWriter::Http2(_) => BodyPassthrough::Payload,
        }
    }

    /// The output for bytes that are framed already. Call only if [`Reply::passage`] returns [`Passage::AsFramed`].
    pub(crate) fn as_framed(&mut self) -> (&mut Output, &Transport) {
        match &mut self.to {
            ReplyWriter::Http1(to) => to.parts(),
            ReplyWriter::Http2(_) => unreachable!("it has frames of its own"),
        }
    }

    /// Counts body bytes that were sent to the client without passing through user space.
    pub(crate) fn count_spliced(&mut self, bytes: u64) {
        match &mut self.to {
            ReplyWriter::Http1(to) => to.parts().0.pass(bytes),
            ReplyWriter::Http2(_) => {}
        }
    }

    /// The client's connection, if framed bytes can be sent on it unchanged: HTTP/1 without TLS.
    pub(crate) fn as_plain(&self) -> Option<&'a Stream> {
        match &self.to {
            ReplyWriter::Http1(to) => to.stream().as_plain(),
            ReplyWriter::Http2(_) => None,
        }
    }
}
