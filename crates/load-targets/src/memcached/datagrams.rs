//! Requests and responses over UDP, each datagram with memcached's frame header.

use onrush_packet::memcached::{FRAME_BYTES, Frame, FrameError, RESPONSE_BYTES_MAX};

use super::item::Moment;
use super::limits::DATAGRAM_ANSWER_MAX;
use super::output::Piece;
use super::server::Server;
use super::session::{Next, Session};

/// Number of bytes of a response in each of its datagrams; the last may have fewer.
const PART_BYTES: usize = RESPONSE_BYTES_MAX - FRAME_BYTES;

/// Replaces a response that is too long, as in memcached.
const TOO_LONG: &[u8] = b"SERVER_ERROR out of memory writing get response\r\n";

#[derive(Debug)]
pub(crate) struct DatagramResponse {
    /// Frame of the next datagram; its sequence number equals the total after the last one.
    next: Frame,
    text: Vec<u8>,
}

impl DatagramResponse {
    /// Executes the commands of a datagram. An incomplete command and one without a reply yield an empty response.
    ///
    /// # Errors
    /// If the datagram has no valid frame, or is one of several: a request must fit in one (memcached,
    /// doc/protocol.txt).
    pub(crate) fn to(
        datagram: &[u8],
        server: &Server,
        now: Moment,
    ) -> Result<DatagramResponse, FrameError> {
        let (frame, mut input) = Frame::read(datagram)?;
        if frame.datagrams != 1 {
            return Err(FrameError::Sequence);
        }
        let (mut session, mut text) = (Session::default(), Vec::new());
        loop {
            let add = |pieces: &mut dyn Iterator<Item = Piece<'_>>| {
                for piece in pieces {
                    match piece {
                        Piece::Text(bytes) => text.extend_from_slice(bytes),
                        Piece::Value(value) => text.extend_from_slice(value),
                    }
                }
            };
            let (done, next, ()) = server.answer(&mut session, input, now, add);
            input = &input[done..];
            if text.len() > DATAGRAM_ANSWER_MAX {
                text = TOO_LONG.to_vec();
                break;
            }
            match next {
                Next::Flush => {}
                Next::Receive | Next::Close => break,
            }
        }
        let datagrams = text.len().div_ceil(PART_BYTES) as u16;
        Ok(DatagramResponse {
            next: Frame { datagrams, ..frame },
            text,
        })
    }

    /// Replaces `out` with the next datagram; returns whether there was one.
    pub(crate) fn write_next(&mut self, out: &mut Vec<u8>) -> bool {
        if self.next.sequence >= self.next.datagrams {
            return false;
        }
        let from = usize::from(self.next.sequence) * PART_BYTES;
        let part = &self.text[from..self.text.len().min(from + PART_BYTES)];
        out.clear();
        out.extend_from_slice(&self.next.bytes());
        out.extend_from_slice(part);
        self.next.sequence += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use onrush_config::plan::Memcached;

    use super::super::item::Seconds;
    use super::*;

    const NOW: Moment = Moment {
        seconds: Seconds(1_000),
        unix: 1_700_000_000,
    };

    /// Returns the frames and payloads of the response to each of these requests in turn.
    fn answers(requests: &[&[u8]]) -> Vec<Vec<(Frame, Vec<u8>)>> {
        let server = Server::new(Memcached::default(), NOW);
        let one = |(id, request): (u16, &&[u8])| {
            let datagram = [&Frame::only(id).bytes()[..], request].concat();
            let mut answer = DatagramResponse::to(&datagram, &server, NOW).unwrap();
            let (mut out, mut all) = (Vec::new(), Vec::new());
            while answer.write_next(&mut out) {
                assert!(out.len() <= RESPONSE_BYTES_MAX);
                let (frame, text) = Frame::read(&out).unwrap();
                all.push((frame, text.to_vec()));
            }
            all
        };
        (0..).zip(requests).map(one).collect()
    }

    #[test]
    fn response_has_request_id() {
        let all = answers(&[b"set a 0 0 1\r\nx\r\n", b"get a b\r\n"]);
        assert_eq!(all[0], [(Frame::only(0), b"STORED\r\n".to_vec())]);
        let values = b"VALUE a 0 1\r\nx\r\nEND\r\n".to_vec();
        assert_eq!(all[1], [(Frame::only(1), values)]);
    }

    #[test]
    fn large_response_is_split_into_datagrams() {
        let value = [&b"set a 0 0 3000\r\n"[..], &[b'v'; 3000], b"\r\n"].concat();
        let all = answers(&[&value, b"get a a\r\n"]);
        let sequences: Vec<u16> = all[1].iter().map(|(frame, _)| frame.sequence).collect();
        assert_eq!(sequences, [0, 1, 2, 3, 4]);
        assert!(all[1].iter().all(|(frame, _)| frame.datagrams == 5));
        let text: Vec<u8> = all[1].iter().flat_map(|(_, text)| text.clone()).collect();
        assert_eq!(text.len(), 2 * (b"VALUE a 0 3000\r\n".len() + 3002) + 5);
    }

    #[test]
    fn oversized_response_is_an_error() {
        let value = [
            &b"set a 0 0 1000000\r\n"[..],
            &vec![b'v'; 1_000_000],
            b"\r\n",
        ]
        .concat();
        let all = answers(&[&value, b"get a a a a a\r\n"]);
        assert_eq!(all[1], [(Frame::only(1), TOO_LONG.to_vec())]);
    }

    #[test]
    fn incomplete_and_noreply_requests_have_no_response() {
        let all = answers(&[b"get a", b"set a 0 0 5\r\nx", b"delete a noreply\r\n", b""]);
        assert!(all.iter().all(Vec::is_empty), "{all:?}");
    }

    #[test]
    fn datagrams_with_invalid_frame_are_ignored() {
        let server = Server::new(Memcached::default(), NOW);
        let heard = |datagram: &[u8]| DatagramResponse::to(datagram, &server, NOW).err();
        assert_eq!(heard(b"get a\r\n"), Some(FrameError::Truncated));
        let part = Frame {
            datagrams: 2,
            ..Frame::only(1)
        };
        assert_eq!(heard(&part.bytes()), Some(FrameError::Sequence));
    }
}
