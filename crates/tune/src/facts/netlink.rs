//! Netlink: requests, responses in several messages, and attributes. The callers interpret the messages.

use std::convert::Infallible;
use std::fmt::Debug;
use std::io;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, NetlinkSerializable, NlasIterator,
};
use netlink_sys::{Socket, SocketAddr};

use crate::limits::{NETLINK_ANSWERS_MAX, NETLINK_BYTES_MAX, NETLINK_TRIES};

pub(super) fn connect(protocol: isize) -> io::Result<Socket> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

/// Sends a request and collects what `keep` returns for each message until the kernel's "done" or error. Fails with
/// `Interrupted` if the list changed meanwhile.
pub(super) fn ask<M, T>(
    socket: &Socket,
    mut question: NetlinkMessage<M>,
    mut keep: impl FnMut(M) -> Option<T>,
) -> io::Result<Vec<T>>
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
        match socket.recv(&mut buffer, 0) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => answer.read(&buffer, &mut keep)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    match answer.has_changed {
        true => Err(io::ErrorKind::Interrupted.into()),
        false => Ok(answer.kept),
    }
}

/// Reads a whole list, again if it changed while it was read.
pub(super) fn list<M, T>(
    protocol: isize,
    question: &M,
    mut keep: impl FnMut(M) -> Option<T>,
) -> io::Result<Vec<T>>
where
    M: NetlinkSerializable + NetlinkDeserializable + Debug + Clone,
{
    let socket = connect(protocol)?;
    let mut once = || {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let payload = NetlinkPayload::InnerMessage(question.clone());
        ask(&socket, NetlinkMessage::new(header, payload), &mut keep)
    };
    for _ in 1..NETLINK_TRIES {
        match once() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
    once()
}

struct Answer<T> {
    kept: Vec<T>,
    is_complete: bool,
    has_changed: bool,
}

impl<T> Default for Answer<T> {
    fn default() -> Self {
        Answer {
            kept: Vec::new(),
            is_complete: false,
            has_changed: false,
        }
    }
}

impl<T> Answer<T> {
    /// Parses the messages of one datagram.
    fn read<M: NetlinkDeserializable + Debug>(
        &mut self,
        mut rest: &[u8],
        keep: &mut impl FnMut(M) -> Option<T>,
    ) -> io::Result<()> {
        while !rest.is_empty() && !self.is_complete {
            let message = NetlinkMessage::<M>::deserialize(rest).map_err(io::Error::other)?;
            // Messages are padded to four bytes. The minimum guarantees progress.
            let length = (message.header.length as usize).next_multiple_of(4).max(4);
            rest = rest.get(length..).unwrap_or_default();
            self.has_changed |= message.header.flags & NLM_F_DUMP_INTR != 0;
            match message.payload {
                NetlinkPayload::InnerMessage(_) if self.kept.len() == NETLINK_ANSWERS_MAX => {
                    return Err(io::Error::other(format!(
                        "the kernel's list has more than {NETLINK_ANSWERS_MAX} entries"
                    )));
                }
                NetlinkPayload::InnerMessage(message) => self.kept.extend(keep(message)),
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

/// An uninterpreted message: type and payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Raw {
    pub kind: u16,
    pub bytes: Vec<u8>,
}

impl NetlinkSerializable for Raw {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        self.bytes.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.bytes);
    }
}

impl NetlinkDeserializable for Raw {
    type Error = Infallible;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Raw, Infallible> {
        Ok(Raw {
            kind: header.message_type,
            bytes: payload.to_vec(),
        })
    }
}

/// NUL-terminated string of an attribute.
pub(super) fn text(bytes: &[u8], kind: u16) -> Option<String> {
    let text = attribute(bytes, kind)?.strip_suffix(&[0])?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Value of the first attribute of a type.
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

    fn message(kind: u16, flags: u16, bytes: &[u8]) -> Vec<u8> {
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        let bytes = bytes.to_vec();
        let payload = NetlinkPayload::InnerMessage(Raw { kind, bytes });
        let mut message = NetlinkMessage::new(header, payload);
        message.finalize();
        let mut bytes = vec![0; message.buffer_len().next_multiple_of(4)];
        message.serialize(&mut bytes);
        bytes
    }

    /// Kept messages of a datagram, and whether the list was complete.
    fn read(bytes: &[u8]) -> io::Result<(Vec<Vec<u8>>, bool)> {
        let mut answer = Answer::default();
        answer.read(bytes, &mut |message: Raw| Some(message.bytes))?;
        Ok((answer.kept, answer.is_complete && !answer.has_changed))
    }

    #[test]
    fn dump_ends_with_nlmsg_done() {
        use netlink_packet_core::{NLM_F_MULTIPART, NLMSG_DONE, NLMSG_ERROR};
        let row = |bytes: &[u8]| message(20, NLM_F_MULTIPART, bytes);
        let rows = [row(b"one"), row(b"second")].concat();
        let kept = vec![b"one".to_vec(), b"second".to_vec()];
        assert_eq!(read(&rows).expect("rows"), (kept.clone(), false));
        let done = message(NLMSG_DONE, NLM_F_MULTIPART, &0i32.to_ne_bytes());
        let whole = [&rows[..], &done, &row(b"of another list")].concat();
        assert_eq!(read(&whole).expect("a list"), (kept.clone(), true));
        let changed = message(NLMSG_DONE, NLM_F_DUMP_INTR, &0i32.to_ne_bytes());
        let changed = [&rows[..], &changed].concat();
        assert_eq!(read(&changed).expect("a list"), (kept, false));

        // EPERM, first as the answer to a request, then as the end of a list.
        let refused = [&(-1i32).to_ne_bytes()[..], &[0; 16]].concat();
        for (kind, bytes) in [(NLMSG_ERROR, &refused[..]), (NLMSG_DONE, &refused[..4])] {
            let error = read(&message(kind, 0, bytes)).expect_err("refused");
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        }
    }

    #[test]
    fn truncated_messages_are_errors() {
        let whole = message(20, 0, b"four");
        for end in 1..whole.len() {
            assert!(read(&whole[..end]).is_err(), "cut at {end}");
        }
        let mut endless = whole;
        endless[..4].fill(0);
        assert!(read(&endless).is_err());
    }

    #[test]
    fn truncated_attribute_is_ignored() {
        let pair = [
            DefaultNla::new(1, vec![7]),
            DefaultNla::new(2, b"value".to_vec()),
        ];
        let mut whole = vec![0; pair.as_slice().buffer_len()];
        pair.as_slice().emit(&mut whole);
        assert_eq!(attribute(&whole, 2), Some(&b"value"[..]));
        assert_eq!(attribute(&whole, 3), None);
        // The padding after the last attribute may be missing.
        for end in 0..8 + 4 + 5 {
            assert_eq!(attribute(&whole[..end], 2), None, "cut at {end}");
        }
    }
}
