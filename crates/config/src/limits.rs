//! Bounds and defaults of a configuration, each with its reason. All are public: documentation and
//! help quote them.

mod tracing;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::time::Duration;

use crate::plan::Coding;

pub use tracing::*;

/// A configuration longer than this, with all files that it includes, is a mistake (a log, a disk image): the largest real
/// ones, with tens of thousands of routes, are a tenth of it.
pub const TEXT_MAX: usize = 16 << 20;

/// Keys of a configuration, counted by their equals signs: forty for each of the [`ROUTES_MAX`] routes, and what is read of
/// them fits 300 MB.
pub const KEYS_MAX: usize = 500_000;

/// Tables of lists such as `[[route]]`: of all kinds there are fewer than a quarter as many.
pub const TABLES_MAX: usize = 100_000;

/// Files of a configuration: one for each of the [`ROUTES_MAX`] routes.
pub const FILES_MAX: usize = ROUTES_MAX;

/// How far a file that is included may be from the first one: two or three are what people write.
pub const INCLUDES_MAX: usize = 8;

/// Keys of one table that are compared with one that is missing: the largest table has 30 known ones.
pub const KEYS_COMPARED_MAX: usize = 100;

/// Errors or warnings shown of one file; beyond that the first ones are what matters.
pub const FINDINGS_MAX: usize = 50;

/// Places to listen: each core has a listener for each.
pub const LISTEN_MAX: usize = 1024;

/// Hosts of one route that are looked for in the routes before it, to warn of those that never reach it: each costs a look at all
/// of these, and a file may have half a million hosts.
pub const HOSTS_COMPARED_MAX: usize = 16;

/// A request walks the routes in order until one matches.
pub const ROUTES_MAX: usize = 10_000;

/// Each core has a pool for each group; and no route could lead to more of them.
pub const UPSTREAMS_MAX: usize = ROUTES_MAX;

/// Where to listen when nothing is said: not reachable from outside, so a forgotten setting exposes
/// nothing; a port that needs no privilege.
pub const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Memory of one core's items where a listener speaks memcached: memcached's own default for all of them together.
pub const MEMORY_DEFAULT: u64 = 64 * 1024 * 1024;

/// The least that may be said: a thousand small items, so that a test of evictions need not be large.
pub const MEMORY_MIN: u64 = 64 * 1024;

/// The most that may be said: more than a machine has for one core, and far from where sums overflow.
pub const MEMORY_MAX: u64 = 1024 * 1024 * 1024 * 1024;

/// The longest value where nothing is said: memcached's own default (`-I 1m`), which clients expect.
pub const ITEM_BYTES_MAX_DEFAULT: u32 = 1024 * 1024;

/// The longest that may be said: a value is held as a whole while it arrives. memcached takes as much at most.
pub const ITEM_BYTES_MAX: u32 = 1024 * 1024 * 1024;

/// The longest request and response of a responder: as much as the load generator sends at a time.
pub const RESPONDER_BYTES_MAX: u32 = 64 * 1024 * 1024;

/// Receive buffers of sockets for datagrams: a kernel gives no less than the first, and what it counts in has 31 bits, of which it
/// takes the double.
pub const RECEIVE_BUFFER_MIN: u32 = 4 * 1024;
/// See [`RECEIVE_BUFFER_MIN`].
pub const RECEIVE_BUFFER_MAX: u32 = 1024 * 1024 * 1024 - 1;

/// The ports that something can listen on, in sentences (RFC 6335, section 6).
pub const PORTS: &str = "1 to 65535";

/// The port of `http://` without one (RFC 9110, section 4.2.1).
pub const PORT_DEFAULT: u16 = 80;

/// The port of `https://` without one (RFC 9110, section 4.2.2).
pub const TLS_PORT_DEFAULT: u16 = 443;

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

/// Bytes of all header fields of one configured response: its head has to fit one buffer of 16 KiB beside our own fields,
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

/// Bytes of a request's head, which is also what nothing is said about: it and what is added to it have to fit a buffer of
/// 16 KiB.
pub const REQUEST_HEAD_MAX: usize = 15 * 1024;

