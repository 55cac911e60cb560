//! Content codings: which supported one a client prefers (RFC 9110 12.5.3), and whether a response may be encoded.

use crate::field::{self, Header, header_is, token_list};

/// A supported content coding (RFC 9110 8.4.1). Identity is represented by its absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// `zstd` (RFC 8878).
    Zstd,
    /// `br` (RFC 7932).
    Brotli,
    /// `gzip`, also known as `x-gzip` (RFC 9110 8.4.1.3).
    Gzip,
}

impl Coding {
    /// Name in Content-Encoding.
    pub const fn token(self) -> &'static str {
        match self {
            Coding::Zstd => "zstd",
            Coding::Brotli => "br",
            Coding::Gzip => "gzip",
        }
    }

    fn of(name: &[u8]) -> Option<Coding> {
        if name.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Coding::Gzip);
        }
        [Coding::Zstd, Coding::Brotli, Coding::Gzip]
            .into_iter()
            .find(|coding| name.eq_ignore_ascii_case(coding.token().as_bytes()))
    }
}

/// Weights of the supported codings in the Accept-Encoding fields of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptEncoding {
    zstd: Option<Weight>,
    brotli: Option<Weight>,
    gzip: Option<Weight>,
    identity: Option<Weight>,
    /// `*`: codings that are not named.
    others: Option<Weight>,
}

/// Weight in thousandths (RFC 9110 12.4.2): 0 is "not acceptable", 1000 the maximum.
pub(crate) type Weight = u16;

pub(crate) const WEIGHT_MAX: Weight = 1000;

