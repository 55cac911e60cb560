//! Ethernet arithmetic: frames per second of a link, and the payload left for TCP.
//!
//! A frame extends from the destination address to the check sequence (IEEE 802.3); a preamble and a gap around it also
//! occupy the link. The MTU is the maximum size of an IP packet within a frame.

use std::fmt;

use onrush_measure::amount;

use crate::limits::{LINK_BITS_MAX, PACKETS_PER_REQUEST_MAX};

/// Preamble and start delimiter before each frame (IEEE 802.3, 3.1.1).
pub const PREAMBLE_BYTES: u64 = 8;
/// Minimum gap between two frames (IEEE 802.3, 4.4.2: 96 bit times).
pub const GAP_BYTES: u64 = 12;
/// Two addresses and a type before the packet, without a VLAN tag.
pub const HEADER_BYTES: u64 = 14;
/// Check sequence after the packet.
pub const CHECK_BYTES: u64 = 4;
/// Minimum frame size; shorter frames are padded (IEEE 802.3, 4.4.2).
pub const FRAME_BYTES_MIN: u64 = 64;
/// Headers of IPv4 (20, RFC 791) and TCP (20, RFC 9293) with timestamps (12 with padding, RFC 7323), which Linux sends
/// by default.
pub const TCP_HEADERS_BYTES: u64 = 52;
/// Minimum MTU of IPv4 (RFC 791, 3.2).
pub const MTU_MIN: u64 = 68;
/// Maximum size of an IPv4 packet (RFC 791, 3.1).
pub const MTU_MAX: u64 = 65_535;

/// Size of a packet as given by the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// A whole frame, with header and check sequence.
    Frame(u64),
    /// An MTU.
    Mtu(u64),
}

impl Size {
    /// Parses a number of bytes. From the minimum MTU of IPv4 on it is an MTU; a smaller number is a frame size. The
    /// error names the accepted values.
    pub fn parse(text: &str) -> Result<Size, String> {
        let expected = format!(
            "expected a frame of {FRAME_BYTES_MIN} to {} bytes or an MTU of {MTU_MIN} to {MTU_MAX}",
            MTU_MIN - 1
        );
        match amount::size(text) {
            Ok(bytes @ FRAME_BYTES_MIN..MTU_MIN) => Ok(Size::Frame(bytes)),
            Ok(bytes @ MTU_MIN..=MTU_MAX) => Ok(Size::Mtu(bytes)),
            Ok(_) | Err(_) => Err(format!("`{text}` is not a packet size: {expected}")),
        }
    }

    /// Size of the frame in bytes.
    pub fn frame_bytes(self) -> u64 {
        match self {
            Size::Frame(bytes) => bytes,
            Size::Mtu(mtu) => (mtu + HEADER_BYTES + CHECK_BYTES).max(FRAME_BYTES_MIN),
        }
    }

    /// Bytes of the link that a frame occupies, with preamble and gap.
    pub fn wire_bytes(self) -> u64 {
        self.frame_bytes() + PREAMBLE_BYTES + GAP_BYTES
    }

    /// TCP payload of one frame in bytes; 0 if the headers leave no room.
    pub fn payload_bytes(self) -> u64 {
        let packet = match self {
            Size::Frame(bytes) => bytes - HEADER_BYTES - CHECK_BYTES,
            Size::Mtu(mtu) => mtu,
        };
        packet.saturating_sub(TCP_HEADERS_BYTES)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Frame(bytes) => write!(out, "frame {bytes}"),
            Size::Mtu(bytes) => write!(out, "MTU {bytes}"),
        }
    }
}

/// Bits per second of a link in one direction.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct LinkRate(f64);

impl LinkRate {
    /// Parses `"10G"`, `"2.5G"`, `"100M"` with decimal prefixes. The error names the accepted values.
    pub fn parse(text: &str) -> Result<LinkRate, String> {
        match amount::number(text) {
            Ok(bits) if (1.0..=LINK_BITS_MAX).contains(&bits) => Ok(LinkRate(bits)),
            Ok(_) | Err(_) => Err(format!(
                "`{text}` is not a link rate: expected bits per second such as 100M, 2.5G or 10G, at most 10T"
            )),
        }
    }