/// Shorter than this a bound on heads would refuse what browsers send by themselves.
pub const REQUEST_HEAD_MIN: usize = 256;

/// Fields of a request's head: there is room for so many on the stack.
pub const REQUEST_FIELDS_MAX: usize = 100;

/// Bytes of a request's target: more than RFC 9110, section 4.1, asks for, and a redirect made of it fits a buffer.
pub const REQUEST_TARGET_MAX: usize = 8 * 1024;

/// Bytes of a list of methods or fields that other sites' scripts may use: it stands in responses, whose heads clients bound.
pub const CORS_LIST_BYTES_MAX: usize = 1024;

/// Bytes of what responses say of caches: all directives that there are fit three times.
pub const CACHE_CONTROL_BYTES_MAX: usize = 512;

/// Rules of what a route's responses say of caches: each response walks them until one is for it.
pub const CACHE_RULES_MAX: usize = 100;

/// Connections of clients that can be a bound: what counts them by address has 24 bits, and no system has so many descriptors.
pub const CLIENT_CONNECTIONS_MAX: u32 = (1 << 24) - 1;

/// Default of the streams per second that a client may reset on one connection of HTTP/2: 100 calls at a time with deadlines of
/// 10 ms against a server that hangs. They cost a tenth of a CPU.
pub const HTTP2_RESETS_PER_SECOND: u32 = 10_000;

/// Largest value of `http2_resets_per_second`: more requests than one core responds to.
pub const HTTP2_RESETS_PER_SECOND_MAX: u32 = 1_000_000;

/// Default bound on the stalled streams of one client address on one core: two connections with 128 streams each. They hold 16 MiB.
pub const STALLED_STREAMS_PER_ADDRESS_MAX_DEFAULT: NonZeroU32 = NonZeroU32::new(256).unwrap();

/// Bytes of a request's body when nothing is said: uploads of people and backups of machines in parts fit; what a
/// client sends without an end does not.
pub const REQUEST_BODY_MAX_DEFAULT: u64 = 1 << 30;

/// What nginx and the usual HAProxy settings grant an application to think.
pub const UPSTREAM_FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(60);

/// Between two parts of a response; as long as its beginning may take, for applications that stream.
pub const UPSTREAM_BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Less than the 60 to 75 s after which common servers close an idle connection, so that we close
/// first and no request meets a closing one. Servers that close sooner are noticed by their close.
pub const UPSTREAM_IDLE_TIMEOUT: Duration = Duration::from_secs(50);

/// Handshakes take two round trips and some signing; a client that dribbles one holds 10 to 20 KB.
pub const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Who waits for a server longer than this has gone, as users do; and its request is better refused
/// than served late.
pub const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);

/// Requests each core lets wait for a server when nothing is said: a second's worth of a server with
/// a few hundred connections, some hundred bytes each.
pub const QUEUE_MAX_DEFAULT: usize = 1024;

/// Requests each core may let wait for a server: more than there can be connections of clients.
pub const QUEUE_MAX_MAX: u32 = 1_000_000;

/// WebSocket applications ping every 30 to 60 s; an hour is what HAProxy's guides set for tunnels.
pub const TUNNEL_IDLE_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// A server that ignores the end of its client would keep both connections for [`TUNNEL_IDLE_TIMEOUT`]. HAProxy's
/// documentation sets `timeout client-fin` to 30 s, which is longer than an application needs to send its last data.
pub const TUNNEL_FIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Attempts after the first: one redispatch finds another server when one has died; a second one
/// finds the third when a rack has. HAProxy's default is 3.
pub const RETRIES_DEFAULT: u8 = 2;

/// Attempts more than requests, in percent: what Finagle and Envoy grant, so that retries never
/// multiply an outage.
pub const RETRY_BUDGET_DEFAULT: u8 = 20;

/// More attempts than this only make a failure slower.
pub const RETRIES_MAX: u32 = 10;

/// Every request may be tried again as often as this many per cent say: all of them, once.
pub const RETRY_BUDGET_MAX: u32 = 100;