impl AcceptEncoding {
    /// Parses the fields. Malformed members and unsupported codings are skipped; of repeated names the first counts.
    pub fn of(headers: &[Header<'_>]) -> AcceptEncoding {
        let mut accepted = AcceptEncoding::default();
        let fields = headers
            .iter()
            .filter(|header| header_is(header.name, "accept-encoding"));
        for (name, weight) in fields
            .flat_map(|header| token_list(header.value))
            .filter_map(member)
        {
            if let Some(place) = accepted.place_of(name) {
                place.get_or_insert(weight);
            }
        }
        accepted
    }

    /// Selects the best of `offered`, which is in the server's order of preference; `None` is identity. A request
    /// without Accept-Encoding gets identity: RFC 9110 12.5.3 would allow any coding, but clients without a decoder
    /// send such requests. Identity is also the fallback if nothing is acceptable, as that section recommends.
    pub fn best(&self, offered: &[Coding]) -> Option<Coding> {
        // If not named, identity is acceptable, at a lower weight than any coding.
        let identity = self.identity.or(self.others).unwrap_or(0);
        let mut best = None;
        let mut weight_best = 0;
        for &coding in offered {
            let weight = self.weight(coding);
            if weight > weight_best && weight >= identity {
                (best, weight_best) = (Some(coding), weight);
            }
        }
        best
    }

    /// Whether the client accepts this coding.
    pub fn accepts(&self, coding: Coding) -> bool {
        self.weight(coding) > 0
    }

    fn weight(&self, coding: Coding) -> Weight {
        let named = match coding {
            Coding::Zstd => self.zstd,
            Coding::Brotli => self.brotli,
            Coding::Gzip => self.gzip,
        };
        named.or(self.others).unwrap_or(0)
    }

    fn place_of(&mut self, name: &[u8]) -> Option<&mut Option<Weight>> {
        if name == b"*" {
            return Some(&mut self.others);
        }
        if name.eq_ignore_ascii_case(b"identity") {
            return Some(&mut self.identity);
        }
        match Coding::of(name)? {
            Coding::Zstd => Some(&mut self.zstd),
            Coding::Brotli => Some(&mut self.brotli),
            Coding::Gzip => Some(&mut self.gzip),
        }
    }
}

/// Whether the content is already encoded; it is then sent unchanged.
pub fn is_encoded(headers: &[Header<'_>]) -> bool {
    headers
        .iter()
        .filter(|header| header_is(header.name, "content-encoding"))
        .flat_map(|header| token_list(header.value))
        .any(|coding| !coding.eq_ignore_ascii_case(b"identity"))
}

/// Whether Vary already contains this request field (RFC 9110 12.5.5) or `*`.
pub fn varies_by(headers: &[Header<'_>], name_lowercase: &str) -> bool {
    headers
        .iter()
        .filter(|header| header_is(header.name, "vary"))
        .flat_map(|header| token_list(header.value))
        .any(|name| name == b"*" || name.eq_ignore_ascii_case(name_lowercase.as_bytes()))
}

/// Whether Cache-Control forbids transforming the content, which includes encoding it (RFC 9111 5.2.2.6).
pub fn is_no_transform(headers: &[Header<'_>]) -> bool {
    headers
        .iter()
        .filter(|header| header_is(header.name, "cache-control"))
        .flat_map(|header| field::split_unquoted(header.value, b','))
        .any(|directive| field::trim(directive).eq_ignore_ascii_case(b"no-transform"))
}

/// Parses `name [;q=weight]` (RFC 9110 12.5.3); `None` if malformed.
fn member(text: &[u8]) -> Option<(&[u8], Weight)> {
    let Some(semicolon) = memchr::memchr(b';', text) else {
        return field::is_token(text).then_some((text, WEIGHT_MAX));
    };
    let name = field::trim(&text[..semicolon]);
    let (b"q=" | b"Q=", weight) = field::trim(&text[semicolon + 1..]).split_at_checked(2)? else {
        return None;
    };
    field::is_token(name).then_some((name, self::weight(weight)?))
}

/// Parses a qvalue (RFC 9110 12.4.2): `0` or `1`, and up to three decimals.
pub(crate) fn weight(text: &[u8]) -> Option<Weight> {
    let (&whole, rest) = text.split_first()?;
    let digits = match rest {
        [] => rest,
        [b'.', digits @ ..] => digits,
        _ => return None,
    };
    if digits.len() > 3 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |at: usize| digits.get(at).map_or(0, |digit| Weight::from(digit - b'0'));
    let thousandths = digit(0) * 100 + digit(1) * 10 + digit(2);
    match (whole, thousandths) {
        (b'0', _) => Some(thousandths),
        (b'1', 0) => Some(WEIGHT_MAX),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

    fn field<'b>(name: &'b str, value: &'b str) -> Header<'b> {
        Header {
            name,
            value: value.as_bytes(),
        }
    }

    fn best(values: &[&str], offered: &[Coding]) -> &'static str {
        let headers: Vec<_> = values
            .iter()
            .map(|value| field("Accept-Encoding", value))
            .collect();
        AcceptEncoding::of(&headers)
            .best(offered)
            .map_or("identity", Coding::token)
    }

    #[test]
    fn highest_weighted_coding_is_selected() {
        let rows: [(&[&str], &str); 23] = [
            (&[], "identity"),
            (&[""], "identity"),
            (&["gzip, deflate, br, zstd"], "zstd"),
            (&["gzip, deflate, br"], "br"),
            (&["gzip", "br"], "br"),
            (&["X-GZip"], "gzip"),
            (&["gzip;q=1.0, br;q=0.9"], "gzip"),
            (&["gzip; q=0.5,br;\tQ=0.501"], "br"),
            (&["zstd;q=0, br;q=0.000, gzip;q=0.001"], "gzip"),
            (&["*"], "zstd"),
            (&["*;q=0.1"], "zstd"),
            (&["*, zstd;q=0"], "br"),
            (&["gzip, *;q=0"], "gzip"),
            (&["gzip;q=0.5, *;q=0.9"], "zstd"),
            (&["identity"], "identity"),
            (&["identity, gzip"], "gzip"),
            (&["identity, gzip;q=0.5"], "identity"),
            (&["identity;q=0.5, gzip;q=0.5"], "gzip"),
            (&["identity;q=0, gzip;q=0.1"], "gzip"),
            (&["identity;q=0"], "identity"),
            (&["*;q=0"], "identity"),
            (&["gzip, gzip;q=0"], "gzip"),
            (&["deflate, compress"], "identity"),
        ];
        for (values, wanted) in rows {
            assert_eq!(best(values, &ALL), wanted, "{values:?}");
        }
    }

    #[test]
    fn only_offered_codings_are_selected() {
        let gzip = [Coding::Gzip];
        assert_eq!(best(&["zstd, br, gzip;q=0.1"], &gzip), "gzip");
        assert_eq!(best(&["zstd, br"], &gzip), "identity");
        assert_eq!(best(&["gzip;q=0.5, *"], &gzip), "identity");
        assert_eq!(best(&["*"], &[]), "identity");
        assert_eq!(best(&["br, gzip"], &[Coding::Gzip, Coding::Brotli]), "gzip");
    }

    #[test]
    fn malformed_accept_encoding_members_are_skipped() {
        for malformed in [
            "br;",
            "br;q",
            "br;q=",
            "br;q=2",
            "br;q=1.001",
            "br;q=0.1234",
            "br;q=.5",
            "br;q=-1",
            "br;q=1;q=1",
            "br;q = 1",
            "br;level=1",
            "br gzip",
            "\"br\"",
            "br;q=0,5",
            ";q=1",
            "br;q=1x",
            "br;;q=1",
        ] {
            let text = format!("{malformed}, gzip;q=0.1");
            assert_eq!(best(&[&text], &ALL), "gzip", "{malformed}");
        }
        for fine in ["br;q=1", "br;q=1.", "br;q=0.", "br;q=1.000", "br ; q=0.999"] {
            let wanted = if fine == "br;q=0." { "gzip" } else { "br" };
            let text = format!("{fine}, gzip;q=0.1");
            assert_eq!(best(&[&text], &ALL), wanted, "{fine}");
        }
    }

    #[test]
    fn vary_matches_field_name_or_star() {
        let rows = [
            ("Accept-Encoding", true),
            ("Origin, accept-encoding", true),
            ("*", true),
            ("Origin", false),
            ("Accept-Encoding-X", false),
            ("", false),
        ];
        for (value, wanted) in rows {
            let headers = [field("Vary", value)];
            assert_eq!(varies_by(&headers, "accept-encoding"), wanted, "{value}");
        }
        assert!(!varies_by(&[field("X-Vary", "*")], "accept-encoding"));
    }

    #[test]
    fn no_transform_must_be_a_directive() {
        let rows = [
            ("no-transform", true),
            ("max-age=5, No-Transform", true),
            ("private=\"a, no-transform\"", false),
            ("private=\"a\", no-transform", true),
            ("x=no-transform", false),
            ("", false),
        ];
        for (value, wanted) in rows {
            assert_eq!(
                is_no_transform(&[field("cache-control", value)]),
                wanted,
                "{value}"
            );
        }
    }

    #[test]
    fn identity_is_not_a_content_coding() {
        let rows = [
            ("gzip", true),
            ("identity", false),
            ("Identity, br", true),
            ("", false),
        ];
        for (value, wanted) in rows {
            assert_eq!(
                is_encoded(&[field("Content-Encoding", value)]),
                wanted,
                "{value}"
            );
        }
        assert!(!is_encoded(&[]));
    }
}
