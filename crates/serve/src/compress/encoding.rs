//! A body on its way through an encoder into chunks (RFC 9112 7.1).

use std::rc::Rc;

use onrush_engine::Error;
use onrush_http::encoding::Coding;
use onrush_http::write::{CHUNK_END, LAST_CHUNK, chunk_head};
use onrush_tls::Transport;

use super::encoder::Then;
use super::level;
use super::pool::{Lent, Pool};
use super::{Encoder, Pushed};
use crate::output::Output;

/// An answer's body being encoded.
pub(crate) struct Encoding {
    encoder: Lent,
}

/// The line before a chunk that fits a buffer: four digits and CRLF.
const CHUNK_LINE: usize = 6;

/// With less room than this a chunk is not worth its line, and the next buffer is begun.
const ROOM_MIN: usize = 1024;

impl Encoding {
    /// `None` when the core has no memory for one more.
    pub(crate) fn begin(pool: &Rc<Pool>, coding: Coding) -> Option<Self> {
        pool.lend(coding).map(|encoder| Self { encoder })
    }

    /// Writes what `bytes` become, as chunks, and as far as `then` asks for.
    pub(crate) fn write(
        &mut self,
        mut bytes: &[u8],
        then: Then,
        output: &mut Output,
        client: &Transport,
    ) -> Result<(), Error> {
        loop {
            let buffer = output.room(client, ROOM_MIN)?;
            let room = buffer.spare();
            let end = room.len() - CHUNK_END.len();
            let Pushed {
                consumed,
                written,
                is_done,
            } = self.encoder.push(bytes, then, &mut room[CHUNK_LINE..end]);
            bytes = &bytes[consumed..];
            if written > 0 {
                let chunk = frame(room, written);
                buffer.fill(chunk);
            }
            if is_done {
                return Ok(());
            }
        }
    }

    /// Writes the rest of the content and the last chunk's line. Trailers may follow, and an empty line must.
    pub(crate) fn finish(&mut self, output: &mut Output, client: &Transport) -> Result<(), Error> {
        self.write(b"", Then::Finish, output, client)?;
        output.put(client, &LAST_CHUNK[..LAST_CHUNK.len() - CHUNK_END.len()])
    }
}

/// Makes a chunk of the `size` bytes behind the room for its line; returns its length.
fn frame(room: &mut [u8], size: usize) -> usize {
    let line = chunk_head(&mut room[..CHUNK_LINE], size as u64).expect("a buffer has 16 KiB");
    // Only chunks below 4 KiB have a shorter line.
    if line < CHUNK_LINE {
        room.copy_within(CHUNK_LINE..CHUNK_LINE + size, line);
    }
    let end = line + size;
    room[end..end + CHUNK_END.len()].copy_from_slice(CHUNK_END);
    end + CHUNK_END.len()
}

/// All of `content` encoded once for many answers; `None` when that makes it no shorter.
pub(crate) fn encode_whole(coding: Coding, content: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new(coding, level::kept(coding));
    let mut encoded = vec![0; content.len()];
    let (mut rest, mut filled) = (content, 0);
    while filled < encoded.len() {
        let pushed = encoder.push(rest, Then::Finish, &mut encoded[filled..]);
        rest = &rest[pushed.consumed..];
        filled += pushed.written;
        if pushed.is_done {
            encoded.truncate(filled);
            return (filled < content.len()).then_some(encoded);
        }
    }
    None
}
