//! A response body passing through an encoder.

use std::rc::Rc;

use onrush_engine::Error;
use onrush_http::encoding::Coding;

use crate::exchange::reply::Reply;
use crate::worker::compress::{Pool, PooledEncoder};
use crate::worker::compress::{Pushed, Then};

pub(crate) struct Encoding {
    encoder: PooledEncoder,
}

/// With less room than this, a new buffer is started: the chunk would be too small for its framing.
const ROOM_MIN: usize = 1024;

impl Encoding {
    /// `None` if the core has no memory for another encoder.
    pub(crate) fn begin(pool: &Rc<Pool>, coding: Coding) -> Option<Self> {
        pool.lend(coding).map(|encoder| Self { encoder })
    }

    /// Encodes `bytes` and writes the result, finishing or flushing the encoder according to `then`.
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
