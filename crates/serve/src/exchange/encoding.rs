//! A body on its way through an encoder.

use std::rc::Rc;

use onrush_engine::Error;
use onrush_http::encoding::Coding;

use crate::exchange::reply::Reply;
use crate::worker::compress::{Lent, Pool};
use crate::worker::compress::{Pushed, Then};

/// A response's body being encoded.
pub(crate) struct Encoding {
    encoder: Lent,
}

/// With less room than this the next buffer is begun: a chunk would not be worth its line.
const ROOM_MIN: usize = 1024;

impl Encoding {
    /// `None` when the core has no memory for one more.
    pub(crate) fn begin(pool: &Rc<Pool>, coding: Coding) -> Option<Self> {
        pool.lend(coding).map(|encoder| Self { encoder })
    }

    /// Writes what `bytes` become, as far as `then` asks for.
    pub(crate) fn write(
        &mut self,
        mut bytes: &[u8],
        then: Then,
        reply: &mut Reply<'_>,
    ) -> Result<(), Error> {
        loop {
            let mut is_all = false;
            reply.fill(ROOM_MIN, |room| {
                let Pushed {
                    consumed,
                    written,
                    is_done,
                } = self.encoder.push(bytes, then, room);
                bytes = &bytes[consumed..];
                is_all = is_done;
                written
            })?;
            if is_all {
                return Ok(());
            }
        }
    }
}
