//! HPACK (RFC 7541): the examples of appendix C, arbitrary fields and bytes, and comparison with other implementations.

use std::io::Write;
use std::process::{Command, Stdio};

use onrush_http::http2::fields::{FieldError, FieldSection};
use onrush_http::http2::hpack::{Decoder, Encoder, Error, Indexing};
use onrush_http::http2::limits::EXCESS_PER_BLOCK_MAX;
use onrush_http::limits::HPACK_COPIED_BYTES_MAX;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::check;
use crate::support::hpack::{Fields, Section, decoded, encoded, with_one_cookie};

const LIST_BYTES_MAX: u32 = 64 * 1024;

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<u8> = hexadecimal.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| {
        let pair = str::from_utf8(pair).expect("digits are ASCII");
        u8::from_str_radix(pair, 16).expect("they are digits")
    };
    digits.chunks(2).map(byte).collect()
}

fn fields(text: &str) -> Fields {
    let field = |line: &str| {
        let line = line.trim_start();
        let colon = 1 + line[1..].find(": ").expect("a field has a colon");
        (line[..colon].into(), line[colon + 2..].into())
    };
    text.trim().lines().map(field).collect()
}

fn section(fields: Fields) -> Section {
    Section {
        fields,
        is_flawed: false,
        is_too_large: false,
    }
}

#[track_caller]
fn assert_decodes(decoder: &mut Decoder, block: &[u8], wanted: Fields) {
    assert_eq!(decoded(decoder, block, LIST_BYTES_MAX), Ok(section(wanted)));
}

const REQUESTS: [&str; 3] = [
    ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com",
    ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache",
    ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value",
];

const RESPONSES: [&str; 3] = [
    ":status: 302\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\nlocation: https://www.example.com",
    ":status: 307\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\nlocation: https://www.example.com",
    ":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\nlocation: https://www.example.com\n\
     content-encoding: gzip\nset-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
];

/// C.4 and C.6: with Huffman code, the encoder's output.
const REQUESTS_HUFFMAN: [&str; 3] = [
    "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
    "8286 84be 5886 a8eb 1064 9cbf",
    "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
];
const RESPONSES_HUFFMAN: [&str; 3] = [
    "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 \
     8f0b 97c8 e9ae 82ae 43d3",
    "4883 640e ffc1 c0bf",
    "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 \
     dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
];

/// RFC 7541 C.2.
#[test]
fn rfc_field_examples_are_decoded() {
    for (block, wanted) in [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "custom-key: custom-header",
        ),
        ("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path"),
        (
            "1008 7061 7373 776f 7264 0673 6563 7265 74",
            "password: secret",
        ),
        ("82", ":method: GET"),
    ] {
        assert_decodes(&mut Decoder::new(4096), &bytes(block), fields(wanted));
    }
}

/// RFC 7541 C.3 to C.6.
#[test]
fn rfc_message_examples_are_decoded() {
    let requests_plain = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    let responses_plain = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d \
         546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f \
         6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b \
         2076 6572 7369 6f6e 3d31",
    ];
    for (blocks, messages, table) in [
        (requests_plain, REQUESTS, ""),
        (REQUESTS_HUFFMAN, REQUESTS, ""),
        // The examples use a table of 256 bytes.
        (responses_plain, RESPONSES, "3fe101"),
        (RESPONSES_HUFFMAN, RESPONSES, "3fe101"),
    ] {
        let mut decoder = Decoder::new(4096);
        assert_decodes(&mut decoder, &bytes(table), Fields::new());
        for (block, message) in blocks.iter().zip(messages) {
            assert_decodes(&mut decoder, &bytes(block), fields(message));
        }
    }
}

/// RFC 7541 C.4 and C.6. If both forms of a string have the same length, as with `307`, ours is without Huffman code.
#[test]
fn rfc_message_examples_are_encoded_identically() {
    let mut responses = RESPONSES_HUFFMAN;
    responses[1] = "4803 3330 37c1 c0bf";
    for (blocks, messages, table_bytes_max, prefix) in [
        (REQUESTS_HUFFMAN, REQUESTS, 4096, ""),
        (responses, RESPONSES, 256, "3fe101"),
    ] {
        let mut encoder = Encoder::new();
        encoder.set_table_bytes_max(table_bytes_max);
        let mut prefix = bytes(prefix);
        for (block, message) in blocks.iter().zip(messages) {
            let mut out = Vec::new();
            encoder.begin(&mut out);
            for (name, value) in fields(message) {
                match name.as_slice() {
                    b":status" => {
                        let status = str::from_utf8(&value).expect("it is text");
                        encoder.status(status.parse().expect("it is a number"), &mut out);
                    }
                    name => encoder.field(name, &value, Indexing::Incremental, &mut out),
                }
            }
            assert_eq!(out, [std::mem::take(&mut prefix), bytes(block)].concat());
        }
    }
}

