//! Validated options of a run of datagrams.

use std::time::Duration;

use onrush_engine::Io;
use onrush_packet::header::HEADER_BYTES;

use super::departure::SendMode;
use super::limits::{FRAME_FLOWS_MAX, INTERFACES_MAX};
use super::size::Sizes;
use crate::limits::{
    DURATION_MAX, ECHO_TIMEOUT_DEFAULT, FLIGHT_ALL_MAX, FLIGHT_MAX, FLOWS_MAX, RATE_MAX,
    SEGMENTS_MAX, THREADS_MAX,
};
use crate::pace::Pace;
use crate::pace::arrivals::Share;
use crate::pace::error::Error;
use crate::pace::stop::Stop;
use crate::pace::target::Target;
use crate::plan::reach::Sources;

/// Direction of datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// To the target, which counts them if it is an Onrush sink.
    OneWay,
    /// To an echo and back.
    RoundTrip,
}

impl Direction {
    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Direction::OneWay => "one_way",
            Direction::RoundTrip => "round_trip",
        }
    }
}

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Destination of the datagrams.
    pub target: Target,
    /// Direction; `None` follows the target's report.
    pub direction: Option<Direction>,
    /// Sockets, each with its own port.
    pub flows: usize,
    /// Number of threads, each with its own core.
    pub threads: usize,
    /// CPUs to which the threads are pinned, round robin. Empty leaves them to the kernel.
    pub cpus: Vec<usize>,
    /// Driver: epoll or io_uring.
    pub io: Io,
    /// Whether the threads never sleep.
    pub busy_poll: bool,
    /// When the run ends.
    pub stop: Stop,
    /// When datagrams are sent. In a closed loop: one way as fast as the kernel accepts them, and in round trips with
    /// `depth` outstanding datagrams.
    pub pace: Pace,
    /// Bytes of payload.
    pub sizes: Sizes,
    /// How they are sent.
    pub departure: SendMode,
    /// Outstanding datagrams of each socket in a closed loop of round trips.
    pub depth: u64,
    /// Timeout of echoes.
    pub timeout: Duration,
    /// Local addresses of the sockets, round robin. Empty leaves the choice to the routing table.
    pub sources: Sources,
    /// Interfaces of the sockets, round robin. Empty leaves the choice to the routing table.
    pub interfaces: Vec<String>,
    /// Seed of sizes and random gaps.
    pub seed: u64,
}

impl Options {
    /// One socket on one thread that sends 64 bytes at a time to `target` until it is interrupted.
    pub fn new(target: Target) -> Options {
        Options {
            target,
            direction: None,
            flows: 1,
            threads: 1,
            cpus: Vec::new(),
            io: Io::Auto,
            busy_poll: false,
            stop: Stop::default(),
            pace: Pace::Closed,
            sizes: Sizes::one(64),
            departure: SendMode::default(),
            depth: 1,
            timeout: ECHO_TIMEOUT_DEFAULT,
            sources: Sources::default(),
            interfaces: Vec::new(),
            seed: 0,
        }
    }
}

/// Validated options.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) options: Options,
    /// Datagrams per second of all flows; `None` in a closed loop.
    pub(crate) rate: Option<f64>,
}

impl Plan {
    /// Checks the options.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the reason and a remedy.
    pub fn new(options: Options) -> Result<Plan, Error> {
        check(&options).map_err(Error::Invalid)?;
        let rate = options.pace.target_rate(options.flows as u64);
        Ok(Plan { options, rate })
    }

    pub(crate) fn flows_of(&self, core: usize) -> impl Iterator<Item = u16> + use<> {
        let flows = self.options.flows;
        // The limit of flows fits in 16 bits.
        (core..flows)
            .step_by(self.options.threads)
            .map(|flow| flow as u16)
    }

    /// Returns the share of the run's datagrams that flow `flow` sends.
    pub(crate) fn share_of(&self, flow: u16) -> Share {
        Share {
            first: flow.into(),
            stride: self.options.flows as u64,
        }
    }

    /// Returns the share of the run's datagrams that the flows of core `core` send together.
    pub(crate) fn share_of_core(&self, core: usize) -> Share {
        Share::of_core(core as u64, self.options.threads as u64, 0, 1)
    }

    /// Returns the maximum of outstanding datagrams of a flow: `depth` in a closed loop, otherwise as many as memory
    /// permits.
    pub(crate) fn flight_max(&self) -> u64 {
        match self.options.pace {
            Pace::Closed => self.options.depth,
            Pace::Open(_) | Pace::Think(_) | Pace::EachConnection(_) => {
                FLIGHT_MAX.min(FLIGHT_ALL_MAX / self.options.flows as u64)
            }
        }
    }

