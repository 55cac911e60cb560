//! Checks options of a run that exclude each other.

use onrush_measure::units;
use onrush_packet::memcached::FRAME_BYTES;

use super::{Options, Shard};
use crate::limits::http2::STREAMS_MAX;
use crate::limits::socket::IDS_PER_REQUEST;
use crate::limits::{
    CONNECTIONS_MAX, DATAGRAM_BYTES_MAX, DURATION_MAX, RATE_MAX, START_MAX, THREADS_MAX,
};
use crate::pace::Pace;
use crate::pace::arrivals::ArrivalPlan;
use crate::pace::target::{Scheme, TargetAddress};
use crate::protocol::flight::ids_of;
use crate::requests::mix::has_connection_close;

pub(super) fn check(options: &Options) -> Result<(), String> {
    let Options {
        connections,
        threads,
        ..
    } = *options;
    if !(1..=CONNECTIONS_MAX).contains(&connections) {
        return Err(format!(
            "{connections} connections are out of range: expected 1 to {CONNECTIONS_MAX}"
        ));
    }
    if !(1..=THREADS_MAX).contains(&threads) {
        return Err(format!(
            "{threads} threads are out of range: expected 1 to {THREADS_MAX}"
        ));
    }
    check_shard(options.shard)?;
    let own = options.shard.share().count_of(connections as u64);
    if threads as u64 > own {
        let of = options.shard.count;
        return Err(match of {
            1 => format!(
                "{threads} threads are more than {connections} connections: use -c {threads} or more, or fewer threads"
            ),
            _ => format!(
                "{threads} threads are more than the {own} connections of this part of {connections}: use -c {} or \
                 more, or fewer threads",
                threads as u64 * of
            ),
        });
    }
    if options.pipeline == 0 || options.requests_per_connection == Some(0) {
        return Err("a connection sends at least one request at a time and in total".to_owned());
    }
    check_journeys(options)?;
    check_closing(options)?;
    check_streams(options)?;
    check_times(options)?;
    options.reach.check(&options.target)
}

fn check_streams(options: &Options) -> Result<(), String> {
    if options.descriptors.is_some() && !options.target.scheme.is_grpc() {
        return Err(format!(
            "--descriptors describe gRPC messages, and {} is not gRPC: use grpc:// or grpcs://, or leave --descriptors \
             out",
            options.target.url
        ));
    }
    let Some(streams) = options.streams else {
        return Ok(());
    };
    let url = &options.target.url;
    if !options.target.scheme.is_http() {
        return Err(format!(
            "--http2 needs HTTP, and {url} is not HTTP: leave it out"
        ));
    }
    if !(1..=STREAMS_MAX).contains(&streams) {
        return Err(format!(
            "{streams} streams are out of range: expected 1 to {STREAMS_MAX}"
        ));
    }
    if options.journeys.is_some() {
        return Err(
            "journeys need HTTP/1.1: use http:// or https://, and leave --http2 out".to_owned(),
        );
    }
    if options.pipeline > 1 {
        return Err(
            "--pipeline needs HTTP/1.1, whose responses are in order: over HTTP/2 use --streams"
                .to_owned(),
        );
    }
    if options.target.scheme.is_grpc() && options.requests.cookies {
        return Err("gRPC calls have no cookies: leave --cookies out".to_owned());
    }
    if streams > 1 && matches!(options.pace, Pace::EachConnection(_)) {
        return Err(
            "--rate-per-connection needs connections that wait for each response, which --streams do not: use -R, or \
             leave --streams out".to_owned(),
        );
    }
    Ok(())
}

/// Refuses pipelined requests after one with `Connection: close` (RFC 9112 9.6).
fn check_closing(options: &Options) -> Result<(), String> {
    let mut requests = options.requests.requests.iter();
    let closes = has_connection_close(&options.headers)
        || requests.any(|request| has_connection_close(&request.headers));
    match closes && options.pipeline > 1 {
        true => Err("a request with Connection: close is the last one of its connection: leave --pipeline or the \
            header out".to_owned()),
        false => Ok(()),
    }
}

fn check_journeys(options: &Options) -> Result<(), String> {
    if options.journeys.is_none() {
        return Ok(());
    }
    if options.pipeline > 1 {
        return Err("a user waits for each response: leave --pipeline out".to_owned());
    }
    if options.requests_per_connection.is_some() {
        return Err(
            "the journey file sets how long users keep their connections (connection = \"per journey\", or \"new\" at \
                a step): leave -r and --connections-per-second out"
                .to_owned(),
        );
    }
    match options.pace {
        Pace::Open(ArrivalPlan::Listed(_)) => {
            Err("the times of an access log belong to its own requests: leave the journeys or the access log out".to_owned())
        }
        Pace::Closed | Pace::Think(_) | Pace::Open(_) | Pace::EachConnection(_) => Ok(()),
    }
}