/// From one health check to the next: a server that has gone is noticed within three of them, and a
/// thousand balancers still ask it only five hundred times a second. HAProxy's default, too.
pub const HEALTH_INTERVAL: Duration = Duration::from_secs(2);

/// For one health check: what takes a healthy server longer than a second is no response to wait for.
pub const HEALTH_TIMEOUT: Duration = Duration::from_secs(1);

/// Checks in a row that bring a server back: one may be luck.
pub const HEALTH_RISE: NonZeroU32 = NonZeroU32::new(2).expect("not 0");

/// Failed checks in a row that take a server out: one lost packet and its repetition are none.
pub const HEALTH_FALL: NonZeroU32 = NonZeroU32::new(3).expect("not 0");

/// Checks in a row, at most: beyond that a server never comes back, or never goes.
pub const HEALTH_COUNT_MAX: u32 = 1000;

/// By how many per cent of the interval checks may be early or late, so that those of many
/// balancers, started at once by a deployment, drift apart.
pub const HEALTH_JITTER: u8 = 10;

/// With half the interval checks are as good as spread evenly.
pub const HEALTH_JITTER_MAX: u32 = 50;

/// Statuses of a healthy server: a redirect, to a login say, is a response of an application that works.
pub const HEALTH_STATUS: (u16, u16) = (200, 399);

/// Failures in a row that take a server out: by chance, at one failure in ten, once in 100,000
/// requests. Envoy's default, too.
pub const EJECT_FAILURES: NonZeroU32 = NonZeroU32::new(5).expect("not 0");

/// Failures in per cent that take a server out: one that fails more often than not serves nobody.
pub const EJECT_ERROR_SHARE: u8 = 50;

/// How long a server is out for the first time: as long as a process takes to start again.
pub const EJECT_TIME: Duration = Duration::from_secs(10);

/// Servers that may be out, in per cent: when more than half look ill, it is hardly them.
pub const EJECT_SHARE_MAX: u8 = 50;

/// The same where only failures of connections count: whom nobody can connect to serves nobody, however
/// many they are. One stays in any case.
pub const EJECT_SHARE_MAX_OF_CONNECTIONS: u8 = 100;

/// Per cent that a server's latency has to be of the others', at least: below, noise decides.
pub const EJECT_LATENCY_MIN: u32 = 110;

/// A hundred times slower than the others is what a timeout is for.
pub const EJECT_LATENCY_MAX: u32 = 10_000;

/// The name of a gRPC service in a check: names are paths of packages, and a frame with one is sent whole.
pub const GRPC_SERVICE_BYTES_MAX: usize = 255;

/// Streams on one connection of HTTP/2 to a server when nothing is said: what RFC 9113 6.5.2 advises servers to take at
/// least, and most of them take no more.
pub const STREAMS_MAX_DEFAULT: u32 = 100;

/// Streams on one HTTP/2 connection to a server: if no client reads, each holds a window of 56 KiB, 56 MiB in total.
pub const STREAMS_MAX_MAX: u32 = 1024;

/// Connections of HTTP/2 that each core has to each server when nothing is said: with the usual streams, 6,400 requests at a
/// time, of which those of gRPC may last for hours.
pub const CONNECTIONS_SHARED_MAX_DEFAULT: u32 = 64;

/// The same when it is said: as many streams as there are ports towards a server, with the usual number of them on each.
pub const CONNECTIONS_SHARED_MAX_MAX: u32 = 1024;

/// Connections to one server with a request in flight, of all cores together: the ports towards it.
pub const CONNECTIONS_MAX_MAX: u32 = 65_535;

/// Longer cookies are dropped by browsers (RFC 6265, section 6.1, grants 4 KiB with value and
/// attributes); no name is that long.
pub const COOKIE_NAME_MAX: usize = 256;

/// Browsers keep no cookie longer than this (400 days).
pub const COOKIE_AGE_MAX: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// Requests in a second, minute or hour: far more than a machine responds to, and products with
/// microseconds of an hour fit 64 bits.
pub const RATE_MAX: u32 = 100_000_000;

/// Cost of a bcrypt hash: at 14 one check takes about a second of a CPU.
pub const BCRYPT_COST_MAX: u32 = 14;

