//! Limits and defaults of a configuration, each with its reason. All are public: documentation and help quote them.

mod tracing;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::time::Duration;

use crate::plan::Coding;

pub use tracing::*;

/// Maximum size in bytes of a configuration with all included files. Anything larger is a mistake (a log, a disk
/// image): the largest real configurations, with tens of thousands of routes, are a tenth of this.
pub const TEXT_MAX: usize = 16 << 20;

/// Maximum number of keys in a configuration, counted by equals signs: forty for each of the [`ROUTES_MAX`] routes;
/// they fit 300 MB.
pub const KEYS_MAX: usize = 500_000;

/// Maximum number of items in lists of tables such as `[[route]]`: ten for each of the [`ROUTES_MAX`] routes.
pub const TABLES_MAX: usize = 100_000;

/// Maximum number of files in a configuration: one for each of the [`ROUTES_MAX`] routes.
pub const FILES_MAX: usize = ROUTES_MAX;

/// Maximum depth of nested includes; two or three are usual.
pub const INCLUDES_MAX: usize = 8;

/// Maximum number of keys of a table that are searched for a misspelling of a missing one; the largest table has 30
/// known keys.
pub const KEYS_COMPARED_MAX: usize = 100;

/// Maximum number of errors or warnings shown for a configuration.
pub const DIAGNOSTICS_MAX: usize = 50;

/// Maximum number of listeners; each core has a socket for each.
pub const LISTEN_MAX: usize = 1024;

/// Maximum number of hosts of a route that are compared one by one with all earlier routes, for the warning about
/// unreachable hosts: a file may have half a million hosts.
pub const HOSTS_COMPARED_MAX: usize = 16;

/// Maximum number of routes: a request checks them in order until one matches.
pub const ROUTES_MAX: usize = 10_000;

/// Maximum number of groups: each core has a pool for each, and there is one for each of the [`ROUTES_MAX`] routes.
pub const UPSTREAMS_MAX: usize = ROUTES_MAX;

/// Default address to listen on: not reachable from outside, and with a port that needs no privilege.
pub const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Default memory for the items of a memcached listener, per core: memcached's own default for all threads together.
pub const MEMORY_DEFAULT: u64 = 64 * 1024 * 1024;

/// Minimum memory for the items of a memcached listener, per core: a thousand small items, for tests of eviction.
pub const MEMORY_MIN: u64 = 64 * 1024;

/// Maximum memory for the items of a memcached listener, per core: more than a machine has for one core, and far from
/// where sums overflow.
pub const MEMORY_MAX: u64 = 1024 * 1024 * 1024 * 1024;

/// Default maximum length of a memcached value: memcached's own default (`-I 1m`), which clients expect.
pub const ITEM_BYTES_MAX_DEFAULT: u32 = 1024 * 1024;

/// Upper limit of the configurable maximum length of a memcached value, as in memcached: a value is buffered whole
/// while it arrives.
pub const ITEM_BYTES_MAX: u32 = 1024 * 1024 * 1024;

/// Maximum request and response of a responder: as much as the load generator sends at a time.
pub const RESPONDER_BYTES_MAX: u32 = 64 * 1024 * 1024;

/// Minimum receive buffer of a UDP socket: what the kernel guarantees (udp(7), `udp_rmem_min`).
pub const RECEIVE_BUFFER_MIN: u32 = 4 * 1024;
/// Maximum receive buffer of a UDP socket: the kernel doubles it, in a signed 32-bit integer (socket(7)).
pub const RECEIVE_BUFFER_MAX: u32 = 1024 * 1024 * 1024 - 1;

/// Valid ports to listen on, for messages (RFC 6335, section 6).
pub const PORTS: &str = "1 to 65535";

/// Default port of `http://` (RFC 9110, section 4.2.1).
pub const PORT_DEFAULT: u16 = 80;

/// Default port of `https://` (RFC 9110, section 4.2.2).
pub const TLS_PORT_DEFAULT: u16 = 443;

/// Maximum size of a Unix socket's path in bytes: `sun_path` has 108, including the final NUL (unix(7)).
pub const UNIX_PATH_MAX: usize = 107;

/// Maximum number of characters in a host name (RFC 1035, section 2.3.4, without the trailing dot).
pub const HOST_MAX: usize = 253;

/// Maximum number of characters in one label of a host name (RFC 1035, section 2.3.4).
pub const HOST_LABEL_MAX: usize = 63;

/// Maximum size of a compiled regular expression in bytes: room for hundreds of alternatives, not for mistaken
/// repetition counts.
pub const PATTERN_BYTES_MAX: usize = 256 << 10;

