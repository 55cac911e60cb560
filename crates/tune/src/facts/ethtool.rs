//! Settings of an interface's driver: channels, rings, coalescing, offloads, the RSS indirection table. Uses the
//! kernel's ethtool netlink family (Documentation/networking/ethtool-netlink.rst), not the ethtool program.

use std::io;

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NLA_F_NESTED, NLM_F_ACK, NLM_F_REQUEST, NetlinkMessage,
    NlasIterator, ParseableParametrized,
};
use netlink_packet_generic::ctrl::nlas::GenlCtrlAttrs;
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_GENERIC;
use serde::{Deserialize, Serialize};

use super::netlink::{self, attribute};

/// Settings of an interface. Unsupported ones are `None`, with the reason in `refusals`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ethtool {
    /// Current and maximum numbers of queues.
    pub channels: Option<Channels>,
    /// Ring sizes in packets.
    pub rings: Option<Rings>,
    /// Interrupt coalescing.
    pub coalescing: Option<Coalescing>,
    /// Enabled offloads: `tx-checksum-ipv4`, `rx-gro` …
    pub features: Vec<String>,
    /// RSS indirection table: the receive queue of each slot; `None` if it cannot be read.
    pub spreading: Option<Vec<u32>>,
    /// Settings that could not be read, and why: a virtual device has no rings.
    pub refusals: Vec<String>,
}

/// Numbers of queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Channels {
    /// Receive only.
    pub receive: Option<u32>,
    /// Maximum of `receive`.
    pub receive_max: Option<u32>,
    /// Transmit only.
    pub transmit: Option<u32>,
    /// Maximum of `transmit`.
    pub transmit_max: Option<u32>,
    /// Receive and transmit.
    pub combined: Option<u32>,
    /// Maximum of `combined`.
    pub combined_max: Option<u32>,
}

/// Ring sizes in packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rings {
    /// Receive ring.
    pub receive: Option<u32>,
    /// Maximum of `receive`.
    pub receive_max: Option<u32>,
    /// Transmit ring.
    pub transmit: Option<u32>,
    /// Maximum of `transmit`.
    pub transmit_max: Option<u32>,
}

/// Interrupt coalescing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Coalescing {
    /// Microseconds after a packet was received.
    pub receive_microseconds: Option<u32>,
    /// Microseconds after a packet was sent.
    pub transmit_microseconds: Option<u32>,
    /// Whether the driver adapts the receive delay.
    pub receive_adaptive: Option<bool>,
    /// Whether the driver adapts the transmit delay.
    pub transmit_adaptive: Option<bool>,
}

/// A setting that can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriverSetting {
    /// Receive queues.
    ChannelsReceive,
    /// Transmit queues.
    ChannelsTransmit,
    /// Combined queues.
    ChannelsCombined,
    /// Size of the receive ring.
    RingReceive,
    /// Whether the driver adapts the receive delay: 0 or 1.
    AdaptiveReceive,
    /// Receive interrupt delay in microseconds.
    MicrosecondsReceive,
}

impl DriverSetting {
    /// All settings.
    pub const ALL: [DriverSetting; 6] = [
        DriverSetting::ChannelsReceive,
        DriverSetting::ChannelsTransmit,
        DriverSetting::ChannelsCombined,
        DriverSetting::RingReceive,
        DriverSetting::AdaptiveReceive,
        DriverSetting::MicrosecondsReceive,
    ];

    /// Name in paths and journals, after the options of `ethtool`.
    pub fn name(self) -> &'static str {
        match self {
            DriverSetting::ChannelsReceive => "channels/rx",
            DriverSetting::ChannelsTransmit => "channels/tx",
            DriverSetting::ChannelsCombined => "channels/combined",
            DriverSetting::RingReceive => "rings/rx",
            DriverSetting::AdaptiveReceive => "coalesce/adaptive-rx",
            DriverSetting::MicrosecondsReceive => "coalesce/rx-usecs",
        }
    }

    /// Equivalent `ethtool` command.
    pub fn command(self, interface: &str, value: &str) -> String {
        let on = if value == "0" { "off" } else { "on" };
        match self {
            DriverSetting::ChannelsReceive => format!("ethtool -L {interface} rx {value}"),
            DriverSetting::ChannelsTransmit => format!("ethtool -L {interface} tx {value}"),
            DriverSetting::ChannelsCombined => format!("ethtool -L {interface} combined {value}"),
            DriverSetting::RingReceive => format!("ethtool -G {interface} rx {value}"),
            DriverSetting::AdaptiveReceive => format!("ethtool -C {interface} adaptive-rx {on}"),
            DriverSetting::MicrosecondsReceive => {
                format!("ethtool -C {interface} rx-usecs {value}")
            }
        }
    }

    /// Current value.
    pub fn value(self, said: &Ethtool) -> Option<u32> {
        match self {
            DriverSetting::ChannelsReceive => said.channels?.receive,
            DriverSetting::ChannelsTransmit => said.channels?.transmit,
            DriverSetting::ChannelsCombined => said.channels?.combined,
            DriverSetting::RingReceive => said.rings?.receive,
            DriverSetting::AdaptiveReceive => said.coalescing?.receive_adaptive.map(u32::from),
            DriverSetting::MicrosecondsReceive => said.coalescing?.receive_microseconds,
        }
    }

    /// Netlink command and attribute that set it (include/uapi/linux/ethtool_netlink.h).
    fn attribute(self) -> (u8, u16) {
        match self {
            DriverSetting::ChannelsReceive => (CHANNELS_SET, 6),
            DriverSetting::ChannelsTransmit => (CHANNELS_SET, 7),
            DriverSetting::ChannelsCombined => (CHANNELS_SET, 9),
            DriverSetting::RingReceive => (RINGS_SET, 6),
            DriverSetting::AdaptiveReceive => (COALESCE_SET, 11),
            DriverSetting::MicrosecondsReceive => (COALESCE_SET, 2),
        }
    }
}

