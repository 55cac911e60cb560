//! Limits of name resolution for servers.

use std::time::Duration;

/// Time for which the start waits for the first outcomes of all names together: enough for two attempts
/// ([`NAME_SERVER_TIMEOUT`]). A name without an outcome by then is a server that is down for now.
pub(crate) const FIRST_RESOLUTION_WAIT: Duration = Duration::from_secs(2);

/// Timeout of a query, which is then sent once more. glibc's 5 s would delay a start too long. A recursive name server
/// that needs longer has the answer ready for the second query.
pub(crate) const NAME_SERVER_TIMEOUT: Duration = Duration::from_millis(900);

/// Name servers of resolv.conf(5) that are queried; glibc's MAXNS.
pub(crate) const NAME_SERVERS_MAX: usize = 3;

/// Host names resolved at a time; each takes two sockets per name server.
pub(crate) const RESOLVING_MAX: usize = 8;

/// Minimum use of a name's addresses, even with a shorter TTL; a TTL of 0 would mean a query for each request.
pub(crate) const TTL_MIN: Duration = Duration::from_secs(1);

/// Maximum time, so that after moving a service an operator need not wait for a forgotten TTL of a day.
pub(crate) const TTL_MAX: Duration = Duration::from_secs(5 * 60);

/// Pause after a failed query for a name. It doubles each time, up to `resolve_retry` of its group.
pub(crate) const RESOLVE_PAUSE_MIN: Duration = Duration::from_secs(1);

/// Consecutive negative answers after which the addresses of a name are no longer used: with the pauses between the
/// queries, the name has been missing for at least three seconds, longer than a name server takes to reload a zone.
pub(crate) const NEGATIVE_ANSWERS_MAX: u32 = 3;
