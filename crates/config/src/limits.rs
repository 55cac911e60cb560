//! Bounds and defaults of a configuration, each with its reason. All are public: documentation and
//! help quote them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// A configuration longer than this is a mistake (a log, a disk image): the largest real ones, with
/// tens of thousands of routes, are a tenth of it.
pub const TEXT_MAX: usize = 16 << 20;

/// Errors or warnings shown of one file; beyond that the first ones are what matters.
pub const FINDINGS_MAX: usize = 50;

/// Places to listen: each core has a listener for each.
pub const LISTEN_MAX: usize = 1024;

/// A request walks the routes in order until one matches.
pub const ROUTES_MAX: usize = 10_000;

/// Each core has a pool for each group; and no route could lead to more of them.
pub const UPSTREAMS_MAX: usize = ROUTES_MAX;

/// Where to listen when nothing is said: not reachable from outside, so a forgotten setting exposes
/// nothing; a port that needs no privilege.
pub const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// The port of `http://` without one (RFC 9110, section 4.2.1).
pub const PORT_DEFAULT: u16 = 80;

/// The bytes of a Unix socket's path: `sun_path` has 108, the last of them is NUL (unix(7)).
pub const UNIX_PATH_MAX: usize = 107;

/// The letters of a host name (RFC 1035, section 2.3.4, without the trailing dot).
pub const HOST_MAX: usize = 253;

/// The letters of one part of a host name (RFC 1035, section 2.3.4).
pub const HOST_LABEL_MAX: usize = 63;

/// Memory of one compiled regular expression: hundreds of alternatives fit; what a slip with counted
/// repetitions makes does not.
pub const PATTERN_BYTES_MAX: usize = 256 << 10;

/// CPU numbers end below this: the size of the C library's and the kernel interface's `cpu_set_t`.
pub const CPU_COUNT_MAX: usize = 1024;

/// One thread for each CPU there can be.
pub const THREADS_MAX: usize = CPU_COUNT_MAX;

/// Shorter than this a timer cannot tell apart from now, and a mistyped unit is more likely than a
/// wish.
pub const TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// Bytes of all header fields of one configured answer: its head has to fit one buffer of 16 KiB beside our own fields,
/// and clients refuse heads much larger than 8 KiB.
pub const RESPOND_HEADERS_BYTES_MAX: usize = 8 * 1024;

/// Longer than a day is no timeout; it also bounds what the timer wheel must reach.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A head is one or two packets: ten seconds survive several retransmissions on the worst link, and
/// free what a client that dribbles (slowloris) holds.
pub const CLIENT_HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Between two parts of a body: a phone that changes cells is back within half a minute.
pub const CLIENT_BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Idle connections cost little memory here; browsers and proxies close after 60 to 120 s
/// themselves.
pub const CLIENT_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// As for bodies in the other direction; a reader that takes nothing for this long has gone.
pub const CLIENT_SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// Linux sends a lost SYN again after 1 s and 3 s: five seconds survive losing it twice.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What nginx and the usual HAProxy settings grant an application to think.
pub const UPSTREAM_FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(60);

/// Between two parts of an answer; as long as its beginning may take, for applications that stream.
pub const UPSTREAM_BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Less than the 60 to 75 s after which common servers close an idle connection, so that we close
/// first and no request meets a closing one. Servers that close sooner are noticed by their close.
pub const UPSTREAM_IDLE_TIMEOUT: Duration = Duration::from_secs(50);

/// Handshakes take two round trips and some signing; a client that dribbles one holds 10 to 20 KB.
pub const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Who waits for a server longer than this has gone, as users do; and its request is better refused
/// than answered late.
pub const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);

/// Requests each core lets wait for a server when nothing is said: a second's worth of a server with
/// a few hundred connections, some hundred bytes each.
pub const QUEUE_MAX_DEFAULT: usize = 1024;

/// WebSocket applications ping every 30 to 60 s; an hour is what HAProxy's guides set for tunnels.
pub const TUNNEL_IDLE_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Attempts after the first: one redispatch finds another server when one has died; a second one
/// finds the third when a rack has. HAProxy's default is 3.
pub const RETRIES_DEFAULT: u8 = 2;

/// Attempts more than requests, in percent: what Finagle and Envoy grant, so that retries never
/// multiply an outage.
pub const RETRY_BUDGET_DEFAULT: u8 = 20;

/// Supervisors kill after 30 s (Kubernetes) to 90 s (systemd): long enough for requests, well
/// before that.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// A server without a weight has the smallest.
pub const WEIGHT_DEFAULT: u32 = 1;

/// Enough to send a server a thousandth of the load; sums over any group stay far below 32 bits.
pub const WEIGHT_MAX: u32 = 1000;

/// Servers of one group: each core walks the list to choose.
pub const SERVERS_MAX: usize = 4096;

/// Idle connections each core keeps to each server when nothing is said: as many as a busy core has
/// in flight, so that a burst does not open what the next one needs again; about a kilobyte each.
pub const CONNECTIONS_IDLE_MAX_DEFAULT: usize = 1024;

/// The ports towards one server are the most connections there can be.
pub const CONNECTIONS_IDLE_MAX_MAX: usize = 65_535;

/// The file names tried for a directory when nothing is said.
pub fn index_default() -> Vec<String> {
    vec!["index.html".to_owned()]
}
