//! Queues a core's requests on connections: identical ones from shared memory, others rendered one by one.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use onrush_engine::{Core, Part};
use onrush_tls::Transport;

use crate::requests::cookies::CookieJar;
use crate::requests::mix::Mix;
use crate::requests::request::LastRequest;

pub(super) enum Sending {
    /// All requests are identical.
    Same {
        /// As many requests as are pipelined.
        requests: Rc<[u8]>,
        bytes: usize,
        /// Last request of a connection.
        last: Rc<[u8]>,
    },
    /// Each request is rendered when it is sent.
    Rendered(RenderBuffers),
}

/// Buffers for rendering requests.
pub(super) struct RenderBuffers {
    text: RefCell<Vec<u8>>,
    bodies: Bodies,
}

/// A core's copies of bodies that are not copied into requests, by their address.
#[derive(Default)]
pub(crate) struct Bodies(RefCell<HashMap<usize, Rc<[u8]>>>);

impl Bodies {
    pub(crate) fn own(&self, body: &Arc<[u8]>) -> Rc<[u8]> {
        let mut bodies = self.0.borrow_mut();
        let own = bodies.entry(Arc::as_ptr(body).addr());
        Rc::clone(own.or_insert_with(|| Rc::from(&**body)))
    }
}

impl Sending {
    pub(super) fn new(mix: &Mix, batch: u64) -> Sending {
        if !mix.is_constant() {
            return Sending::Rendered(RenderBuffers {
                text: RefCell::default(),
                bodies: Bodies::default(),
            });
        }
        let request = mix.request(LastRequest::No);
        Sending::Same {
            requests: request.repeat(batch as usize).into(),
            bytes: request.len(),
            last: mix.request(LastRequest::Yes).into(),
        }
    }

    /// Queues `count` requests from `number` on; `last` is whether the connection closes after them. Returns their
    /// number of bytes.
    pub(super) fn queue(
        &self,
        mix: &Mix,
        stream: &Transport,
        (number, count): (u64, u64),
        last: LastRequest,
        jar: Option<&CookieJar>,
    ) -> u64 {
        match self {
            Sending::Same {
                requests,
                bytes,
                last: last_request,
            } => {
                let plain = match last {
                    LastRequest::No => count as usize,
                    LastRequest::Yes => count as usize - 1,
                };
                let offset = requests.len() - plain * bytes;
                stream.queue(Part::Shared(Rc::clone(requests), offset));
                if last == LastRequest::No {
                    return (plain * bytes) as u64;
                }
                stream.queue(Rc::clone(last_request));
                (plain * bytes + last_request.len()) as u64
            }
            Sending::Rendered(each) => {
                let mut sum = 0;
                for index in 0..count {
                    let last = match last {
                        LastRequest::Yes if index + 1 == count => LastRequest::Yes,
                        _ => LastRequest::No,
                    };
                    sum += each.queue(mix, stream, number + index, last, jar);
                }
                sum
            }
        }
    }
}

impl RenderBuffers {
    fn queue(
        &self,
        mix: &Mix,
        stream: &Transport,
        number: u64,
        last: LastRequest,
        jar: Option<&CookieJar>,
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

/// Copies `text` into a free buffer of the core, or to the heap if it does not fit.
pub(crate) fn part(core: &Core, text: &[u8]) -> Part {
    if let Ok(mut buffer) = core.buffer()
        && buffer.put(text)
    {
        return buffer.into();
    }
    Rc::<[u8]>::from(text).into()
}