    /// Returns the number of datagrams per message.
    pub(crate) fn segments(&self) -> usize {
        let options = &self.options;
        let rate = self.rate.map(|rate| rate / options.flows as f64);
        let most = options.departure.segments(options.sizes.largest(), rate);
        // A run with a count may have fewer than a full message.
        let count = options
            .stop
            .count
            .map_or(u64::MAX, |count| count / options.flows as u64);
        most.min(count.max(1) as usize)
    }

    /// Returns the number of datagrams that a flow sends at once: a message, or the frames of a call.
    pub(crate) fn turn(&self) -> u64 {
        match self.options.departure {
            SendMode::Single | SendMode::Batch | SendMode::Offload => self.segments() as u64,
            SendMode::Xdp => {
                let rate = self.rate.map(|rate| rate / self.options.flows as f64);
                let most = SendMode::Xdp.turn(self.options.sizes.largest(), rate);
                let flows = self.options.flows as u64;
                let count = self.options.stop.count.map(|count| count / flows);
                most.min(count.unwrap_or(u64::MAX).max(1))
            }
        }
    }

    /// Returns the maximum of datagrams that a kernel counter may count as one packet: segments of a message, or frames
    /// merged by the receiver (UDP_GRO, with the limit of UDP_SEGMENT).
    pub(crate) fn per_packet(&self) -> u64 {
        match self.options.departure {
            SendMode::Single | SendMode::Batch | SendMode::Offload => self.segments() as u64,
            SendMode::Xdp => SEGMENTS_MAX as u64,
        }
    }

    pub(crate) fn path_of(&self, flow: u16) -> Option<usize> {
        usize::from(flow).checked_rem(self.options.interfaces.len())
    }
}

fn check_timeout(timeout: Duration) -> Result<(), String> {
    match timeout.is_zero() {
        true => {
            Err("a timeout of 0 leaves no time for an echo: expected one such as 1s".to_owned())
        }
        false => Ok(()),
    }
}

fn check(options: &Options) -> Result<(), String> {
    let in_range = |what: &str, value: usize, most: usize| match (1..=most).contains(&value) {
        true => Ok(()),
        false => Err(format!(
            "{value} {what} are out of range: expected 1 to {most}"
        )),
    };
    in_range("sockets", options.flows, FLOWS_MAX)?;
    in_range("threads", options.threads, THREADS_MAX)?;
    if options.depth.saturating_mul(options.flows as u64) > FLIGHT_ALL_MAX {
        return Err(format!(
            "--depth {} with {} sockets is more than {FLIGHT_ALL_MAX} datagrams in flight: reduce either",
            options.depth, options.flows
        ));
    }
    if options.threads > options.flows {
        return Err(format!(
            "{0} threads are more than {1} sockets: use -c {0} or more, or fewer threads",
            options.threads, options.flows
        ));
    }
    if !(1..=FLIGHT_MAX).contains(&options.depth) {
        return Err(format!(
            "--depth {} is out of range: expected 1 to {FLIGHT_MAX}",
            options.depth
        ));
    }
    check_timeout(options.timeout)?;
    let smallest = options.sizes.smallest();
    if usize::from(smallest) < HEADER_BYTES {
        return Err(format!(
            "--size {}: {smallest} bytes are too few for the header of {HEADER_BYTES} bytes that identifies datagrams: \
             use {HEADER_BYTES} or more",
            options.sizes
        ));
    }
    if options.departure == SendMode::Offload && options.sizes.constant().is_none() {
        return Err(format!(
            "--send offload splits a message into datagrams of one size, but {} are several sizes: use one size, or \
             --send batch",
            options.sizes
        ));
    }
    check_interfaces(options)?;
    if options.departure == SendMode::Xdp {
        check_frames(options)?;
    }
    check_pace(&options.pace)?;
    match options.stop.after {
        Some(after) if after > DURATION_MAX => {
            Err("a run is limited to one year: check the unit of -d".to_owned())
        }
        _ => Ok(()),
    }
}

fn check_pace(pace: &Pace) -> Result<(), String> {
    match pace {
        Pace::Open(_) if pace.target_rate(1).is_some_and(|rate| rate > RATE_MAX as f64) => {
            Err(format!("a rate is limited to {RATE_MAX} per second"))
        }
        Pace::Think(_) | Pace::EachConnection(_) => Err(
            "--rate-per-connection and -T do not apply to datagrams, which are sent at a rate (-R, --stairs, --burst) or as \
             fast as possible: leave them out"
                .to_owned(),
        ),
        Pace::Closed | Pace::Open(_) => Ok(()),
    }
}

fn check_interfaces(options: &Options) -> Result<(), String> {
    let interfaces = &options.interfaces;
    if interfaces.len() > INTERFACES_MAX {
        return Err(format!(
            "--interface: {} are more than {INTERFACES_MAX}: start several runs at the same time",
            interfaces.len()
        ));
    }
    if let Some(at) = (1..interfaces.len()).find(|at| interfaces[..*at].contains(&interfaces[*at]))
    {
        return Err(format!("--interface names {} twice", interfaces[at]));
    }
    match interfaces.len() > options.flows {
        true => Err(format!(
            "{0} interfaces need one socket each: use -c {0} or more",
            interfaces.len()
        )),
        false => Ok(()),
    }
}