/// Rounds of a SHA-crypt hash: a million take about half a second of a CPU.
pub const SHA_CRYPT_ROUNDS_MAX: u32 = 1_000_000;

/// Memory of one check of an argon2id hash, in KiB: each core may be at one.
pub const ARGON2_KIB_MAX: u32 = 256 << 10;

/// Passes over that memory: ten of 256 MiB take about two seconds of a CPU.
pub const ARGON2_PASSES_MAX: u32 = 10;

/// Lanes of that memory; they are computed one after the other here.
pub const ARGON2_LANES_MAX: u32 = 16;

/// What browsers show beside the field for a password when nothing is said.
pub const REALM_DEFAULT: &str = "restricted";

/// A redirect that was a mistake is forgotten at once; browsers keep 301 and 308 for ever.
pub const REDIRECT_STATUS_DEFAULT: u16 = 302;

/// Bodies shorter than this are sent in one packet, compressed or not.
pub const COMPRESS_SIZE_MIN: u64 = 1024;

/// What is offered to compress with: zstd saves most for its time, gzip is what everybody takes.
pub const COMPRESS_CODINGS: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

/// Which compressed siblings of files are looked for: made once, with all the time there is, Brotli's
/// are the smallest.
pub const PRECOMPRESSED_CODINGS: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

/// Media types that shrink; images, sound, video and archives are compressed already.
pub const COMPRESS_TYPES: [&str; 13] = [
    "text/*",
    "application/javascript",
    "application/json",
    "application/ld+json",
    "application/manifest+json",
    "application/xml",
    "application/xhtml+xml",
    "application/rss+xml",
    "application/atom+xml",
    "application/wasm",
    "image/svg+xml",
    "font/ttf",
    "font/otf",
];

/// Supervisors kill after 30 s (Kubernetes) to 90 s (systemd): long enough for requests, well
/// before that.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// A server without a weight has the smallest.
pub const WEIGHT_DEFAULT: u32 = 1;

/// Addresses of one name that are used: several times as many as a headless service usually has. Each takes about 400 bytes on
/// every core.
pub const ADDRESSES_MAX_DEFAULT: u32 = 64;

/// A DNS response has at most 64 KiB, about 1,500 SRV records.
pub const ADDRESSES_MAX_MAX: u32 = 1024;

/// The longest pause after a failed query for a name: one query in 5 s does not load a name server.
pub const RESOLVE_RETRY_DEFAULT: Duration = Duration::from_secs(5);

/// Largest value of `resolve_retry`, which is also the longest time for which a DNS response is used.
pub const RESOLVE_RETRY_MAX: Duration = Duration::from_secs(5 * 60);

/// Enough to send a server a thousandth of the load; sums over any group stay far below 32 bits.
pub const WEIGHT_MAX: u32 = 1000;

/// Servers of one group: each core walks the list to choose.
pub const SERVERS_MAX: usize = 4096;

/// Idle connections each core keeps to each server when nothing is said: as many as a busy core has
/// in flight, so that a burst does not open what the next one needs again; about a kilobyte each. A
/// hundred clients of HTTP/2 have 12,800 streams. What is closed instead is in TIME_WAIT for a minute,
/// and a search for a free port steps over thousands of those: with 1,024 a request of 3,200 at a time
/// cost five times as much. What nobody needs any more is closed by `upstream_idle`.
pub const CONNECTIONS_IDLE_MAX_DEFAULT: usize = 16 * 1024;

/// The ports towards one server are the most connections there can be.
pub const CONNECTIONS_IDLE_MAX_MAX: u32 = 65_535;

/// Limit in bytes of the states of an automaton that reads the beginning of a path: hundreds of literals fit. A larger expression
/// counts as a match.
pub(crate) const AUTOMATON_BYTES_MAX: usize = 1 << 20;

/// Limit of the pairs of states that a search over all paths visits: about 10 ms. A search that needs more counts as a match.
pub(crate) const AUTOMATON_PAIRS_MAX: usize = 2048;

/// The file names tried for a directory when nothing is said.
pub fn index_default() -> Vec<String> {
    vec!["index.html".to_owned()]
}