#[test]
fn invalid_blocks_are_connection_errors() {
    for (block, wanted) in [
        ("80", Error::UnknownIndex),
        ("be", Error::UnknownIndex),
        ("7e 00", Error::UnknownIndex),
        ("ff", Error::Truncated),
        ("40", Error::Truncated),
        ("40 01", Error::Truncated),
        ("40 0161", Error::Truncated),
        ("40 0161 0262", Error::Truncated),
        ("ff ffffffffff0f", Error::IntegerTooLarge),
        ("3fe21f", Error::SizeUpdateTooLarge),
        ("82 20", Error::SizeUpdateTooLate),
        ("04 84ffffffff", Error::EndOfString),
        ("04 81ff", Error::Padding),
    ] {
        let outcome = decoded(&mut Decoder::new(4096), &bytes(block), LIST_BYTES_MAX);
        assert_eq!(outcome, Err(wanted), "{block}");
        assert!(!wanted.to_string().is_empty());
    }
}

#[test]
fn table_size_follows_both_limits() {
    // With a maximum of 0, a peer that has not received it yet uses the initial size.
    let mut decoder = Decoder::new(0);
    let field = fields("a: b");
    assert_decodes(&mut decoder, &bytes("40 0161 0162"), field.clone());
    assert_decodes(&mut decoder, &bytes("be"), field.clone());
    assert_decodes(&mut decoder, &bytes("20 40 0161 0162"), field.clone());
    let outcome = decoded(&mut decoder, &bytes("be"), LIST_BYTES_MAX);
    assert_eq!(outcome, Err(Error::UnknownIndex));
    let outcome = decoded(&mut decoder, &bytes("21"), LIST_BYTES_MAX);
    assert_eq!(outcome, Err(Error::SizeUpdateTooLarge));
    // With a larger maximum, the peer sends a size update before it uses more.
    let mut decoder = Decoder::new(8192);
    let long = "61".repeat(5000);
    let block = |size: &str| bytes(&format!("{size} 40 0161 7f8926 {long} be"));
    assert_decodes(&mut decoder, &block("3fe13f")[..3], Fields::new());
    let twice = vec![(b"a".to_vec(), vec![b'a'; 5000]); 2];
    assert_decodes(&mut decoder, &block(""), twice);
    let outcome = decoded(&mut Decoder::new(8192), &block(""), LIST_BYTES_MAX);
    assert_eq!(outcome, Err(Error::UnknownIndex));
}

#[test]
fn table_size_updates_start_next_block() {
    let mut encoder = Encoder::new();
    let mut begun = |sizes: &[u32]| {
        let mut out = Vec::new();
        sizes
            .iter()
            .for_each(|&size| encoder.set_table_bytes_max(size));
        encoder.begin(&mut out);
        out
    };
    assert_eq!(begun(&[]), []);
    assert_eq!(begun(&[4096, 1 << 20]), []);
    assert_eq!(begun(&[0]), [0x20]);
    assert_eq!(begun(&[]), []);
    assert_eq!(begun(&[100, 50]), bytes("3f13"));
    assert_eq!(begun(&[0, 100]), bytes("20 3f45"));
    assert_eq!(begun(&[1 << 20]), bytes("3fe11f"));
}

