//! HTTP/1.1: requests are sent in the order of their numbers, and responses arrive in that order. The outcome of a
//! response is its status.

mod heads;
pub(crate) mod held_head;
mod incoming;
mod sending;

use std::cell::RefCell;
use std::sync::Arc;

use onrush_tls::Transport;

use crate::requests::cookies::CookieJar;
use crate::requests::mix::Mix;
use crate::requests::request::LastRequest;
use crate::requests::response::Outcomes;
use heads::HeadCache;
pub(crate) use incoming::Incoming;
use incoming::STATUS_MIN;
pub(crate) use incoming::outcome;
use sending::Sending;
pub(crate) use sending::{Bodies, part};

pub(crate) static OUTCOMES: Outcomes = Outcomes {
    count: 900,
    classes: ["1xx", "2xx", "3xx", "4xx", "5xx"],
    noun: "status ",
    name: |number| (number + STATUS_MIN).to_string(),
    is_refusal: |number| number + STATUS_MIN >= 400,
    refusal_phrase: "had a status of 400 or above",
    // Redirects count as well: they are often faster than the final response.
    is_unexpected: |number| number + STATUS_MIN >= 300,
    // Any status is a result: 503s, for example, measure an overload.
    is_failure: |_| false,
    is_mismatched: |_| false,
};

/// Writes a core's requests and parses the responses.
pub(crate) struct Codec {
    mix: Arc<Mix>,
    sending: Sending,
    heads: HeadCache,
    /// Cookie jar of each connection, which represents a user; empty without cookies.
    jars: Box<[RefCell<CookieJar>]>,
}

impl Codec {
    pub(super) fn new(mix: &Arc<Mix>, connections: usize, batch: u64) -> Codec {
        Codec {
            sending: Sending::new(mix, batch),
            heads: HeadCache::new(mix.keeps_cookies()),
            jars: match mix.keeps_cookies() {
                true => vec![RefCell::default(); connections].into(),
                false => Box::default(),
            },
            mix: Arc::clone(mix),
        }
    }

    pub(super) fn queue(
        &self,
        stream: &Transport,
        connection: u32,
        requests: (u64, u64),
        last: LastRequest,
    ) -> u64 {
        let jar = self.jar_of(connection).map(RefCell::borrow);
        self.sending
            .queue(&self.mix, stream, requests, last, jar.as_deref())
    }

    pub(super) fn incoming(&self, connection: u32, number: u64) -> Incoming<'_> {
        let recipe = &self.mix.recipes()[self.mix.choose(number)];
        Incoming::new(&self.heads, recipe, self.jar_of(connection))
    }

    fn jar_of(&self, connection: u32) -> Option<&RefCell<CookieJar>> {
        self.jars.get(connection as usize)
    }
}