    /// Bits per second.
    pub fn bits(self) -> f64 {
        self.0
    }

    /// Frames per second of one size, back to back.
    pub fn frames(self, size: Size) -> f64 {
        self.0 / 8.0 / size.wire_bytes() as f64
    }
}

/// Packets per request in each direction.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct PacketsPerRequest(f64);

impl PacketsPerRequest {
    /// Parses a number above 0, such as `1` or `2.5`. The error names the accepted values.
    pub fn parse(text: &str) -> Result<PacketsPerRequest, String> {
        match amount::number(text) {
            Ok(packets) if packets > 0.0 && packets <= PACKETS_PER_REQUEST_MAX => {
                Ok(PacketsPerRequest(packets))
            }
            Ok(_) | Err(_) => Err(format!(
                "`{text}` is not a number of packets: expected one above 0, and at most {PACKETS_PER_REQUEST_MAX}"
            )),
        }
    }

    /// The number.
    pub fn count(self) -> f64 {
        self.0
    }
}

/// Bytes of a link that a message occupies: split into packets of the MTU, each with headers and Ethernet overhead. 0
/// for an empty message.
pub fn message_wire_bytes(message: f64, mtu: u64) -> f64 {
    if message <= 0.0 {
        return 0.0;
    }
    let full = Size::Mtu(mtu);
    let segment = full.payload_bytes().max(1) as f64;
    let whole = (message / segment).floor();
    let rest = message - whole * segment;
    let last = match rest > 0.0 {
        true => Size::Mtu(rest.ceil() as u64 + TCP_HEADERS_BYTES).wire_bytes() as f64,
        false => 0.0,
    };
    whole * full.wire_bytes() as f64 + last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(rate: &str, size: &str) -> f64 {
        let rate = LinkRate::parse(rate).expect("a rate");
        rate.frames(Size::parse(size).expect("a size"))
    }

    #[test]
    fn frame_rates_match_ethernet_standard() {
        // 10^10 / (8 * 84), and so on.
        assert_eq!(frames("10G", "64").round(), 14_880_952.0);
        assert_eq!(frames("10G", "1500").round(), 812_744.0);
        assert_eq!(frames("10G", "9000").round(), 138_305.0);
        assert_eq!(frames("1G", "64").round(), 1_488_095.0);
    }

    #[test]
    fn small_sizes_are_frame_sizes() {
        assert_eq!(Size::parse("64"), Ok(Size::Frame(64)));
        assert_eq!(Size::parse("67"), Ok(Size::Frame(67)));
        assert_eq!(Size::parse("68"), Ok(Size::Mtu(68)));
        assert_eq!(Size::Mtu(68).frame_bytes(), 86);
        assert_eq!(Size::Frame(64).payload_bytes(), 0);
        assert_eq!(Size::Mtu(1_500).payload_bytes(), 1_448);
    }

    #[test]
    fn invalid_argument_errors_list_accepted_values() {
        for text in ["", "63", "0", "-1", "65536", "1e3", "big"] {
            let error = Size::parse(text).expect_err(text);
            assert!(error.contains("an MTU of 68 to 65535"), "{error}");
        }
        for text in [
            "", "G", "0", "-1G", "11T", "1e3", "inf", "NaN", "10GB", "1.2.3",
        ] {
            let error = LinkRate::parse(text).expect_err(text);
            assert!(error.contains("such as 100M"), "{error}");
        }
        for text in ["", "0", "-1", "NaN", "inf", "1e9", "two"] {
            let error = PacketsPerRequest::parse(text).expect_err(text);
            assert!(error.contains("above 0"), "{error}");
        }
        assert_eq!(LinkRate::parse("2.5G").map(LinkRate::bits), Ok(2.5e9));
    }

    #[test]
    fn message_is_segmented_by_mtu() {
        assert_eq!(message_wire_bytes(0.0, 1_500), 0.0);
        // One byte needs a frame of 71 bytes, one segment a full frame, one byte more needs both.
        assert_eq!(message_wire_bytes(1.0, 1_500), 91.0);
        assert_eq!(message_wire_bytes(1_448.0, 1_500), 1_538.0);
        assert_eq!(message_wire_bytes(1_449.0, 1_500), 1_629.0);
    }
}