/// Limit on CPU numbers: the size of `cpu_set_t` in the C library and the kernel interface.
pub const CPU_COUNT_MAX: usize = 1024;

/// Maximum number of threads: one per possible CPU.
pub const THREADS_MAX: usize = CPU_COUNT_MAX;

/// Minimum timeout: the resolution of timers. A shorter value is probably a wrong unit.
pub const TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// Maximum size in bytes of all header fields of a configured response: the head and this server's own fields must fit
/// a buffer of 16 KiB, and clients refuse heads much larger than 8 KiB.
pub const RESPOND_HEADERS_BYTES_MAX: usize = 8 * 1024;

/// Maximum timeout: a day. Also bounds the range of the timer wheel.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Default time to receive a request head: enough for several retransmissions; limits slowloris attacks.
pub const CLIENT_HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Default time between two parts of a request body: a phone that changes cells is back within half a minute.
pub const CLIENT_BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Default idle time of a client connection, which needs little memory; browsers and proxies close after 60 to 120 s.
pub const CLIENT_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Default time between two parts of a response that the client accepts, as for request bodies.
pub const CLIENT_SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// Default connect timeout: Linux retransmits a SYN after 1 s and 3 s, so two may be lost.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Default and maximum size of a request head in bytes: it must fit a buffer of 16 KiB with the fields that are added.
pub const REQUEST_HEAD_MAX: usize = 15 * 1024;

/// Minimum of the limit on request heads: a lower one would refuse ordinary requests of browsers.
pub const REQUEST_HEAD_MIN: usize = 256;

/// Maximum number of fields in a request head: the size of an array on the stack.
pub const REQUEST_FIELDS_MAX: usize = 100;

/// Maximum size of a request target in bytes: more than RFC 9110, section 4.1, recommends; a redirect made of it fits a
/// buffer.
pub const REQUEST_TARGET_MAX: usize = 8 * 1024;

/// Maximum size in bytes of a list of methods or fields for CORS: responses carry it, and clients limit response heads.
pub const CORS_LIST_BYTES_MAX: usize = 1024;

/// Maximum size of a `Cache-Control` value in bytes: three times the length of all directives together.
pub const CACHE_CONTROL_BYTES_MAX: usize = 512;

/// Maximum number of `Cache-Control` rules of a route: each response checks them in order until one matches.
pub const CACHE_RULES_MAX: usize = 100;

/// Largest limit on client connections: the counters per address have 24 bits, and no system has that many descriptors.
pub const CLIENT_CONNECTIONS_MAX: u32 = (1 << 24) - 1;

/// Default limit of streams per second that a client may reset on one HTTP/2 connection: 100 concurrent calls with a
/// deadline of 10 ms against a server that hangs. They cost a tenth of a CPU.
pub const HTTP2_RESETS_PER_SECOND: u32 = 10_000;

/// Largest value of `http2_resets_per_second`: more requests than one core can handle.
pub const HTTP2_RESETS_PER_SECOND_MAX: u32 = 1_000_000;

/// Default bound on stalled streams per client address and core: two connections of 128 streams each; they hold 16 MiB.
pub const STALLED_STREAMS_PER_ADDRESS_MAX_DEFAULT: NonZeroU32 = NonZeroU32::new(256).unwrap();

/// Default maximum size of a request body in bytes: uploads and partial backups fit, endless bodies do not.
pub const REQUEST_BODY_MAX_DEFAULT: u64 = 1 << 30;

/// Default time to the first byte of a response: that of nginx, and of usual HAProxy configurations.
pub const UPSTREAM_FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(60);

/// Default time between two parts of a response, for applications that stream: the same as to its first byte.
pub const UPSTREAM_BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Default idle time of a connection to a server: shorter than the 60 to 75 s after which common servers close it.
pub const UPSTREAM_IDLE_TIMEOUT: Duration = Duration::from_secs(50);

/// Default time for a TLS handshake: two round trips and some computation. A slow handshake holds 10 to 20 KB.
pub const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Default time in the queue for a server: users do not wait longer, and an early refusal beats a late response.
pub const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);

/// Default length of each core's queue for a group: requests of about a second, some hundred bytes each.
pub const QUEUE_MAX_DEFAULT: usize = 1024;

/// Maximum length of each core's queue: more than the possible number of client connections.
pub const QUEUE_MAX_MAX: u32 = 1_000_000;

