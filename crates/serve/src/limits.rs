//! Every bound of the server, each with its reason.

pub(crate) mod http2;
mod names;

use std::time::Duration;

use onrush_config::limits::CACHE_CONTROL_BYTES_MAX;

pub(crate) use names::*;

/// Buffers of responses queued before they are sent, while more pipelined requests wait: 64 KiB goes out in one call, and
/// a client that pipelines without reading costs no more than that.
pub(crate) const OUTPUT_BUFFERS_MAX: usize = 4;

/// Connections that a core looks at in one turn for who lists them: two system calls for each where they are sorted by what
/// the kernel knows, so a few tenths of a millisecond.
pub(crate) const CONNECTIONS_PER_TURN: usize = 128;

/// Connections that are listed without a word about it: a few screens.
pub(crate) const CONNECTIONS_LISTED: usize = 100;

/// Connections that are listed at most: half a megabyte, and two milliseconds of a core.
pub(crate) const CONNECTIONS_LISTED_MAX: usize = 1000;

/// What must be left of a body for it to go through a pipe: so many bytes take two calls that way and eight through buffers.
pub(crate) const SPLICED_MIN: u64 = 64 * 1024;

/// How long a connection that is closed early is still read, so that the response is not lost to a reset (RFC 9112 9.6).
/// nginx's lingering_timeout is 5 s; what matters is one round trip.
pub(crate) const LINGER: Duration = Duration::from_secs(2);

/// Bytes read and thrown away while lingering; a client that sends more in [`LINGER`] learns by a reset. Browsers show a response to a
/// body that is refused only when they could send all of it (Firefox over HTTP/1), so time bounds it for all but the quickest.
pub(crate) const LINGER_BYTES: usize = 64 * 1024 * 1024;

/// How much of a request's body may be missing when its response is there and the client's connection is kept all the same:
/// that much is read and thrown away. At 10 Mbit/s it takes 0.2 s, about what a new connection with TLS does; and a client
/// that is faster has nearly all of it on its way by then.
pub(crate) const UNREAD_REST_MAX: u32 = 256 * 1024;

/// The same for a connection that was idle when it was ended, where it is only a request that may have crossed the end,
/// or while others wait for its descriptor: one round trip to the other side of the world.
pub(crate) const LINGER_LAST: Duration = Duration::from_millis(500);

/// How long a connection has to have been idle before a stopping server ends it. Of the clients that ask once in a while
/// without a pattern at most one in 2.7 times this over the round trip meets the end with a request under way: one in
/// 27,000 at a tenth of a millisecond, whatever their pace. Twice as long would halve that, and keep those waiting who
/// wait for the end.
pub(crate) const STOP_IDLE: Duration = Duration::from_secs(1);

/// How long a stopping server waits for handshakes that have begun: a round trip of nearly everybody. Those who are
/// farther away believe to be connected and are reset.
pub(crate) const STOP_HANDSHAKES: Duration = Duration::from_millis(200);

/// How often it looks whether they have ended meanwhile, and for how long it does where all clients are on this machine:
/// nobody notices this much more.
pub(crate) const STOP_LOOK: Duration = Duration::from_millis(10);

/// The part of the descriptors that is for what is kept while nobody uses it, one in so many: connections to servers and
/// open files. Each saves a connect or an open, none is needed.
pub(crate) const KEPT_SHARE: u64 = 5;

/// The part of the descriptors that is for pipes, one in so many: each saves a long body a copy, none is needed.
pub(crate) const PIPES_SHARE: u64 = 20;

/// Pipes of one core that long bodies and tunnels have a use for: more than that stall at a time on few machines.
pub(crate) const PIPES_PER_CORE_MAX: u64 = 256;

/// How often a listener without room looks for some, which other cores may have made.
pub(crate) const CROWD_LOOK: Duration = Duration::from_millis(5);

/// Without anybody who had to wait for this long there is room again; shorter, and the log would hear of every ripple.
pub(crate) const CROWD_OVER: Duration = Duration::from_secs(1);

/// Idle connections closed at each such look, those that were idle longest: nginx's number. It makes room for 6,400
/// clients a second.
pub(crate) const IDLE_ENDED_PER_LOOK: usize = 32;

/// How long a connection has to have been idle before it makes room for another: what its client has to say may be on its
/// way for a round trip.
pub(crate) const CROWD_IDLE: Duration = Duration::from_millis(200);

