//! Flags of `onrush load udp://…`: size and sending of datagrams, and refusal of flags about requests.

use std::num::{NonZeroU64, NonZeroUsize};

use onrush_load::bytes::{self, ExpectedResponse};
use onrush_load::error::Error;
use onrush_load::limits::{
    DATAGRAM_BYTES_MAX, ECHO_BYTES_DEFAULT, STREAM_BYTES_DEFAULT, STREAM_BYTES_MAX,
};
use onrush_load::packets::Direction;
use onrush_load::packets::departure::SendMode;
use onrush_load::packets::size::Sizes;
use onrush_load::target::{Scheme, Target};
use onrush_measure::amount::{self, count};

/// How datagrams are made and sent.
#[derive(clap::Args, Debug, Default)]
#[command(next_help_heading = "Datagrams (udp://)")]
pub(super) struct PacketArgs {
    /// Payload bytes: 64, several in turn such as 64,512,1400, a random size of a range such as 64-1400, or imix; over tcp:// one size, up to 64 MiB [default: 64, and 131072 of tcp:// one way]
    #[arg(long, value_name = "BYTES", value_parser = Size::parse, hide_short_help = true)]
    size: Option<Size>,

    /// Response bytes over tcp:// for each --size, from a responder (protocol = "responder" of onrush serve) [default: the same number, from an echo]
    #[arg(long, value_name = "BYTES", value_parser = response_bytes, conflicts_with = "one_way", hide_short_help = true)]
    response_size: Option<NonZeroUsize>,

    /// One way: the target counts and does not send back (onrush serve --sink) [default: the target reports its kind; tcp:// expects an echo]
    #[arg(long, conflicts_with = "round_trip", hide_short_help = true)]
    one_way: bool,

    /// Round trip: an echo sends datagrams back, such as onrush serve --echo
    #[arg(long, hide_short_help = true)]
    round_trip: bool,

    /// System calls for sending: single (one datagram per call), batch (up to 32 per call) or offload (up to 64 per message, split by the kernel) [default: single]
    #[arg(long, value_name = "HOW", value_parser = departure, hide_short_help = true)]
    pub(super) send: Option<SendMode>,

    /// Send Ethernet frames from --interface, bypassing the network stack: xdp; one-way only, needs root
    #[arg(long, value_name = "WAY", value_parser = via, conflicts_with = "send", hide_short_help = true)]
    pub(super) via: Option<SendMode>,

    /// Send from these interfaces, in turn for each socket, such as eth0 or eth0,eth1; the result lists each
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub(super) interface: Vec<String>,

    /// Datagrams in flight per socket, in round trips without a rate [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = count, hide_short_help = true)]
    pub(super) depth: Option<u64>,

    /// Send this many bits of payload per second in all, such as 100M, instead of -R
    #[arg(long, value_name = "BITS", value_parser = bits, conflicts_with = "rate", hide_short_help = true)]
    bandwidth: Option<NonZeroU64>,
}

/// Value of `--size`.
#[derive(Clone, Debug)]
enum Size {
    /// Sizes of datagrams; a single size is also valid over TCP.
    Datagrams(Sizes),
    /// More bytes than a datagram can hold.
    Bytes(NonZeroUsize),
}

impl Size {
    fn parse(text: &str) -> Result<Size, String> {
        let bytes = stream_bytes(text);
        match bytes.filter(|bytes| bytes.get() > DATAGRAM_BYTES_MAX) {
            Some(bytes) => Ok(Size::Bytes(bytes)),
            None => Sizes::parse(text).map(Size::Datagrams).map_err(|why| {
                format!("{why}; over TCP expected a size of at most {STREAM_BYTES_MAX} bytes")
            }),
        }
    }
}

/// Flags that datagram runs accept in addition to [`PacketArgs`].
const DATAGRAM_FLAGS: [&str; 18] = [
    "connections",
    "threads",
    "duration",
    "count",
    "timeout",
    "rate",
    "spacing",
    "stairs",
    "burst",
    "seed",
    "source",
    "io",
    "busy-poll",
    "cpus",
    "json",
    "fail-if",
    "quiet",
    "find-max",
];

const PACKET_FLAGS: [&str; 9] = [
    "size",
    "response-size",
    "one-way",
    "round-trip",
    "send",
    "via",
    "interface",
    "depth",
    "bandwidth",
];

/// Flags of [`PacketArgs`] that tcp:// accepts; `response-size` is for tcp:// only.
const TCP_FLAGS: [&str; 4] = ["size", "response-size", "one-way", "round-trip"];

/// Parses the size of a message over TCP.
fn stream_bytes(text: &str) -> Option<NonZeroUsize> {
    let bytes = usize::try_from(amount::size(text).ok()?).ok()?;
    NonZeroUsize::new(bytes).filter(|bytes| bytes.get() <= STREAM_BYTES_MAX)
}

fn response_bytes(text: &str) -> Result<NonZeroUsize, String> {
    stream_bytes(text).ok_or_else(|| {
        format!("{text:?} is not a response size: expected 1 to {STREAM_BYTES_MAX} bytes")
    })
}

