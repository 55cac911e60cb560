//! Metrics of cores, listeners, routes, groups and servers: one table for each type of view.

use onrush_serve::{
    ATTEMPTS_MAX, AdminState, CoreView, DatagramView, FailureClass, GroupView, HandshakeFailure,
    Message, MirrorOutcome, ServerState, ServerView, Stage, TrafficView,
};

use super::family::Kind::{Counter, Gauge, Histogram};
use super::family::{Buckets, Row, Value, Values, durations, labelled, single};

pub(super) const CORE: [Row<CoreView>; 20] = [
    Row {
        name: "core_cpu_seconds_total",
        kind: Counter,
        help: "CPU time of the core's thread.",
        read: |core| single(core.time.ran.as_secs_f64()),
    },
    Row {
        name: "core_run_queue_seconds_total",
        kind: Counter,
        help: "Time during which the core's thread was runnable and waited for its CPU.",
        read: |core| {
            core.time
                .waited
                .map_or(vec![], |time| single(time.as_secs_f64()))
        },
    },
    Row {
        name: "core_had_work_seconds_total",
        kind: Counter,
        help: "Time during which a busy-polling core had work; its thread uses its CPU all the time.",
        read: |core| core.had_work.map_or(vec![], |it| single(it.as_secs_f64())),
    },
    Row {
        name: "core_runs_total",
        kind: Counter,
        help: "Times that the core's thread was scheduled; divide core_run_queue_seconds_total by it for the mean run-queue latency.",
        read: |core| core.time.runs.map_or(vec![], single),
    },
    Row {
        name: "core_busy_max_seconds",
        kind: Gauge,
        help: "Longest time since the start between two polls of the kernel by the core.",
        read: |core| single(core.busy_max.as_secs_f64()),
    },
    Row {
        name: "connections_open",
        kind: Gauge,
        help: "Open client connections, without those in a TLS handshake.",
        read: |core| single(core.connections),
    },
    Row {
        name: "connections_total",
        kind: Counter,
        help: "Client connections accepted.",
        read: |core| single(core.totals.connections),
    },
    Row {
        name: "connections_refused_total",
        kind: Counter,
        help: "Client connections closed at once because the limit of connections was reached.",
        read: |core| single(core.totals.connections_refused),
    },
    Row {
        name: "tls_handshakes_total",
        kind: Counter,
        help: "TLS handshakes completed with clients, by version and by session resumption.",
        read: |core| {
            let kinds = HANDSHAKES.iter().zip(core.handshakes.complete);
            let named = |(&(version, resumed), count): (&(&'static str, &'static str), u64)| {
                let labels = vec![("version", version.into()), ("resumed", resumed.into())];
                (labels, Value::Number(count as f64))
            };
            kinds.map(named).collect()
        },
    },
    Row {
        name: "tls_handshakes_failed_total",
        kind: Counter,
        help: "Client connections whose TLS handshake failed, by reason.",
        read: |core| {
            let reasons = HandshakeFailure::ALL
                .into_iter()
                .map(HandshakeFailure::name);
            labelled("reason", reasons.zip(core.handshakes.failed))
        },
    },
    Row {
        name: "mirrored_requests_total",
        kind: Counter,
        help: "Requests selected for copying to another group, by the outcome of the copy.",
        read: |core| {
            let outcomes = MirrorOutcome::ALL.into_iter().map(MirrorOutcome::name);
            labelled("outcome", outcomes.zip(core.totals.mirrored))
        },
    },
    Row {
        name: "trailers_dropped_total",
        kind: Counter,
        help: "Forwarded messages whose trailers were dropped because the recipient's message was not chunked.",
        read: |core| {
            let messages = Message::ALL.into_iter().map(Message::name);
            labelled("message", messages.zip(core.totals.trailers_dropped))
        },
    },
    Row {
        name: "http2_connections_cut_total",
        kind: Counter,
        help: "HTTP/2 connections closed because of abuse, malformed frames or timeouts of the client, by reason.",
        read: |core| labelled("reason", core.cuts.reasons()),
    },
    Row {
        name: "requests_in_flight",
        kind: Gauge,
        help: "Requests whose head was received and that have not ended.",
        read: |core| single(core.in_flight),
    },
    Row {
        name: "requests_under_way",
        kind: Gauge,
        help: "Requests in flight and tunnels that take more than one turn of the event loop, by state.",
        read: |core| {
            let stages = Stage::ALL.into_iter().map(Stage::name);
            labelled("state", stages.zip(core.stages))
        },
    },
    Row {
        name: "requests_refused_total",
        kind: Counter,
        help: "Invalid requests that were refused.",
        read: |core| single(core.totals.refused),
    },
    Row {
        name: "tunnels_total",
        kind: Counter,
        help: "Connections that became tunnels.",
        read: |core| single(core.totals.tunnels),
    },
    Row {
        name: "buffers_in_use",
        kind: Gauge,
        help: "Buffers that hold data, or are lent to the kernel for receiving.",
        read: |core| single(core.buffers),
    },
    Row {
        name: "buffers_free",
        kind: Gauge,
        help: "Free buffers that the core keeps for reuse.",
        read: |core| single(core.buffers_free),
    },
    Row {
        name: "core_generation",
        kind: Gauge,
        help: "Generation of the configuration for new requests on the core.",
        read: |core| single(core.generation),
    },
];