/// Pause after a connection could not be accepted, so that the accept loop does not spin.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Connections accepted in a row before the others get their turn.
pub(crate) const ACCEPTS_PER_TURN: usize = 64;

/// Instances of Onrush that a request may have come through, as its Via fields say; then it is in a loop. A chain of
/// three is a long one.
pub(crate) const HOPS_MAX: usize = 8;

/// Interim responses (1xx) to one request. Applications send one or two; a server that sends them without end would keep
/// its client from ever having a response, and that deadline which waits for more of one from ever passing.
pub(crate) const INTERIM_RESPONSES_MAX: usize = 16;

/// What a multiplexed connection to a server keeps of streams that are over, for the next ones: usual requests are over in a
/// moment, and so many are under way at a time. At most 4 KiB each.
pub(crate) const MULTIPLEXED_SPARE_MAX: usize = 128;

/// Requests that wait without tasks whose memory a core keeps, 300 bytes each.
pub(crate) const PARKED_SPARE_MAX: usize = 512;

/// Receive window of a stream to a server. A stalled stream holds this much data, and 5 KB for its request and task: in total
/// less than 64 KiB.
pub(crate) const MULTIPLEXED_WINDOW: u32 = 56 * 1024;

/// Bytes of frames that wait on a multiplexed connection to a server before no more of requests' bodies are written: what goes
/// out in one call.
pub(crate) const MULTIPLEXED_UNSENT_MAX: usize = 64 * 1024;

/// The `Date` of a response may lag this much; the field has a resolution of one second.
pub(crate) const DATE_LAG: Duration = Duration::from_millis(100);

/// Log lines per second and core about failed requests; more are counted and summed up. A server that is down must not
/// turn into a full disk.
pub(crate) const LOG_LINES_PER_SECOND: u32 = 10;

/// How long lines of the access log or spans are lost until that is said again: as long as what hampers them may take.
pub(crate) const LOSS_TOLD: Duration = Duration::from_secs(60);

/// How often pools look for connections that have been idle too long.
pub(crate) const POOL_SWEEP: Duration = Duration::from_secs(1);

/// Files up to this size are kept in memory, ready to be sent in one call with their head: what fits one buffer with any
/// head of a file, which has 300 bytes. Above, sendfile(2) costs less than the copies it saves.
pub(crate) const FILE_HELD_MAX: usize = 16 * 1024;

/// Files a core remembers for each route that serves files: more than the hot part of most sites; with the next bound
/// at most 64 MiB of content, and about 1 KiB each for heads and names. A route that encodes keeps up to three more forms
/// of each, all shorter.
pub(crate) const FILES_MAX: usize = 4096;

/// Of those, larger ones: each keeps a descriptor open. Where the limit on open files is low there are fewer: connections
/// need them more.
pub(crate) const FILES_OPEN_MAX: usize = 256;

/// Bytes of an error page: each core holds it in memory, and a page for people with its style and a picture has a tenth.
pub(crate) const ERROR_PAGE_BYTES_MAX: u64 = 1 << 20;

/// Entries of a directory that are listed: each takes a system call, some 1.5 us, during which the core does nothing else.
pub(crate) const LISTING_ENTRIES_MAX: usize = 4096;

/// How old the knowledge of a file may be before it is looked at again: a changed file is noticed within this time.
pub(crate) const FILE_CHECK: Duration = Duration::from_secs(1);

/// A file that nobody asks for is forgotten after this time at least and twice as long at most, so that the space of a
/// deleted one is not held for ever.
pub(crate) const FILE_IDLE: Duration = Duration::from_secs(30);

/// A file changed this recently by its own time may change again without its times showing it: coarse clocks of older
/// kernels tick every 10 ms, those of FAT every 2 s.
pub(crate) const FILE_SETTLED_SECONDS: u64 = 3;

/// Attempts to read a small file that changes while it is read; then the last reading is served, and not kept.
pub(crate) const FILE_READS_MAX: usize = 3;

/// Ranges in one request; Apache's bound is 200. Viewers of documents ask for some dozens. Ranges are joined where they
/// overlap, so this bounds the heads of parts, not bytes sent twice.
pub(crate) const RANGES_MAX: usize = 100;

/// Ranges apart by no more than this are sent as one: the head of a part is longer.
pub(crate) const RANGE_GAP: u64 = 80;

/// The longest synthetic body: 1 EiB. Six times as much, in chunks, still fits 64 bits.
pub(crate) const SYNTHETIC_BYTES_MAX: u64 = 1 << 60;

