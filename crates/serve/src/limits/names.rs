//! Bounds of name resolution for servers.

use std::time::Duration;

/// How long the start waits for the first outcomes of all names together: name servers answer within milliseconds, and this
/// is time for two attempts ([`NAME_SERVER_TIMEOUT`]). A name without an outcome by then is a server that is down for now.
pub(crate) const FIRST_ANSWERS_WAIT: Duration = Duration::from_secs(2);

/// How long a name server may take before it is asked once more. glibc waits 5 s, which is longer than a start should
/// take. A server that is slower because it asks other servers first has the answer ready for the second query.
pub(crate) const NAME_SERVER_TIMEOUT: Duration = Duration::from_millis(900);

/// Name servers of resolv.conf(5) that are asked; MAXNS of glibc.
pub(crate) const NAME_SERVERS_MAX: usize = 3;

/// Host names that are asked for at a time; each takes two sockets for every name server.
pub(crate) const RESOLVING_MAX: usize = 8;

/// Minimum time for which the addresses of a name are used. Records with a shorter TTL are not asked for more often; a TTL of
/// 0 would mean a query for each request.
pub(crate) const TTL_MIN: Duration = Duration::from_secs(1);

/// Maximum time: an operator who moves a service should not have to wait for a forgotten TTL of a day.
pub(crate) const TTL_MAX: Duration = Duration::from_secs(5 * 60);

/// Pause after a failed query for a name. It doubles each time, up to `resolve_retry` of its group.
pub(crate) const RESOLVE_PAUSE_MIN: Duration = Duration::from_secs(1);

/// Consecutive denials of a name after which its addresses are no longer used: with the pauses between the queries, the name has
/// been missing for at least three seconds, longer than a name server takes to reload a zone.
pub(crate) const DENIALS_MAX: u32 = 3;
