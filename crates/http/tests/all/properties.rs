//! Properties of arbitrary bytes and of valid messages, tested with proptest.

use std::net::{IpAddr, SocketAddr};

use onrush_http::forwarded::{self, ForwardingFields};
use onrush_http::limits::{PROXY_V1_BYTES_MAX, PROXY_V2_BYTES_MAX};
use onrush_http::proxy_protocol::{Origin, write_v1, write_v2};
use onrush_http::{Framing, Header, Limits, Parsed, Version, write};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::check;
use crate::support::drive::{self, End, Event, Sender};
use crate::support::proxy_protocol;

proptest! {
    #[test]
    fn arbitrary_bytes_parse_like_reference(input in vec(any::<u8>(), 0..200)) {
        check::request(&input);
        check::response(&input);
        check::chunked(&input);
        check::pipeline(&input);
        check::proxy_protocol(&input);
        check::forwarded(&input);
        check::fields(&input);
    }

    #[test]
    fn http_fragments_parse_like_reference(scraps in vec(message_fragment(), 0..24)) {
        let input = scraps.concat();
        check::request(input.as_bytes());
        check::response(input.as_bytes());
        check::chunked(input.as_bytes());
        check::pipeline(input.as_bytes());
    }

    #[test]
    fn request_head_round_trips(
        method in "[A-Z]{1,8}", path in "/[a-z0-9/%._-]{0,40}", query in proptest::option::of("[a-z0-9=&?/]{0,20}"),
        host in "[a-z0-9.-]{1,20}(:[0-9]{1,4})?", fields in vec(field(), 0..20), length in proptest::option::of(0u64..1 << 40),
    ) {
        prop_assume!(method != "CONNECT");
        let target = query.as_ref().map_or(path.clone(), |query| format!("{path}?{query}"));
        let mut out = [0; 8192];
        let mut writer = write::HeadWriter::new(&mut out);
        writer.display(format_args!("{method} {target} HTTP/1.1\r\n")).header("Host", host.as_bytes());
        for (name, value) in &fields {
            writer.header(name, value);
        }
        if let Some(length) = length {
            writer.content_length(length);
        }
        let bytes = writer.end().finish().expect("8 KiB are enough");
        let input = &out[..bytes];
        check::request(input);
        let Parsed::Complete(head) = drive::request_head(input, &Limits::DEFAULT) else {
            panic!("not complete: {}", input.escape_ascii());
        };
        prop_assert_eq!(head.bytes, bytes);
        prop_assert_eq!((head.method, head.target, head.path, head.query), (method, target, path, query));
        prop_assert_eq!((head.authority, head.version, head.keep_alive), (Some(host), Version::Http11, true));
        prop_assert_eq!(head.framing, length.map_or(Framing::None, Framing::Length));
        prop_assert_eq!(&head.headers[1..=fields.len()], &fields[..]);
    }

    #[test]
    fn chunks_round_trip(chunks in vec(vec(any::<u8>(), 1..80), 0..8), behind in vec(any::<u8>(), 0..8)) {
        let mut input = Vec::new();
        for chunk in &chunks {
            let mut line = [0; write::CHUNK_HEAD_BYTES_MAX];
            let bytes = write::chunk_head(&mut line, chunk.len() as u64).expect("it is the longest");
            input.extend_from_slice(&line[..bytes]);
            input.extend_from_slice(chunk);
            input.extend_from_slice(write::CHUNK_END);
        }
        input.extend_from_slice(write::LAST_CHUNK);
        let bytes = input.len();
        input.extend_from_slice(&behind);
        let body = check::pieces_agree(Sender::Client, Framing::Chunked, &input, &Limits::DEFAULT);
        prop_assert_eq!((body.end, body.consumed, body.payload), (End::Complete, bytes, chunks.concat()));
    }

    #[test]
    fn proxy_v1_parses_like_ppp(words in vec(proxy_word(), 0..8), end in "\r?\n?") {
        check::proxy_protocol(format!("PROXY {}{end}", words.join(" ")).as_bytes());
    }

    #[test]
    fn proxy_v2_parses_like_ppp(
        (fixed, addresses) in proxy_layout(), vectors in vec((0u8..6, vec(any::<u8>(), 0..6)), 0..4), tail in vec(any::<u8>(), 0..2),
    ) {
        let vectors = vectors.iter().flat_map(|(kind, value)| [&[*kind, 0, value.len() as u8], &value[..]].concat());
        let body: Vec<u8> = addresses.into_iter().chain(vectors).chain(tail).collect();
        let length = (body.len() as u16).to_be_bytes();
        check::proxy_protocol(&[b"\r\n\r\n\0\r\nQUIT\n", &fixed[..], &length, &body].concat());
    }

    #[test]
    fn proxy_v1_round_trips(source: SocketAddr, destination: SocketAddr, behind in vec(any::<u8>(), 0..8)) {
        let mut out = [0; PROXY_V1_BYTES_MAX];
        let bytes = write_v1(&Origin::Ip { source, destination }, &mut out).expect("it is the longest");
        let told = proxy_protocol::check(&[&out[..bytes], &behind].concat());
        let Parsed::Complete(told) = told else { panic!("{told:?}") };
        prop_assert_eq!((ends(&told.origin), told.bytes), (canonical(source, destination), bytes));
        prop_assert_eq!(write_v1(&Origin::Ip { source, destination }, &mut out[..bytes - 1]), None);
    }

    #[test]
    fn proxy_v2_round_trips(
        source: SocketAddr, destination: SocketAddr, authority in proptest::option::of("[a-zé.]{1,60}"), behind in vec(any::<u8>(), 0..8),
    ) {
        let mut out = [0; PROXY_V2_BYTES_MAX];
        let bytes = write_v2(&Origin::Ip { source, destination }, authority.as_deref(), &mut out).expect("it fits");
        let told = proxy_protocol::check(&[&out[..bytes], &behind].concat());
        let Parsed::Complete(told) = told else { panic!("{told:?}") };
        prop_assert_eq!((ends(&told.origin), told.bytes), (canonical(source, destination), bytes));
        prop_assert_eq!(&told.authority, &authority);
        prop_assert_eq!(write_v2(&Origin::Ip { source, destination }, authority.as_deref(), &mut out[..bytes - 1]), None);
    }

    #[test]
    fn proxy_v2_origins_without_ip_round_trip(source in "(/[a-z]{1,107})?", destination in "(/[a-z]{1,107})?", authority in proptest::option::of("[a-z.]{1,60}")) {
        let unix = Origin::Unix { source: source.as_bytes(), destination: destination.as_bytes() };
        for origin in [Origin::Local, Origin::Unknown, unix] {
            let mut out = [0; PROXY_V2_BYTES_MAX];
            let bytes = write_v2(&origin, authority.as_deref(), &mut out).expect("it fits");
            let told = proxy_protocol::check(&out[..bytes]);
            let Parsed::Complete(told) = told else { panic!("{told:?}") };
            prop_assert_eq!((&told.origin, told.bytes), (&proxy_protocol::owned(&origin), bytes));
        }
    }

    #[test]
    fn field_fragments_parse_like_reference(scraps in vec(field_scrap(), 0..16)) {
        check::forwarded(scraps.concat().as_bytes());
        check::fields(scraps.concat().as_bytes());
    }

    #[test]
    fn client_is_nearest_untrusted_address(
        chain in vec((any::<IpAddr>(), any::<bool>(), 0u8..4), 0..8), cut in vec(any::<bool>(), 8), peer_trusted: bool,
    ) {
        let peer: IpAddr = "127.0.0.1".parse().expect("an address");
        let trusted: Vec<_> = chain.iter().filter(|hop| hop.1).map(|hop| hop.0.to_canonical()).collect();
        let is_trusted = |address: IpAddr| if address == peer { peer_trusted } else { trusted.contains(&address) };
        let mut wanted = peer;
        for (address, ..) in chain.iter().rev() {
            if !is_trusted(wanted) {
                break;
            }
            wanted = address.to_canonical();
        }
        for (name, told_by) in [("Forwarded", ForwardingFields::Forwarded), ("X-Forwarded-For", ForwardingFields::XForwarded)] {
            let mut lines = vec![Vec::new()];
            for ((address, _, way), cut) in chain.iter().zip(&cut) {
                lines.last_mut().expect("there is one").push(member(told_by, *address, *way));
                if *cut {
                    lines.push(Vec::new());
                }
            }
            let lines: Vec<_> = lines.iter().map(|members| members.join(", ")).collect();
            let headers: Vec<_> = lines.iter().map(|line| Header { name, value: line.as_bytes() }).collect();
            let found = forwarded::client(&headers, told_by, peer, is_trusted).address;
            prop_assert_eq!(found, wanted, "{:?}", lines);
        }
    }

    #[test]
    fn pipeline_events_are_independent_of_read_boundaries(scraps in vec(message(), 0..6), sizes in vec(1usize..60, 1..40)) {
        let input = scraps.concat();
        let mut pieces = Vec::new();
        let mut rest = input.as_bytes();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, behind) = rest.split_at(rest.len().min(*size));
            pieces.push(piece);
            rest = behind;
        }
        let whole = check::pipeline(input.as_bytes());
        prop_assert_eq!(&drive::pipeline(pieces, &Limits::DEFAULT), &whole);
        let messages = whole.iter().filter(|event| matches!(event, Event::Message { .. })).count();
        prop_assert_eq!((messages, whole.len()), (scraps.len(), scraps.len()));
    }
}