pub(super) fn check_times(options: &Options) -> Result<(), String> {
    if let Some(after) = options.stop.after
        && (after.is_zero() || after > DURATION_MAX)
    {
        return Err("a run must last more than 0 s and less than a year".to_owned());
    }
    if options.stop.count == Some(0) {
        return Err("a run of 0 requests has no result: use -n 1 or more".to_owned());
    }
    if options.timeout.is_zero() {
        return Err("a timeout of 0 leaves no time for a response".to_owned());
    }
    if options.start.duration() > START_MAX {
        return Err("a start (ramp) is limited to one day".to_owned());
    }
    if let Some(after) = options.stop.after {
        let unmeasured = options.start.duration() + options.warm_up;
        if unmeasured >= after {
            return Err(format!(
                "the first {unmeasured:?} are not measured, but the run ends after {after:?}: use a longer -d"
            ));
        }
    }
    check_pace(options)
}

pub(super) fn check_shard(Shard { index, count }: Shard) -> Result<(), String> {
    if index < count {
        return Ok(());
    }
    Err(format!(
        "part {index} of {count} is out of range: expected 0 to {}",
        count.saturating_sub(1)
    ))
}

pub(super) fn check_pace(options: &Options) -> Result<(), String> {
    let per_second = options.pace.target_rate(options.connections as u64);
    if let Some(rate) = per_second
        && rate > RATE_MAX as f64
    {
        return Err(format!(
            "a rate of {rate:.0} requests per second is out of range: expected {RATE_MAX} at most"
        ));
    }
    if let Pace::Open(ArrivalPlan::Bursts { size, every }) = &options.pace
        && (*size == 0 || every.is_zero())
    {
        return Err("a burst needs at least one request and an interval above 0".to_owned());
    }
    let is_open = matches!(options.pace, Pace::Open(_));
    if options.catch_up.is_some() && !is_open {
        return Err(
            "--catch-up needs a rate (-R) over all connections: a closed loop has no schedule to catch up with"
                .to_owned(),
        );
    }
    Ok(())
}

/// Refuses options that contradict datagrams. `bytes` is the size of the largest request.
pub(super) fn check_datagrams(options: &Options, bytes: usize) -> Result<(), String> {
    let url = &options.target.url;
    if options.target.scheme == Scheme::Memcacheds {
        return Err(format!(
            "--udp has no TLS, but {url} needs it: use memcached://, or leave --udp out"
        ));
    }
    let place = options.reach.connect_to.as_ref();
    if let TargetAddress::Unix(_) = place.unwrap_or(&options.target.place) {
        return Err(format!(
            "--udp needs an address and a port, but {url} is a Unix socket: use memcached://host:port, or leave --udp \
             out"
        ));
    }
    for (flag, is_given) in [
        ("--source-ports", options.reach.source_ports.is_some()),
        ("--proxy-protocol", options.reach.proxy_protocol.is_some()),
        (
            "-r, --requests or --connections-per-second",
            options.requests_per_connection.is_some(),
        ),
    ] {
        if is_given {
            return Err(format!(
                "{flag} applies to connections, and --udp has none: leave it out"
            ));
        }
    }
    if options.pipeline > 1 && matches!(options.pace, Pace::EachConnection(_)) {
        return Err(
            "--rate-per-connection needs sockets that wait for each response, which --pipeline does not: over UDP use \
             -R, or leave --pipeline out".to_owned(),
        );
    }
    let most = DATAGRAM_BYTES_MAX - FRAME_BYTES;
    if bytes > most {
        return Err(format!(
            "a request over UDP is one datagram of {} bytes at most without its frame header, but these requests may \
             have {}: use shorter values (--value-size) or fewer keys per get (--multiget)",
            units::count(most as u64),
            units::count(bytes as u64)
        ));
    }
    let sockets = options.connections as u64;
    let most = ids_of(sockets) as u64 / IDS_PER_REQUEST;
    if options.pipeline > most {
        return Err(format!(
            "--pipeline {} over UDP is more than the {} requests that each of {} may have in flight, since responses \
             are identified by 16 bits: use {} at most, or fewer sockets (-c)",
            options.pipeline,
            units::count(most),
            units::plural(sockets, "socket"),
            units::count(most),
        ));
    }
    Ok(())
}