/// The longest a synthetic response waits: an hour outlasts every timeout there is to be tested.
pub(crate) const SYNTHETIC_TIME_MAX: Duration = Duration::from_secs(60 * 60);

/// Bytes of a synthetic body after which others get their turn, as with sendfile.
pub(crate) const SYNTHETIC_BYTES_PER_TURN: usize = 512 * 1024;

/// Descriptors each core opens at its start: its driver's, its wake-up twice, and one to spare.
pub(crate) const DESCRIPTORS_PER_CORE: u64 = 4;

/// Descriptors of an admin interface: its driver's, its wake-up twice, its listener twice, and one connection.
pub(crate) const DESCRIPTORS_OF_ADMIN: u64 = 6;

/// The part of the descriptors, beside those of the server itself, that further connections to it may have.
pub(crate) const ADMIN_SHARE: u64 = 16;

/// Connections to an admin interface at a time: a scraper, a probe, a few people.
pub(crate) const ADMIN_CONNECTIONS_MAX: usize = 16;

/// Descriptors of the process itself: standard streams, signals, a library being loaded, the access log before and behind a
/// reload.
pub(crate) const DESCRIPTORS_OF_PROGRAM: u64 = 14;

/// Descriptors for resolving names: those of its thread, and the sockets for asking one name server.
pub(crate) const DESCRIPTORS_OF_RESOLVER: u64 = 4 + 2 * RESOLVING_MAX as u64;

/// How often an address in use is asked for before that is an error: for two seconds, as nginx asks for two and a half. A
/// killed server that used io_uring holds its listeners until a worker of the kernel has closed them: 12 ms on a quiet
/// machine (Linux 6.18), longer than 150 ms where there is more to do than CPUs for it.
pub(crate) const CLAIM_ATTEMPTS: u32 = 41;

/// Pause between two of these attempts.
pub(crate) const CLAIM_PAUSE: Duration = Duration::from_millis(50);

/// Steps of effective weight for each unit of weight as written: a slow start needs some dozens. With the largest weight
/// (1,000) and group (4,096) the sum of all weights is below 2^31.
pub(crate) const WEIGHT_SCALE: u32 = 256;

/// Draws of servers, or of pairs, until one fits; then all are looked at. If half of them are full, all draws fail once
/// in sixteen times.
pub(crate) const DRAWS_MAX: usize = 4;

/// Points of a hash ring: 1 MiB, and half of that again for its index, on each core for each such group.
pub(crate) const RING_POINTS_MAX: usize = 1 << 17;

/// Points for each server of a small group, and at least half as many: shares of the keys then deviate by one part in
/// the root of that from the weights, which is about 5 %. With more than 256 servers there are fewer each.
pub(crate) const RING_POINTS_PER_MEMBER: usize = 512;

/// Points of a hash ring that are tried until a server fits. If half of the servers are full, all of them fail once in
/// 2^64 times.
pub(crate) const HASH_WALK_MAX: usize = 64;

/// Requests in flight that a client may have in a group whose capacity has a bound, for each request that the group can still take
/// (a dynamic threshold: Choudhury and Hahne, 1998). A client alone gets 8/9 of the capacity (5,688 of 6,400 streams, and all of 8 or
/// fewer), two get 8/17 each, and the rest is free for other clients. With 1, a proxy that is missing in `trust` would get half.
pub(crate) const CLIENT_REQUESTS_PER_FREE: u32 = 8;

/// Time after which a queue whose clients all have their shares looks again: streams end, and requests on other cores, without a call
/// to it. Requests that end on its own core call it at once.
pub(crate) const SHARE_LOOK: Duration = Duration::from_millis(50);

/// Number of clients with requests in flight in such groups that are counted, 256 KiB. More are not counted: few groups can have so
/// many requests in flight.
pub(crate) const GROUP_CLIENTS_MAX: usize = 1 << 15;

/// Requests in flight with which a server is never too busy for its keys: a browser opens six connections to a site, and
/// they should reach the same server when its address is the key.
pub(crate) const HASH_LOAD_FREE: u32 = 6;

/// Of an even share, in per cent, what a hash may give a server. Lower, and keys wander at every ripple of the load;
/// higher, and the server of a hot key has that much more to do than it need.
pub(crate) const HASH_LOAD_PERCENT_MAX: u32 = 125;