/// Canonical form of two addresses of one family.
fn canonical(source: SocketAddr, destination: SocketAddr) -> [(IpAddr, u16); 2] {
    [source, destination].map(|end| (end.ip().to_canonical(), end.port()))
}

fn ends(origin: &proxy_protocol::Owned) -> [(IpAddr, u16); 2] {
    match *origin {
        proxy_protocol::Owned::Ip(source, destination) => {
            assert_eq!(source.is_ipv4(), destination.is_ipv4());
            canonical(source, destination)
        }
        _ => panic!("no addresses: {origin:?}"),
    }
}

/// Formats an address in one of the ways that proxies use.
fn member(told_by: ForwardingFields, address: IpAddr, way: u8) -> String {
    let port = if way.is_multiple_of(2) { "" } else { ":56324" };
    let text = match address {
        IpAddr::V4(address) => format!("{address}{port}"),
        IpAddr::V6(address) if told_by == ForwardingFields::XForwarded && way == 0 => {
            address.to_string()
        }
        IpAddr::V6(address) => format!("[{address}]{port}"),
    };
    match (told_by, way) {
        (ForwardingFields::XForwarded, _) => text,
        (ForwardingFields::Forwarded, 0) if address.is_ipv4() => format!("for={text};proto=http"),
        (ForwardingFields::Forwarded, 0 | 1) => format!("For=\"{text}\""),
        (ForwardingFields::Forwarded, _) => format!("by=_x;ext=\"a,\\\"b;for=c\"; for=\"{text}\""),
    }
}

