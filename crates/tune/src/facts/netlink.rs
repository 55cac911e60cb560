//! Questions to the kernel by netlink: messages out and in, lists that are told in many of them, attributes within one.
//! What a message means is known where it is asked for.

use std::fmt::Debug;
use std::io;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, NetlinkSerializable, NlasIterator,
};
use netlink_sys::{Socket, SocketAddr};

use crate::limits::{NETLINK_ANSWERS_MAX, NETLINK_BYTES_MAX, NETLINK_TRIES};

/// A socket to the kernel.
pub(super) fn connect(protocol: isize) -> io::Result<Socket> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

/// One question, and everything that is said until the kernel's "done" or "no". A list that changed while it was told is
/// an error of the kind `Interrupted`.
pub(super) fn ask<M>(socket: &Socket, mut question: NetlinkMessage<M>) -> io::Result<Vec<M>>
where
    M: NetlinkSerializable + NetlinkDeserializable + Debug,
{
    question.finalize();
    let mut bytes = vec![0; question.buffer_len()];
    question.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let mut answer = Answer::default();
    while !answer.is_complete {
        let mut buffer = Vec::with_capacity(NETLINK_BYTES_MAX);
        if socket.recv(&mut buffer, 0)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        answer.read(&buffer)?;
    }
    match answer.has_changed {
        true => Err(io::ErrorKind::Interrupted.into()),
        false => Ok(answer.messages),
    }
}

/// The whole of a list. One that changed while it was told is asked for again.
pub(super) fn list<M>(protocol: isize, question: &M) -> io::Result<Vec<M>>
where
    M: NetlinkSerializable + NetlinkDeserializable + Debug + Clone,
{
    let socket = connect(protocol)?;
    let once = || {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let payload = NetlinkPayload::InnerMessage(question.clone());
        ask(&socket, NetlinkMessage::new(header, payload))
    };
    for _ in 1..NETLINK_TRIES {
        match once() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
    once()
}

/// What was said until now.
struct Answer<M> {
    messages: Vec<M>,
    is_complete: bool,
    has_changed: bool,
}

impl<M> Default for Answer<M> {
    fn default() -> Self {
        Answer {
            messages: Vec::new(),
            is_complete: false,
            has_changed: false,
        }
    }
}

impl<M: NetlinkDeserializable + Debug> Answer<M> {
    /// Takes the messages that came together.
    fn read(&mut self, mut rest: &[u8]) -> io::Result<()> {
        while !rest.is_empty() && !self.is_complete {
            let message = NetlinkMessage::<M>::deserialize(rest).map_err(io::Error::other)?;
            // Messages are padded to four bytes; a length of nothing would never end.
            let length = (message.header.length as usize).next_multiple_of(4).max(4);
            rest = rest.get(length..).unwrap_or_default();
            self.has_changed |= message.header.flags & NLM_F_DUMP_INTR != 0;
            match message.payload {
                NetlinkPayload::InnerMessage(_) if self.messages.len() == NETLINK_ANSWERS_MAX => {
                    return Err(io::ErrorKind::OutOfMemory.into());
                }
                NetlinkPayload::InnerMessage(message) => self.messages.push(message),
                NetlinkPayload::Error(error) if error.raw_code() == 0 => self.is_complete = true,
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::Done(done) if done.code < 0 => {
                    return Err(io::Error::from_raw_os_error(-done.code));
                }
                NetlinkPayload::Done(_) => self.is_complete = true,
                _ => {}
            }
        }
        Ok(())
    }
}

/// The value of the first attribute of a kind.
pub(super) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    let mut rest = bytes;
    while let Some(Ok(attribute)) = NlasIterator::new(rest).next() {
        let length = attribute.length() as usize;
        if attribute.kind() == kind {
            return rest.get(4..length);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_core::{DefaultNla, Emitable};

    #[test]
    fn an_attribute_that_is_cut_off_is_not_there() {
        let pair = [
            DefaultNla::new(1, vec![7]),
            DefaultNla::new(2, b"value".to_vec()),
        ];
        let mut whole = vec![0; pair.as_slice().buffer_len()];
        pair.as_slice().emit(&mut whole);
        assert_eq!(attribute(&whole, 2), Some(&b"value"[..]));
        assert_eq!(attribute(&whole, 3), None);
        // The padding behind the last one may be missing.
        for end in 0..8 + 4 + 5 {
            assert_eq!(attribute(&whole[..end], 2), None, "cut at {end}");
        }
    }
}