// Commands of include/uapi/linux/ethtool_netlink.h.
const FEATURES_GET: u8 = 11;
const RINGS_GET: u8 = 15;
const RINGS_SET: u8 = 16;
const CHANNELS_GET: u8 = 17;
const CHANNELS_SET: u8 = 18;
const COALESCE_GET: u8 = 19;
const COALESCE_SET: u8 = 20;
const RSS_GET: u8 = 38;

/// Attribute with the interface, in every message.
const HEADER: u16 = 1;
const HEADER_NAME: u16 = 2;

/// Reads the settings of an interface on this machine.
pub fn ask(interface: &str) -> Ethtool {
    let mut said = Ethtool::default();
    let mut talk = match EthtoolSocket::new() {
        Ok(talk) => talk,
        Err(error) => {
            said.refusals.push(format!("ethtool: {error}"));
            return said;
        }
    };
    let mut question = |what: &str, command: u8| match talk.exchange(command, interface, None) {
        Ok(reply) => Some(reply),
        Err(error) => {
            said.refusals.push(format!("{what}: {error}"));
            None
        }
    };
    let channels = question("channels", CHANNELS_GET);
    let rings = question("rings", RINGS_GET);
    let coalescing = question("coalescing", COALESCE_GET);
    let features = question("features", FEATURES_GET);
    let spreading = question("spreading", RSS_GET);
    said.channels = channels.map(|reply| Channels {
        receive_max: reply.number(2),
        transmit_max: reply.number(3),
        combined_max: reply.number(5),
        receive: reply.number(6),
        transmit: reply.number(7),
        combined: reply.number(9),
    });
    said.rings = rings.map(|reply| Rings {
        receive_max: reply.number(2),
        transmit_max: reply.number(5),
        receive: reply.number(6),
        transmit: reply.number(9),
    });
    said.coalescing = coalescing.map(|reply| Coalescing {
        receive_microseconds: reply.number(2),
        transmit_microseconds: reply.number(6),
        receive_adaptive: reply.number(11).map(|on| on != 0),
        transmit_adaptive: reply.number(12).map(|on| on != 0),
    });
    said.features = features
        .map(|reply| reply.names_of_bits(4))
        .unwrap_or_default();
    said.spreading = spreading.and_then(|reply| reply.numbers(4));
    said
}

/// Changes a setting of an interface on this machine.
pub fn set(interface: &str, knob: DriverSetting, value: u32) -> io::Result<()> {
    let (command, attribute) = knob.attribute();
    let bytes = match knob {
        DriverSetting::AdaptiveReceive => vec![u8::from(value != 0)],
        _ => value.to_ne_bytes().to_vec(),
    };
    let mut talk = EthtoolSocket::new()?;
    talk.exchange(command, interface, Some(DefaultNla::new(attribute, bytes)))?;
    Ok(())
}

struct EthtoolSocket {
    socket: Socket,
    family: u16,
}

impl EthtoolSocket {
    fn new() -> io::Result<EthtoolSocket> {
        let mut talk = EthtoolSocket {
            socket: netlink::connect(NETLINK_GENERIC)?,
            family: 0,
        };
        let question = GenlMessage::from_payload(GenlCtrl {
            cmd: GenlCtrlCmd::GetFamily,
            nlas: vec![GenlCtrlAttrs::FamilyName(Message::family_name().to_owned())],
        });
        let replies = talk.send(NetlinkMessage::from(question))?;
        let families = replies.into_iter().flat_map(|reply| reply.payload.nlas);
        let id = families.into_iter().find_map(|attribute| match attribute {
            GenlCtrlAttrs::FamilyId(id) => Some(id),
            _ => None,
        });
        talk.family =
            id.ok_or_else(|| io::Error::other("this kernel has no ethtool netlink family"))?;
        Ok(talk)
    }

