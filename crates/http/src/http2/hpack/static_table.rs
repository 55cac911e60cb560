//! The static table (RFC 7541 appendix A), and lookup of names in it.

use std::num::NonZeroU8;

/// Names and values; the first has index 1.
#[rustfmt::skip]
static ENTRIES: [(&str, &str); COUNT] = [
    (":authority", ""), // 1
    (":method", "GET"), // 2
    (":method", "POST"), // 3
    (":path", "/"), // 4
    (":path", "/index.html"), // 5
    (":scheme", "http"), // 6
    (":scheme", "https"), // 7
    (":status", "200"), // 8
    (":status", "204"), // 9
    (":status", "206"), // 10
    (":status", "304"), // 11
    (":status", "400"), // 12
    (":status", "404"), // 13
    (":status", "500"), // 14
    ("accept-charset", ""), // 15
    ("accept-encoding", "gzip, deflate"), // 16
    ("accept-language", ""), // 17
    ("accept-ranges", ""), // 18
    ("accept", ""), // 19
    ("access-control-allow-origin", ""), // 20
    ("age", ""), // 21
    ("allow", ""), // 22
    ("authorization", ""), // 23
    ("cache-control", ""), // 24
    ("content-disposition", ""), // 25
    ("content-encoding", ""), // 26
    ("content-language", ""), // 27
    ("content-length", ""), // 28
    ("content-location", ""), // 29
    ("content-range", ""), // 30
    ("content-type", ""), // 31
    ("cookie", ""), // 32
    ("date", ""), // 33
    ("etag", ""), // 34
    ("expect", ""), // 35
    ("expires", ""), // 36
    ("from", ""), // 37
    ("host", ""), // 38
    ("if-match", ""), // 39
    ("if-modified-since", ""), // 40
    ("if-none-match", ""), // 41
    ("if-range", ""), // 42
    ("if-unmodified-since", ""), // 43
    ("last-modified", ""), // 44
    ("link", ""), // 45
    ("location", ""), // 46
    ("max-forwards", ""), // 47
    ("proxy-authenticate", ""), // 48
    ("proxy-authorization", ""), // 49
    ("range", ""), // 50
    ("referer", ""), // 51
    ("refresh", ""), // 52
    ("retry-after", ""), // 53
    ("server", ""), // 54
    ("set-cookie", ""), // 55
    ("strict-transport-security", ""), // 56
    ("transfer-encoding", ""), // 57
    ("user-agent", ""), // 58
    ("vary", ""), // 59
    ("via", ""), // 60
    ("www-authenticate", ""), // 61
];

pub(crate) const COUNT: usize = 61;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name<'a> {
    Known(Known),
    Other(&'a [u8]),
}

/// Name in the static table, identified by its first index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known(u8);

impl Known {
    pub(crate) const AUTHORITY: Known = Known(1);
    pub(crate) const METHOD: Known = Known(2);
    pub(crate) const PATH: Known = Known(4);
    pub(crate) const SCHEME: Known = Known(6);
    pub(crate) const STATUS: Known = Known(8);
    pub(crate) const AGE: Known = Known(21);
    pub(crate) const AUTHORIZATION: Known = Known(23);
    pub(crate) const CONTENT_LENGTH: Known = Known(28);
    pub(crate) const CONTENT_RANGE: Known = Known(30);
    pub(crate) const COOKIE: Known = Known(32);
    pub(crate) const ETAG: Known = Known(34);
    pub(crate) const EXPECT: Known = Known(35);
    pub(crate) const EXPIRES: Known = Known(36);
    pub(crate) const HOST: Known = Known(38);
    pub(crate) const IF_MODIFIED_SINCE: Known = Known(40);
    pub(crate) const IF_NONE_MATCH: Known = Known(41);
    pub(crate) const LAST_MODIFIED: Known = Known(44);
    pub(crate) const LOCATION: Known = Known(46);
    pub(crate) const PROXY_AUTHORIZATION: Known = Known(49);
    pub(crate) const RANGE: Known = Known(50);
    pub(crate) const SET_COOKIE: Known = Known(55);
    pub(crate) const TRANSFER_ENCODING: Known = Known(57);

    /// Index in a block.
    #[inline]
    pub(crate) fn index(self) -> u32 {
        u32::from(self.0)
    }

    #[inline]
    pub(crate) fn text(self) -> &'static str {
        ENTRIES[usize::from(self.0) - 1].0
    }
}