#[test]
fn default_indexing_depends_on_field() {
    let rows: [(&str, &str, Indexing); 6] = [
        ("authorization", "Basic YTpi", Indexing::Never),
        ("cookie", "id=short", Indexing::Never),
        (
            "cookie",
            "id=0123456789abcdef0123456789abcdef",
            Indexing::Incremental,
        ),
        ("content-length", "17", Indexing::Without),
        (
            "date",
            "Mon, 21 Oct 2013 20:13:21 GMT",
            Indexing::Incremental,
        ),
        ("x-any", "a", Indexing::Incremental),
    ];
    for (name, value, wanted) in rows {
        let indexing = Indexing::of(name.as_bytes(), value.as_bytes());
        assert_eq!(indexing, wanted, "{name}: {value}");
        let mut encoder = Encoder::new();
        let mut blocks = [Vec::new(), Vec::new()];
        for block in &mut blocks {
            encoder.field(name.as_bytes(), value.as_bytes(), indexing, block);
        }
        match wanted {
            Indexing::Incremental => assert_eq!(blocks[1], [0xbe]),
            Indexing::Without => assert!(blocks[0][0] < 0x10 && blocks[0] == blocks[1]),
            Indexing::Never => assert!(blocks[0][0] & 0xf0 == 0x10 && blocks[0] == blocks[1]),
        }
    }
    // Not even as an index of the static table.
    let mut out = Vec::new();
    Encoder::new().field(b":method", b"GET", Indexing::Never, &mut out);
    assert_eq!(out[0], 0x12);
}

#[test]
fn large_field_is_not_added_to_dynamic_table() {
    let mut encoder = Encoder::new();
    let mut out = Vec::new();
    encoder.field(b"a", &[b'~'; 2047], Indexing::Incremental, &mut out);
    assert_eq!(out[0], 0);
    out.clear();
    encoder.field(b"a", &[b'~'; 2046], Indexing::Incremental, &mut out);
    assert_eq!(out[0], 0x40);
}

#[test]
fn malformed_fields_are_reported_and_skipped() {
    for (name, value, wanted) in [
        ("X-a", "b", FieldError::UpperCase),
        (":Path", "/", FieldError::UpperCase),
        ("", "b", FieldError::Name),
        (":", "b", FieldError::Name),
        ("a b", "b", FieldError::Name),
        ("a:", "b", FieldError::Name),
        ("caf\u{e9}", "b", FieldError::Name),
        ("a", "b\n", FieldError::Value),
        ("a", "b\0c", FieldError::Value),
        ("path", "\u{7f}", FieldError::Value),
        (":path", " /", FieldError::Edge),
        (":authority", "a\t", FieldError::Edge),
        ("connection", "close", FieldError::ConnectionSpecific),
        ("keep-alive", "5", FieldError::ConnectionSpecific),
        ("proxy-connection", "close", FieldError::ConnectionSpecific),
        (
            "transfer-encoding",
            "chunked",
            FieldError::ConnectionSpecific,
        ),
        ("upgrade", "h2c", FieldError::ConnectionSpecific),
        ("te", "gzip", FieldError::Te),
        ("te", "trailers, gzip", FieldError::Te),
    ] {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
        let mut section = FieldSection::default();
        // First as a literal, then from the table.
        for _ in 0..2 {
            let mut block = Vec::new();
            for (name, value) in [("a", "first"), (name, value), ("b", "last")] {
                let (name, value) = (name.as_bytes(), value.as_bytes());
                encoder.field(name, value, Indexing::Incremental, &mut block);
            }
            decoder
                .decode(&block, LIST_BYTES_MAX, &mut section)
                .expect("it can be decoded");
            assert_eq!(section.flaw(), Some(wanted), "{name}: {value}");
            assert!(!wanted.reason().is_empty());
            let kept: Vec<_> = section.iter().collect();
            assert_eq!(kept, [("a", b"first".as_slice()), ("b", b"last")]);
        }
    }
    for (name, value) in [
        ("te", "trailers"),
        ("te", "Trailers"),
        ("a", ""),
        (":protocol", "x"),
        ("a", "b \t c"),
    ] {
        let block = encoded(&mut Encoder::new(), &vec![(name.into(), value.into())]);
        let found = decoded(&mut Decoder::new(4096), &block, LIST_BYTES_MAX);
        assert_eq!(found, Ok(section(vec![(name.into(), value.into())])));
    }
}

#[test]
fn cookie_fields_are_joined_at_first() {
    let crumbs = fields("a: b\ncookie: c=1\nd: e\ncookie: f=2\ncookie: \ncookie: g=3\nh: i");
    let block = encoded(&mut Encoder::new(), &crumbs);
    let wanted = fields("a: b\ncookie: c=1; f=2; g=3\nd: e\nh: i");
    assert_decodes(&mut Decoder::new(4096), &block, wanted);
}

