//! Bytes of a body that reach the client as they came, or past this program's memory.

use onrush_engine::Stream;
use onrush_http::Framing;
use onrush_tls::Transport;

use super::{Passage, Reply, To};
use crate::exchange::output::Output;

impl<'a> Reply<'a> {
    /// How a body that a server frames like this gets here.
    pub(crate) fn passage(&self, framing: Framing) -> Passage {
        match &self.to {
            To::Http1(to) => to.passage(framing),
            To::Http2(_) => Passage::Payload,
        }
    }

    /// Where bytes are written that are framed already, where [`Reply::passage`] says that they are.
    pub(crate) fn as_framed(&mut self) -> (&mut Output, &Transport) {
        match &mut self.to {
            To::Http1(to) => to.parts(),
            To::Http2(_) => unreachable!("it has frames of its own"),
        }
    }

    /// So many bytes of the body went to the client by another way.
    pub(crate) fn count_unseen(&mut self, bytes: u64) {
        match &mut self.to {
            To::Http1(to) => to.parts().0.pass(bytes),
            To::Http2(_) => {}
        }
    }

    /// The client's connection itself, where bytes that are framed already leave on it as they are.
    pub(crate) fn as_plain(&self) -> Option<&'a Stream> {
        match &self.to {
            To::Http1(to) => to.stream().as_plain(),
            To::Http2(_) => None,
        }
    }
}