/// Steps in which a slow start reaches the full weight, 5 % each: fine enough that none is felt, and each makes balancers
/// prepare anew, which takes a hash ring of a hundred servers about a millisecond.
pub(crate) const SLOW_START_STEPS: u32 = 20;

/// The step a slow start begins with: a tenth of the weight, Envoy's default. With less a server hardly warms up.
pub(crate) const SLOW_START_STEP_FIRST: u32 = 2;

/// Slices of a sliding window: what it forgets at once is a tenth of it, which no limit on shares needs finer.
pub(crate) const WINDOW_SLICES: usize = 10;

/// How long requests count towards the retries they entitle to: Finagle's default. Longer, and a night's credit would be
/// spent on the first second of an outage; shorter, and a pause would use it up.
pub(crate) const RETRY_WINDOW: Duration = Duration::from_secs(10);

/// Retries that each core grants in that time whatever the traffic, one a second: a quiet group may retry at all, and no
/// outage is made worse by it. Finagle grants ten a second.
pub(crate) const RETRIES_MIN: u32 = 10;

/// How far back the share of failures and the latencies of a server are looked at: Envoy's interval. It is what the
/// reference of the configuration says.
pub(crate) const EJECT_WINDOW: Duration = Duration::from_secs(10);

/// With fewer requests in that time nothing is concluded from shares and means: a server that fails one request in ten
/// would be taken for one that fails every second once in 100,000 times.
pub(crate) const EJECT_REQUESTS_MIN: u32 = 20;

/// The longest a server is out for what requests met there, unless the first time is longer: Envoy's bound. Then it is
/// tried again, at the price of a few requests.
pub(crate) const EJECT_TIME_MAX: Duration = Duration::from_secs(300);

/// The first wait before a server that could not be connected to is connected to again: a blip takes out capacity for no
/// longer than this. Then twice as long each time, up to the time that is configured.
pub(crate) const RECHECK_WAIT: Duration = Duration::from_millis(250);

/// How long such a connection may take: a SYN that was lost once fits, and a stop waits no longer.
pub(crate) const RECHECK_TIMEOUT: Duration = Duration::from_millis(1_500);

/// How long a server on trial waits for a request that could be repeated, should it fail; then any will do.
pub(crate) const TRIAL_PATIENCE: Duration = Duration::from_secs(1);

/// How long requests that cannot be repeated avoid a server after a failure there, if there is another. What it had in flight
/// when it died has failed by then.
pub(crate) const SUSPICION: Duration = Duration::from_secs(1);

/// Servers that one request is sent to, or would have been if they had accepted a connection: in a group of which half
/// has died in this moment, one request in 65,536 finds none.
pub(crate) const SERVERS_TRIED_MAX: usize = 16;

/// How often the time a server is out may double: 65,536 times any time is above any limit on it.
pub(crate) const EJECT_DOUBLINGS_MAX: u32 = 16;

/// A server that does not respond in time is not blamed when this core was held up for one part in so many of that time. A core
/// that is held up so much goes on to see servers that refuse connections or respond with failures.
pub(crate) const HELD_UP_SHARE: u32 = 10;

/// A server is no outlier when it is slower than its peers by less than this, whatever the proportion: nobody notices,
/// and a busy machine's scheduler alone makes such differences.
pub(crate) const EJECT_LATENCY_MARGIN: Duration = Duration::from_millis(10);

/// First checks are spread over this time, or the interval if that is shorter: a thousand servers are not all asked in
/// the first millisecond, and a second's delay at the start is none.
pub(crate) const HEALTH_START_SPREAD: Duration = Duration::from_secs(1);

/// Keys of rates that are remembered in the whole server, 2 MiB. Only those count that have used up some of their rate
/// and not waited it out: with 10 requests/s and a burst of 20, those seen in the last two seconds. A site with more
/// active clients than this has other means.
pub(crate) const RATE_KEYS_MAX: usize = 1 << 17;

/// Keys with requests in progress, in the whole server, 512 KiB: as many as the connections that are at work on a large
/// server at one time. Those that are idle do not count.
pub(crate) const CONCURRENCY_KEYS_MAX: usize = 1 << 16;

/// When to come back after too many requests at the same time: the least that Retry-After can say.
pub(crate) const CONCURRENCY_RETRY_AFTER: Duration = Duration::from_secs(1);

/// How often a request may find its key changed by another core while it was being counted. Each time another request
/// was; so often in a row only if every core of the largest machine were at it.
pub(crate) const ADMIT_ATTEMPTS_MAX: usize = 1024;