/// A small block that refers to one large entry again and again.
#[test]
fn hpack_bomb_is_bounded() {
    let mut decoder = Decoder::new(4096);
    let mut section = FieldSection::default();
    let mut block = bytes("40 0161 7fa11e");
    block.extend([b'b'; 4000]);
    let references = 3 + EXCESS_PER_BLOCK_MAX as usize;
    let more = [&block[..], &vec![0xbe; references + 1]].concat();
    let outcome = Decoder::new(4096).decode(&more, 16 * 1024, &mut section);
    assert_eq!(outcome, Err(Error::TooMuchWork));
    block.extend(vec![0xbe; references]);
    decoder
        .decode(&block, 16 * 1024, &mut section)
        .expect("it can be decoded");
    assert!(section.is_too_large());
    let count = 1 + references as u64;
    assert_eq!(section.list_bytes(), count * (1 + 4000 + 32));
    assert_eq!(section.len(), 4);
    // The next block has a normal size.
    assert_decodes(&mut decoder, &[0x82], fields(":method: GET"));
    section.clear();
    assert!(section.is_empty() && !section.is_too_large());
}

/// Every two bytes copy a large name into a new entry.
#[test]
fn copied_names_are_bounded() {
    let name_bytes = 4000;
    let mut block = bytes("40 7fa11e");
    block.extend(vec![b'a'; name_bytes]);
    block.push(0);
    for copies in [
        HPACK_COPIED_BYTES_MAX / name_bytes,
        HPACK_COPIED_BYTES_MAX / name_bytes + 1,
    ] {
        let block = [block.clone(), bytes("7e00").repeat(copies)].concat();
        let outcome = decoded(&mut Decoder::new(4096), &block, 0);
        let is_within = copies * name_bytes <= HPACK_COPIED_BYTES_MAX;
        assert_eq!(outcome.is_ok(), is_within);
        assert_eq!(outcome.err(), (!is_within).then_some(Error::TooMuchWork));
    }
}

#[test]
fn status_encodes_as_pseudo_field() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
    for status in (100..=999).chain(100..=999) {
        let mut block = Vec::new();
        encoder.status(status, &mut block);
        assert_decodes(&mut decoder, &block, fields(&format!(":status: {status}")));
    }
}

/// Typical fields: few different names and values, so that table entries are used and evicted.
fn field() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let name = prop_oneof![
        "[a-c]{1,3}",
        "(accept|cookie|date|etag|host|:path|:status|x-custom-name)",
        "[a-z0-9-]{1,60}"
    ];
    let value = prop_oneof!["[a-c0-9]{0,2}", "[!-~]([ -~]{0,300}[!-~])?"];
    (name, value)
        .prop_map(|(name, value)| (name.into_bytes(), value.into_bytes()))
        .prop_filter("malformed", |(name, value)| {
            !matches!(name.as_slice(), b"te" | b"upgrade") && value.trim_ascii() == value
        })
}

/// Blocks of a connection, each with an optional new table size.
fn blocks() -> impl Strategy<Value = Vec<(Option<u32>, Fields)>> {
    vec(
        (
            proptest::option::weighted(0.1, 0u32..5000),
            vec(field(), 1..12),
        ),
        1..40,
    )
}

proptest! {
    #[test]
    fn encoded_fields_round_trip(blocks in blocks()) {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
        let mut other = fluke_hpack::Decoder::new();
        other.set_max_allowed_table_size(4096);
        for (size, fields) in blocks {
            size.into_iter().for_each(|size| encoder.set_table_bytes_max(size));
            let block = encoded(&mut encoder, &fields);
            prop_assert_eq!(other.decode(&block).expect("another implementation decodes it"), fields.clone());
            let wanted = section(with_one_cookie(fields));
            prop_assert_eq!(decoded(&mut decoder, &block, LIST_BYTES_MAX), Ok(wanted));
        }
    }

    #[test]
    fn fluke_hpack_encoding_is_decoded(blocks in blocks()) {
        let (mut encoder, mut decoder) = (fluke_hpack::Encoder::new(), Decoder::new(4096));
        for (_, fields) in blocks {
            let block = encoder.encode(fields.iter().map(|(name, value)| (&**name, &**value)));
            let wanted = section(with_one_cookie(fields));
            prop_assert_eq!(decoded(&mut decoder, &block, LIST_BYTES_MAX), Ok(wanted));
        }
    }

    #[test]
    fn arbitrary_blocks_decode_like_fluke_hpack(input in vec(any::<u8>(), 0..200)) {
        check::hpack(&input);
    }

    #[test]
    fn corrupted_blocks_decode_like_fluke_hpack(
        blocks in blocks(), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut encoder = Encoder::new();
        let encoded = blocks.iter().map(|(_, fields)| encoded(&mut encoder, fields));
        let mut input = encoded.collect::<Vec<_>>().join(&0xfe);
        for (at, byte) in changes {
            if !input.is_empty() {
                let at = at.index(input.len());
                input[at] = byte;
            }
        }
        check::hpack(&input);
    }
}

