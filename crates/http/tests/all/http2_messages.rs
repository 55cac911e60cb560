//! HTTP/2 messages (RFC 9113 8): parsing of field sections, and round trips.

use onrush_http::http2::fields::FieldSection;
use onrush_http::http2::hpack::{Decoder, Encoder};
use onrush_http::http2::message::write;
use onrush_http::http2::message::{
    ExtendedConnect, MoreFrames, Rejection, request, request_trailers, response, response_trailers,
};
use onrush_http::{Framing, Header, HeaderSlots, Limits, Method, Refusal, Version};
use proptest::prelude::*;

use crate::support::hpack::{Fields, encoded};

const LIST_BYTES_MAX: u32 = 16 * 1024;

/// A section of `name: value` lines.
fn section(lines: &str) -> FieldSection {
    let field = |line: &str| {
        let colon = 1 + line[1..].find(": ").expect("a field has a colon");
        (line[..colon].into(), line[colon + 2..].into())
    };
    let fields: Fields = lines.split_terminator('\n').map(field).collect();
    section_of(&encoded(&mut Encoder::new(), &fields))
}

fn section_of(block: &[u8]) -> FieldSection {
    let mut section = FieldSection::default();
    Decoder::new(4096)
        .decode(block, LIST_BYTES_MAX, &mut section)
        .expect("it can be decoded");
    section
}

/// Parsed request in one line, or its rejection.
fn outcome(lines: &str, follows: MoreFrames) -> Result<String, Rejection> {
    outcome_of(&section(lines), follows, ExtendedConnect::Allowed)
}

fn outcome_of(
    section: &FieldSection,
    follows: MoreFrames,
    extended: ExtendedConnect,
) -> Result<String, Rejection> {
    let mut slots = HeaderSlots::new();
    let request = request(section, &mut slots, follows, extended, &Limits::DEFAULT)?;
    let head = request.head;
    assert_eq!((head.version, head.keep_alive), (Version::Http2, true));
    assert_eq!(head.method, Method::of(head.method_text));
    let headers: Vec<_> = head.headers.iter().map(|header| header.name).collect();
    Ok(format!(
        "{} {} {} {:?} {} {:?} {:?} [{}]{}",
        head.method_text,
        head.target,
        head.path,
        head.query,
        head.authority.expect("every request has one"),
        request
            .scheme
            .or(request.protocol)
            .map(|_| (request.scheme, request.protocol)),
        head.framing,
        headers.join(" "),
        if head.expect_continue { " expects" } else { "" },
    ))
}

const GET: &str = ":method: GET\n:scheme: https\n:path: /a?b\n:authority: h\n";

#[test]
fn http2_request_equals_http1_head() {
    let rows = [
        (
            GET.to_owned(),
            r#"GET /a?b /a Some("b") h Some((Some("https"), None)) Chunked []"#,
        ),
        (
            format!("{GET}accept: */*\ncookie: a=b\nx: y\ncookie: c=d\ncontent-length: 17\n"),
            r#"GET /a?b /a Some("b") h Some((Some("https"), None)) Length(17) [accept cookie x content-length]"#,
        ),
        // Pseudo-fields in any order; Host instead of :authority.
        (
            ":path: /\n:method: PURGE\n:scheme: ftp+x\nhost: h:8080\n".to_owned(),
            r#"PURGE / / None h:8080 Some((Some("ftp+x"), None)) Chunked []"#,
        ),
        (
            ":method: OPTIONS\n:scheme: http\n:path: *\n:authority: [::1]:80\nhost: [::1]\n"
                .to_owned(),
            r#"OPTIONS * * None [::1]:80 Some((Some("http"), None)) Chunked []"#,
        ),
        (
            format!("{GET}host: H:443\nexpect: 100-continue\nte: trailers\n"),
            r#"GET /a?b /a Some("b") h Some((Some("https"), None)) Chunked [expect te] expects"#,
        ),
        (
            ":method: CONNECT\n:authority: h:443\n".to_owned(),
            "CONNECT h:443  None h:443 None Chunked []",
        ),
        (
            ":method: CONNECT\n:protocol: websocket\n:scheme: https\n:path: /c?d\n:authority: h\n"
                .to_owned(),
            r#"CONNECT /c?d /c Some("d") h Some((Some("https"), Some("websocket"))) Chunked []"#,
        ),
    ];
    for (lines, wanted) in rows {
        assert_eq!(
            outcome(&lines, MoreFrames::More).as_deref(),
            Ok(wanted),
            "{lines}"
        );
    }
    for (lines, wanted) in [
        (GET.to_owned(), "None []"),
        (
            format!("{GET}content-length: 0\n"),
            "Length(0) [content-length]",
        ),
        (format!("{GET}expect: 100-continue\n"), "None [expect]"),
    ] {
        let outcome = outcome(&lines, MoreFrames::Nothing).expect("it is a request");
        assert!(outcome.ends_with(wanted), "{outcome}");
    }
}

