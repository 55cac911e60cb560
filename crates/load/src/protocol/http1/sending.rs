//! How a core's requests get into a connection: all the same, from one piece of memory, or each on its own.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use onrush_engine::{Core, Part};
use onrush_tls::Transport;

use crate::requests::cookies::Jar;
use crate::requests::mix::Mix;
use crate::requests::request::Last;

/// What a core needs to send requests.
pub(super) enum Sending {
    /// They are all the same.
    Same {
        /// As many as are pipelined, one behind the other.
        requests: Rc<[u8]>,
        /// Bytes of one.
        bytes: usize,
        /// The one that is a connection's last.
        last: Rc<[u8]>,
    },
    /// Each is written when it is sent.
    Each(Each),
}

/// Memory for requests that are written one by one.
pub(super) struct Each {
    /// One request.
    text: RefCell<Vec<u8>>,
    bodies: Bodies,
}

/// Bodies that are not copied into requests, by their place in memory: each core has its own.
#[derive(Default)]
pub(crate) struct Bodies(RefCell<HashMap<usize, Rc<[u8]>>>);

impl Bodies {
    /// The core's own `body`.
    pub(crate) fn own(&self, body: &Arc<[u8]>) -> Rc<[u8]> {
        let mut bodies = self.0.borrow_mut();
        let own = bodies.entry(Arc::as_ptr(body).addr());
        Rc::clone(own.or_insert_with(|| Rc::from(&**body)))
    }
}

impl Sending {
    /// For up to `batch` requests at once.
    pub(super) fn new(mix: &Mix, batch: u64) -> Sending {
        if !mix.is_one() {
            return Sending::Each(Each {
                text: RefCell::default(),
                bodies: Bodies::default(),
            });
        }
        let request = mix.request(Last::No);
        Sending::Same {
            requests: request.repeat(batch as usize).into(),
            bytes: request.len(),
            last: mix.request(Last::Yes).into(),
        }
    }

    /// Queues `count` requests from number `number` on; `last`: whether the connection ends behind them. Returns how many
    /// bytes that are.
    pub(super) fn queue(
        &self,
        mix: &Mix,
        stream: &Transport,
        (number, count): (u64, u64),
        last: Last,
        jar: Option<&Jar>,
    ) -> u64 {
        match self {
            Sending::Same {
                requests,
                bytes,
                last: last_request,
            } => {
                let plain = match last {
                    Last::No => count as usize,
                    Last::Yes => count as usize - 1,
                };
                let offset = requests.len() - plain * bytes;
                stream.queue(Part::Shared(Rc::clone(requests), offset));
                if last == Last::No {
                    return (plain * bytes) as u64;
                }
                stream.queue(Rc::clone(last_request));
                (plain * bytes + last_request.len()) as u64
            }
            Sending::Each(each) => {
                let mut sum = 0;
                for index in 0..count {
                    let last = match last {
                        Last::Yes if index + 1 == count => Last::Yes,
                        _ => Last::No,
                    };
                    sum += each.queue(mix, stream, number + index, last, jar);
                }
                sum
            }
        }
    }
}

impl Each {
    fn queue(
        &self,
        mix: &Mix,
        stream: &Transport,
        number: u64,
        last: Last,
        jar: Option<&Jar>,
    ) -> u64 {
        let mut text = self.text.borrow_mut();
        text.clear();
        let body = mix.write(number, last, jar, &mut text);
        stream.queue(part(stream.core(), &text));
        let bytes = text.len() + body.map_or(0, |body| body.len());
        if let Some(body) = body {
            stream.queue(self.bodies.own(body));
        }
        bytes as u64
    }
}

/// In a buffer of the core where it fits into one that is free.
pub(crate) fn part(core: &Core, text: &[u8]) -> Part {
    if let Ok(mut buffer) = core.buffer()
        && buffer.put(text)
    {
        return buffer.into();
    }
    Rc::<[u8]>::from(text).into()
}