/// Fragments of field values, valid and invalid.
fn field_scrap() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &[
            "for=192.0.2.1",
            "for=10.0.0.2",
            "for=\"[2001:db8::a]:1\"",
            "192.0.2.1",
            "10.0.0.2:80",
            "[::a]:_x",
            "::10",
            "proto=https",
            "host=a",
            "unknown",
            "_x",
            ":80",
            "\"",
            "\\",
            "\\\"",
            ";",
            ",",
            ", ",
            "=",
            " ",
            "\t",
            "gzip",
            "x-gzip",
            "br",
            "zstd",
            "identity",
            "*",
            ";q=",
            ";q=0",
            ";q=0.5",
            "; Q=1.000",
            "q",
            "1",
            "0.",
            "YTpi",
            "Og==",
            "onrush",
            "onrush=x",
            "a=b",
            "&",
            "+",
            "%41",
            "%",
            "%4",
            "websocket",
            "h2c",
            "/13",
            "é",
            "\u{7f}",
        ][..],
    )
}

/// Fragments of a PROXY protocol line, valid and invalid.
fn proxy_word() -> impl Strategy<Value = String> {
    prop_oneof![
        "TCP[46]|UNKNOWN|",
        any::<IpAddr>().prop_map(|address| address.to_string()),
        any::<u16>().prop_map(|port| port.to_string()),
        "[0-9a-f.:]{0,8}|\\r|[+ -]",
    ]
}

