//! Whether a request may go on: the limits of routes on requests per second and on requests at the same time.
//!
//! A limit is one for the whole server, however many cores it has, so its counts are shared: tables of atomic numbers,
//! without a lock, at one compare-exchange for each request on a route that has a limit. Other routes pay nothing.
//!
//! A table has a fixed size, however many keys an attacker makes up. What happens when there are more keys than room is
//! decided in favour of the client: **a key that cannot be remembered is admitted**. So made-up keys can make a limit
//! forget, but they can never make it refuse somebody else's request. Whoever can make up keys gains nothing by that:
//! each of them would be admitted anyway.

pub(crate) mod key;

pub(crate) mod concurrency;
pub(crate) mod connections;
pub(crate) mod rate;

use std::time::Duration;

/// What a limit says of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Admit,
    /// 429 (RFC 6585 section 4); the client may come back after this time.
    Refuse {
        retry_after: Duration,
    },
}