#[test]
fn malformed_requests_are_rejected() {
    for (lines, wanted) in [
        (":scheme: http\n:path: /\n:authority: h\n", "no :method"),
        (":method: GET\n:path: /\n:authority: h\n", "no :scheme"),
        (":method: GET\n:scheme: http\n:authority: h\n", "no :path"),
        (
            ":method: GET\n:scheme: http\n:path: \n:authority: h\n",
            "an empty :path",
        ),
        (
            ":method: G T\n:scheme: http\n:path: /\n:authority: h\n",
            "malformed :method",
        ),
        (
            ":method: \n:scheme: http\n:path: /\n:authority: h\n",
            "malformed :method",
        ),
        (
            ":method: GET\n:scheme: a b\n:path: /\n:authority: h\n",
            "malformed :scheme",
        ),
        (
            ":method: GET\n:scheme: http\n:path: /\n:path: /\n:authority: h\n",
            "a repeated pseudo-field",
        ),
        (
            ":method: GET\n:scheme: http\n:path: /\na: b\n:authority: h\n",
            "a pseudo-field after a field",
        ),
        (
            ":method: GET\n:scheme: http\n:path: /\nhost: h\n:authority: h\n",
            "a pseudo-field after a field",
        ),
        (
            ":method: GET\n:scheme: http\n:path: /\n:status: 200\n",
            "an unknown pseudo-field",
        ),
        (
            ":method: GET\n:scheme: http\n:path: /\n:other: h\n",
            "an unknown pseudo-field",
        ),
        (
            ":method: GET\n:scheme: http\n:path: /\n:protocol: p\n",
            ":protocol without CONNECT",
        ),
        (
            ":method: CONNECT\n:protocol: a b\n:scheme: http\n:path: /\n",
            "malformed :protocol",
        ),
        (
            ":method: CONNECT\n:protocol: p\n:path: /\n:authority: h\n",
            "no :scheme",
        ),
        (
            ":method: CONNECT\n:path: /\n:authority: h:1\n",
            "a CONNECT with :scheme or :path",
        ),
        (
            ":method: CONNECT\n:scheme: http\n:authority: h:1\n",
            "a CONNECT with :scheme or :path",
        ),
        (":method: CONNECT\n", "a CONNECT without :authority"),
        (
            ":method: CONNECT\n:authority: h:1\ncontent-length: 1\n",
            "a CONNECT with a length",
        ),
        (
            &format!("{GET}content-length: 1\ncontent-length: 1\n"),
            "repeated Content-Length",
        ),
        (
            &format!("{GET}content-length: 1, 1\n"),
            "malformed Content-Length",
        ),
        (
            &format!("{GET}content-length: +1\n"),
            "malformed Content-Length",
        ),
        (
            &format!("{GET}connection: close\n"),
            "a connection-specific field, which HTTP/2 forbids",
        ),
        (
            &format!("{GET}te: gzip\n"),
            "TE with a value other than trailers",
        ),
        (&format!("{GET}X: y\n"), "upper case in a field name"),
    ] {
        let found = outcome(lines, MoreFrames::More);
        assert_eq!(found, Err(Rejection::Malformed(wanted)), "{lines}");
    }
    let found = outcome(&format!("{GET}content-length: 1\n"), MoreFrames::Nothing);
    assert_eq!(
        found,
        Err(Rejection::Malformed("a Content-Length without a body"))
    );
    let extended =
        section(":method: CONNECT\n:protocol: p\n:scheme: http\n:path: /\n:authority: h\n");
    let found = outcome_of(&extended, MoreFrames::More, ExtendedConnect::Unknown);
    assert_eq!(found, Err(Rejection::Malformed("an unknown pseudo-field")));
}