/// Copies of requests under way at a time on each core: what a group that responds within a tenth of a second takes of
/// 2,500 requests/s. Each has a task, a connection and its request; if the group is slow, clients must not pay for it.
pub(crate) const MIRRORED_MAX: usize = 256;

/// Bytes of the response to a copy that are read so that its connection stays good; a longer one costs the connection.
pub(crate) const MIRROR_RESPONSE_BYTES_MAX: usize = 1024 * 1024;

/// A file of users; they are all held in memory. Each has about a hundred bytes: 160,000 of them fit, and who has more
/// has a directory of users to ask.
pub(crate) const USERS_FILE_BYTES_MAX: u64 = 16 << 20;

/// Passwords that wait to be checked, of all cores together: at a tenth of a second each the last of them waits six
/// seconds. Further requests are turned away, or whoever tries passwords would keep everybody else waiting for ever.
pub(crate) const PASSWORDS_WAITING_MAX: usize = 64;

/// Logins that a core remembers for each route, 32 KiB: the users of a few seconds. One that is forgotten is checked
/// again.
pub(crate) const LOGINS_MAX: usize = 1024;

/// How long a login that is not used is remembered: longer than people pause. Users do not change while the server runs.
pub(crate) const LOGIN_IDLE: Duration = Duration::from_secs(300);

/// Subjects of lasting failures, such as unreadable files, that a core remembers in order to warn of each one once.
pub(crate) const LOG_SUBJECTS_MAX: usize = 64;

/// Addresses of one name that the log lists.
pub(crate) const ADDRESSES_SHOWN_MAX: usize = 16;

/// How long a latency counts in what is known of a server: Finagle's default for peak EWMA.
pub(crate) const LATENCY_MEMORY: Duration = Duration::from_secs(10);

/// Bytes of a health check's response that are looked at, its head included. A page that says how an application is has a
/// few hundred.
pub(crate) const CHECK_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the fields that a route adds to a response, with what their variables stand for: a head of our own and they
/// fit one buffer.
pub(crate) const RESPONSE_LINES_BYTES_MAX: usize = 4 * 1024;

/// Bytes of the line that says for how long a response may be kept: its name, and what a plan bounds.
pub(crate) const CACHE_LINE_BYTES_MAX: usize = 32 + CACHE_CONTROL_BYTES_MAX;

/// The longest place that a redirect leads to: the longest target, and a host before it. With the rest of the head it
/// fits the room for heads of our own (`reply/http1.rs`).
pub(crate) const LOCATION_BYTES_MAX: usize = 10 * 1024;

/// Memory for parts of requests that a core keeps for later ones: what a few thousand requests at a time need, as a hundred
/// connections of HTTP/2 have them. Each has some hundred bytes, and [`RESPONSE_LINES_BYTES_MAX`] at most.
pub(crate) const KEPT_SPARE_MAX: usize = 4096;

/// Bytes that the encoders of a core's passing responses may cost together, each counted at its most: 128 that write
/// Brotli, 186 zstd, 682 gzip. A client that reads slowly keeps one busy; past that, responses go as they are.
pub(crate) const ENCODERS_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Encoders a core keeps for the next responses: as many as compress between two looks at the kernel; 8 MiB.
pub(crate) const ENCODERS_IDLE_MAX: usize = 8;

/// Bytes encoded before others get their turn: 0.3 ms at 100 MB/s.
pub(crate) const ENCODED_BYTES_PER_TURN: usize = 32 * 1024;

/// Items of a configuration that a core prepares, retires or drops before other tasks run: so few that they take less than
/// [`SLICE_TIME`] (a route takes 1 to 4 us).
pub(crate) const SLICE_ITEMS: usize = 64;

/// How long a core works on another configuration before other tasks run, give or take an item: as long as any task that
/// yields. Reading the clock after each item costs 2 % of the work.
pub(crate) const SLICE_TIME: Duration = Duration::from_micros(250);

/// Listeners, routes and groups whose requests are counted apart, of each kind: a histogram of durations takes 1.8 KiB of each
/// core, and a scraper of metrics reads them all.
pub(crate) const SERIES_MAX: usize = 1000;

/// How long the last lines of the access log may take when the server ends: an output that nobody reads must not keep it.
pub(crate) const LOG_PATIENCE: Duration = Duration::from_secs(2);
