//! Error codes (RFC 9113 7), and the errors of a connection and of a stream.

use std::fmt;

use super::flood_guard::Flood;

/// Error code of RST_STREAM and GOAWAY. Unregistered codes are kept and have no special meaning (RFC 9113 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

impl Code {
    /// No error.
    pub const NO_ERROR: Code = Code(0x0);
    /// A violation of the protocol without a more specific code.
    pub const PROTOCOL_ERROR: Code = Code(0x1);
    /// An internal error.
    pub const INTERNAL_ERROR: Code = Code(0x2);
    /// More data than the window allows.
    pub const FLOW_CONTROL_ERROR: Code = Code(0x3);
    /// Settings were not acknowledged in time.
    pub const SETTINGS_TIMEOUT: Code = Code(0x4);
    /// A frame for a closed stream.
    pub const STREAM_CLOSED: Code = Code(0x5);
    /// A frame of invalid length.
    pub const FRAME_SIZE_ERROR: Code = Code(0x6);
    /// The stream was refused before it was processed; it may be retried.
    pub const REFUSED_STREAM: Code = Code(0x7);
    /// The stream is no longer needed.
    pub const CANCEL: Code = Code(0x8);
    /// The compression state is lost.
    pub const COMPRESSION_ERROR: Code = Code(0x9);
    /// The TCP connection of a CONNECT failed.
    pub const CONNECT_ERROR: Code = Code(0xa);
    /// The peer causes excessive load.
    pub const ENHANCE_YOUR_CALM: Code = Code(0xb);
    /// The transport is not secure enough.
    pub const INADEQUATE_SECURITY: Code = Code(0xc);
    /// HTTP/1.1 is required.
    pub const HTTP_1_1_REQUIRED: Code = Code(0xd);

    /// Name in the RFC, or `UNKNOWN`.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        NAMES.get(self.0 as usize).copied().unwrap_or("UNKNOWN")
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            "UNKNOWN" => write!(f, "error code {:#x}", self.0),
            name => f.write_str(name),
        }
    }
}

/// Error that ends a connection (RFC 9113 5.4.1): the peer violated the protocol or exceeded a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionError {
    /// Code of GOAWAY.
    pub code: Code,
    /// Cause, for logs and as GOAWAY's debug data.
    pub reason: &'static str,
    /// Limit that was exceeded, for counters; `None` for a violation of the protocol.
    pub flood: Option<Flood>,
}

impl ConnectionError {
    pub(crate) const fn new(code: Code, reason: &'static str) -> Self {
        ConnectionError {
            code,
            reason,
            flood: None,
        }
    }

    pub(crate) const fn protocol(reason: &'static str) -> Self {
        Self::new(Code::PROTOCOL_ERROR, reason)
    }

    pub(crate) const fn size(reason: &'static str) -> Self {
        Self::new(Code::FRAME_SIZE_ERROR, reason)
    }
}

impl From<Flood> for ConnectionError {
    fn from(flood: Flood) -> Self {
        ConnectionError {
            code: Code::ENHANCE_YOUR_CALM,
            reason: flood.reason(),
            flood: Some(flood),
        }
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reason, self.code)
    }
}

impl std::error::Error for ConnectionError {}

/// Error that ends one stream (RFC 9113 5.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamError {
    /// Code of RST_STREAM.
    pub code: Code,
    /// Cause, for logs.
    pub reason: &'static str,
}

impl StreamError {
    pub(crate) const fn new(code: Code, reason: &'static str) -> Self {
        StreamError { code, reason }
    }

    pub(crate) const fn protocol(reason: &'static str) -> Self {
        Self::new(Code::PROTOCOL_ERROR, reason)
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reason, self.code)
    }
}

impl std::error::Error for StreamError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_have_rfc_names() {
        assert_eq!(Code::HTTP_1_1_REQUIRED.name(), "HTTP_1_1_REQUIRED");
        assert_eq!(Code::FRAME_SIZE_ERROR.to_string(), "FRAME_SIZE_ERROR");
        assert_eq!(Code(0xe).to_string(), "error code 0xe");
    }
}