/// TLS version and whether the session was resumed, in the order of the handshake counters.
const HANDSHAKES: [(&str, &str); 4] = [
    ("1.2", "false"),
    ("1.2", "true"),
    ("1.3", "false"),
    ("1.3", "true"),
];

/// Status classes; `none` is for requests and attempts without a response.
const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// Metrics of listeners, routes and groups.
pub(super) const TRAFFIC: [Row<TrafficView>; 5] = [
    Row {
        name: "requests_total",
        kind: Counter,
        help: "Requests that have ended, by status class.",
        // All classes from the first request on: `rate()` needs two samples.
        read: |traffic| match traffic.requests() {
            0 => Values::new(),
            _ => labelled("code", CLASSES.into_iter().zip(traffic.statuses)),
        },
    },
    Row {
        name: "sent_bytes_total",
        kind: Counter,
        help: "Bytes of responses sent, heads included.",
        read: |traffic| single(traffic.sent),
    },
    Row {
        name: "given_up_total",
        kind: Counter,
        help: "Requests whose client disconnected before the whole response was sent.",
        read: |traffic| single(traffic.given_up),
    },
    Row {
        name: "first_byte_seconds",
        kind: Histogram,
        help: "Time from the head of a request to the first byte of its response.",
        read: |traffic| durations(&traffic.first_byte),
    },
    Row {
        name: "duration_seconds",
        kind: Histogram,
        help: "Time from the head of a request to the last byte of its response; without tunnels.",
        read: |traffic| durations(&traffic.duration),
    },
];

/// Additional metrics of groups.
pub(super) const GROUP_TRAFFIC: [Row<TrafficView>; 5] = [
    Row {
        name: "failures_total",
        kind: Counter,
        help: "Requests without a complete response of a server, by reason.",
        read: |traffic| {
            labelled(
                "reason",
                FailureClass::ALL
                    .into_iter()
                    .map(FailureClass::name)
                    .zip(traffic.failures),
            )
        },
    },
    Row {
        name: "retries_total",
        kind: Counter,
        help: "Retries of requests, by the failure of the previous attempt.",
        read: |traffic| {
            let reasons = FailureClass::ALL.into_iter().map(FailureClass::name);
            labelled("reason", reasons.zip(traffic.effort.retries))
        },
    },
    Row {
        name: "attempts",
        kind: Histogram,
        help: "Attempts per request; a request that no server could take counts as one.",
        read: attempts,
    },
    Row {
        name: "queue_seconds",
        kind: Histogram,
        help: "Time that requests waited for capacity of a server, including requests that timed out; requests that did not wait are not counted.",
        read: |traffic| durations(&traffic.effort.queued),
    },
    Row {
        name: "connect_seconds",
        kind: Histogram,
        help: "Time to open a connection to a server, TLS included; without failed attempts.",
        read: |traffic| durations(&traffic.effort.connected),
    },
];

