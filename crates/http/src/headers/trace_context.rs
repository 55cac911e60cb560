//! The fields traceparent and tracestate (W3C Trace Context level 2, compatible with level 1).
//!
//! ```text
//!  traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
//!               │  trace-id                         parent-id        └ flags: 01 sampled, 02 random trace-id
//!               └ version
//! ```
//! A malformed or repeated traceparent starts a new trace, and tracestate is ignored (3.2.2.5, 3.3.1.1).

use std::num::{NonZeroU64, NonZeroU128};

use crate::field::{Header, header_is};
use crate::limits::TRACE_STATE_MEMBERS_MAX;
use crate::write::HeadWriter;

/// Flag: the caller may have recorded the trace.
pub const SAMPLED: u8 = 0x01;

/// Flag: the right-most 7 bytes of the trace-id are random.
pub const RANDOM: u8 = 0x02;

/// Length of a traceparent of version 00.
pub const TRACE_PARENT_BYTES: usize = 55;

/// Trace and parent span of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceParent {
    /// trace-id.
    pub trace: NonZeroU128,
    /// parent-id: the caller's span.
    pub span: NonZeroU64,
    /// [`SAMPLED`] and [`RANDOM`]; other bits are never set.
    pub flags: u8,
}

impl TraceParent {
    /// Parses the field of a request; `None` if it is missing, repeated or invalid.
    pub fn of(headers: &[Header<'_>]) -> Option<Self> {
        let mut fields = headers
            .iter()
            .filter(|field| header_is(field.name, "traceparent"));
        let field = fields.next()?;
        match fields.next() {
            None => Self::parse(field.value),
            Some(_) => None,
        }
    }

    /// Parses a trimmed value. Of a future version the first four parts count, if they have this format and are
    /// followed by a hyphen or nothing (3.2.4).
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (known, rest) = value.split_at_checked(TRACE_PARENT_BYTES)?;
        let version = hexadecimal(&known[..2])?;
        let ends_well = match version {
            0x00 => rest.is_empty(),
            0xff => return None,
            _ => matches!(rest.first(), None | Some(b'-')),
        };
        let are_hyphens = [2, 35, 52].iter().all(|&at| known[at] == b'-');
        if !ends_well || !are_hyphens {
            return None;
        }
        let flags = hexadecimal(&known[53..])?;
        Some(Self {
            trace: NonZeroU128::new(hexadecimal(&known[3..35])?)?,
            span: NonZeroU64::new(hexadecimal(&known[36..52])? as u64)?,
            flags: flags as u8 & (SAMPLED | RANDOM),
        })
    }

    /// Whether the caller may have recorded the trace.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Formats it as version 00.
    pub fn text(&self) -> [u8; TRACE_PARENT_BYTES] {
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        write_hexadecimal(self.trace.get(), &mut text[3..35]);
        write_hexadecimal(self.span.get().into(), &mut text[36..52]);
        write_hexadecimal(self.flags.into(), &mut text[53..]);
        text
    }
}

/// Whether `name` is one of the two fields.
#[inline]
pub fn is_trace_field(name: &str) -> bool {
    match name.len() {
        10 => header_is(name, "tracestate"),
        11 => header_is(name, "traceparent"),
        _ => false,
    }
}

/// Writes the tracestate members of a request as one field, in order; nothing if there are none or if one is invalid.
/// Never longer than the received fields.
pub fn write_trace_state(headers: &[Header<'_>], writer: &mut HeadWriter<'_>) {
    let mut count = 0;
    for member in members(headers) {
        count += 1;
        if count > TRACE_STATE_MEMBERS_MAX || !is_member(member) {
            return;
        }
    }
    let mut before: &[u8] = b"tracestate: ";
    for member in members(headers) {
        writer.raw(before).raw(member);
        before = b",";
    }
    if count > 0 {
        writer.raw(b"\r\n");
    }
}

/// Trimmed members of all tracestate fields; empty ones are allowed and skipped (3.3.1.1).
fn members<'b>(headers: &[Header<'b>]) -> impl Iterator<Item = &'b [u8]> {
    let fields = headers
        .iter()
        .filter(|field| header_is(field.name, "tracestate"));
    let members = fields.flat_map(|field| field.value.split(|&byte| byte == b','));
    members
        .map(|member| member.trim_ascii())
        .filter(|member| !member.is_empty())
}