/// Command, family and transport of a binary PROXY protocol header, and its addresses.
fn proxy_layout() -> impl Strategy<Value = ([u8; 2], Vec<u8>)> {
    let layouts = [
        ([0x21, 0x11], 12),
        ([0x21, 0x21], 36),
        ([0x21, 0x31], 216),
        ([0x20, 0x00], 0),
        ([0x21, 0x00], 0),
    ];
    prop::sample::select(layouts.to_vec())
        .prop_flat_map(|(fixed, bytes)| (Just(fixed), vec(any::<u8>(), bytes)))
}

/// A field unrelated to framing, Host, Expect and the connection.
fn field() -> impl Strategy<Value = (String, Vec<u8>)> {
    (
        "x-[A-Za-z0-9!#$%&'*+.^_`|~-]{1,20}",
        "([!-~]([ -~\\t]{0,30}[!-~])?)?",
    )
        .prop_map(|(name, value)| (name, value.into()))
}

fn message() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,9}".prop_map(|path| format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n")),
        "[a-zA-Z\r\n: 0-9]{0,40}".prop_map(|body| {
            format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        }),
        "[a-zA-Z\r\n: 0-9]{1,40}".prop_map(|body| {
            let size = body.len();
            format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{size:x};x=y\r\n{body}\r\n0\r\nX: y\r\n\r\n")
        }),
    ]
}

/// Fragments of messages, valid and invalid.
fn message_fragment() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &[
            "GET / HTTP/1.1\r\n",
            "POST /a?b HTTP/1.0\r\n",
            "GET http://a/ HTTP/1.1\r\n",
            "HTTP/1.1 200 OK\r\n",
            "\0HTTP/1.1 204 \r\n",
            "Host: a\r\n",
            "Host: a\r\n\r\n",
            "Content-Length: 5\r\n",
            "Content-Length:",
            "Transfer-Encoding: chunked\r\n",
            "Transfer-Encoding:",
            "chunked",
            "Connection: close\r\n",
            "Expect: 100-continue\r\n",
            "X: y\r\n",
            "X",
            ":",
            " ",
            "\t",
            "\r\n",
            "\r\n\r\n",
            "\r",
            "\n",
            "\0",
            "\x7f",
            ",",
            ";",
            "5",
            "0",
            "0\r\n\r\n",
            "5\r\nhello\r\n",
            "5;a=b ; c\r\nhello\r\n",
            "5 \r\nhello\r\n",
            "0\r\nContent-Length: 5\r\n\r\n",
            "\"",
            "\\",
            "5, 5",
            "HTTP/1.1 200 OK\n",
            "a=b",
            "HTTP/1.2",
            "GET",
            "/",
            "*",
            "OPTIONS * HTTP/1.1\r\n",
            "CONNECT a:1 HTTP/1.1\r\n",
            "é",
            "[::1]",
            "@",
            "#",
            "1\r\nx\r\n",
        ][..],
    )
}