    /// Sends a command about an interface and returns the reply, empty if there is only an acknowledgement.
    fn exchange(
        &mut self,
        command: u8,
        interface: &str,
        attribute: Option<DefaultNla>,
    ) -> io::Result<Message> {
        let mut name = interface.as_bytes().to_vec();
        name.push(0);
        let name = DefaultNla::new(HEADER_NAME, name);
        let mut header = vec![0; name.buffer_len()];
        name.emit(&mut header);
        let mut attributes = vec![DefaultNla::new(HEADER | NLA_F_NESTED, header)];
        attributes.extend(attribute);
        let mut message = GenlMessage::from_payload(Message {
            command,
            attributes,
            bytes: Vec::new(),
        });
        message.set_resolved_family_id(self.family);
        let replies = self.send(NetlinkMessage::from(message))?;
        Ok(replies
            .into_iter()
            .next()
            .map(|reply| reply.payload)
            .unwrap_or_default())
    }

    /// Sends a request and collects the messages until the kernel's acknowledgement or error.
    fn send<F>(
        &self,
        mut question: NetlinkMessage<GenlMessage<F>>,
    ) -> io::Result<Vec<GenlMessage<F>>>
    where
        F: GenlFamily + Emitable + ParseableParametrized<[u8], GenlHeader> + std::fmt::Debug,
    {
        question.header.flags = NLM_F_REQUEST | NLM_F_ACK;
        netlink::ask(&self.socket, question, Some)
    }
}

/// A message of the ethtool family: command and attributes to send, or received bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Message {
    command: u8,
    attributes: Vec<DefaultNla>,
    bytes: Vec<u8>,
}

impl Message {
    fn attribute(&self, kind: u16) -> Option<&[u8]> {
        attribute(&self.bytes, kind)
    }

    /// Attribute of one byte or four as a number.
    fn number(&self, kind: u16) -> Option<u32> {
        match self.attribute(kind)? {
            [byte] => Some(u32::from(*byte)),
            [one, two, three, four] => Some(u32::from_ne_bytes([*one, *two, *three, *four])),
            _ => None,
        }
    }

    fn numbers(&self, kind: u16) -> Option<Vec<u32>> {
        let word = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_ne_bytes);
        self.attribute(kind)?.chunks(4).map(word).collect()
    }

    /// Names in a bit set that lists the enabled bits.
    fn names_of_bits(&self, kind: u16) -> Vec<String> {
        const BITS: u16 = 3;
        const NAME: u16 = 2;
        let bits = self
            .attribute(kind)
            .and_then(|set| attribute(set, BITS))
            .unwrap_or_default();
        NlasIterator::new(bits)
            .filter_map(|bit| netlink::text(bit.ok()?.value(), NAME))
            .collect()
    }
}

impl GenlFamily for Message {
    fn family_name() -> &'static str {
        "ethtool"
    }

    fn command(&self) -> u8 {
        self.command
    }

    fn version(&self) -> u8 {
        1
    }
}

impl Emitable for Message {
    fn buffer_len(&self) -> usize {
        self.attributes.as_slice().buffer_len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        self.attributes.as_slice().emit(buffer);
    }
}

impl ParseableParametrized<[u8], GenlHeader> for Message {
    fn parse_with_param(bytes: &[u8], header: GenlHeader) -> Result<Message, DecodeError> {
        Ok(Message {
            command: header.cmd,
            attributes: Vec::new(),
            bytes: bytes.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let attribute = DefaultNla::new(kind, value.to_vec());
        let mut bytes = vec![0; attribute.buffer_len()];
        attribute.emit(&mut bytes);
        bytes
    }

    #[test]
    fn attributes_yield_numbers_and_names() {
        let bit = attribute(
            1,
            &[attribute(1, &3u32.to_ne_bytes()), attribute(2, b"rx-gro\0")].concat(),
        );
        let bytes = [
            attribute(2, &8u32.to_ne_bytes()),
            attribute(11, &[1]),
            attribute(4, &attribute(3, &[bit.clone(), bit].concat())),
        ];
        let message = Message {
            bytes: bytes.concat(),
            ..Message::default()
        };
        assert_eq!(
            (message.number(2), message.number(11), message.number(3)),
            (Some(8), Some(1), None)
        );
        assert_eq!(message.names_of_bits(4), ["rx-gro", "rx-gro"]);
    }

    #[test]
    fn truncated_attribute_is_ignored() {
        let whole = attribute(2, &8u32.to_ne_bytes());
        for end in 0..whole.len() {
            let message = Message {
                bytes: whole[..end].to_vec(),
                ..Message::default()
            };
            assert_eq!(message.number(2), None, "cut at {end}");
        }
    }

    #[test]
    fn missing_interface_fails_all_queries() {
        let said = ask("no-such-if0");
        assert!(said.channels.is_none() && said.refusals.len() >= 4 || !said.refusals.is_empty());
    }
}