fn is_member(member: &[u8]) -> bool {
    let Some(at) = memchr::memchr(b'=', member) else {
        return false;
    };
    let (key, value) = (&member[..at], &member[at + 1..]);
    let starts = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let continues = |byte: &u8| starts(byte) || b"_-*/@".contains(byte);
    let may_stand = |byte: &u8| matches!(byte, 0x20..=0x7e) && !b",=".contains(byte);
    (1..=256).contains(&key.len())
        && key.first().is_some_and(starts)
        && key.iter().all(continues)
        && (1..=256).contains(&value.len())
        && value.iter().all(may_stand)
}

/// Parses lower-case hexadecimal digits; others are invalid (3.2.2).
fn hexadecimal(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(digit))
    })
}

/// Writes the number in lower-case hexadecimal digits that fill `room`.
pub fn write_hexadecimal(number: u128, room: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (position, digit) in room.iter_mut().rev().enumerate() {
        *digit = DIGITS[(number >> (4 * position)) as usize & 0xf];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TRACE: &str = "12345678901234567890123456789012";
    const SPAN: &str = "1234567890123456";

    fn fields<'a>(name: &'static str, values: &[&'a [u8]]) -> Vec<Header<'a>> {
        let field = |value: &&'a [u8]| Header { name, value };
        values.iter().map(field).collect()
    }

    fn passed_on(values: &[&[u8]]) -> String {
        let mut room = [0; 20_000];
        let mut writer = HeadWriter::new(&mut room);
        write_trace_state(&fields("tracestate", values), &mut writer);
        let bytes = writer.finish().expect("there is room");
        String::from_utf8(room[..bytes].to_vec()).expect("it is ASCII")
    }

    /// The cases of the working group's test suite (w3c/trace-context, test/test.py).
    #[test]
    fn traceparent_parsing_follows_w3c() {
        for (value, flags) in [
            (format!("00-{TRACE}-{SPAN}-01"), Some(1)),
            (format!("00-{TRACE}-{SPAN}-00"), Some(0)),
            (format!("00-{TRACE}-{SPAN}-03"), Some(3)),
            // Undefined flags are not forwarded.
            (format!("00-{TRACE}-{SPAN}-ff"), Some(3)),
            (format!("00-{TRACE}-{SPAN}-08"), Some(0)),
            // Version 00 must end here.
            (format!("00-{TRACE}-{SPAN}-01."), None),
            (format!("00-{TRACE}-{SPAN}-01-"), None),
            (format!("00-{TRACE}-{SPAN}-01-what-the-future-brings"), None),
            // Future versions may continue.
            (format!("cc-{TRACE}-{SPAN}-01"), Some(1)),
            (
                format!("cc-{TRACE}-{SPAN}-01-what-the-future-brings"),
                Some(1),
            ),
            (format!("cc-{TRACE}-{SPAN}-01.what-the-future-brings"), None),
            (format!("ff-{TRACE}-{SPAN}-01"), None),
            (format!(".0-{TRACE}-{SPAN}-01"), None),
            (format!("0.-{TRACE}-{SPAN}-01"), None),
            (format!("0-{TRACE}-{SPAN}-01"), None),
            (format!("000-{TRACE}-{SPAN}-01"), None),
            (format!("00-{}-{SPAN}-01", "0".repeat(32)), None),
            (format!("00-.{}-{SPAN}-01", &TRACE[1..]), None),
            (format!("00-{}-{SPAN}-01", &TRACE[1..]), None),
            (format!("00-{TRACE}0-{SPAN}-01"), None),
            (format!("00-{TRACE}-{}-01", "0".repeat(16)), None),
            (format!("00-{TRACE}-.{}-01", &SPAN[1..]), None),
            (format!("00-{TRACE}-{}-01", &SPAN[1..]), None),
            (format!("00-{TRACE}-{SPAN}-.0"), None),
            (format!("00-{TRACE}-{SPAN}-0."), None),
            (format!("00-{TRACE}-{SPAN}-1"), None),
            (format!("00-{TRACE}-{SPAN}-001"), None),
            (format!("00-{TRACE}-{SPAN}"), None),
            (format!("00-{}-{SPAN}-01", TRACE.replace('1', "A")), None),
            (format!("00-{TRACE}_{SPAN}-01"), None),
            (String::new(), None),
        ] {
            let parsed = TraceParent::parse(value.as_bytes());
            assert_eq!(parsed.map(|parsed| parsed.flags), flags, "{value}");
            if let Some(parsed) = parsed {
                let text = parsed.text();
                assert_eq!(text[2..52], value.as_bytes()[2..52], "{value}");
            }
        }
    }

    #[test]
    fn duplicate_traceparent_is_ignored() {
        let valid = format!("00-{TRACE}-{SPAN}-01");
        let one = fields("TraceParent", &[valid.as_bytes()]);
        assert!(TraceParent::of(&one).is_some_and(|parent| parent.is_sampled()));
        let two = fields("traceparent", &[valid.as_bytes(), valid.as_bytes()]);
        assert_eq!(TraceParent::of(&two), None);
        assert_eq!(TraceParent::of(&[]), None);
    }

    #[test]
    fn invalid_tracestate_is_dropped() {
        let longest =
            |key: usize, value: usize| format!("{}={}", "z".repeat(key), "v".repeat(value));
        let many = |count: usize| {
            let members: Vec<String> = (0..count).map(|at| format!("bar{at:02}=1")).collect();
            members.join(",")
        };
        for (value, is_valid) in [
            ("foo=1".to_owned(), true),
            ("foo=1,bar=2".to_owned(), true),
            ("foo@bar=1,1a=2".to_owned(), true),
            ("abc_-*/@=!\"#$%&'()*+-./:;<>?@[]^_`{|}~ x".to_owned(), true),
            (longest(256, 256), true),
            (longest(257, 1), false),
            (longest(1, 257), false),
            (many(32), true),
            (many(33), false),
            ("foo".to_owned(), false),
            ("foo=".to_owned(), false),
            ("=1".to_owned(), false),
            ("foo =1".to_owned(), false),
            ("FOO=1".to_owned(), false),
            ("foo.bar=1".to_owned(), false),
            ("@foo=1".to_owned(), false),
            ("foo=bar=baz".to_owned(), false),
            ("foo=\u{fc}".to_owned(), false),
            ("foo=1,bar=2,x".to_owned(), false),
        ] {
            let expected = match is_valid {
                true => format!("tracestate: {value}\r\n"),
                false => String::new(),
            };
            assert_eq!(passed_on(&[value.as_bytes()]), expected);
        }
    }

    #[test]
    fn tracestate_fields_are_joined() {
        let passed = passed_on(&[b"foo=1 , \tbar=2", b"", b",", b"rojo=1,,congo=2,"]);
        assert_eq!(passed, "tracestate: foo=1,bar=2,rojo=1,congo=2\r\n");
        assert_eq!(passed_on(&[b"", b" , "]), "");
        assert_eq!(passed_on(&[]), "");
    }

    proptest! {
        #[test]
        fn traceparent_round_trips(trace in 1u128.., span in 1u64.., flags in 0u8..4) {
            let parent = TraceParent {
                trace: NonZeroU128::new(trace).expect("not 0"),
                span: NonZeroU64::new(span).expect("not 0"),
                flags,
            };
            prop_assert_eq!(TraceParent::parse(&parent.text()), Some(parent));
        }

        #[test]
        fn forwarded_tracestate_is_valid(
            values in proptest::collection::vec(
                proptest::collection::vec(
                    prop_oneof![Just(b','), Just(b'='), Just(b'a'), Just(b' '), any::<u8>()], 0..60), 0..4),
            parent in proptest::collection::vec(
                prop_oneof![Just(b'0'), Just(b'-'), any::<u8>()], 0..70),
        ) {
            if let Some(parsed) = TraceParent::parse(&parent) {
                prop_assert_eq!(TraceParent::parse(&parsed.text()), Some(parsed));
            }
            let values: Vec<&[u8]> = values.iter().map(|value| &value[..]).collect();
            let passed = passed_on(&values);
            let taken: usize = values.iter().map(|value| value.len() + "tracestate: \r\n".len()).sum();
            prop_assert!(passed.len() <= taken);
            if !passed.is_empty() {
                let value = passed.strip_prefix("tracestate: ").and_then(|rest| rest.strip_suffix("\r\n"));
                let value = value.expect("it is one field");
                prop_assert!(value.split(',').all(|member| is_member(member.as_bytes())));
                prop_assert_eq!(passed_on(&[value.as_bytes()]), passed);
            }
        }
    }
}