impl<'a> Name<'a> {
    #[inline]
    pub(crate) fn of(text: &'a [u8]) -> Name<'a> {
        match find(text) {
            Some(known) => Name::Known(known),
            None => Name::Other(text),
        }
    }

    #[inline]
    pub(crate) fn bytes(self) -> usize {
        match self {
            Name::Known(known) => known.text().len(),
            Name::Other(text) => text.len(),
        }
    }

    /// Whether it is a pseudo-field. The static table begins with these.
    #[inline]
    pub(crate) fn is_pseudo(self) -> bool {
        match self {
            Name::Known(known) => known.0 <= Known::STATUS.0,
            Name::Other(text) => text.first() == Some(&b':'),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry(NonZeroU8);

impl Entry {
    pub(crate) const METHOD_GET: Entry = Entry(NonZeroU8::new(2).unwrap());

    /// Entry of an index, counted from 1; `None` if the static table has no such index.
    #[inline]
    pub(crate) fn of(index: u32) -> Option<Entry> {
        let index = u8::try_from(index).ok()?;
        let is_one = usize::from(index) <= COUNT;
        NonZeroU8::new(index).filter(|_| is_one).map(Entry)
    }

    #[inline]
    pub(crate) fn name(self) -> Known {
        Known(FIRST[usize::from(self.0.get()) - 1])
    }

    #[inline]
    pub(crate) fn value(self) -> &'static str {
        ENTRIES[usize::from(self.0.get()) - 1].1
    }
}

/// Index of the entry with this name and value.
#[inline]
pub(crate) fn index_of(name: Known, value: &[u8]) -> Option<u32> {
    let first = usize::from(name.0) - 1;
    (first..COUNT)
        .take_while(|&at| FIRST[at] == name.0 && !ENTRIES[at].1.is_empty())
        .find(|&at| ENTRIES[at].1.as_bytes() == value)
        .map(|at| at as u32 + 1)
}

/// First index of each entry's name. Entries of the same name are adjacent.
static FIRST: [u8; COUNT] = {
    let mut first = [1; COUNT];
    let mut at = 1;
    while at < COUNT {
        let is_same = are_equal(ENTRIES[at].0.as_bytes(), ENTRIES[at - 1].0.as_bytes());
        first[at] = if is_same { first[at - 1] } else { at as u8 + 1 };
        at += 1;
    }
    first
};

#[inline]
fn find(text: &[u8]) -> Option<Known> {
    let known = Known(NAMES[slot(text)?]);
    (known.0 != 0 && known.text().as_bytes() == text).then_some(known)
}

/// Perfect hash of the names; its factors were found by search. `None` for an empty name.
#[inline]
const fn slot(text: &[u8]) -> Option<usize> {
    let [first, ..] = text else {
        return None;
    };
    let (middle, last) = (text[text.len() / 2], text[text.len() - 1]);
    let sum = *first as usize * 205 + last as usize * 93 + middle as usize * 209;
    Some((sum + text.len() * 36) >> 3 & (SLOTS - 1))
}

const SLOTS: usize = 128;

/// Name in each slot; 0 for none.
static NAMES: [u8; SLOTS] = {
    let mut names = [0; SLOTS];
    let mut at = 0;
    while at < COUNT {
        let Some(slot) = slot(ENTRIES[at].0.as_bytes()) else {
            panic!("a name is not empty");
        };
        assert!(
            names[slot] == 0 || names[slot] == FIRST[at],
            "two names in one slot"
        );
        names[slot] = FIRST[at];
        at += 1;
    }
    names
};

const fn are_equal(one: &[u8], two: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < two.len() && one[at] == two[at] {
        at += 1;
    }
    at == one.len() && at == two.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_table_lookup_finds_only_its_names() {
        for (at, (name, value)) in ENTRIES.iter().enumerate() {
            let index = at as u32 + 1;
            let entry = Entry::of(index).expect("the table has it");
            let known = entry.name();
            assert_eq!((known.text(), entry.value()), (*name, *value));
            assert_eq!(Name::of(name.as_bytes()), Name::Known(known));
            let wanted = (!value.is_empty()).then_some(index);
            assert_eq!(index_of(known, value.as_bytes()), wanted, "{name}: {value}");
            assert_eq!(index_of(known, b"x"), None);
            let longer = [name.as_bytes(), b"x"].concat();
            assert_eq!(Name::of(&longer), Name::Other(&longer));
        }
        for other in ["", "a", "Host", ":statux", "x-custom"] {
            assert_eq!(Name::of(other.as_bytes()), Name::Other(other.as_bytes()));
        }
        for index in [0, 62, 256 + 1] {
            assert_eq!(Entry::of(index), None);
        }
    }

    #[test]
    fn name_constants_match_static_table() {
        for (known, name) in [
            (Known::AUTHORITY, ":authority"),
            (Known::METHOD, ":method"),
            (Known::PATH, ":path"),
            (Known::SCHEME, ":scheme"),
            (Known::STATUS, ":status"),
            (Known::AGE, "age"),
            (Known::AUTHORIZATION, "authorization"),
            (Known::CONTENT_LENGTH, "content-length"),
            (Known::CONTENT_RANGE, "content-range"),
            (Known::COOKIE, "cookie"),
            (Known::ETAG, "etag"),
            (Known::EXPECT, "expect"),
            (Known::EXPIRES, "expires"),
            (Known::HOST, "host"),
            (Known::IF_MODIFIED_SINCE, "if-modified-since"),
            (Known::IF_NONE_MATCH, "if-none-match"),
            (Known::LAST_MODIFIED, "last-modified"),
            (Known::LOCATION, "location"),
            (Known::PROXY_AUTHORIZATION, "proxy-authorization"),
            (Known::RANGE, "range"),
            (Known::SET_COOKIE, "set-cookie"),
            (Known::TRANSFER_ENCODING, "transfer-encoding"),
        ] {
            assert_eq!(Name::of(name.as_bytes()), Name::Known(known));
        }
    }
}