fn check_frames(options: &Options) -> Result<(), String> {
    if options.interfaces.is_empty() {
        return Err(
            "--via xdp bypasses the routing table: name the outgoing interface (--interface NAME)"
                .to_owned(),
        );
    }
    if options.direction == Some(Direction::RoundTrip) {
        return Err(
            "--via xdp is one-way: leave --round-trip out, or leave --via xdp out for round trips"
                .to_owned(),
        );
    }
    if options.sizes.constant().is_none() {
        return Err(format!(
            "--via xdp sends frames of one size, but {} are several sizes: use one, such as 64",
            options.sizes
        ));
    }
    match options.flows > FRAME_FLOWS_MAX {
        true => Err(format!(
            "{} sockets are more than {FRAME_FLOWS_MAX}, the limit with --via xdp, where each has its own program in \
             the kernel",
            options.flows
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options::new(Target::parse("udp://127.0.0.1:9").unwrap())
    }

    fn refused(options: Options) -> String {
        Plan::new(options).unwrap_err().to_string()
    }

    #[test]
    fn contradicting_options_are_refused() {
        let two = Options {
            threads: 2,
            ..options()
        };
        assert!(refused(two).contains("use -c 2 or more"));
        let none = Options {
            flows: 0,
            ..options()
        };
        assert!(refused(none).contains("expected 1 to 65536"));
        let hasty = Options {
            timeout: Duration::ZERO,
            ..options()
        };
        assert!(refused(hasty).contains("a timeout of 0"));
        let sizes = Options {
            sizes: Sizes::parse("64-100").unwrap(),
            departure: SendMode::Offload,
            ..options()
        };
        assert!(refused(sizes).contains("use one size"));
        let small = Options {
            sizes: Sizes::parse("17").unwrap(),
            ..options()
        };
        assert!(refused(small).contains("use 18 or more"));
        let depth = Options {
            depth: 0,
            ..options()
        };
        assert!(refused(depth).contains("--depth 0"));
        let much = Options {
            depth: 65_536,
            flows: 65,
            ..options()
        };
        assert!(refused(much).contains("datagrams in flight: reduce either"));
    }

    #[test]
    fn contradicting_frame_options_are_refused() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let frames = Options {
            departure: SendMode::Xdp,
            interfaces: names(&["a"]),
            ..options()
        };
        Plan::new(frames.clone()).unwrap();
        for (asked, part) in [
            (
                Options {
                    interfaces: Vec::new(),
                    ..frames.clone()
                },
                "--interface NAME",
            ),
            (
                Options {
                    direction: Some(Direction::RoundTrip),
                    ..frames.clone()
                },
                "is one-way",
            ),
            (
                Options {
                    sizes: Sizes::parse("64,100").unwrap(),
                    ..frames.clone()
                },
                "frames of one size",
            ),
            (
                Options {
                    flows: 257,
                    ..frames
                },
                "more than 256",
            ),
            (
                Options {
                    interfaces: names(&["a", "b"]),
                    ..options()
                },
                "2 interfaces need one socket each: use -c 2",
            ),
            (
                Options {
                    interfaces: names(&["a", "b", "a"]),
                    flows: 3,
                    ..options()
                },
                "names a twice",
            ),
        ] {
            let refused = refused(asked);
            assert!(refused.contains(part), "{refused}");
        }
    }

    #[test]
    fn flows_and_datagrams_are_divided_exactly() {
        let plan = Plan::new(Options {
            flows: 5,
            threads: 2,
            ..options()
        })
        .unwrap();
        let mut flows: Vec<u16> = (0..2).flat_map(|core| plan.flows_of(core)).collect();
        flows.sort_unstable();
        assert_eq!(flows, [0, 1, 2, 3, 4]);
        let sum: u64 = (0..2)
            .map(|core| plan.share_of_core(core).count_of(11))
            .sum();
        assert_eq!(sum, 11);
    }

    #[test]
    fn outstanding_datagrams_per_flow_are_limited() {
        let pace = Pace::rate(std::num::NonZeroU64::new(1000).unwrap());
        let of = |flows| {
            let pace = pace.clone();
            let asked = Options {
                flows,
                pace,
                ..options()
            };
            Plan::new(asked).unwrap().flight_max()
        };
        assert_eq!((of(1), of(1024), of(65_536)), (65_536, 4096, 64));
    }

    #[test]
    fn segments_do_not_exceed_requested_count() {
        let mut few = Options {
            departure: SendMode::Offload,
            ..options()
        };
        few.stop.count = Some(10);
        assert_eq!(Plan::new(few).unwrap().segments(), 10);
    }
}