#[test]
fn unsupported_requests_get_error_status() {
    let of = |method: &str, path: &str, authority: &str| {
        format!(":method: {method}\n:scheme: http\n:path: {path}\n:authority: {authority}\n")
    };
    let long = format!("/{}", "a".repeat(Limits::DEFAULT.target_bytes_max));
    let many = format!("{GET}{}", "a: b\n".repeat(101));
    let large = format!("{GET}a: {}\n", "b".repeat(LIST_BYTES_MAX as usize));
    // Just above and just below the limit of HTTP/1.
    let value = "b".repeat(Limits::DEFAULT.head_bytes_max - 80);
    let line = section(&format!("{GET}a: {value}{}\n", "b".repeat(80)));
    let unknown = ExtendedConnect::Unknown;
    assert_eq!(
        outcome_of(&line, MoreFrames::Nothing, unknown),
        Err(Refusal::new(431, "request head too large").into())
    );
    let line = section(&format!("{GET}a: {value}\n"));
    assert!(outcome_of(&line, MoreFrames::Nothing, unknown).is_ok());
    for (lines, status, reason) in [
        (of("GET", &long, "h"), 414, "request target too long"),
        (many, 431, "too many header fields"),
        (large, 431, "request head too large"),
        (of("GET", "*", "h"), 400, "malformed request target"),
        (of("GET", "a", "h"), 400, "malformed request target"),
        (of("GET", "http://h/", "h"), 400, "malformed request target"),
        // It would end the target in an HTTP/1 request line.
        (
            of("GET", "/a HTTP/1.1", "h"),
            400,
            "malformed request target",
        ),
        (of("GET", "/a\tb", "h"), 400, "malformed request target"),
        (
            of("GET", "/\u{e9}", "h"),
            400,
            "a byte that is not ASCII in the request target",
        ),
        (
            of("GET", "/a#b", "h"),
            400,
            "a fragment in the request target",
        ),
        (
            of("GET", "/", ""),
            400,
            "malformed :authority or Host field",
        ),
        (
            of("GET", "/", "u@h"),
            400,
            "malformed :authority or Host field",
        ),
        (
            of("GET", "/", "h h"),
            400,
            "malformed :authority or Host field",
        ),
        (
            of("GET", "/", "h:99999"),
            400,
            "malformed :authority or Host field",
        ),
        (
            ":method: GET\n:scheme: http\n:path: /\n".into(),
            400,
            "neither :authority nor a Host field",
        ),
        (
            ":method: GET\n:scheme: http\n:path: /\nhost: \n".into(),
            400,
            "malformed :authority or Host field",
        ),
        (
            format!("{GET}host: h\nhost: h\n"),
            400,
            "repeated Host field",
        ),
        (format!("{GET}host: i\n"), 400, ":authority and Host differ"),
        (
            format!("{GET}host: h:80\n"),
            400,
            ":authority and Host differ",
        ),
        (format!("{GET}host: \n"), 400, ":authority and Host differ"),
        (
            ":method: CONNECT\n:authority: h\n".into(),
            400,
            "malformed request target",
        ),
        (
            ":method: CONNECT\n:authority: h:1\nhost: h:2\n".into(),
            400,
            ":authority and Host differ",
        ),
        (format!("{GET}expect: a\n"), 417, "unknown expectation"),
    ] {
        let found = outcome(&lines, MoreFrames::More);
        assert_eq!(
            found,
            Err(Rejection::Refused(Refusal::new(status, reason))),
            "{lines}"
        );
    }
}

#[test]
fn field_limit_is_reachable() {
    for count in [0, 1, 15, 16, 17, 32, 33, 95, 96, 99, 100] {
        let section = section(&format!("{GET}{}", "a: b\n".repeat(count)));
        let mut slots = HeaderSlots::new();
        let read = request(
            &section,
            &mut slots,
            MoreFrames::More,
            ExtendedConnect::Unknown,
            &Limits::DEFAULT,
        );
        let headers = read.expect("it is a request").head.headers;
        assert_eq!(headers.len(), count);
        assert!(
            headers
                .iter()
                .all(|header| (header.name, header.value) == ("a", b"b"))
        );
    }
}