/// Metrics of UDP listeners that echo or drop datagrams.
pub(super) const DATAGRAMS: [Row<DatagramView>; 6] = [
    Row {
        name: "datagrams_received_total",
        kind: Counter,
        help: "Datagrams received.",
        read: |datagrams| single(datagrams.received),
    },
    Row {
        name: "datagrams_received_bytes_total",
        kind: Counter,
        help: "Payload bytes of the datagrams received.",
        read: |datagrams| single(datagrams.received_bytes),
    },
    Row {
        name: "datagrams_sent_total",
        kind: Counter,
        help: "Datagrams sent back, reports included.",
        read: |datagrams| single(datagrams.sent),
    },
    Row {
        name: "datagrams_foreign_total",
        kind: Counter,
        help: "Datagrams received that are not test datagrams.",
        read: |datagrams| single(datagrams.foreign),
    },
    Row {
        name: "datagrams_dropped_total",
        kind: Counter,
        help: "Messages dropped because the receive buffer was full (SO_RXQ_OVFL); with GRO a message is one or more datagrams.",
        read: |datagrams| single(datagrams.dropped),
    },
    Row {
        name: "datagrams_failed_total",
        kind: Counter,
        help: "Datagrams without an answer: sending failed, or the source port was the listener's port.",
        read: |datagrams| single(datagrams.failed),
    },
];

fn attempts(traffic: &TrafficView) -> Values<'_> {
    let requests = traffic.requests();
    if requests == 0 {
        return Values::new();
    }
    let repeated = traffic.effort.repeated;
    let mut sum = requests.saturating_sub(repeated.iter().sum());
    let mut buckets = vec![(1.0, sum)];
    // The last counter has no upper bound and is in no bucket but `+Inf`.
    for (again, count) in (2..ATTEMPTS_MAX).zip(repeated) {
        sum += count;
        buckets.push((again as f64, sum));
    }
    let all = Buckets {
        buckets,
        count: requests,
        sum: (requests + traffic.retries) as f64,
        native: None,
    };
    vec![(vec![], Value::Histogram(all))]
}

pub(super) const GROUP: [Row<GroupView>; 3] = [
    Row {
        name: "queued",
        kind: Gauge,
        help: "Requests that wait for capacity of a server.",
        read: |group| single(group.queued),
    },
    Row {
        name: "queue_max",
        kind: Gauge,
        help: "Maximum number of requests that may wait for a server, on each core.",
        read: |group| single(group.queue_max),
    },
    Row {
        name: "in_flight",
        kind: Gauge,
        help: "Requests in flight to servers of the group.",
        read: |group| single(group.in_flight),
    },
];

pub(super) const SERVER: [Row<ServerView>; 9] = [
    Row {
        name: "up",
        kind: Gauge,
        help: "1 if the server is up, 0 if it is failing, down, ejected or taken out by hand.",
        read: |server| single(server.state == ServerState::Up && server.duty == AdminState::Serve),
    },
    Row {
        name: "state",
        kind: Gauge,
        help: "State of the server: 1 for its current state, 0 for the others.",
        read: |server| {
            let states = ServerState::ALL.into_iter();
            let states = states.map(|state| (state.name(), server.state == state));
            labelled("state", states)
        },
    },
    Row {
        name: "weight",
        kind: Gauge,
        help: "Weight of the server in balancing; 0 if it was taken out by hand or drains.",
        read: |server| match server.duty {
            AdminState::Serve => single(u64::from(server.weight)),
            AdminState::Drain | AdminState::Rest => single(0_u64),
        },
    },
    Row {
        name: "ejections_total",
        kind: Counter,
        help: "Times that the server was ejected because of failed or slow requests.",
        read: |server| single(server.ejections),
    },
    Row {
        name: "idle_connections",
        kind: Gauge,
        help: "Idle connections to the server.",
        read: |server| single(server.idle),
    },
    Row {
        name: "in_flight",
        kind: Gauge,
        help: "Requests in flight to the server.",
        read: |server| single(server.in_flight),
    },
    Row {
        name: "responses_total",
        kind: Counter,
        help: "Responses of the server by status class; none: failed attempts.",
        read: |server| labelled("code", CLASSES.into_iter().zip(server.statuses)),
    },
    Row {
        name: "first_byte_seconds",
        kind: Histogram,
        help: "Time from sending a request to the first byte of the server's response.",
        read: |server| durations(&server.first_byte),
    },
    Row {
        name: "duration_seconds",
        kind: Histogram,
        help: "Time from sending a request to the last byte of the server's response; to the first byte if the response was cut off or became a tunnel.",
        read: |server| durations(&server.duration),
    },
];