/// Python's `hpack`, one line per block: `d` and a block to decode, or `e` and fields to encode.
const PYTHON: &str = r"
import sys
from hpack import Encoder, Decoder
encoder, decoder = Encoder(), Decoder(max_header_list_size=1 << 20)
for line in sys.stdin:
    kind, *words = line.split(' ')
    words = [bytes.fromhex(word) for word in words]
    if kind == 'd':
        fields = decoder.decode(words[0], raw=True)
        print(' '.join((part.hex() or '-') for field in fields for part in field))
    else:
        pairs = list(zip(words[::2], words[1::2]))
        print(encoder.encode(pairs, huffman=len(pairs) % 2 == 0).hex())
";

/// A Python interpreter with `hpack`, if there is one.
fn python() -> Option<Command> {
    let has_hpack = |program: &&str| {
        let imported = Command::new(program).args(["-c", "import hpack"]).output();
        imported.is_ok_and(|output| output.status.success())
    };
    let program = ["python3", "/usr/bin/python3"]
        .into_iter()
        .find(has_hpack)?;
    Some(Command::new(program))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Varied messages of a connection, in many blocks of different sizes.
fn messages() -> Vec<Fields> {
    let message = |number: usize| {
        let mut message = fields(REQUESTS[number % 3]);
        let own = |at: usize| {
            let value = "value ~\u{e9}".repeat(at % 7).into_bytes();
            (format!("x-{}", (number * at) % 50).into_bytes(), value)
        };
        message.extend((0..number % 9).map(own));
        message
    };
    (0..300).map(message).collect()
}

#[test]
fn python_hpack_interoperates() {
    let Some(mut command) = python() else {
        return eprintln!(
            "skipped: python3 has no hpack here; run: scripts/packages python3-hpack"
        );
    };
    let messages = messages();
    let mut encoder = Encoder::new();
    let mut input = String::new();
    for message in &messages {
        input += &format!("d {}\n", hexadecimal(&encoded(&mut encoder, message)));
        let words = message.iter().flat_map(|(name, value)| [name, value]);
        let words: Vec<_> = words.map(|word| hexadecimal(word)).collect();
        input += &format!("e {}\n", words.join(" "));
    }
    let command = command.args(["-c", PYTHON]).stdin(Stdio::piped());
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .expect("it has just run");
    let mut stdin = child.stdin.take().expect("it is piped");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("it ends with its input");
    writer
        .join()
        .expect("it does not panic")
        .expect("all of it is read");
    let output = String::from_utf8(output.stdout).expect("it is hexadecimal");
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines.len(), 2 * messages.len());
    let mut decoder = Decoder::new(4096);
    for (message, lines) in messages.into_iter().zip(lines.chunks(2)) {
        let words: Vec<_> = lines[0].split(' ').map(bytes).collect();
        let read: Fields = words
            .chunks(2)
            .map(|field| (field[0].clone(), field[1].clone()))
            .collect();
        assert_eq!(read, message);
        assert_decodes(&mut decoder, &bytes(lines[1]), message);
    }
}

#[test]
fn white_space_around_values_is_trimmed() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
    let mut section = FieldSection::default();
    // First as a literal, then from the table.
    for _ in 0..2 {
        let mut block = Vec::new();
        for (name, value) in [("x-a", " b\t"), ("te", "trailers "), ("cookie", "\t")] {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            encoder.field(name, value, Indexing::Incremental, &mut block);
        }
        let decoded = decoder.decode(&block, LIST_BYTES_MAX, &mut section);
        decoded.expect("it can be decoded");
        assert_eq!(section.flaw(), None);
        let kept: Vec<_> = section.iter().collect();
        let expected: [(&str, &[u8]); 3] = [("x-a", b"b"), ("te", b"trailers"), ("cookie", b"")];
        assert_eq!(kept, expected);
    }
}