#[test]
fn http2_response_equals_http1_head() {
    use MoreFrames::{More, Nothing};
    let malformed = |reason| Err(Rejection::Malformed(reason));
    let refused = |reason| Err(Rejection::Refused(Refusal::new(502, reason)));
    let many = format!(":status: 200\n{}", "a: b\n".repeat(101));
    let large = format!(":status: 200\na: {}\n", "b".repeat(LIST_BYTES_MAX as usize));
    for (lines, method, follows, wanted) in [
        (
            ":status: 200\nserver: a\n",
            Method::Get,
            More,
            Ok((200, Framing::Chunked)),
        ),
        (
            ":status: 200\n",
            Method::Get,
            Nothing,
            Ok((200, Framing::None)),
        ),
        (
            ":status: 999\ncontent-length: 5\n",
            Method::Get,
            More,
            Ok((999, Framing::Length(5))),
        ),
        (
            ":status: 200\ncontent-length: 5\n",
            Method::Head,
            Nothing,
            Ok((200, Framing::None)),
        ),
        (
            ":status: 304\ncontent-length: 5\n",
            Method::Get,
            Nothing,
            Ok((304, Framing::None)),
        ),
        (
            ":status: 204\n",
            Method::Get,
            More,
            Ok((204, Framing::None)),
        ),
        (
            ":status: 200\n",
            Method::Connect,
            More,
            Ok((200, Framing::None)),
        ),
        (
            ":status: 400\n",
            Method::Connect,
            More,
            Ok((400, Framing::Chunked)),
        ),
        (
            ":status: 103\nlink: a\n",
            Method::Get,
            More,
            Ok((103, Framing::None)),
        ),
        (
            ":status: 100\n",
            Method::Get,
            Nothing,
            malformed("nothing after an interim response"),
        ),
        (
            ":status: 103\ncontent-length: 1\n",
            Method::Get,
            More,
            malformed("an interim response that announces a body"),
        ),
        (
            ":status: 101\n",
            Method::Get,
            More,
            malformed("a status of 101"),
        ),
        (
            ":status: 200\ncontent-length: 5\ncontent-length: 6\n",
            Method::Get,
            More,
            malformed("different Content-Length values"),
        ),
        (
            ":status: 200\ncontent-length: 5, 6\n",
            Method::Get,
            More,
            malformed("malformed Content-Length"),
        ),
        (
            ":status: 200\ncontent-length: 5\n",
            Method::Get,
            Nothing,
            malformed("a Content-Length without a body"),
        ),
        (
            ":status: 099\n",
            Method::Get,
            More,
            malformed("malformed :status"),
        ),
        (
            ":status: 2000\n",
            Method::Get,
            More,
            malformed("malformed :status"),
        ),
        (
            ":status: 20x\n",
            Method::Get,
            More,
            malformed("malformed :status"),
        ),
        ("server: a\n", Method::Get, More, malformed("no :status")),
        (
            ":status: 200\n:status: 200\n",
            Method::Get,
            More,
            malformed("a repeated pseudo-field"),
        ),
        (
            ":status: 200\n:path: /\n",
            Method::Get,
            More,
            malformed("an unknown pseudo-field"),
        ),
        (
            "a: b\n:status: 200\n",
            Method::Get,
            More,
            malformed("a pseudo-field after a field"),
        ),
        (
            ":status: 200\nupgrade: a\n",
            Method::Get,
            More,
            malformed("a connection-specific field, which HTTP/2 forbids"),
        ),
        (&many, Method::Get, More, refused("too many header fields")),
        (
            &large,
            Method::Get,
            More,
            refused("response head too large"),
        ),
    ] {
        let section = section(lines);
        let mut slots = HeaderSlots::new();
        let read = response(&section, &mut slots, method, follows, &Limits::DEFAULT);
        let found = read.map(|head| (head.status, head.framing));
        assert_eq!(found, wanted, "{lines}");
        if let Ok(head) = read {
            assert_eq!(head.version, Version::Http2);
            assert_eq!(head.headers.len(), lines.lines().count() - 1);
        }
    }
}

#[test]
fn equal_content_lengths_are_merged() {
    for lines in [
        ":status: 200\ncontent-length: 5\na: b\ncontent-length: 5\n",
        ":status: 200\ncontent-length: 5 , 5\na: b\n",
    ] {
        let section = section(lines);
        let mut slots = HeaderSlots::new();
        let (get, more) = (Method::Get, MoreFrames::More);
        let head = response(&section, &mut slots, get, more, &Limits::DEFAULT);
        let head = head.expect("it is a response");
        assert_eq!(head.framing, Framing::Length(5));
        let expected = [("content-length", "5"), ("a", "b")];
        let expected: Vec<_> = expected.iter().map(header).collect();
        assert_eq!(head.headers, expected);
    }
}

