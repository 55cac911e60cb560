//! Datagrams sent as frames by XDP: their content, a check that an interface accepts them, and their sending. Sockets
//! exist nevertheless: they reserve the ports and exchange reports with the target.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::thread;

use onrush_engine::{
    Errno, FRAME_BYTES_MAX, LiveFrames, NumberedFrame, SendOutcome, XdpError, clock,
};
use onrush_packet::frame::{ETHERNET_BYTES, Endpoints, Frame, head_bytes};
use onrush_packet::header::{Flow, HEADER_BYTES, Header, Kind};
use onrush_packet::report::report_request;

use super::limits::{NEIGHBOUR_LOOK, NEIGHBOUR_TIMEOUT};
use super::path::{self, Path};
use super::plan::Options;
use super::task::RunContext;
use crate::pace::error::Error;

pub(super) struct Frames {
    /// Frames of all flows of the core.
    live: Rc<RefCell<LiveFrames>>,
    /// Index of this flow among them.
    at: usize,
    /// Bytes of payload of each frame.
    pub(super) size: u64,
    /// Maximum of frames sent together.
    pub(super) most: u64,
}

impl Frames {
    pub(super) fn new(live: &Rc<RefCell<LiveFrames>>, at: usize, size: u16, most: u64) -> Frames {
        Frames {
            live: Rc::clone(live),
            at,
            size: size.into(),
            most,
        }
    }

    pub(super) fn send(&self, count: u64) -> SendOutcome {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.live.borrow_mut().send(self.at, count)
    }
}

/// Checks that each path's interface accepts a frame, and returns the MAC addresses of the next hops.
///
/// # Errors
/// A sentence: a missing permission or kernel feature, an interface that refuses frames, or an unknown neighbour.
pub(super) fn prepare(
    options: &Options,
    paths: &[Path],
    target: SocketAddr,
    run: u32,
) -> Result<Vec<[u8; 6]>, Error> {
    // Checked first, before waiting for neighbours.
    LiveFrames::check_permission().map_err(xdp_error)?;
    let size = options.sizes.largest();
    let mut neighbours = Vec::new();
    let mut probes = Vec::new();
    for (number, path) in (0..).zip(paths) {
        check_length(path, target.ip(), size)?;
        let neighbour = resolve(options, path, number, target, run)?;
        neighbours.push(neighbour);
        let source = options.sources.nth(number).unwrap_or(path.hop.source);
        // A truncated report request, which targets ignore.
        let header = Header {
            kind: Kind::ReportRequest,
            flow: Flow {
                run,
                number: u16::MAX,
            },
            sequence: 0,
            sent: 0,
        };
        let ends = (SocketAddr::new(source, target.port()), target);
        probes.push(numbered(
            path,
            neighbour,
            ends,
            &header,
            HEADER_BYTES as u16,
        )?);
    }
    let mut probing = LiveFrames::new(&probes).map_err(xdp_error)?;
    for (at, path) in paths.iter().enumerate() {
        let departed = probing.probe(at).map_err(xdp_error)?;
        if departed.sent == 0 {
            return Err(not_taken(path, departed.reason));
        }
    }
    Ok(neighbours)
}

/// Creates the frames of a core's flows, in their order, each with the address of its socket.
///
/// # Errors
/// A sentence, as for [`prepare`].
pub(super) fn of_flows(
    task: &RunContext,
    flows: impl Iterator<Item = (Flow, SocketAddr)>,
) -> Result<Rc<RefCell<LiveFrames>>, String> {
    let size = task.plan.options.sizes.largest();
    let of_flow = |(flow, local): (Flow, SocketAddr)| {
        let at = task.plan.path_of(flow.number);
        let at = at.expect("a plan for frames has an interface");
        let header = Header {
            kind: Kind::Data,
            flow,
            sequence: 0,
            sent: 0,
        };
        let ends = (local, task.target);
        numbered(&task.paths[at], task.neighbours[at], ends, &header, size)
    };
    let frames: Result<Vec<_>, Error> = flows.map(of_flow).collect();
    let frames = frames.map_err(|error| error.to_string())?;
    let live = LiveFrames::new(&frames).map_err(|error| xdp_error(error).to_string())?;
    Ok(Rc::new(RefCell::new(live)))
}

