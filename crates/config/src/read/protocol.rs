//! Protocol of a `[[listen]]`, and the keys specific to one protocol.

use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::DeValue;

use super::kinds::place_of_value;
use crate::address::{check_datagrams, check_reach};
use crate::diagnostic::Diagnostics;
use crate::limits;
use crate::plan::{HttpVersions, Listener, LoadTarget, Memcached, Protocol, Responder, Transport};
use crate::section::{Keys, Kind, Section};
use crate::value::{self, Invalid};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Http,
    Memcached,
    Echo,
    Sink,
    Responder,
}

const NAME: Kind<Name> = Kind {
    expected: "\"http\", \"memcached\", \"echo\", \"sink\" or \"responder\"",
    parse: |text| {
        let known = [
            ("http", Name::Http),
            ("memcached", Name::Memcached),
            ("echo", Name::Echo),
            ("sink", Name::Sink),
            ("responder", Name::Responder),
        ];
        value::parse_name("protocol", text, &known)
    },
};

const TRANSPORT: Kind<Transport> = Kind {
    expected: "\"tcp\", \"udp\" or \"both\"",
    parse: |text| {
        let known = [
            ("tcp", Transport::Tcp),
            ("udp", Transport::Udp),
            ("both", Transport::Both),
        ];
        value::parse_name("transport", text, &known)
    },
};

const SIZE: Kind<u64> = Kind {
    expected: "a size such as \"64m\"",
    parse: value::parse_size,
};

const OF_HTTP: [&str; 2] = ["proxy_protocol", "http_versions"];
const OF_MEMCACHED: [&str; 3] = ["memory", "item_bytes_max", "synthetic"];
const LOAD_TARGET_KEYS: [&str; 2] = ["transport", "receive_buffer"];
const OF_PUBLIC: [&str; 1] = ["public"];
const OF_RESPONDER: [&str; 2] = ["request_bytes", "response_bytes"];

/// Reads the protocol; `listen` is the listener, if its address could be read. `None` if the protocol is invalid.
pub(super) fn read_protocol(
    section: &Section<'_, '_>,
    listen: Option<&Listener>,
    findings: &mut Diagnostics<'_>,
) -> Option<Protocol> {
    let name = match section.has("protocol") {
        true => section.read("protocol", NAME, findings)?,
        false => Name::Http,
    };
    let mut refuse = |keys: &[&str], whose: &str| {
        let reason = format!("is only for protocol = {whose}: set one of these, or remove the key");
        section.report_conflict(keys, &reason, findings);
    };
    if name != Name::Http {
        refuse(&OF_HTTP, "\"http\"");
    }
    if name != Name::Memcached {
        refuse(&OF_MEMCACHED, "\"memcached\"");
    }
    if name != Name::Responder {
        refuse(&OF_RESPONDER, "\"responder\"");
    }
    if matches!(name, Name::Http | Name::Responder) {
        refuse(&LOAD_TARGET_KEYS, "\"memcached\", \"echo\" or \"sink\"");
    }
    if name == Name::Http {
        let whose = "\"memcached\", \"echo\", \"sink\" or \"responder\"";
        refuse(&OF_PUBLIC, whose);
    }
    let mut far_end = |transport| read_load_target(section, (listen, transport), findings);
    Some(match name {
        Name::Http => Protocol::Http(read_versions(section, findings)),
        Name::Memcached => {
            // Like memcached since 1.6: over UDP it could be used for amplification attacks with forged addresses.
            let far_end = far_end(Transport::Tcp);
            Protocol::Memcached(read_memcached(section, findings), far_end)
        }
        Name::Echo => Protocol::Echo(far_end(Transport::Both)),
        Name::Sink => Protocol::Sink(far_end(Transport::Both)),
        Name::Responder => Protocol::Responder(read_responder(section, listen, findings)?),
    })
}