#[test]
fn forbidden_trailers_are_refused_or_dropped() {
    let names = |lines: &str| {
        let section = section(lines);
        let requests = request_trailers(&section, &Limits::DEFAULT);
        let requests =
            requests.map(|fields| fields.map(|(name, _)| name.to_owned()).collect::<Vec<_>>());
        let responses = response_trailers(&section, &Limits::DEFAULT);
        let responses =
            responses.map(|fields| fields.map(|(name, _)| name.to_owned()).collect::<Vec<_>>());
        (requests, responses)
    };
    let fields = Ok(vec!["digest".to_owned(), "grpc-status".to_owned()]);
    assert_eq!(
        names("digest: a\ngrpc-status: 0\n"),
        (fields.clone(), fields)
    );
    let forbidden = Rejection::Refused(Refusal::new(400, "a field that must not be a trailer"));
    assert_eq!(
        names("content-length: 1\na: b\n"),
        (Err(forbidden), Ok(vec!["a".to_owned()]))
    );
    // In a request it authenticates the sender; in a response it is metadata.
    assert_eq!(
        names("authorization: 1\n"),
        (Err(forbidden), Ok(vec!["authorization".to_owned()]))
    );
    // A server's description of an error may be longer than HTTP/1 accepts from a client.
    let long = format!("a: {}\n", "b".repeat(Limits::DEFAULT.trailer_bytes_max));
    let too_large = Rejection::Refused(Refusal::new(431, "trailers too large"));
    assert_eq!(names(&long), (Err(too_large), Ok(vec!["a".to_owned()])));
    for (lines, wanted) in [
        (
            "a: b\n:path: /\n",
            Rejection::Malformed("a pseudo-field in trailers"),
        ),
        (
            "a: b\nB: c\n",
            Rejection::Malformed("upper case in a field name"),
        ),
        (
            &"a: b\n".repeat(33),
            Rejection::Refused(Refusal::new(431, "too many trailers")),
        ),
        (
            &format!("a: {}\n", "b".repeat(LIST_BYTES_MAX as usize)),
            Rejection::Refused(Refusal::new(431, "trailers too large")),
        ),
    ] {
        assert_eq!(names(lines), (Err(wanted), Err(wanted)), "{lines}");
        assert!(!wanted.to_string().is_empty());
    }
}

fn header<'a>((name, value): &'a (&str, &str)) -> Header<'a> {
    Header {
        name,
        value: value.as_bytes(),
    }
}

#[test]
fn field_names_are_written_in_lower_case() {
    let long = "X-".repeat(50);
    let mut encoder = Encoder::new();
    let mut block = Vec::new();
    encoder.begin(&mut block);
    for name in ["Accept", "X-Kept", &long] {
        write::field(name, "\u{e9}".as_bytes(), &mut encoder, &mut block);
    }
    let written = section_of(&block);
    let names = ["accept", "x-kept", &long.to_ascii_lowercase()];
    assert_eq!(
        written.iter().collect::<Vec<_>>(),
        names.map(|name| (name, "\u{e9}".as_bytes()))
    );
}

proptest! {
    /// Every accepted head can be written as HTTP/1 lines.
    #[test]
    fn accepted_http2_request_is_valid_http1(
        method in "([A-Z]{1,4}|[ -~]{0,4})", path in "(/[a-z?/]{0,9}|[*/]?[ -~\u{e9}]{0,12})", authority in "([a-z]{1,5}(:[0-9]{1,5})?|[ -~]{0,8})", name in "([a-z]{1,4}|[!-~]{1,4})", value in "[ -~]{0,4}",
    ) {
        let lines = format!(":method: {method}\n:scheme: http\n:path: {path}\n:authority: {authority}\n{name}: {value}\n");
        let section = section(&lines);
        let mut slots = HeaderSlots::new();
        if let Ok(request) = request(&section, &mut slots, MoreFrames::More, ExtendedConnect::Unknown, &Limits::DEFAULT) {
            let head = request.head;
            let mut line = format!("{} {} HTTP/1.1\r\nHost: {}\r\n", head.method_text, head.target, authority);
            for header in head.headers {
                line += &format!("{}: {}\r\n", header.name, str::from_utf8(header.value).expect("it was text"));
            }
            line += "\r\n";
            let mut slots = HeaderSlots::new();
            let parsed = onrush_http::request::parse(line.as_bytes(), &mut slots, &Limits::DEFAULT);
            let onrush_http::Parsed::Complete(read) = parsed else {
                panic!("{parsed:?} of {line:?}");
            };
            prop_assert_eq!(
                (read.method_text, read.target, read.path, read.query, read.authority),
                (head.method_text, head.target, head.path, head.query, head.authority)
            );
            prop_assert_eq!(read.headers.len(), head.headers.len() + 1);
        }
    }
}
