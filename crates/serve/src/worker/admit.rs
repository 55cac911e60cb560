//! Admission of requests and connections: limits on requests per second and on concurrency.
//!
//! Limits apply to the whole server, so all cores share their counts: lock-free tables of atomics, at one
//! compare-exchange per request on a route with a limit. Other routes pay nothing.
//!
//! A table has a fixed size, however many keys an attacker invents. If there are more keys than entries, **a key that
//! cannot be stored is admitted**. So invented keys can make a limit forget, but never make it refuse another client's
//! request. They gain the attacker nothing, because each of them would be admitted anyway.

pub(crate) mod key;

pub(crate) mod concurrency;
pub(crate) mod connections;
pub(crate) mod rate;

use std::time::Duration;

/// Outcome of checking a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Admit,
    /// 429 (RFC 6585 section 4), with the time after which the client may retry.
    Refuse {
        retry_after: Duration,
    },
}
