//! Owned HPACK blocks and sections, and properties of arbitrary bytes.

use onrush_http::http2::fields::FieldSection;
use onrush_http::http2::hpack::{Decoder, Encoder, Error};
use onrush_http::http2::message::{
    ExtendedConnect, MoreFrames, request, request_trailers, response, response_trailers,
};
use onrush_http::{HeaderSlots, Limits, Method, is_authority, is_field_value, is_token};

pub(crate) type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// More than any block here needs, except blocks that reference large entries many times.
const LIST_BYTES_MAX: u32 = 64 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) fields: Fields,
    pub(crate) is_flawed: bool,
    pub(crate) is_too_large: bool,
}

/// Decodes the next block of a connection.
pub(crate) fn decoded(
    decoder: &mut Decoder,
    block: &[u8],
    list_bytes_max: u32,
) -> Result<Section, Error> {
    let mut section = FieldSection::default();
    decoder.decode(block, list_bytes_max, &mut section)?;
    check_messages(&section);
    Ok(owned(&section))
}

fn owned(section: &FieldSection) -> Section {
    let fields = section.iter();
    Section {
        fields: fields
            .map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec()))
            .collect(),
        is_flawed: section.flaw().is_some(),
        is_too_large: section.is_too_large(),
    }
}

/// Encodes a block, each field with its default indexing.
pub(crate) fn encoded(encoder: &mut Encoder, fields: &Fields) -> Vec<u8> {
    let mut block = Vec::new();
    encoder.begin(&mut block);
    for (name, value) in fields {
        encoder.field_with_default_indexing(name, value, &mut block);
    }
    block
}

/// Splits `input` at every byte 0xfe into blocks of a connection. Each block must be decoded the same regardless of how
/// many earlier entries the table holds, within its limit, to fields that HTTP/1 allows, as another implementation
/// decodes it, and be unchanged by encoding.
pub(crate) fn check(input: &[u8]) {
    let (mut keeping, mut refusing) = (Decoder::new(4096), Decoder::new(4096));
    let mut other = fluke_hpack::Decoder::new();
    other.set_max_allowed_table_size(4096);
    let (mut encoder, mut again) = (Encoder::new(), Decoder::new(4096));
    for block in input.split(|&byte| byte == 0xfe) {
        // The other decoder requires a field after a size update.
        let block = &[block, b"\x82"].concat();
        let section = decoded(&mut keeping, block, LIST_BYTES_MAX);
        let nothing = decoded(&mut refusing, block, 0);
        if nothing == Err(Error::TooMuchWork) {
            // Discarded fields are limited.
            return;
        }
        let outcome = (section.as_ref().err(), nothing.as_ref().err());
        assert_eq!(outcome.0, outcome.1, "what is kept makes no difference");
        let (Ok(section), Ok(nothing)) = (section, nothing) else {
            return;
        };
        assert_eq!(nothing.fields, []);
        assert_eq!(nothing.is_flawed, section.is_flawed);
        let is_empty = section.fields.is_empty() && !section.is_flawed && !section.is_too_large;
        assert_eq!(nothing.is_too_large, !is_empty);
        check_fields(&section.fields);
        let others = other.decode(block);
        let others = others.expect("another implementation decodes it, too");
        if !section.is_flawed && !section.is_too_large {
            assert_eq!(section.fields, with_one_cookie(others));
        }
        let block = encoded(&mut encoder, &section.fields);
        let section = Section {
            is_flawed: false,
            is_too_large: false,
            ..section
        };
        assert_eq!(decoded(&mut again, &block, LIST_BYTES_MAX), Ok(section));
    }
}

/// Checks that stored fields are within the limit and can be forwarded.
fn check_fields(fields: &Fields) {
    let bytes = |(name, value): &(Vec<u8>, Vec<u8>)| name.len() + value.len() + 32;
    // Joined cookies are separated by two bytes, instead of the overhead of each.
    assert!(fields.iter().map(bytes).sum::<usize>() <= LIST_BYTES_MAX as usize);
    for (name, value) in fields {
        let token = name.strip_prefix(b":").unwrap_or(name);
        assert!(is_token(token) && !name.iter().any(u8::is_ascii_uppercase));
        assert!(is_field_value(value) && value.trim_ascii() == value);
    }
}

/// Checks that every accepted message can be written as HTTP/1.
fn check_messages(section: &FieldSection) {
    let (mut slots, limits) = (HeaderSlots::new(), &Limits::DEFAULT);
    for follows in [MoreFrames::More, MoreFrames::Nothing] {
        if let Ok(request) = request(
            section,
            &mut slots,
            follows,
            ExtendedConnect::Allowed,
            limits,
        ) {
            let head = request.head;
            assert!(is_token(head.method_text.as_bytes()));
            assert!(!head.target.is_empty() && head.target.bytes().all(|it| it.is_ascii_graphic()));
            assert!(is_authority(
                head.authority.expect("all have one").as_bytes()
            ));
            assert!(head.headers.iter().all(|it| is_token(it.name.as_bytes())));
        }
        if let Ok(head) = response(section, &mut slots, Method::Get, follows, limits) {
            assert!((100..=999).contains(&head.status) && head.status != 101);
            assert!(head.headers.iter().all(|it| is_token(it.name.as_bytes())));
        }
    }
    for is_fields in [
        request_trailers(section, limits)
            .map(|mut it| it.all(|(name, _)| is_token(name.as_bytes()))),
        response_trailers(section, limits)
            .map(|mut it| it.all(|(name, _)| is_token(name.as_bytes()))),
    ] {
        assert!(is_fields.unwrap_or(true));
    }
}

/// Joins the cookies of `fields` (RFC 9113 8.2.3).
pub(crate) fn with_one_cookie(fields: Fields) -> Fields {
    let mut joined = Fields::new();
    for (name, value) in fields {
        match joined
            .iter_mut()
            .find(|(known, _)| name == b"cookie" && *known == name)
        {
            Some((_, cookies)) if cookies.is_empty() => *cookies = value,
            Some(_) if value.is_empty() => {}
            Some((_, cookies)) => {
                cookies.extend(b"; ");
                cookies.extend(value);
            }
            None => joined.push((name, value)),
        }
    }
    joined
}
