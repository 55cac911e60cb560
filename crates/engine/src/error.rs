//! Errors of the kernel, the peer and resources, with the operation that failed.

use std::fmt;

use rustix::io::Errno;

/// A failed operation. Small and `Copy`, because it is made on the request path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Error {
    /// The operation.
    pub op: Op,
    /// The cause.
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
    /// Binding the source address and ports of a connection.
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

/// Cause of a failed operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The socket's deadline passed.
    TimedOut,
    /// The core is stopping and the wait was interruptible.
    Stopping,
    /// The bound on open connections is reached, and a connection waits to be accepted.
    Full,
    /// The core's bound on buffers is reached.
    NoBuffers,
    /// The file ended before the requested range.
    FileTooShort,
    /// The peer ended the connection without TLS's close_notify: the received data may be incomplete.
    Truncated,
    /// A TLS alert by this number was sent or received (RFC 8446 6).
    Alert(u8),
    /// The TLS handshake failed: no agreement, or a certificate was not accepted. The reason has been logged.
    NoTls,
    /// A system call failed.
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

    /// Whether the peer ended the connection abruptly: a reset, a broken pipe, an aborted connection.
    pub fn is_reset(&self) -> bool {
        matches!(
            self.kind,
            Kind::Os(Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED | Errno::NOTCONN)
        )
    }

    /// Whether the error ended the connection; not true for a lack of local resources, a stop, or a short file.
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

    /// Whether the operation failed for a lack of local resources, not because of the peer: descriptors, memory,
    /// buffers, local ports or addresses (`EADDRNOTAVAIL` of connect(2)), or the bound on connections.
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

    /// Whether another socket uses the address.
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
            Op::Bind => "bind the source address",
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
            Kind::Full => write!(f, "{op}: the limit of open connections is reached"),
            Kind::NoBuffers => write!(f, "{op}: all buffers of this core are in use"),
            Kind::FileTooShort => write!(f, "{op}: the file became shorter while it was sent"),
            Kind::Truncated => write!(f, "{op}: the connection ended without a TLS close_notify"),
            Kind::Alert(number) => match alert_name(number) {
                Some(name) => write!(f, "{op}: TLS failed: {name} (alert {number})"),
                None => write!(f, "{op}: TLS failed with alert {number}"),
            },
            Kind::NoTls => write!(f, "{op}: the TLS handshake failed"),
            Kind::Os(errno) => write!(f, "{op}: {}", std::io::Error::from(errno)),
        }
    }
}

/// Name of a TLS alert (RFC 8446 6, RFC 5246 7.2); `None` if the number has none.
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