/// Reads the HTTP versions; the default is both.
fn read_versions(section: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> HttpVersions {
    const EXPECTED: &str = "a list of \"h1\" and \"h2\", such as [\"h1\"]";
    let Some(value) = section.value("http_versions") else {
        return HttpVersions::Both;
    };
    let DeValue::Array(array) = value.get_ref() else {
        section.report_kind("http_versions", EXPECTED, findings);
        return HttpVersions::Both;
    };
    let has = |name: &str| array.iter().any(|one| one.get_ref().as_str() == Some(name));
    let is_known =
        |one: &&Spanned<DeValue<'_>>| !matches!(one.get_ref().as_str(), Some("h1" | "h2"));
    if let Some(unknown) = array.iter().find(is_known) {
        let message =
            format!("http_versions has a version that is not supported: expected {EXPECTED}");
        findings.error(unknown.span(), message);
    }
    match (has("h1"), has("h2")) {
        (true, false) => HttpVersions::Http1,
        (false, true) => HttpVersions::Http2,
        (true, true) => HttpVersions::Both,
        (false, false) => {
            if array.is_empty() {
                let message = format!("http_versions is empty: expected {EXPECTED}");
                findings.error(value.span(), message);
            }
            HttpVersions::Both
        }
    }
}

fn read_responder(
    section: &Section<'_, '_>,
    listen: Option<&Listener>,
    findings: &mut Diagnostics<'_>,
) -> Option<Responder> {
    check_public(section, listen, findings);
    let [request, response] = OF_RESPONDER.map(|key| {
        section.require(key, "a size such as 100", findings);
        let range = 1..=u64::from(limits::RESPONDER_BYTES_MAX);
        read_bytes(section, key, range, findings)
    });
    Some(Responder {
        request_bytes: request? as u32,
        response_bytes: response? as u32,
    })
}

fn read_memcached(section: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Memcached {
    if let Some(value) = section.value("synthetic") {
        const EXPECTED: &str = "a table such as { value_bytes = 100 }";
        let reason = "limits stored items, and synthetic stores none: expected one of them";
        section.report_conflict(&["memory", "item_bytes_max"], reason, findings);
        let keys = Keys::new(&["value_bytes"]);
        let synthetic = Section::of("synthetic", value, EXPECTED, keys, findings);
        let bytes = synthetic.and_then(|synthetic| {
            synthetic.require("value_bytes", "a size such as 100", findings);
            let range = 0..=u64::from(limits::ITEM_BYTES_MAX);
            read_bytes(&synthetic, "value_bytes", range, findings)
        });
        return Memcached::Synthetic {
            value_bytes: bytes.unwrap_or_default() as u32,
        };
    }
    let range = limits::MEMORY_MIN..=limits::MEMORY_MAX;
    let memory = read_bytes(section, "memory", range, findings).unwrap_or(limits::MEMORY_DEFAULT);
    let longest = u64::from(limits::ITEM_BYTES_MAX);
    let asked = read_bytes(section, "item_bytes_max", 1..=longest, findings);
    if let Some(asked) = asked.filter(|&asked| asked > memory) {
        let message =
            format!("item_bytes_max of {asked} is more than memory, {memory}: expected less");
        findings.error(section.place("item_bytes_max"), message);
    }
    let item_bytes_max = asked.unwrap_or(limits::ITEM_BYTES_MAX_DEFAULT.into());
    Memcached::Stored {
        memory,
        item_bytes_max: item_bytes_max.min(memory) as u32,
    }
}

/// Reads the transport, by default `usual`. If that is TCP, and TCP is used, public addresses are allowed.
fn read_load_target(
    section: &Section<'_, '_>,
    (listen, usual): (Option<&Listener>, Transport),
    findings: &mut Diagnostics<'_>,
) -> LoadTarget {
    let transport = section.read("transport", TRANSPORT, findings);
    let transport = transport.unwrap_or(usual);
    if transport != Transport::Tcp {
        let reason = "is not supported over UDP: expected transport = \"tcp\" as well";
        section.report_conflict(&["tls"], reason, findings);
    }
    let is_harmless = transport == Transport::Tcp && usual == Transport::Tcp;
    if transport == Transport::Tcp {
        let reason = "is for datagrams: expected transport = \"udp\" or \"both\"";
        section.report_conflict(&["receive_buffer"], reason, findings);
        if is_harmless {
            section.report_conflict(&["public"], reason, findings);
        }
    }
    if !is_harmless {
        check_public(section, listen, findings);
    }
    if let Some(listen) = listen.filter(|_| transport.has_udp()) {
        let checked = check_datagrams(&listen.address);
        refuse_address(section, (checked, "transport = \"tcp\""), findings);
    }
    let range = limits::RECEIVE_BUFFER_MIN.into()..=limits::RECEIVE_BUFFER_MAX.into();
    let receive_buffer = read_bytes(section, "receive_buffer", range, findings);
    LoadTarget {
        transport,
        receive_buffer: receive_buffer.map(|bytes| bytes as u32),
    }
}

/// Refuses a public address, unless `public = true`.
fn check_public(
    section: &Section<'_, '_>,
    listen: Option<&Listener>,
    findings: &mut Diagnostics<'_>,
) {
    let is_public = section.truth("public", findings) == Some(true);
    if let Some(listen) = listen.filter(|_| !is_public) {
        let checked = check_reach(&listen.address);
        refuse_address(section, (checked, "public = true"), findings);
    }
}

/// Reports the error, with another way to resolve it.
fn refuse_address(
    section: &Section<'_, '_>,
    (checked, or): (Result<(), Invalid>, &str),
    findings: &mut Diagnostics<'_>,
) {
    if let Err(why) = checked {
        let message = format!("{why}, or {or}");
        findings.error(place_of_value(section, "address"), message);
    }
}

fn read_bytes(
    section: &Section<'_, '_>,
    key: &str,
    range: RangeInclusive<u64>,
    findings: &mut Diagnostics<'_>,
) -> Option<u64> {
    let bytes = section.read_number(key, SIZE, findings)?;
    if range.contains(&bytes) {
        return Some(bytes);
    }
    let (least, most) = (range.start(), range.end());
    let message = format!("{key} of {bytes} bytes is out of range: expected {least} to {most}");
    findings.error(section.place(key), message);
    None
}