fn departure(text: &str) -> Result<SendMode, String> {
    let found = SendMode::SOCKET_MODES
        .into_iter()
        .find(|departure| departure.name() == text);
    found.ok_or_else(|| format!("{text:?} is not a send method: expected single, batch or offload"))
}

fn via(text: &str) -> Result<SendMode, String> {
    match text == SendMode::Xdp.name() {
        true => Ok(SendMode::Xdp),
        false => Err(format!(
            "{text:?} is not a value of --via: expected xdp; without --via datagrams are sent through sockets"
        )),
    }
}

/// Parses bits per second with a decimal unit, as iperf3 does.
fn bits(text: &str) -> Result<NonZeroU64, String> {
    let bits = amount::count(text).ok().and_then(NonZeroU64::new);
    bits.ok_or_else(|| {
        format!("{text:?} is not a bandwidth: expected bits per second such as 500k, 100M or 10G")
    })
}

/// Refuses flags in `given` (long names) that belong to the other kind of run.
pub(super) fn check_flags(targets: &[Target], given: &[String]) -> Result<(), Error> {
    let is_udp = targets.iter().any(Target::is_datagrams);
    let is_tcp = targets.iter().any(|target| target.scheme == Scheme::Tcp);
    let wrong = given.iter().find(|id| match is_udp {
        true => {
            let is_taken =
                DATAGRAM_FLAGS.contains(&id.as_str()) || PACKET_FLAGS.contains(&id.as_str());
            !is_taken || *id == "response-size"
        }
        false => {
            PACKET_FLAGS.contains(&id.as_str()) && !(is_tcp && TCP_FLAGS.contains(&id.as_str()))
        }
    });
    let Some(wrong) = wrong else { return Ok(()) };
    Err(Error::Invalid(match is_udp {
        _ if wrong == "response-size" => {
            "--response-size is only for bytes over TCP: use it with tcp://HOST:PORT".to_owned()
        }
        true => {
            format!("--{wrong} is only for requests, and udp:// sends datagrams: remove the option")
        }
        false if TCP_FLAGS.contains(&wrong.as_str()) => {
            format!(
                "--{wrong} is only for datagrams and bytes over TCP: use it with udp://HOST:PORT or tcp://HOST:PORT"
            )
        }
        false => format!("--{wrong} is only for datagrams: use it with udp://HOST:PORT"),
    }))
}

impl PacketArgs {
    /// Sizes of requests and responses over TCP.
    pub(super) fn bytes(&self) -> Result<bytes::PayloadOptions, String> {
        Ok(bytes::PayloadOptions {
            request: self.request_bytes()?,
            response: match (self.way(), self.response_size) {
                (Some(Direction::OneWay), _) => ExpectedResponse::Nothing,
                (Some(Direction::RoundTrip) | None, None) => ExpectedResponse::Same,
                (Some(Direction::RoundTrip) | None, Some(response)) => {
                    ExpectedResponse::Pattern(response)
                }
            },
        })
    }

    fn request_bytes(&self) -> Result<NonZeroUsize, String> {
        let sizes = match (&self.size, self.way()) {
            (Some(Size::Bytes(bytes)), _) => return Ok(*bytes),
            (Some(Size::Datagrams(sizes)), _) => sizes,
            (None, Some(Direction::OneWay)) => return Ok(STREAM_BYTES_DEFAULT),
            (None, Some(Direction::RoundTrip) | None) => return Ok(ECHO_BYTES_DEFAULT),
        };
        let only = sizes
            .constant()
            .and_then(|size| NonZeroUsize::new(size.into()));
        only.ok_or_else(|| {
            format!("--size {sizes}: over TCP all requests of a run have one size, such as 64")
        })
    }

    /// Sizes of datagrams; 64 bytes by default.
    pub(super) fn sizes(&self) -> Result<Sizes, String> {
        match &self.size {
            None => Ok(Sizes::one(64)),
            Some(Size::Datagrams(sizes)) => Ok(sizes.clone()),
            Some(Size::Bytes(bytes)) => Err(format!(
                "--size {bytes} exceeds the payload of a datagram: expected at most {DATAGRAM_BYTES_MAX} bytes"
            )),
        }
    }

    /// Datagrams per second that `--bandwidth` amounts to with datagrams of these sizes.
    pub(super) fn rate(&self, sizes: &Sizes) -> Option<NonZeroU64> {
        let bits = self.bandwidth?.get() as f64;
        let rate = bits / 8.0 / sizes.mean();
        Some(NonZeroU64::new(rate.round() as u64).unwrap_or(NonZeroU64::MIN))
    }

    /// One-way or round-trip, where a flag sets it.
    pub(super) fn way(&self) -> Option<Direction> {
        match (self.one_way, self.round_trip) {
            (true, _) => Some(Direction::OneWay),
            (false, true) => Some(Direction::RoundTrip),
            (false, false) => None,
        }
    }
}
