//! The PROXY protocol, versions 1 and 2: a header before a connection's first byte with the addresses of the proxy's client.
//! Follows HAProxy's specification (doc/proxy-protocol.txt), whose section numbers are cited here. Whether a connection must
//! begin with the header is configured, never detected (section 5).
//!
//! ```text
//! 1  PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n
//!
//! 2  ┌───────────┬─────┬─────┬────────┬───────────────────────────┬─────────────────────────────┐
//!    │ signature │ 2,1 │ 1,1 │ length │ source, destination,      │ type, length, value         │
//!    │ 12 bytes  │  1  │  1  │   2    │ their ports  12, 36, 216  │  1      2       length  ... │
//!    └───────────┴─────┴─────┴────────┴───────────────────────────┴─────────────────────────────┘
//! ```

mod header;
mod v1;
mod v2;

use self::header::NO_HEADER;
pub use self::header::{ClientTls, Origin, ProxyHeader};
use self::v1::parse_v1;
pub use self::v1::write_v1;
use self::v2::parse_v2;
pub use self::v2::write_v2;
use crate::refusal::Parsed;

/// Parses the header at the start of a connection, in either version. After `Partial`, call again with the same bytes
/// and more appended; at [`PROXY_V2_BYTES_MAX`](crate::limits::PROXY_V2_BYTES_MAX) bytes the result is always
/// `Complete` or `Refused`. After a refusal, close the connection without a response (2.1): the proxy sent the header,
/// not the client.
pub fn parse(input: &[u8]) -> Parsed<ProxyHeader<'_>> {
    match input.first() {
        None => Parsed::Partial,
        Some(b'P') => parse_v1(input),
        Some(b'\r') => parse_v2(input),
        Some(_) => Parsed::Refused(NO_HEADER),
    }
}