/// Default idle time of a tunnel: WebSocket applications ping every 30 to 60 s; HAProxy's guides set an hour.
pub const TUNNEL_IDLE_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Default time for a tunnel whose client has closed its side: without it a server that ignores the close would keep
/// both connections for [`TUNNEL_IDLE_TIMEOUT`]. HAProxy's documentation sets `timeout client-fin` to 30 s, longer than
/// an application needs to send its last data.
pub const TUNNEL_FIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Default number of retries: the second helps if a whole rack has failed. HAProxy's default is 3.
pub const RETRIES_DEFAULT: u8 = 2;

/// Default retry budget, as a percentage of the requests: that of Finagle and Envoy; retries must not multiply an
/// outage.
pub const RETRY_BUDGET_DEFAULT: u8 = 20;

/// Maximum number of retries: more only delay the failure.
pub const RETRIES_MAX: u32 = 10;

/// Maximum retry budget, as a percentage of the requests: each request may be retried once on average.
pub const RETRY_BUDGET_MAX: u32 = 100;

/// Default interval of health checks: a failed server is noticed within three of them, and a thousand load balancers
/// send only five hundred checks per second. Also HAProxy's default.
pub const HEALTH_INTERVAL: Duration = Duration::from_secs(2);

/// Default timeout of a health check.
pub const HEALTH_TIMEOUT: Duration = Duration::from_secs(1);

/// Default number of successful checks that mark a server up: one may be luck.
pub const HEALTH_RISE: NonZeroU32 = NonZeroU32::new(2).expect("not 0");

/// Default number of failed checks that mark a server down: a lost packet and its lost retransmission are not enough.
pub const HEALTH_FALL: NonZeroU32 = NonZeroU32::new(3).expect("not 0");

/// Maximum number of consecutive checks: with more, the state of a server would practically never change.
pub const HEALTH_COUNT_MAX: u32 = 1000;

/// Default jitter of health checks, as a percentage of the interval. It keeps many load balancers from checking a
/// server at the same moment.
pub const HEALTH_JITTER: u8 = 10;

/// Maximum jitter of health checks, as a percentage of the interval: with half the interval, checks are spread evenly.
pub const HEALTH_JITTER_MAX: u32 = 50;

/// Default range of healthy statuses: a redirect, for example to a login page, shows that the application works.
pub const HEALTH_STATUS: (u16, u16) = (200, 399);

/// Default number of consecutive failures that eject a server, as in Envoy: one in 100,000 at 10 % random failures.
pub const EJECT_FAILURES: NonZeroU32 = NonZeroU32::new(5).expect("not 0");

/// Default percentage of failures at which a server is ejected.
pub const EJECT_ERROR_SHARE: u8 = 50;

/// Default time of the first ejection: about the restart of a process.
pub const EJECT_TIME: Duration = Duration::from_secs(10);

/// Default maximum percentage of ejected servers: if most servers fail, the cause is probably elsewhere.
pub const EJECT_SHARE_MAX: u8 = 50;

/// Default maximum percentage of ejected servers if only connection failures count: an unreachable server is of no use.
/// One server always stays.
pub const EJECT_SHARE_MAX_OF_CONNECTIONS: u8 = 100;

/// Minimum of the setting for ejection by latency, as a percentage of the other servers' latency: less would be noise.
pub const EJECT_LATENCY_MIN: u32 = 110;

/// Maximum of the setting for ejection by latency: for a server that is a hundred times slower than the others, there
/// are timeouts.
pub const EJECT_LATENCY_MAX: u32 = 10_000;

/// Maximum size in bytes of the gRPC service name in a health check: names are package paths, and the check is sent in
/// one frame.
pub const GRPC_SERVICE_BYTES_MAX: usize = 255;

/// Default number of streams on one HTTP/2 connection to a server: the minimum that RFC 9113, section 6.5.2, recommends
/// to servers, and the limit of most.
pub const STREAMS_MAX_DEFAULT: u32 = 100;

/// Maximum number of streams on one HTTP/2 connection to a server: if no client reads, each holds a window of 56 KiB,
/// 56 MiB in total.
pub const STREAMS_MAX_MAX: u32 = 1024;

/// Default number of HTTP/2 connections of each core to each server: with the default number of streams, 6,400
/// concurrent requests. gRPC streams may last for hours.
pub const CONNECTIONS_SHARED_MAX_DEFAULT: u32 = 64;

/// Maximum number of HTTP/2 connections of each core to each server: with the default number of streams, more requests
/// than there are ports towards a server.
pub const CONNECTIONS_SHARED_MAX_MAX: u32 = 1024;