/// Creates the frame of a flow from its source to the target.
///
/// # Errors
/// An interface without a MAC address.
fn numbered(
    path: &Path,
    neighbour: [u8; 6],
    (source, target): (SocketAddr, SocketAddr),
    header: &Header,
    size: u16,
) -> Result<NumberedFrame, Error> {
    let source_mac = path.link.mac.ok_or_else(|| {
        Error::Invalid(format!(
            "--interface {} is not an Ethernet interface: --via xdp sends Ethernet frames",
            path.link.name
        ))
    })?;
    let ends = Endpoints {
        source_mac,
        target_mac: neighbour,
        source,
        target,
    };
    let frame = Frame::new(&ends, header, size).ok_or_else(|| {
        Error::Invalid(format!(
            "datagrams of {size} bytes from {source} to {target} do not fit into frames"
        ))
    })?;
    Ok(NumberedFrame {
        fixed: frame.payload_at + HEADER_BYTES,
        number_at: frame.sequence_at,
        checksum_at: frame.checksum_at,
        checksum_sum: frame.checksum_sum,
        interface: path.link.index,
        bytes: frame.bytes,
    })
}

/// Refuses datagrams that exceed the link's MTU or the largest frame of the kernel, since frames are not fragmented.
fn check_length(path: &Path, target: IpAddr, size: u16) -> Result<(), Error> {
    let packet = path.link.mtu as usize + ETHERNET_BYTES;
    let most = packet.min(FRAME_BYTES_MAX);
    let head = head_bytes(target);
    if head + usize::from(size) <= most {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "--size {size} is too large for a frame of --interface {}: use {} at most (its MTU is {}, and --via xdp does \
         not fragment)",
        path.link.name,
        most.saturating_sub(head),
        path.link.mtu
    )))
}

/// Resolves the MAC address of the next hop. If the kernel does not know it, an ordinary datagram makes it send ARP or
/// neighbour solicitations.
fn resolve(
    options: &Options,
    path: &Path,
    number: u64,
    target: SocketAddr,
    run: u32,
) -> Result<[u8; 6], Error> {
    let next = path.hop.next_hop;
    let name = &path.link.name;
    let deadline = clock::now() + NEIGHBOUR_TIMEOUT;
    let socket = path::report_socket(options, Some(path), number, target)?;
    let flow = Flow {
        run,
        number: u16::MAX,
    };
    let mut has_asked = false;
    loop {
        let known = path.link.neighbour(next).map_err(|error| {
            Error::Invalid(format!(
                "the kernel cannot look up {next} on {name}: {error}"
            ))
        })?;
        if let Some(address) = known {
            return Ok(address);
        }
        if !has_asked {
            // Whether anything listens there does not matter.
            let _ = socket.send(&report_request(flow, 0));
            has_asked = true;
        }
        if clock::now() >= deadline {
            return Err(Error::Unreachable(format!(
                "{next} does not answer ARP on --interface {name}: it is down, or a program on its interface drops ARP \
                 (then: ip neigh add {next} lladdr MAC dev {name})"
            )));
        }
        thread::sleep(NEIGHBOUR_LOOK);
    }
}

fn not_taken(path: &Path, reason: Option<Errno>) -> Error {
    let name = &path.link.name;
    Error::Invalid(match reason {
        Some(Errno::OPNOTSUPP | Errno::NXIO) => format!(
            "--interface {name} cannot send frames: its driver does not support XDP transmission, or it is a veth \
             whose peer has neither GRO nor an XDP program: on the peer, ethtool -K PEER gro on"
        ),
        Some(Errno::NETDOWN) => {
            format!("--interface {name} cannot send frames: it is down (ip link set {name} up)")
        }
        Some(other) => format!("--interface {name} cannot send frames: {other}"),
        None => format!("--interface {name} cannot send frames, and the kernel gives no reason"),
    })
}

fn xdp_error(error: XdpError) -> Error {
    Error::Invalid(format!("--via xdp: {error}"))
}
