//! Parameters of a query, `a=1&b=two`, in the form encoding (WHATWG URL 5.1). Comparisons do not copy.

use std::borrow::Cow;

use crate::body::hex;

/// Value of the first parameter with this name; empty without an equals sign.
pub fn find<'q>(query: &'q str, name: &str) -> Option<Encoded<'q>> {
    parameters(query)
        .find(|(found, _)| found.is(name.as_bytes()))
        .map(|(_, value)| value)
}

/// Names and values of all parameters, in order.
pub fn parameters(query: &str) -> impl Iterator<Item = (Encoded<'_>, Encoded<'_>)> {
    query
        .split('&')
        .filter(|parameter| !parameter.is_empty())
        .map(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            (Encoded(name), Encoded(value))
        })
}

/// String in which `%` and two hexadecimal digits stand for a byte (RFC 3986 2.1) and `+` for a space. A percent sign
/// without two digits is literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded<'q>(pub &'q str);

impl<'q> Encoded<'q> {
    /// Whether it decodes to exactly these bytes.
    pub fn is(self, wanted: &[u8]) -> bool {
        self.bytes().eq(wanted.iter().copied())
    }

    /// Decodes it; copies only if something is encoded.
    pub fn decoded(self) -> Cow<'q, [u8]> {
        match memchr::memchr2(b'%', b'+', self.0.as_bytes()) {
            None => Cow::Borrowed(self.0.as_bytes()),
            Some(_) => Cow::Owned(self.bytes().collect()),
        }
    }

    fn bytes(self) -> impl Iterator<Item = u8> + use<'q> {
        let mut rest = self.0.as_bytes();
        std::iter::from_fn(move || {
            let (byte, behind) = match *rest {
                [] => return None,
                [b'+', ref behind @ ..] => (b' ', behind),
                [b'%', high, low, ref behind @ ..]
                    if let (Some(high), Some(low)) = (hex(high), hex(low)) =>
                {
                    (high << 4 | low, behind)
                }
                [byte, ref behind @ ..] => (byte, behind),
            };
            rest = behind;
            Some(byte)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_is_found_by_decoded_name() {
        let query = "a=1&b=two+words&&c&d=&%65=%C3%a9&a=later&f=%4&g=%zz%&h=x=y&=nameless&i%3dj=k";
        let rows: [(&str, Option<&str>); 12] = [
            ("a", Some("1")),
            ("b", Some("two words")),
            ("c", Some("")),
            ("d", Some("")),
            ("e", Some("\u{e9}")),
            ("f", Some("%4")),
            ("g", Some("%zz%")),
            ("h", Some("x=y")),
            ("", Some("nameless")),
            ("i=j", Some("k")),
            ("A", None),
            ("i", None),
        ];
        for (name, wanted) in rows {
            let found = find(query, name);
            assert_eq!(
                found.map(|found| found.decoded().into_owned()),
                wanted.map(|text| text.as_bytes().to_vec()),
                "{name}"
            );
            assert_eq!(
                found.is_some_and(|found| found.is(wanted.unwrap_or("").as_bytes())),
                wanted.is_some()
            );
        }
        assert!(find("", "").is_none());
    }

    #[test]
    fn encoded_value_is_compared_completely() {
        for other in ["", "1", "123", "12 ", "%31%32"] {
            assert!(!Encoded("%312").is(other.as_bytes()), "{other}");
        }
        assert!(Encoded("%312").is(b"12"));
    }

    #[test]
    fn only_encoded_values_are_copied() {
        assert!(matches!(
            Encoded("plain").decoded(),
            Cow::Borrowed(b"plain")
        ));
        assert!(matches!(Encoded("a+b").decoded(), Cow::Owned(_)));
    }
}