/// Maximum number of connections to one server with a request in flight, over all cores: the number of ports.
pub const CONNECTIONS_MAX_MAX: u32 = 65_535;

/// Maximum size of a cookie's name in bytes: browsers drop cookies above 4 KiB with value and attributes (RFC 6265,
/// section 6.1).
pub const COOKIE_NAME_MAX: usize = 256;

/// Maximum age of a cookie: browsers keep none longer than 400 days.
pub const COOKIE_AGE_MAX: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// Maximum rate per second, minute or hour: products with the microseconds of an hour fit 64 bits.
pub const RATE_MAX: u32 = 100_000_000;

/// Maximum cost of a bcrypt hash: at 14, one check takes about a second of CPU time.
pub const BCRYPT_COST_MAX: u32 = 14;

/// Maximum rounds of a SHA-crypt hash: a million take about half a second of CPU time.
pub const SHA_CRYPT_ROUNDS_MAX: u32 = 1_000_000;

/// Maximum memory of an argon2id hash in KiB: each core may check one at a time.
pub const ARGON2_KIB_MAX: u32 = 256 << 10;

/// Maximum passes of an argon2id hash: ten over 256 MiB take about two seconds of CPU time.
pub const ARGON2_PASSES_MAX: u32 = 10;

/// Maximum lanes of an argon2id hash; they are computed sequentially.
pub const ARGON2_LANES_MAX: u32 = 16;

/// Default realm, which browsers show in the password dialog.
pub const REALM_DEFAULT: &str = "restricted";

/// Default status of a redirect: browsers cache 301 and 308 indefinitely, so a mistake would last.
pub const REDIRECT_STATUS_DEFAULT: u16 = 302;

/// Default minimum size of a compressed body: a shorter one fits one packet without compression.
pub const COMPRESS_SIZE_MIN: u64 = 1024;

/// Default codings in order of preference: zstd has the best ratio for its time, gzip is supported everywhere.
pub const COMPRESS_CODINGS: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

/// Default codings of precompressed files in order of preference: Brotli's are the smallest when time does not matter.
pub const PRECOMPRESSED_CODINGS: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

/// Default media types to compress; images, sound, video and archives are already compressed.
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

/// Default time to drain at a stop: less than the 30 s (Kubernetes) to 90 s (systemd) after which supervisors kill.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Default weight of a server: the smallest.
pub const WEIGHT_DEFAULT: u32 = 1;

/// Default maximum number of addresses used of one name: more than usual headless services have; about 400 bytes each
/// per core.
pub const ADDRESSES_MAX_DEFAULT: u32 = 64;

/// Maximum number of addresses used of one name: a DNS response has at most 64 KiB, about 1,500 SRV records.
pub const ADDRESSES_MAX_MAX: u32 = 1024;

/// Default maximum pause after a failed query for a name: one query in 5 s does not load a name server.
pub const RESOLVE_RETRY_DEFAULT: Duration = Duration::from_secs(5);

/// Largest value of `resolve_retry`, which is also the longest time for which a DNS response is used.
pub const RESOLVE_RETRY_MAX: Duration = Duration::from_secs(5 * 60);

/// Maximum weight: enough to send a server a thousandth of the load; sums over a group stay far below 32 bits.
pub const WEIGHT_MAX: u32 = 1000;

/// Maximum number of servers in one group: each core scans the list to choose.
pub const SERVERS_MAX: usize = 4096;

/// Default number of idle connections of each core to each server: as many as a busy core has in flight, so that a
/// burst does not close connections that the next one needs again. Each takes about a kilobyte. A hundred HTTP/2
/// clients have 12,800 streams. A closed connection stays in TIME_WAIT for a minute, and the search for a free port has
/// to skip thousands of them: with 1,024 idle connections and 3,200 concurrent requests, a request cost five times as
/// much. `upstream_idle` closes connections that are no longer used.
pub const CONNECTIONS_IDLE_MAX_DEFAULT: usize = 16 * 1024;

/// Maximum number of idle connections: the number of ports towards one server.
pub const CONNECTIONS_IDLE_MAX_MAX: u32 = 65_535;

/// Maximum size of an automaton's states in bytes: room for hundreds of literals. A larger expression counts as a
/// match.
pub(crate) const AUTOMATON_BYTES_MAX: usize = 1 << 20;

/// Maximum number of pairs of states that a search over all paths may visit: about 10 ms. A longer search counts as a
/// match.
pub(crate) const AUTOMATON_PAIRS_MAX: usize = 2048;

/// Default file names tried for a directory.
pub fn index_default() -> Vec<String> {
    vec!["index.html".to_owned()]
}
