//! What can go wrong with the world outside, and during which operation.

use std::fmt;

use rustix::io::Errno;

/// A failed operation. Small and `Copy`: it is made on the request path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Error {
    /// What was tried.
    pub op: Op,
    /// Why it failed.
    pub kind: Kind,
}

/// The operation that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Taking a buffer from the core's pool.
    Buffer,
    /// Making a listening socket.
    Listen,
    /// Accepting a connection.
    Accept,
    /// Taking the address and ports that a connection is to come from.
    Bind,
    /// Connecting to a peer.
    Connect,
    /// Receiving bytes.
    Recv,
    /// Sending bytes.
    Send,
    /// Sending bytes of a file.
    SendFile,
    /// Opening a file or directory.
    Open,
    /// Reading a file.
    Read,
    /// Setting up a core.
    Start,
}

/// Why an operation failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The socket's deadline passed.
    TimedOut,
    /// The core is stopping and the wait was interruptible.
    Stopping,
    /// As many connections are open as may be, and more wait to be accepted.
    Full,
    /// The core's bound on buffers is reached.
    NoBuffers,
    /// The file ended before the bytes that were promised of it.
    FileTooShort,
    /// The peer ended the connection without the word that TLS ends with: what came before may not be all there was.
    Truncated,
    /// What was received breaks TLS, or the peer says so of what we sent: the number of the alert (RFC 8446 6).
    Alert(u8),
    /// There is no TLS: the two sides could not agree, or one does not believe the other. Why has been written about.
    NoTls,
    /// The kernel said no.
    Os(Errno),
}

impl Error {
    /// An error of `op`.
    pub const fn new(op: Op, kind: Kind) -> Self {
        Self { op, kind }
    }

    pub(crate) const fn os(op: Op, errno: Errno) -> Self {
        Self {
            op,
            kind: Kind::Os(errno),
        }
    }

    /// Whether the peer went away without ceremony: a reset, a broken pipe, an aborted connection.
    pub fn is_reset(&self) -> bool {
        matches!(
            self.kind,
            Kind::Os(Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED | Errno::NOTCONN)
        )
    }

    /// Whether a connection came to its end by it, in whatever way; and not something of this side that there is not enough
    /// of.
    pub fn is_end_of_connection(&self) -> bool {
        matches!(self.op, Op::Recv | Op::Send | Op::SendFile)
            && !matches!(
                self.kind,
                Kind::FileTooShort | Kind::NoBuffers | Kind::Stopping
            )
    }

    /// Whether the process or the system has no file descriptors left.
    pub fn is_out_of_descriptors(&self) -> bool {
        matches!(self.kind, Kind::Os(Errno::MFILE | Errno::NFILE))
    }

    /// Whether the operation failed for a lack of local resources, not because of the peer: descriptors, memory, buffers, local
    /// ports or addresses (`EADDRNOTAVAIL` of connect(2)), or room for another connection.
    pub fn is_local_shortage(&self) -> bool {
        matches!(
            self.kind,
            Kind::NoBuffers
                | Kind::Full
                | Kind::Os(
                    Errno::MFILE
                        | Errno::NFILE
                        | Errno::NOBUFS
                        | Errno::NOMEM
                        | Errno::ADDRNOTAVAIL
                )
        )
    }

    /// Whether the address is taken by somebody else.
    pub fn is_address_in_use(&self) -> bool {
        self.kind == Kind::Os(Errno::ADDRINUSE)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = match self.op {
            Op::Buffer => "take a buffer",
            Op::Listen => "listen",
            Op::Accept => "accept",
            Op::Bind => "take the source address",
            Op::Connect => "connect",
            Op::Recv => "receive",
            Op::Send => "send",
            Op::SendFile => "send a file",
            Op::Open => "open",
            Op::Read => "read",
            Op::Start => "start a core",
        };
        match self.kind {
            Kind::TimedOut => write!(f, "{op}: timed out"),
            Kind::Stopping => write!(f, "{op}: stopping"),
            Kind::Full => write!(f, "{op}: as many connections are open as may be"),
            Kind::NoBuffers => write!(f, "{op}: all buffers of this core are in use"),
            Kind::FileTooShort => write!(f, "{op}: the file became shorter while it was sent"),
            Kind::Truncated => write!(f, "{op}: the connection ended without TLS's end"),
            Kind::Alert(number) => match alert_name(number) {
                Some(name) => write!(f, "{op}: TLS failed: {name} (alert {number})"),
                None => write!(f, "{op}: TLS failed with alert {number}"),
            },
            Kind::NoTls => write!(f, "{op}: the TLS handshake failed"),
            Kind::Os(errno) => write!(f, "{op}: {}", std::io::Error::from(errno)),
        }
    }
}

/// What an alert of TLS is called (RFC 8446 6, RFC 5246 7.2); `None` for a number that has no name.
pub fn alert_name(number: u8) -> Option<&'static str> {
    Some(match number {
        0 => "close notify",
        10 => "unexpected message",
        20 => "bad record MAC",
        22 => "record overflow",
        40 => "handshake failure",
        42 => "bad certificate",
        43 => "unsupported certificate",
        44 => "certificate revoked",
        45 => "certificate expired",
        46 => "certificate unknown",
        47 => "illegal parameter",
        48 => "unknown certification authority",
        49 => "access denied",
        50 => "decode error",
        51 => "decrypt error",
        70 => "protocol version",
        71 => "insufficient security",
        80 => "internal error",
        90 => "user cancelled",
        100 => "no renegotiation",
        112 => "unrecognised name",
        116 => "certificate required",
        120 => "no application protocol",
        _ => return None,
    })
}

impl std::error::Error for Error {}
